# ruff: noqa: ARG002 - the signatures are Jinja's
"""Generates Python code in which every loop, call, output, comparison and literal calls the environment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame

from sqlstream.compiler.render.sandbox.problems import TemplateProblem

if TYPE_CHECKING:
    from sqlstream.compiler.render.sandbox.bounded import BoundedEnvironment


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


class BoundedGenerator(CodeGenerator):
    """Jinja's code generator with hooks. It computes nothing at compile time, where errors have no location."""

    environment: BoundedEnvironment

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._wrapped: dict[int, str] = {}

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

    # loops

    def visit_For(self, node: nodes.For, frame: Frame) -> None:  # noqa: N802
        """Writes a loop that counts every step."""
        self._wrapped[id(node.iter)] = "iterate"
        super().visit_For(node, frame)

    def visit(self, node: nodes.Node, *args: Any, **named: Any) -> Any:
        """Writes a node, inside a call of the environment if a visitor has requested one."""
        hook = self._wrapped.pop(id(node), None)
        if hook is None:
            return super().visit(node, *args, **named)
        self.write(f"environment.{hook}(")
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
                self._wrapped[id(unpacked)] = "operand"
        super().signature(node, frame, extra_kwargs)

    # operations that look into values

    def visit_Compare(self, node: nodes.Compare, frame: Frame) -> None:  # noqa: N802
        """Writes a comparison of measured values."""
        self._wrapped[id(node.expr)] = "operand"
        super().visit_Compare(node, frame)

    def visit_Operand(self, node: nodes.Operand, frame: Frame) -> None:  # noqa: N802
        """Writes an operator and its measured right side."""
        self._wrapped[id(node.expr)] = "operand"
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

    def visit_List(self, node: nodes.List, frame: Frame) -> None:  # noqa: N802
        """Writes a list that costs a step per item."""
        self.write(f"environment.literal({len(node.items)}, ")
        super().visit_List(node, frame)
        self.write(")")

    def visit_Tuple(self, node: nodes.Tuple, frame: Frame) -> None:  # noqa: N802
        """Writes a tuple. A tuple that is a value costs a step per item."""
        is_value = node.ctx == "load"
        self.write(f"environment.literal({len(node.items)}, " if is_value else "")
        super().visit_Tuple(node, frame)
        self.write(")" if is_value else "")

    def visit_Dict(self, node: nodes.Dict, frame: Frame) -> None:  # noqa: N802
        """Writes a mapping. Its keys are measured, because Python hashes them."""
        self._wrapped |= dict.fromkeys((id(pair.key) for pair in node.items), "operand")
        self.write(f"environment.literal({2 * len(node.items)}, ")
        super().visit_Dict(node, frame)
        self.write(")")

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
