"""The types of functions on arrays and maps, and of those that take a lambda."""

from __future__ import annotations

from sqlglot import exp

from sqlstream.compiler.flow.types.common_type import common_type_of, element_of_both
from sqlstream.compiler.flow.types.nested import element_type
from sqlstream.compiler.flow.types.typer import Handler, Typer, argument
from sqlstream.compiler.flow.types.values import DATETIMES, DIGITS, INT, kind
from sqlstream.project.types.types import Array, DataType, Field, Map, Struct


def _same_array(typer: Typer, node: exp.Expr) -> DataType | None:
    type_ = typer.of(node.this)
    return type_ if isinstance(type_, Array) else None


def _array_set(typer: Typer, node: exp.Expr) -> DataType | None:
    """array_union and its like: what is in one of two arrays, or in both."""
    values = node.expressions or [node.this, node.args.get("expression")]
    types = [typer.of(value) for value in values]
    if not all(isinstance(type_, Array) for type_ in types):
        return None
    return common_type_of(types, element_of_both)


def _grown(typer: Typer, node: exp.Expr) -> DataType | None:
    array, added = typer.of(node.this), typer.of(node.args.get("expression"))
    if not isinstance(array, Array) or added is None:
        return None
    element = element_of_both(array.element, added)
    return None if element is None else Array(element)


def _flattened(typer: Typer, node: exp.Expr) -> DataType | None:
    type_ = typer.of(node.this)
    return type_.element if isinstance(type_, Array) and isinstance(type_.element, Array) else None


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


def _repeated(typer: Typer, node: exp.Expr) -> DataType | None:
    type_ = typer.of(argument(node))
    return None if type_ is None else Array(type_)


def _map_keys(typer: Typer, node: exp.Expr) -> DataType | None:
    type_ = typer.of(node.this)
    return Array(type_.key) if isinstance(type_, Map) else None


def _map_values(typer: Typer, node: exp.Expr) -> DataType | None:
    type_ = typer.of(argument(node))
    return Array(type_.value) if isinstance(type_, Map) else None


def _map_entries(typer: Typer, node: exp.Expr) -> DataType | None:
    type_ = typer.of(argument(node))
    if not isinstance(type_, Map):
        return None
    return Array(Struct((Field("key", type_.key), Field("value", type_.value))))


def _map_concat(typer: Typer, node: exp.Expr) -> DataType | None:
    types = [typer.of(value) for value in node.expressions]
    return common_type_of(types) if types and all(isinstance(type_, Map) for type_ in types) else None


def _map_from_arrays(typer: Typer, node: exp.Expr) -> DataType | None:
    keys, values = typer.of(node.args.get("keys")), typer.of(node.args.get("values"))
    return Map(keys.element, values.element) if isinstance(keys, Array) and isinstance(values, Array) else None


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


_SAME_ARRAY = (
    *(exp.ArrayDistinct, exp.ArrayCompact, exp.ArrayRemove, exp.ArraySort, exp.ArraySlice, exp.ArrayFilter),
    exp.Shuffle,
)

BY_CLASS: dict[type[exp.Expr], Handler] = {
    **dict.fromkeys(_SAME_ARRAY, _same_array),
    **dict.fromkeys((exp.ArrayExcept, exp.ArrayIntersect), _array_set),
    **dict.fromkeys((exp.ArrayAppend, exp.ArrayPrepend, exp.ArrayInsert), _grown),
    exp.ArrayMax: lambda typer, node: element_type(_same_array(typer, node)),
    exp.ArrayMin: lambda typer, node: element_type(_same_array(typer, node)),
    exp.Flatten: _flattened,
    exp.GenerateSeries: _sequence,
    exp.ArraysZip: _zipped,
    exp.Reverse: _reversed,
    exp.MapKeys: _map_keys,
    exp.Map: _map_from_arrays,
    exp.MapFromEntries: _map_from_entries,
    exp.Transform: _transformed,
    exp.Reduce: _aggregated,
}

BY_NAME: dict[str, Handler] = {
    "array_union": _array_set,
    "array_repeat": _repeated,
    "get": lambda typer, node: element_type(typer.of(argument(node))),
    "map_values": _map_values,
    "map_entries": _map_entries,
    "map_concat": _map_concat,
    "map_filter": lambda typer, node: typer.of(argument(node)),
    "map_zip_with": _map_zipped_with,
    "transform_keys": _with_keys,
    "transform_values": _with_values,
    "zip_with": _zipped_with,
}
