"""The types of functions on arrays and maps, and of those that take a lambda."""

from __future__ import annotations

from sqlglot import exp

from sqlstream.compiler.flow.types.common_type import common_type_of
from sqlstream.compiler.flow.types.nested import element_type
from sqlstream.compiler.flow.types.typer import Handler, Typer, argument
from sqlstream.compiler.flow.types.values import DATETIMES, DIGITS, INT, kind
from sqlstream.project.types.types import Array, DataType, Field, Map, Struct


def _sequence(typer: Typer, node: exp.Expr) -> DataType | None:
    element = common_type_of((typer.of(node.args.get("start")), typer.of(node.args.get("end"))))
    step = node.args.get("step")
    if kind(element) in DIGITS and step is not None:
        element = common_type_of((element, typer.of(step)))
    return Array(element) if element is not None and kind(element) in {*DIGITS, *DATETIMES} else None


def _zipped(typer: Typer, node: exp.Expr) -> DataType | None:
    fields = []
    for place, value in enumerate(node.expressions):
        type_ = typer.of(value)
        if not isinstance(type_, Array) or isinstance(value, exp.Dot | exp.Bracket | exp.Paren):
            return None
        name = value.name if isinstance(value, exp.Column | exp.Identifier) else str(place)
        fields.append(Field(name, type_.element))
    return Array(Struct(tuple(fields)))


def _reversed(typer: Typer, node: exp.Expr) -> DataType | None:
    type_ = typer.of(node.this)
    return type_ if isinstance(type_, Array) or kind(type_) == "string" else None


def _map_concat(typer: Typer, node: exp.Expr) -> DataType | None:
    types = [typer.of(value) for value in node.expressions]
    return common_type_of(types) if types and all(isinstance(type_, Map) for type_ in types) else None


def _map_from_entries(typer: Typer, node: exp.Expr) -> DataType | None:
    pair = element_type(typer.of(node.this))
    if not isinstance(pair, Struct) or len(pair.fields) != len(("key", "value")):
        return None
    return Map(pair.fields[0].type, pair.fields[1].type)


def _transformed(typer: Typer, node: exp.Expr) -> DataType | None:
    array = typer.of(node.this)
    if not isinstance(array, Array):
        return None
    body = typer.of_lambda(node.args.get("expression"), array.element, INT)
    return None if body is None else Array(body)


def _aggregated(typer: Typer, node: exp.Expr) -> DataType | None:
    """aggregate: what `finish` makes of the state, which keeps the type of its first value."""
    state, finish = typer.of(node.args.get("initial")), node.args.get("finish")
    return state if finish is None or state is None else typer.of_lambda(finish, state)


def _zipped_with(typer: Typer, node: exp.Expr) -> DataType | None:
    left, right, merge = _three(node)
    one, other = typer.of(left), typer.of(right)
    if not isinstance(one, Array) or not isinstance(other, Array):
        return None
    body = typer.of_lambda(merge, one.element, other.element)
    return None if body is None else Array(body)


def _map_zipped_with(typer: Typer, node: exp.Expr) -> DataType | None:
    left, right, merge = _three(node)
    one, other = typer.of(left), typer.of(right)
    if not isinstance(one, Map) or not isinstance(other, Map):
        return None
    key = common_type_of((one.key, other.key))
    body = typer.of_lambda(merge, key, one.value, other.value)
    return None if key is None or body is None else Map(key, body)


def _three(node: exp.Expr) -> tuple[exp.Expr | None, ...]:
    return tuple(node.expressions) if len(node.expressions) == len(("left", "right", "merge")) else (None, None, None)


def _with_keys(typer: Typer, node: exp.Expr) -> DataType | None:
    type_, body = _map_and_body(typer, node)
    return Map(body, type_.value) if type_ is not None and body is not None else None


def _with_values(typer: Typer, node: exp.Expr) -> DataType | None:
    type_, body = _map_and_body(typer, node)
    return Map(type_.key, body) if type_ is not None and body is not None else None


def _map_and_body(typer: Typer, node: exp.Expr) -> tuple[Map | None, DataType | None]:
    type_ = typer.of(argument(node))
    if not isinstance(type_, Map):
        return None, None
    return type_, typer.of_lambda(node.expressions[-1], type_.key, type_.value)


BY_CLASS: dict[type[exp.Expr], Handler] = {
    exp.GenerateSeries: _sequence,
    exp.ArraysZip: _zipped,
    exp.Reverse: _reversed,
    exp.MapFromEntries: _map_from_entries,
    exp.Transform: _transformed,
    exp.Reduce: _aggregated,
}

BY_NAME: dict[str, Handler] = {
    "map_concat": _map_concat,
    "map_zip_with": _map_zipped_with,
    "transform_keys": _with_keys,
    "transform_values": _with_values,
    "zip_with": _zipped_with,
}
