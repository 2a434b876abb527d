"""Jinja's sandbox for sqlstream: exact locations, a budget for all work, and no access to Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from jinja2 import nodes
from jinja2.environment import Template
from jinja2.lexer import TokenStream
from jinja2.runtime import Context, LoopContext, Macro, Undefined, new_context
from jinja2.utils import Cycler, Joiner

from sqlstream.compiler.render.places.source import TemplateSource, offset_tokens
from sqlstream.compiler.render.sandbox.bounded import BoundedEnvironment
from sqlstream.compiler.render.sandbox.budget import CHARACTERS_PER_STEP, RenderLimits
from sqlstream.compiler.render.sandbox.filters import bounded_filters, bounded_tests
from sqlstream.compiler.render.sandbox.generator import BoundedGenerator
from sqlstream.compiler.render.sandbox.methods import call_method
from sqlstream.compiler.render.sandbox.operators import OPERATIONS, apply_operator, brace_format
from sqlstream.compiler.render.sandbox.problems import MacroReturn, TemplateProblem, unsafe_use
from sqlstream.compiler.render.sandbox.template_values import TemplateFunction
from sqlstream.compiler.render.values import MacroIndex
from sqlstream.location import Location

MACRO_STEPS = 15
"""The steps of a macro call, which takes about as long as that many steps of a loop."""

CALL_STEPS = 6
"""The steps of any other call."""

NO_CODE = ("data", "whitespace", "comment")
"""Kinds of tokens that produce no Python code."""

PASSING = frozenset({"dict", "namespace", "return", "format", "format_map"})
"""Functions that only pass their arguments on, so marked text stays marked."""

JINJA_HELPERS = (LoopContext, Cycler)
"""Jinja's objects with safe and small public methods."""


class TemplateEnvironment(BoundedEnvironment):
    """Compiles and runs templates for one rendering at a time, whose effects go to `state`. Not thread-safe.

    `names` are known to every template: functions, values and the macros of the project.
    """

    code_generator_class = BoundedGenerator
    intercepted_binops = frozenset(OPERATIONS)

    def __init__(self, limits: RenderLimits | None = None) -> None:
        super().__init__(limits or RenderLimits())
        self.names: dict[str, Any] = _Names(self)
        self.macro_index = MacroIndex({}, {})
        self.read_until = 0
        self.globals = {}
        self.filters = bounded_filters(self)
        self.tests = bounded_tests(self)
        self.concat = self.join_output  # type: ignore[method-assign] # the generated code calls it for blocks and macros

    # reading

    def load(self, source: TemplateSource) -> tuple[nodes.Template, Template]:
        """Returns the parsed and the compiled template. Raises: errors of Jinja and of Python's compiler."""
        self.sources[source.path] = source
        tree = self.parse_source(source)
        code = compile(self._generate(tree, source.path, source.path), "<template>", "exec")
        return tree, Template.from_code(self, code, self.globals)

    def parse_source(self, source: TemplateSource) -> nodes.Template:
        """Returns the parsed template. The `lineno` of each node is its 1-based offset."""
        return self._parse(source.text, source.path, source.path)

    def _tokenize(
        self,
        source: str,
        name: str | None,
        filename: str | None = None,
        state: str | None = None,  # noqa: ARG002 - Jinja's signature
    ) -> TokenStream:
        return TokenStream(self.lexer.wrap(self._watched_tokens(source, name), name, filename), name, filename)

    def _watched_tokens(self, text: str, name: str | None) -> Iterator[tuple[int, str, str]]:
        """The tokens of a text, with `read_until` set. Raises: TemplateProblem if the tags have too many."""
        left = self.limits.tokens
        for offset, kind, value in offset_tokens(self.lexer, text, name):
            self.read_until = offset - 1
            left -= kind not in NO_CODE
            if left < 0:
                raise TemplateProblem(
                    "jinja-limit",
                    f"the template has more than {self.limits.tokens:,} tokens in its tags",
                    "Jinja compiles all of them to Python before it renders anything",
                    "use a loop, or read the values from a seed or a source",
                    self.read_until,
                )
            yield offset, kind, value
        self.read_until = len(text)

    # running

    def context_for(self, template: Template) -> Context:
        """Returns a context for `template` with all `names`, including later changes."""
        return new_context(self, template.name, template.blocks, self.names, True, None)

    def run(self, template: Template) -> str:
        """Returns the whole output of `template`. Raises: errors of its expressions."""
        limit = self.limits.output_characters
        parts, size = [], 0
        output: Any = template.root_render_func(self.context_for(template))
        for part in output:
            size += len(part)
            if size > limit:
                raise TemplateProblem(
                    "jinja-limit",
                    f"the template renders more than {limit:,} characters of SQL",
                    "Spark cannot plan SQL of that size; the template probably loops too often",
                    "loop over fewer items, or read the values from a seed or a source",
                    template.get_corresponding_lineno(output.gi_frame.f_lineno) - 1,
                )
            parts.append(part)
        return "".join(parts)

    def join_output(self, parts: Iterable[str]) -> str:
        """Returns the output of a macro or a block as one text."""
        pieces = list(parts)
        size = sum(map(len, pieces))
        self.budget.require_size(size)
        self.budget.spend_text(size)
        return "".join(pieces)

    # called by the generated code

    def output(self, value: object) -> str:
        """Returns the output of `{{ value }}`."""
        text = self.text(value)
        self.budget.spend_text(len(text) + CHARACTERS_PER_STEP)
        return text

    def iterate(self, value: Any) -> Iterator[object]:
        """Returns the items of a loop, each of which costs a step."""
        return self.budget.count(value)

    def literal(self, size: int, value: object) -> object:
        """Returns a literal list, tuple or mapping of the template."""
        self.budget.spend(1 + size)
        return value

    def concatenate(self, *values: object) -> str:
        """Returns the result of `a ~ b`."""
        return self.join_output([self.text(value) for value in values])

    def slice_of(self, value: Any, *bounds: Any) -> object:
        """Returns `value[start:stop:step]`."""
        if isinstance(value, Undefined):
            return value[slice(*bounds)]
        return self.budget.check(self.operand(value, "[:]")[slice(*bounds)])

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:  # noqa: ARG002 - Jinja's signature
        """Returns the result of a binary operator."""
        return apply_operator(self.budget, operator, left, right)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Returns `obj.attribute` if the sandbox allows it."""
        self.state.budget.spend(1)
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Returns `obj[argument]` if the sandbox allows it."""
        if isinstance(argument, Undefined):
            str(argument)  # raises an error that names the undefined value
        return super().getitem(obj, argument if isinstance(argument, int) else self.operand(argument, "[]"))

    def call_at(self, context: Context, offset: int, function: Any, /, *args: Any, **named: Any) -> Any:
        """Returns the result of a call at `offset` of the context's template. It is in `state.calls` while it runs."""
        calls = self.state.calls
        calls.append((context.name or "", offset))
        depth = len(calls)
        try:
            result = self._call(function, args, named)
        except MacroReturn as signal:
            if not isinstance(function, Macro):
                raise
            del calls[depth:]
            result = signal.value
        calls.pop()
        return result

    def _call(self, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> object:
        if isinstance(function, Macro):
            self.budget.spend(MACRO_STEPS)
            if function.name in self.macro_index.files:
                self.state.macros_used[function.name] = None
            return function(*args, **named)
        self.budget.spend(CALL_STEPS)
        if isinstance(function, TemplateFunction):
            if function.name not in PASSING:
                args = tuple(self.plain(argument, function.name) for argument in args)
            return function(*args, **named)
        if isinstance(function, LoopContext):
            return function(*(self.iterate(argument) for argument in args))
        if isinstance(function, Undefined | Joiner) or isinstance(getattr(function, "__self__", None), JINJA_HELPERS):
            return function(*args, **named)
        function, args = self.plain_call(function, args)
        return call_method(self.budget, function, args, named)

    def plain_call(self, method: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        """Returns a method and its arguments for a call. Environments that add marks to text override it."""
        return method, args

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """Returns a bounded replacement for str.format and str.format_map, None for other functions."""
        owner, name = getattr(value, "__self__", None), getattr(value, "__name__", "")
        if not isinstance(owner, str) or name not in ("format", "format_map"):
            return None

        def call(*args: Any, **named: Any) -> str:
            if name == "format_map":
                return brace_format(self, self.budget, owner, (), args[0])
            return brace_format(self, self.budget, owner, args, named)

        return TemplateFunction(name, call)

    def unsafe_undefined(self, obj: Any, attribute: str) -> Undefined:  # noqa: ARG002 - Jinja's signature
        """Raises: TemplateProblem for an attribute that templates cannot use, as soon as it is named."""
        raise unsafe_use(f"`{attribute}`")

    # locations

    def location(self, path: str, offset: int) -> Location:
        """Returns the location of an offset (0-based) of a template."""
        return self.sources[path].location(offset)

    def key_places(self, keys: Mapping[str, object]) -> dict[str, Location]:
        """Returns the locations of `keys` in the running call, or that of the call for keys that it does not name."""
        path, offset = self.state.calls[-1]
        known = self.key_offsets.get((path, offset), {})
        return {key: self.location(path, known.get(key, offset)) for key in keys}


class _Names(dict[str, Any]):
    """The names that templates know. Records each name that a template uses in the state of the rendering."""

    def __init__(self, environment: TemplateEnvironment) -> None:
        super().__init__()
        self._environment = environment

    def __contains__(self, name: object) -> bool:
        self._environment.state.names_read.add(str(name))
        return super().__contains__(name)
