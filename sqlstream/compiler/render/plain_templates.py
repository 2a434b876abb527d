"""Renders templates of text and calls such as `{{ ref('orders') }}` without generating Python code.

Most models are plain, and Jinja needs longer to read and compile one than the rest of rendering takes. This module
calls the environment exactly as Jinja's generated code would, so the result is the same. Jinja renders templates that
are not certainly plain, and those that fail.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from jinja2.runtime import Context, Macro, new_context

from sqlstream.compiler.render.places.source import TemplateSource
from sqlstream.compiler.render.sandbox.environment import TemplateEnvironment
from sqlstream.compiler.render.sandbox.template_function import TemplateFunction

MOST_CALLS = 1_000
"""Jinja renders templates with more calls, because its limits count the words of all tags."""

MOST_BRACKETS = 20
"""Jinja reads calls with more brackets, and reports if they nest too deeply."""

_TAG = re.compile(r"\{[{%#]")
_CALL = re.compile(r"\{\{\s*(?P<name>[a-z_]\w*)\s*\((?P<arguments>[^\\#]{0,2000}?)\)\s*\}\}", re.ASCII | re.IGNORECASE)
_LITERAL = re.compile(r"""'[^'\n]*'|"[^"\n]*"|\d+|True|False|None""")
"""Literals that Python and Jinja read the same way. Strings with a prefix and adjacent strings are excluded."""

_WORDS = {"true": True, "false": False, "none": None}


class NotPlainError(Exception):
    """The template may not be plain."""


@dataclass(frozen=True)
class PlainCall:
    """`{{ name(arguments) }}` after `text`: the 0-based offsets of name and arguments, and the parsed call."""

    text: str
    name: str
    offset: int
    arguments_at: int
    arguments: str
    call: ast.Call


@dataclass(frozen=True)
class PlainTemplate:
    """The calls of a template in order, and the text after the last one."""

    source: TemplateSource
    calls: tuple[PlainCall, ...]
    rest: str


def read_plain(source: TemplateSource) -> PlainTemplate | None:
    """Returns the template, None if it is not plain."""
    tags = _tags(source.text)
    if tags is None:
        return None
    calls: list[PlainCall] = []
    done = 0
    for found in tags:
        call = _read_call(found["arguments"])
        if call is None:
            return None
        text = source.text[done : found.start()]
        calls.append(
            PlainCall(text, found["name"], found.start("name"), found.start("arguments"), found["arguments"], call)
        )
        done = found.end()
    return PlainTemplate(source, tuple(calls), source.text[done:])


def _tags(text: str) -> list[re.Match[str]] | None:
    """The tags of a text, None if one of them is not a call, or there are too many."""
    found: list[re.Match[str]] = []
    done = 0
    while (tag := _TAG.search(text, done)) is not None:
        call = _CALL.match(text, tag.start())
        if call is None or len(found) == MOST_CALLS:
            return None
        found.append(call)
        done = call.end()
    return found


def _read_call(arguments: str) -> ast.Call | None:
    """The arguments as a parsed call, None if Python may read them differently from Jinja."""
    if not arguments.isascii() or arguments.count("[") + arguments.count("{") > MOST_BRACKETS:
        return None
    try:
        call = ast.parse(f"f({arguments}\n)", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return call if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else None


def run_plain(environment: TemplateEnvironment, template: PlainTemplate) -> str:
    """Returns the output, and records its effects in the environment's state.

    Raises: NotPlainError, and errors of the calls. The state is then unusable.
    """
    environment.sources[template.source.path] = template.source
    context = new_context(environment, template.source.path, {}, environment.names, True, None)
    parts = [part for call in template.calls for part in (call.text, _Run(environment, context, call).output())]
    parts.append(template.rest)
    if sum(map(len, parts)) > environment.limits.output_characters:
        raise NotPlainError
    return "".join(parts)


@dataclass(frozen=True)
class _Run:
    """One running call."""

    environment: TemplateEnvironment
    context: Context
    plain: PlainCall

    def output(self) -> str:
        name, call = self.plain.name, self.plain.call
        function = self.environment.names.get(name)
        if not isinstance(function, TemplateFunction | Macro):
            raise NotPlainError
        self.environment.state.names_read.add(name)
        if name == "config":
            path = self.context.name or ""
            keys = list(self._key_offsets())
            if len(dict(keys)) < len(keys):
                raise NotPlainError  # Jinja reports a repeated key
            self.environment.key_offsets[path, self.plain.offset] = dict(keys)
        arguments = [self._value(item) for item in call.args]
        named = {self._keyword(item): self._value(item.value) for item in call.keywords}
        return self.environment.output(
            self.environment.call_at(self.context, self.plain.offset, function, *arguments, **named)
        )

    def _keyword(self, item: ast.keyword) -> str:
        if item.arg is None:
            raise NotPlainError
        return item.arg

    def _value(self, node: ast.expr) -> object:
        if isinstance(node, ast.Constant):
            start = self._offset(node) - self.plain.arguments_at
            end = start + (node.end_col_offset or 0) - node.col_offset
            if _LITERAL.fullmatch(self.plain.arguments, start, max(start, end)) is None:
                raise NotPlainError
            return node.value
        if isinstance(node, ast.Name) and node.id in _WORDS:
            return _WORDS[node.id]
        if isinstance(node, ast.List):
            return self.environment.literal(len(node.elts), [self._value(item) for item in node.elts])
        if isinstance(node, ast.Dict):
            pairs = [(self._key(key), self._value(value)) for key, value in zip(node.keys, node.values, strict=True)]
            return self.environment.literal(2 * len(pairs), dict(pairs))
        raise NotPlainError

    def _key(self, node: ast.expr | None) -> object:
        if node is None:
            raise NotPlainError
        return self.environment.operand(self._value(node))

    def _key_offsets(self) -> Iterator[tuple[str, int]]:
        """The 0-based offset of each key in config(key=value) and config({'key': value})."""
        text = self.environment.sources[self.context.name or ""].text
        for pair in self.plain.call.keywords:
            yield pair.arg or "", text.rfind(pair.arg or "", 0, self._offset(pair.value))
        for argument in self.plain.call.args:
            for key in argument.keys if isinstance(argument, ast.Dict) else ():
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key.value, self._offset(key)

    def _offset(self, node: ast.expr) -> int:
        """The 0-based offset of a part of the arguments in the template."""
        lines = self.plain.arguments.split("\n")[: node.lineno - 1]
        before = sum(len(line) + 1 for line in lines)
        column = node.col_offset - (len("f(") if node.lineno == 1 else 0)
        return self.plain.arguments_at + before + column
