"""The types of functions on arrays and maps, including those that take a lambda."""

from __future__ import annotations

from sqlglot import exp

from sqlstream.compiler.flow.types.families import common_type_of
from sqlstream.compiler.flow.types.literals import Handlers, TypeResolver, argument
from sqlstream.compiler.flow.types.nested import element_type
from sqlstream.compiler.flow.types.values import DATETIMES, DIGITS, INT, array_of, kind, map_of, struct_of
from sqlstream.project.types.types import Array, DataType, Map, Struct


def _sequence(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    element = common_type_of((typer.of(node.args.get("start")), typer.of(node.args.get("end"))))
    step = node.args.get("step")
    if kind(element) in DIGITS and step is not None:
        element = common_type_of((element, typer.of(step)))
    return array_of(element) if kind(element) in {*DIGITS, *DATETIMES} else None


def _zipped(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    types = typer.all_of(node)
    if any(isinstance(value, exp.Dot | exp.Bracket | exp.Paren) for value in node.expressions):
        return None
    is_name = [isinstance(value, exp.Column | exp.Identifier) for value in node.expressions]
    names = [value.name if is_name[place] else str(place) for place, value in enumerate(node.expressions)]
    elements = [type_.element if isinstance(type_, Array) else None for type_ in types]
    return array_of(struct_of(zip(names, elements, strict=True)))


def _reversed(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    type_ = typer.of(node.this)
    return type_ if isinstance(type_, Array) or kind(type_) == "string" else None


def _map_concat(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    types = typer.all_of(node)
    return common_type_of(types) if types and all(isinstance(type_, Map) for type_ in types) else None


def _map_from_entries(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    pair = element_type(typer.of(node.this))
    if not isinstance(pair, Struct) or len(pair.fields) != len(("key", "value")):
        return None
    return Map(pair.fields[0].type, pair.fields[1].type)


def _transformed(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    array = typer.of(node.this)
    if not isinstance(array, Array):
        return None
    return array_of(typer.of_lambda(node.args.get("expression"), array.element, INT))


def _aggregated(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    """Returns the type of `aggregate`: that of `finish`, or of the state, which keeps the type of its first value."""
    state, finish = typer.of(node.args.get("initial")), node.args.get("finish")
    return state if finish is None or state is None else typer.of_lambda(finish, state)


def _zipped_with(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    one, other = typer.of(argument(node)), typer.of(argument(node, 1))
    if not isinstance(one, Array) or not isinstance(other, Array):
        return None
    return array_of(typer.of_lambda(argument(node, 2), one.element, other.element))


def _map_zipped_with(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    one, other = typer.of(argument(node)), typer.of(argument(node, 1))
    if not isinstance(one, Map) or not isinstance(other, Map):
        return None
    key = common_type_of((one.key, other.key))
    return map_of(key, typer.of_lambda(argument(node, 2), key, one.value, other.value))


def _with_keys(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    type_ = typer.first(node)
    return map_of(_entry_type(typer, node, type_), type_.value) if isinstance(type_, Map) else None


def _with_values(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    type_ = typer.first(node)
    return map_of(type_.key, _entry_type(typer, node, type_)) if isinstance(type_, Map) else None


def _entry_type(typer: TypeResolver, node: exp.Expr, type_: Map) -> DataType | None:
    """Returns the type of a lambda over the keys and values of a map."""
    return typer.of_lambda(node.expressions[-1], type_.key, type_.value)


HANDLERS: Handlers = {
    exp.GenerateSeries: _sequence,
    exp.ArraysZip: _zipped,
    exp.Reverse: _reversed,
    "map_concat": _map_concat,
    exp.MapFromEntries: _map_from_entries,
    exp.Transform: _transformed,
    exp.Reduce: _aggregated,
    "zip_with": _zipped_with,
    "map_zip_with": _map_zipped_with,
    "transform_keys": _with_keys,
    "transform_values": _with_values,
}
