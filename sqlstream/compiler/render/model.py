"""Renders the templates of models to SQL.

Most templates are text and calls such as `{{ ref('orders') }}`. Jinja generates Python code for each, which would take
an eighth of the time to compile 1,000 models from scratch. This module makes the calls of plain templates itself in a
tenth of Jinja's time, exactly as Jinja's generated code would. Jinja renders templates that are not certainly plain,
and those that fail.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jinja2.runtime import Macro, new_context

from sqlstream.compiler.render.model_functions import model_names, names_of_model
from sqlstream.compiler.render.rendered import MacroIndex, RenderedModel, RenderOptions
from sqlstream.compiler.render.running import load_macros, override_macros, render_file
from sqlstream.compiler.render.sandbox.allowed import TemplateFunction
from sqlstream.compiler.render.sandbox.environment import RenderState, TemplateEnvironment, TemplateSource
from sqlstream.compiler.render.source_map import SourceMapper
from sqlstream.errors import Finding
from sqlstream.location import SourceMap
from sqlstream.project.values import MacroFile, ModelFile
from sqlstream.python_syntax import parse_expression

MOST_CALLS = 1_000
"""Jinja renders templates with more calls, because its limits count the words of all tags."""

MOST_BRACKETS = 20
"""Jinja reads calls with more brackets, and reports if they nest too deeply."""

_TAG = re.compile(r"\{[{%#]")
_CALL = re.compile(r"\{\{\s*(?P<name>[a-z_]\w*)\s*\((?P<arguments>[^\\#]{0,2000}?)\)\s*\}\}", re.ASCII | re.IGNORECASE)
"""A call that fills a tag. Escapes in texts (a backslash) are left to Jinja, and so is `#`, a comment in Python."""
_LITERAL = re.compile(r"""'[^'\n]*'|"[^"\n]*"|\d+|True|False|None""")
"""Literals that Python and Jinja read the same way. Strings with a prefix and adjacent strings are excluded."""

_WORDS = {"true": True, "false": False, "none": None}


class ModelRenderer:
    """Renders the models of one project, one at a time. It compiles the macros once, when it is created.

    `macro_findings` are the findings in the macro files. Not thread-safe.
    """

    def __init__(self, macros: Sequence[MacroFile], options: RenderOptions) -> None:
        self._environment = TemplateEnvironment()
        self._environment.names.update(model_names(self._environment, options))
        self.macro_findings: tuple[Finding, ...] = load_macros(self._environment, macros)
        override_macros(self._environment, options.macros)
        self._mapper = SourceMapper(macros, options)

    @property
    def macro_index(self) -> MacroIndex:
        """The facts about the macro files."""
        return self._environment.macro_index

    def render(self, file: ModelFile) -> RenderedModel:
        """Returns the model's SQL and the effects of its template. Raises: FindingsError with the first failure."""
        sql, state = self._render_plain(file) or self._render_by_jinja(file)
        return RenderedModel(
            file,
            sql,
            tuple(state.references),
            state.config,
            tuple(state.findings),
            tuple(state.macros_used),
            state.reads,
            tuple(state.logged),
        )

    def _render_by_jinja(self, file: ModelFile, logged: Sequence[tuple[str, bool]] = ()) -> tuple[str, RenderState]:
        """The output and the effects of a template. Messages that a first attempt has `logged` are not logged again."""
        state = RenderState(self._environment.limits, file, quiet=bool(logged))
        sql = render_file(self._environment, file, state)
        state.logged = state.logged or list(logged)
        return sql, state

    def _render_plain(self, file: ModelFile) -> tuple[str, RenderState] | None:
        """The output and the effects of a plain template; None for other templates."""
        template = read_plain(TemplateSource(file.path, file.text))
        if template is None:
            return None
        self._environment.names.update(names_of_model(file))
        state = self._environment.state = RenderState(self._environment.limits, file)
        try:
            return run_plain(self._environment, template), state
        except Exception:  # Jinja fails too, and knows the location
            return self._render_by_jinja(file, state.logged)

    def source_map(self, rendered: RenderedModel) -> SourceMap:
        """Returns the map from `rendered.sql` back to the lines of the template. The first call for a model renders it
        again with marks, so call it only for findings.
        """
        return self._mapper.source_map(rendered)


class NotPlainError(Exception):
    """The template may not be plain."""


@dataclass(frozen=True)
class PlainCall:
    """`{{ name(*args, **named) }}` after `text`. Offsets are 0-based in the template. `keys` are the keys of
    config() with their offsets.
    """

    text: str
    name: str
    offset: int
    args: tuple[object, ...]
    named: dict[str, object]
    keys: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class PlainTemplate:
    """The calls of a template in order, and the text after the last one."""

    source: TemplateSource
    calls: tuple[PlainCall, ...]
    rest: str


def read_plain(source: TemplateSource) -> PlainTemplate | None:
    """Returns the template, None if it is not plain."""
    try:
        found = list(_find_calls(source.text))
        starts = [0, *(call.end() for call in found)]
        calls = [_read_call(source.text, start, call) for start, call in zip(starts, found, strict=False)]
    except (NotPlainError, SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None
    return PlainTemplate(source, tuple(calls), source.text[starts[-1] :])


def _find_calls(text: str) -> Iterator[re.Match[str]]:
    count = end = 0
    while (tag := _TAG.search(text, end)) is not None:
        call = _CALL.match(text, tag.start())
        count += 1
        if call is None or count > MOST_CALLS:
            raise NotPlainError
        yield call
        end = call.end()


def _read_call(text: str, start: int, found: re.Match[str]) -> PlainCall:
    """The call in a tag, after the template's text from `start`. Raises: errors of Python's parser, NotPlainError."""
    arguments = found["arguments"]
    # `ast` counts columns in bytes of UTF-8.
    if not arguments.isascii() or arguments.count("[") + arguments.count("{") > MOST_BRACKETS:
        raise NotPlainError
    reader = _ArgumentReader(f"f({arguments}\n)", found.start("arguments") - len("f("))
    call = parse_expression(reader.code)
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise NotPlainError
    named = {str(item.arg): reader.value(item.value) for item in call.keywords if item.arg is not None}
    # `**mapping` is an argument without a name.
    if len(named) < len(call.keywords):
        raise NotPlainError
    return PlainCall(
        text[start : found.start()],
        found["name"],
        found.start("name"),
        tuple(reader.value(item) for item in call.args),
        named,
        tuple(reader.keys(call, text)) if found["name"] == "config" else (),
    )


@dataclass(frozen=True)
class _ArgumentReader:
    """Reads the values in `code`, a call whose text begins at the offset `start` of the template."""

    code: str
    start: int

    def value(self, node: ast.expr | None) -> object:
        """Returns the value of a literal. Raises: NotPlainError for other expressions."""
        if isinstance(node, ast.Constant):
            start = self._offset(node)
            if _LITERAL.fullmatch(self.code, start, start + (node.end_col_offset or 0) - node.col_offset):
                return node.value
        if isinstance(node, ast.Name) and node.id in _WORDS:
            return _WORDS[node.id]
        if isinstance(node, ast.List):
            return [self.value(item) for item in node.elts]
        if isinstance(node, ast.Dict):
            return {self.value(key): self.value(item) for key, item in zip(node.keys, node.values, strict=True)}
        raise NotPlainError

    def keys(self, call: ast.Call, text: str) -> Iterator[tuple[str, int]]:
        """Yields each key in config(key=value) and config({'key': value}) with its offset in the template's text."""
        for pair in call.keywords:
            yield str(pair.arg), text.rfind(str(pair.arg), 0, self.start + self._offset(pair.value))
        keys = (key for argument in call.args if isinstance(argument, ast.Dict) for key in argument.keys)
        for key in keys:
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value, self.start + self._offset(key)

    def _offset(self, node: ast.expr) -> int:
        """The 0-based offset of a node in `code`."""
        before = self.code.split("\n")[: node.lineno - 1] if node.lineno > 1 else ()
        return sum(len(line) + 1 for line in before) + node.col_offset


def run_plain(environment: TemplateEnvironment, template: PlainTemplate) -> str:
    """Returns the output of a plain template. Raises: errors of its calls, and NotPlainError."""
    path = template.source.path
    environment.sources[path] = template.source
    context = new_context(environment, path, {}, environment.names, True, None)
    parts = []
    for call in template.calls:
        function = environment.names.get(call.name)
        if not isinstance(function, TemplateFunction | Macro):
            raise NotPlainError
        # As `_Names` does for Jinja, which looks up names with `in`.
        environment.state.names_read.add(call.name)
        if call.keys:
            environment.record_keys((path, call.offset), call.keys)
        value = environment.call_at(context, call.offset, function, *call.args, **call.named)
        parts += [call.text, environment.output(value)]
    parts.append(template.rest)
    if sum(map(len, parts)) > environment.limits.output_characters:
        # Jinja then renders the template, and reports the limit with its location.
        raise NotPlainError
    return "".join(parts)
