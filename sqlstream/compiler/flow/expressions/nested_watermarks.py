"""The watermarks inside a value: Spark keeps them on the fields of structs, also inside arrays and maps.

A field of a struct has the watermark of the unchanged column that it contains, and so does an expression that reads the
field (`CreateNamedStruct.dataType`, `GetStructField.metadata` and `Alias.metadata` of Spark 4.3). Array elements, map
values and results of other expressions have no watermark, but the fields of a struct in them keep theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from sqlglot import exp

from sqlstream.compiler.flow.columns import NO_INNER, Column, Columns, EventTime, InnerWatermarks, LostWatermark

UNKNOWN_INNER = InnerWatermarks(is_known=False)

_LISTS_OF = frozenset({"array", "collect_list", "collect_set", "array_agg"})
"""Functions whose result is an array of their arguments, or of the values of rows."""

_WITHOUT = frozenset({"from_csv", "from_json", "from_xml", "parse_json", "to_csv", "to_json", "to_xml", "window"})
"""Functions that make a new value, which contains no watermark."""

_SAME_AS_FIRST = frozenset(
    """
    any_value array_compact array_distinct array_sort filter first first_value last last_value max max_by min min_by
    reverse shuffle slice sort_array
    """.split()  # noqa: SIM905 - a list of words
)
"""Functions whose result has what is inside their first argument."""


@dataclass(frozen=True)
class Context:
    """Functions that describe a part of an expression: the name of the function that it calls, in lower case, empty for
    other expressions; the column that it returns; and the columns of a star, None if they are unknown.
    """

    name: Callable[[exp.Expr], str]
    column: Callable[[exp.Expr], Column]
    star: Callable[[exp.Expr], Columns | None]


@dataclass(frozen=True)
class ValueWatermarks:
    """The watermark of a value, and the watermarks inside it."""

    time: EventTime | None = None
    inner: InnerWatermarks = NO_INNER


NO_WATERMARKS = ValueWatermarks()
"""No watermark, neither of the value nor inside it."""


def marked(column: Column, value: ValueWatermarks, lost: LostWatermark | None = None) -> Column:
    """Returns `column` with the watermarks of `value`; if there are none, with the reason why it `lost` its own."""
    lost = lost if value == NO_WATERMARKS else None
    return replace(column, event_time=value.time, lost=lost, inner=value.inner, may_carry=not value.inner.is_known)


def field_watermarks(inner: InnerWatermarks, name: str) -> ValueWatermarks:
    """Returns the watermarks of the field `name` of a value with `inner`."""
    if not inner.is_known:
        return ValueWatermarks(inner=UNKNOWN_INNER)
    if inner.elements is not None:  # the field of each struct in an array
        return ValueWatermarks(inner=InnerWatermarks(elements=field_watermarks(inner.elements, name).inner))
    if inner.values is not None:
        return ValueWatermarks(inner=inner.values)
    for field, time, nested in inner.fields:
        if field == name.lower():
            return ValueWatermarks(time, nested)
    return NO_WATERMARKS


def element_watermarks(inner: InnerWatermarks) -> InnerWatermarks:
    """Returns the watermarks inside each element or map value of a value with `inner`."""
    if not inner.is_known:
        return UNKNOWN_INNER
    return inner.elements or inner.values or NO_INNER


def expression_watermarks(node: exp.Expr, context: Context) -> ValueWatermarks:
    """Returns the watermark of an expression that reads a struct's field, and those inside any expression."""
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        return field_watermarks(_inner(node.this, context), node.expression.name)
    if isinstance(node, exp.Bracket):
        return _bracket(node, context)
    return ValueWatermarks(inner=_built(node, context))


def generator_watermarks(node: exp.Expr, names: Iterable[str], context: Context) -> list[ValueWatermarks]:
    """Returns the watermarks of each column of a generator; `names` are the names that Spark gives them."""
    first = next(node.iter_expressions(), None)
    inner = _inner(first, context) if first is not None else NO_INNER
    name = context.name(node)
    if name.startswith("inline"):
        return [field_watermarks(element_watermarks(inner), column) for column in names]
    if not name.startswith(("explode", "posexplode")):
        return [ValueWatermarks(inner=NO_INNER if inner == NO_INNER else UNKNOWN_INNER) for _ in names]
    return [
        ValueWatermarks(inner=element_watermarks(inner)) if column in ("col", "value") else NO_WATERMARKS
        for column in names
    ]


def _inner(node: exp.Expr, context: Context) -> InnerWatermarks:
    return context.column(node).inner


def _bracket(node: exp.Bracket, context: Context) -> ValueWatermarks:
    inner = _inner(node.this, context)
    key = node.expressions[0] if node.expressions else None
    if inner.fields and isinstance(key, exp.Literal) and key.is_string:  # s['ts'] is s.ts
        return field_watermarks(inner, key.name)
    return ValueWatermarks(inner=element_watermarks(inner))


def _built(node: exp.Expr, context: Context) -> InnerWatermarks:
    """Returns the watermarks inside the result of a function or other expression."""
    name = context.name(node)
    first = next(node.iter_expressions(), None)
    if isinstance(node, exp.Struct):
        return _struct(node, context)
    if isinstance(node, exp.VarMap):
        return InnerWatermarks(values=_same(node.args["values"].expressions, context))
    if name in _LISTS_OF:
        return InnerWatermarks(elements=_same(node.iter_expressions(), context))
    if name in _SAME_AS_FIRST and first is not None:
        return _inner(first, context)
    if name in _WITHOUT:
        return NO_INNER
    choices = _choices(node)
    return _same(choices, context) if choices else UNKNOWN_INNER


def _choices(node: exp.Expr) -> list[exp.Expr]:
    """Returns the values of which an expression returns one unchanged."""
    if isinstance(node, exp.Coalesce):
        return [node.this, *node.expressions]
    branches = [node] if isinstance(node, exp.If) else list(node.args["ifs"]) if isinstance(node, exp.Case) else []
    last = node.args.get("false") or node.args.get("default")
    return [*(branch.args["true"] for branch in branches), *([last] if branches and last is not None else [])]


def _struct(node: exp.Struct, context: Context) -> InnerWatermarks:
    fields: list[tuple[str, EventTime | None, InnerWatermarks]] = []
    for argument in node.expressions:
        if isinstance(argument, exp.PropertyEQ):  # sqlglot reads `a as b` and `a` in a struct as a name and a value
            column = context.column(argument.expression)
            fields.append((argument.this.name.lower(), column.event_time, column.inner))
            continue
        columns = context.star(argument) if argument.is_star else (context.column(argument),)
        if columns is None:
            return UNKNOWN_INNER
        fields += ((column.name.lower(), column.event_time, column.inner) for column in columns)
    return InnerWatermarks(fields=tuple(fields))


def _same(parts: Iterable[exp.Expr], context: Context) -> InnerWatermarks:
    """Returns the watermarks inside all values except NULLs. If structs differ, Spark drops their watermarks."""
    found = {_inner(part, context) for part in parts if not isinstance(part, exp.Null)}
    if any(not inner.is_known for inner in found):
        return UNKNOWN_INNER
    return found.pop() if len(found) == 1 else NO_INNER
