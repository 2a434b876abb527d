# ruff: noqa: ARG002 - the signatures are Jinja's
"""Jinja's sandbox for sqlstream: exact locations, bounded work, and no access to Python.

The generated Python code calls the environment at everything that takes work: each run of a loop's or a macro's body,
calls, outputs, operators and comparisons.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any, NoReturn

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame, MacroRef
from jinja2.environment import Template
from jinja2.exceptions import TemplateSyntaxError
from jinja2.ext import Extension
from jinja2.lexer import Lexer, TokenStream
from jinja2.parser import Parser
from jinja2.runtime import Context, LoopContext, Macro, Undefined, new_context
from jinja2.sandbox import SandboxedEnvironment
from jinja2.utils import Cycler, Joiner

from sqlstream.compiler.render.rendered import MacroIndex, Reference, TemplateReads
from sqlstream.compiler.render.sandbox.allowed import TemplateFunction, bounded_filters, bounded_tests, call_method
from sqlstream.compiler.render.sandbox.bounds import OPERATIONS, Budget, RenderLimits, apply_operator, brace_format
from sqlstream.compiler.render.sandbox.render_errors import LocatedUndefined, MacroReturn, TemplateProblem, unsafe_use
from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.values import ModelFile
from sqlstream.project.wording import quoted
from sqlstream.project.yaml import Located

NO_CODE = ("data", "whitespace", "comment")
"""Kinds of tokens that produce no Python code."""

NODES_PER_STEP = 2
"""Nodes of a template whose code takes a step: an expression of one takes some hundred nanoseconds."""

CALL_STEPS = 5
"""The steps of a call, besides those of its code and its arguments."""

PASSING = frozenset({"dict", "namespace", "return", "format", "format_map"})
"""Functions that only pass their arguments on, so marked text stays marked."""

JINJA_HELPERS = (LoopContext, Cycler)
"""Jinja's objects with safe and small public methods."""

OPAQUE = (Macro, LoopContext, TemplateFunction, Cycler, Context, Template)
"""Values without a text: printing one is a mistake, such as missing parentheses."""


class RenderState:
    """The effects of one rendering so far. `calls` are the running calls as (path, offset), the outermost first. They
    stay after a failed call, to locate the error. `quiet`: log() does nothing.
    """

    def __init__(self, limits: RenderLimits, model: ModelFile | None = None, *, quiet: bool = False) -> None:
        self.budget = Budget(limits)
        self.model = model
        self.quiet = quiet
        self.calls: list[tuple[str, int]] = []
        self.references: list[Reference] = []
        self.config: dict[str, Located] = {}
        self.findings: list[Finding] = []
        self.macros_used: dict[str, None] = {}
        self.names_read: set[str] = set()
        self.variables_read: set[str] = set()
        self.environment_read: set[str] = set()
        self.secrets_read: set[str] = set()
        self.logged: list[tuple[str, bool]] = []

    @property
    def reads(self) -> TemplateReads:
        """The names, variables, environment variables and secrets that the rendering has read."""
        read = (self.names_read, self.variables_read, self.environment_read, self.secrets_read)
        return TemplateReads(*(tuple(sorted(names)) for names in read))


def start_of(node: nodes.Node) -> int:
    """Returns the 1-based offset of the first character of an expression (`lineno` of a call is its parenthesis)."""
    while True:
        inner = getattr(node, "left", None) or getattr(node, "expr", None) or getattr(node, "node", None)
        if isinstance(node, nodes.UnaryExpr | nodes.Const) or not isinstance(inner, nodes.Expr):
            return node.lineno
        node = inner


def _refusal(tag: str) -> Any:
    """A visitor that refuses the statement `tag`."""

    def visit(_generator: CodeGenerator, node: nodes.Node, _frame: Frame) -> NoReturn:
        raise TemplateProblem(
            "jinja-syntax",
            f"`{{% {tag} %}}` is not available",
            "a macro in macros/ is available everywhere by its name, and a model is one file",
            "call the macro by its name; move text that several models share to a macro",
            node.lineno - 1,
        )

    return visit


class GenericTestBlock(Extension):
    """dbt's block `{% test name(model) %}`: a macro with the name `test_name`, in macros/ and tests/generic/."""

    tags = {"test", "data_test"}  # noqa: RUF012 - as Jinja declares it

    def parse(self, parser: Parser) -> nodes.Macro:
        """Returns the macro. Raises: TemplateProblem in the template of a model."""
        tag = next(parser.stream)
        if not str(parser.name).startswith(("macros/", "tests/")):
            raise TemplateProblem(
                "jinja-syntax",
                f"`{{% {tag.value} %}}` is not available in a model",
                "a test is there for all models",
                "move the block to a file in tests/generic/ or macros/",
                tag.lineno - 1,
            )
        node = nodes.Macro(lineno=tag.lineno)
        node.name = f"test_{parser.stream.expect('name').value}"
        parser.parse_signature(node)
        node.body = parser.parse_statements((f"name:end{tag.value}",), drop_needle=True)
        return node


class BoundedGenerator(CodeGenerator):
    """Jinja's code generator with hooks. It computes nothing at compile time, where errors have no location."""

    environment: TemplateEnvironment

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._wrapped: dict[int, str] = {}
        self._counts: dict[int, int] = {}

    # outputs

    def output_call(self, node: nodes.Node | None) -> str:
        """Returns the start of the call that converts an expression's value to text."""
        return "environment.output("

    def _output_child_to_const(self, node: nodes.Expr, frame: Frame, finalize: CodeGenerator._FinalizeInfo) -> str:
        if not isinstance(node, nodes.TemplateData):
            raise nodes.Impossible
        return self.data_text(node)

    def data_text(self, node: nodes.TemplateData) -> str:
        """Returns the output for the template text of `node`."""
        return node.data

    def _output_child_pre(self, node: nodes.Expr, frame: Frame, finalize: CodeGenerator._FinalizeInfo) -> None:
        self.write(self.output_call(node))

    def _output_child_post(self, node: nodes.Expr, frame: Frame, finalize: CodeGenerator._FinalizeInfo) -> None:
        self.write(")")

    def visit_Output(self, node: nodes.Output, frame: Frame) -> None:  # noqa: N802 - Jinja's name
        """Writes text and expressions. The location of an expression is its first character."""
        for child in node.nodes:
            if not isinstance(child, nodes.TemplateData):
                child.lineno = start_of(child)
        super().visit_Output(node, frame)

    def start_write(self, frame: Frame, node: nodes.Node | None = None) -> None:
        """Begins the output of a call block, a filter block or a recursive loop."""
        super().start_write(frame, node)
        self.write(self.output_call(node))

    def end_write(self, frame: Frame) -> None:
        """Ends what start_write() began."""
        self.write(")")
        super().end_write(frame)

    # what runs more than once

    def visit_For(self, node: nodes.For, frame: Frame) -> None:  # noqa: N802
        """Writes a loop whose items and filter cost steps each time."""
        self._charge(node)
        if node.test is not None:
            self._wrapped[id(node.test)] = f"tested({self._steps(node.test)}, "
        super().visit_For(node, frame)

    def macro_body(self, node: nodes.Macro | nodes.CallBlock, frame: Frame) -> tuple[Frame, MacroRef]:
        """Writes the body of a macro, which costs steps each time."""
        self._charge(node)
        return super().macro_body(node, frame)

    def _charge(self, node: nodes.For | nodes.Macro | nodes.CallBlock) -> None:
        """Lets each run of the node's body spend the steps of its code."""
        if isinstance(node, nodes.For):
            defaults, lineno = [], start_of(node.iter)
        else:
            defaults, lineno = node.defaults, node.lineno
        steps = nodes.Const(1 + sum(map(self._steps, [*node.body, *defaults])), lineno=lineno)
        self._wrapped[id(steps)] = "budget.spend("
        node.body.insert(0, nodes.ExprStmt(steps, lineno=lineno))

    def _steps(self, node: nodes.Node) -> int:
        """The steps of running the code of `node` once."""
        return self._count(node) // NODES_PER_STEP

    def _count(self, node: nodes.Node) -> int:
        # Kept, because each loop around a node counts it again.
        known = self._counts.get(id(node))
        if known is None:
            known = self._counts[id(node)] = 1 + sum(map(self._count, node.iter_child_nodes()))
        return known

    def visit(self, node: nodes.Node, *args: Any, **named: Any) -> Any:
        """Writes a node, inside a call of the environment if a visitor has requested one."""
        hook = self._wrapped.pop(id(node), None)
        if hook is None:
            return super().visit(node, *args, **named)
        self.write(f"environment.{hook}")
        super().visit(node, *args, **named)
        self.write(")")
        return None

    # calls

    def visit_Call(self, node: nodes.Call, frame: Frame, forward_caller: bool = False) -> None:  # noqa: N802
        """Writes a call that passes its location to the environment."""
        offset = start_of(node) - 1
        if isinstance(node.node, nodes.Name) and node.node.name == "config":
            path = self.name or ""
            self.environment.record_keys((path, offset), _key_offsets(node, self.environment.sources[path].text))
        self.write(f"environment.call_at(context, {offset}, ")
        self.visit(node.node, frame)
        self.signature(node, frame, {"caller": "caller"} if forward_caller else None)
        self.write(")")

    def signature(
        self, node: nodes.Call | nodes.Filter | nodes.Test, frame: Frame, extra_kwargs: Mapping[str, Any] | None = None
    ) -> None:
        """Writes the arguments of a call, and measures unpacked ones."""
        for unpacked in (node.dyn_args, node.dyn_kwargs):
            if unpacked is not None:
                self._wrapped[id(unpacked)] = "operand("
        super().signature(node, frame, extra_kwargs)

    # operations that look into values

    def visit_Compare(self, node: nodes.Compare, frame: Frame) -> None:  # noqa: N802
        """Writes a comparison of measured values."""
        self._wrapped[id(node.expr)] = "operand("
        super().visit_Compare(node, frame)

    def visit_Operand(self, node: nodes.Operand, frame: Frame) -> None:  # noqa: N802
        """Writes an operator and its measured right side."""
        self._wrapped[id(node.expr)] = "operand("
        super().visit_Operand(node, frame)

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802
        """Writes `a ~ b`."""
        self._write_call("concatenate", node.nodes, frame)

    def visit_Getitem(self, node: nodes.Getitem, frame: Frame) -> None:  # noqa: N802
        """Writes a subscript. Slices call the environment too."""
        if not isinstance(node.arg, nodes.Slice):
            super().visit_Getitem(node, frame)
            return
        bounds = [bound or nodes.Const(None) for bound in (node.arg.start, node.arg.stop, node.arg.step)]
        self._write_call("slice_of", [node.node, *bounds], frame)

    def _write_call(self, method: str, arguments: Iterable[nodes.Expr], frame: Frame) -> None:
        """Writes a call of a method of the environment."""
        self.write(f"environment.{method}(")
        for argument in arguments:
            self.visit(argument, frame)
            self.write(", ")
        self.write(")")

    def visit_Dict(self, node: nodes.Dict, frame: Frame) -> None:  # noqa: N802
        """Writes a mapping. Its keys are measured, because Python hashes them."""
        self._wrapped |= dict.fromkeys((id(pair.key) for pair in node.items), "operand(")
        super().visit_Dict(node, frame)

    # statements that need other templates, or are for HTML

    visit_Import = visit_FromImport = _refusal("import")  # noqa: N815
    visit_Include = _refusal("include")  # noqa: N815
    visit_Extends = _refusal("extends")  # noqa: N815
    visit_Block = _refusal("block")  # noqa: N815
    visit_ScopedEvalContextModifier = _refusal("autoescape")  # noqa: N815


def _key_offsets(node: nodes.Call, text: str) -> Iterator[tuple[str, int]]:
    """The 0-based offset of each key in config(key=value) and config({'key': value})."""
    for pair in node.kwargs:
        if isinstance(pair, nodes.Keyword):
            yield pair.key, text.rfind(pair.key, 0, start_of(pair.value) - 1)
    keys = (item.key for argument in node.args if isinstance(argument, nodes.Dict) for item in argument.items)
    for key in keys:
        if isinstance(key, nodes.Const) and isinstance(key.value, str):
            yield key.value, key.lineno - 1


class TemplateEnvironment(SandboxedEnvironment):
    """Compiles and runs templates for one rendering at a time, whose effects go to `state`. Not thread-safe.

    `names` are known to every template: functions, values and the macros of the project. `key_offsets` has the 0-based
    offset of each key in a call of config(), by the call's path and offset.
    """

    code_generator_class = BoundedGenerator
    intercepted_binops = frozenset(OPERATIONS)

    def __init__(self, limits: RenderLimits | None = None) -> None:
        super().__init__(
            undefined=LocatedUndefined,
            keep_trailing_newline=True,
            optimized=False,
            extensions=["jinja2.ext.do", GenericTestBlock],
            cache_size=0,
        )
        self.limits = limits or RenderLimits()
        self.state = RenderState(self.limits)
        self.sources: dict[str, TemplateSource] = {}
        self.key_offsets: dict[tuple[str, int], dict[str, int]] = {}
        self.names: dict[str, Any] = _Names(self)
        self.macro_index = MacroIndex({}, {})
        self.read_until = 0
        # Jinja's own globals, such as range() and lipsum(), have no bounds.
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
        state: str | None = None,
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
        # In parts, so that an output that never ends is stopped at the limit.
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
        self.budget.require_size(sum(map(len, pieces)))
        result = "".join(pieces)
        self.budget.check(result)
        return result

    # values

    @property
    def budget(self) -> Budget:
        """The budget of the current rendering."""
        return self.state.budget

    def text(self, value: object) -> str:
        """Returns `value` as text of limited size. Raises: TemplateProblem for a value without a text."""
        if type(value) is str:
            return value
        if isinstance(value, OPAQUE) or (callable(value) and not isinstance(value, Undefined)):
            name = getattr(value, "name", None) or getattr(value, "__name__", None)
            raise TemplateProblem(
                "jinja-failed",
                f"{f'`{name}`' if isinstance(name, str) else 'this value'} is used without a call",
                "a function or macro returns its text only when it is called",
                "add parentheses with its arguments",
            )
        self.budget.weigh(value)
        result = str(value)
        self.budget.require_size(len(result))
        return result

    def operand(self, value: Any, operation: str = "") -> Any:
        """Returns the value for an operation that looks into it, and measures it."""
        self.budget.weigh(value)
        return self.plain(value, operation)

    def plain(self, value: Any, operation: str = "") -> Any:
        """Returns the value for `operation`. Environments that add marks to text override it."""
        return value

    # called by the generated code

    def output(self, value: object) -> str:
        """Returns the output of `{{ value }}`."""
        text = self.text(value)
        self.budget.check(text)
        return text

    def tested(self, steps: int, value: object) -> object:
        """Returns the result of a loop's filter for one item, which costs steps."""
        self.budget.spend(1 + steps)
        return value

    def concatenate(self, *values: object) -> str:
        """Returns the result of `a ~ b`."""
        return self.join_output([self.text(value) for value in values])

    def slice_of(self, value: Any, *bounds: Any) -> object:
        """Returns `value[start:stop:step]`."""
        if isinstance(value, Undefined):
            return value[slice(*bounds)]  # raises an error that names the undefined value
        return self.budget.check(self.plain(value, "[:]")[slice(*bounds)])

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Returns the result of a binary operator."""
        return apply_operator(self.budget, operator, left, right)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Returns `obj[argument]` if the sandbox allows it."""
        if isinstance(argument, Undefined):
            str(argument)  # raises an error that names the undefined value
        return super().getitem(obj, argument if isinstance(argument, int) else self.operand(argument, "[]"))

    # Positional only, because templates can pass arguments of any name.
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
            # return() has left the calls inside the macro.
            del calls[depth:]
            result = signal.value
        calls.pop()
        return result

    def _call(self, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> object:
        self.budget.spend(CALL_STEPS)
        if isinstance(function, Macro):
            if function.name in self.macro_index.files:
                self.state.macros_used[function.name] = None
            return function(*args, **named)
        is_function = isinstance(function, TemplateFunction)
        if is_function or isinstance(getattr(function, "__self__", function), (*JINJA_HELPERS, Undefined, Joiner)):
            if is_function and function.name not in PASSING:
                args = tuple(self.plain(argument, function.name) for argument in args)
            for argument in (*args, *named.values()):
                self.budget.weigh(argument)
            return function(*args, **named)
        function, args = self.plain_call(function, args)
        return call_method(self.budget, function, args, named)

    def plain_call(self, method: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        """Returns a method and its arguments for a call. Environments that add marks to text override it."""
        return method, args

    def wrap_str_format(self, value: Any) -> Any:
        """Returns a bounded replacement for str.format and str.format_map, None for other functions."""
        owner, name = getattr(value, "__self__", None), getattr(value, "__name__", "")
        if not isinstance(owner, str) or name not in ("format", "format_map"):
            return None

        def call(*args: Any, **named: Any) -> object:
            if name == "format_map":
                return brace_format(self, self.budget, owner, (), args[0])
            return brace_format(self, self.budget, owner, args, named)

        return TemplateFunction(name, call)

    def unsafe_undefined(self, obj: Any, attribute: str) -> Undefined:
        """Raises: TemplateProblem for an attribute that templates cannot use, as soon as it is named."""
        raise unsafe_use(f"`{attribute}`")

    # locations

    def record_keys(self, call: tuple[str, int], keys: Iterable[tuple[str, int]]) -> None:
        """Records the offset of each key in a call of config(). Raises: TemplateProblem for a key that is set twice."""
        offsets = self.key_offsets[call] = {}
        for key, offset in sorted(keys, key=itemgetter(1)):
            if key in offsets:
                raise TemplateProblem(
                    "jinja-syntax",
                    f"config() sets the key {quoted(key)} twice",
                    "only one of the values can apply",
                    "remove one of them, or merge their values",
                    offset,
                )
            offsets[key] = offset

    def location(self, path: str, offset: int) -> Location:
        """Returns the location of an offset (0-based) of a template."""
        return self.sources[path].location(offset)

    def key_locations(self, keys: Mapping[str, object]) -> dict[str, Location]:
        """Returns the locations of `keys` in the running call, or that of the call for keys that it does not name."""
        path, offset = self.state.calls[-1]
        known = self.key_offsets.get((path, offset), {})
        return {key: self.location(path, known.get(key, offset)) for key in keys}


class _Names(dict[str, Any]):
    """The names that templates know. Records each name that a template uses in the state of the rendering."""

    def __init__(self, environment: TemplateEnvironment) -> None:
        super().__init__()
        self._environment = environment

    # Jinja's Context asks this before it reads a name.
    def __contains__(self, name: object) -> bool:
        self._environment.state.names_read.add(str(name))
        return super().__contains__(name)


LINE_END = re.compile(r"\r\n|\r")


class TemplateSource:
    """The text of one file as Jinja reads it. Line ends are single newlines, which changes no line and no column."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = LINE_END.sub("\n", text)
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", self.text))]

    def location(self, offset: int) -> Location:
        """Returns the location of the character at `offset` (0-based)."""
        line = bisect_right(self._line_starts, offset)
        return Location(self.path, line, offset - self._line_starts[line - 1] + 1)

    def find_word(self, word: str, offset: int) -> int:
        """Returns the offset of `word` as a whole word at or after `offset`, or `offset` if it is not found."""
        found = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)").search(self.text, offset)
        return found.start() if found else offset


def offset_tokens(lexer: Lexer, text: str, name: str | None) -> Iterator[tuple[int, str, str]]:
    """Yields the raw tokens of a text, each with its 1-based offset where Jinja has the line number.

    So every node, error and traceback of Jinja has its exact location. Only the whitespace that `{%-` and `-%}` strip
    lies between two tokens. Raises: TemplateSyntaxError.
    """
    end = 0
    try:
        for _, kind, value in lexer.tokeniter(text, name):
            start = text.find(value, end)
            end = start + len(value)
            yield start + 1, kind, value
    except TemplateSyntaxError as error:
        error.lineno = end + 1
        raise
