"""The types of functions whose text is BINARY or an array for some arguments; a collation would be kept."""

from __future__ import annotations

from sqlglot import exp

from sqlstream.compiler.flow.types.common_type import common_type_of
from sqlstream.compiler.flow.types.typer import Handler, Typer, arguments
from sqlstream.compiler.flow.types.values import BINARY, STRING, is_plain, kind
from sqlstream.project.types.types import Array, DataType, Primitive

_TEXT_OR_BINARY = (exp.Substring, exp.Overlay, exp.Left)


def _text(typer: Typer, node: exp.Expr) -> DataType | None:
    return STRING if all(is_plain(typer.of(argument)) for argument in arguments(node)) else None


def _part(typer: Typer, node: exp.Expr) -> DataType | None:
    """Substring and its like: bytes of bytes, text of anything else."""
    return BINARY if kind(typer.of(node.this)) == "binary" else _text(typer, node)


def _padded(typer: Typer, node: exp.Expr) -> DataType | None:
    """`lpad` and `rpad`: bytes only where what is padded with is bytes too, or is not said."""
    padding = node.args.get("fill_pattern")
    return _part(typer, node) if padding is None or kind(typer.of(padding)) == "binary" else _text(typer, node)


def _concat(typer: Typer, node: exp.Expr) -> DataType | None:
    return _joined([typer.of(value) for value in node.expressions])


def _pipe(typer: Typer, node: exp.Expr) -> DataType | None:
    """`a || b + c` is `(a || b) + c` to Spark, and not to sqlglot."""
    right = node.args["expression"]
    return None if isinstance(right, exp.Add | exp.Sub) else _joined([typer.of(node.this), typer.of(right)])


def _joined(types: list[DataType | None]) -> DataType | None:
    if any(isinstance(type_, Array) for type_ in types):
        return common_type_of(types) if all(isinstance(type_, Array) for type_ in types) else None
    if types and all(kind(type_) == "binary" for type_ in types):
        return BINARY
    return STRING if all(map(is_plain, types)) else None


def _collated(typer: Typer, node: exp.Expr) -> DataType | None:
    """`x collate utf8_lcase`; the spelling of a language's collation is not told here."""
    name = node.args["expression"].name.upper()
    known = name.startswith(("UTF8_", "UNICODE")) and kind(typer.of(node.this)) == "string"
    return Primitive("string", (), name) if known and name != "UTF8_BINARY" else None


BY_CLASS: dict[type[exp.Expr], Handler] = {
    exp.Concat: _concat,
    exp.DPipe: _pipe,
    exp.Collate: _collated,
    exp.Pad: _padded,
    exp.Decode: _text,
    exp.Elt: lambda typer, node: _joined([typer.of(value) for value in node.expressions]),
    **dict.fromkeys(_TEXT_OR_BINARY, _part),
}
