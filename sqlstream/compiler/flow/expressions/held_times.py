"""The watermarks inside a value: Spark keeps them on the fields of structs, also inside arrays and maps.

A field of a struct has the watermark of the unchanged column that it contains, and so does an expression that reads the
field (`CreateNamedStruct.dataType`, `GetStructField.metadata` and `Alias.metadata` of Spark 4.3). Array elements, map
values and results of other expressions have no watermark, but the fields of a struct in them keep theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from sqlglot import exp

from sqlstream.compiler.flow.columns import NOTHING_HELD, Column, Columns, EventTime, HeldWatermarks, LostWatermark

UNKNOWN_HELD = HeldWatermarks(is_known=False)

_LISTS_OF = frozenset({"array", "collect_list", "collect_set", "array_agg"})
_WITHOUT = frozenset({"from_csv", "from_json", "from_xml", "parse_json", "to_csv", "to_json", "to_xml", "window"})
_SAME_AS_FIRST = frozenset(
    """
    any_value array_compact array_distinct array_sort filter first first_value last last_value max max_by min min_by
    reverse shuffle slice sort_array
    """.split()  # noqa: SIM905 - a list of words
)


@dataclass(frozen=True)
class Context:
    """Functions that describe a part of an expression: the name of the function that it calls, in lower case, empty for
    other expressions; the column that it returns; and the columns of a star, None if they are unknown.
    """

    name: Callable[[exp.Expr], str]
    column: Callable[[exp.Expr], Column]
    star: Callable[[exp.Expr], Columns | None]


@dataclass(frozen=True)
class Within:
    """The watermark of a value, and the watermarks inside it."""

    time: EventTime | None = None
    held: HeldWatermarks = NOTHING_HELD


NOTHING = Within()
"""No watermark, neither of the value nor inside it."""


def marked(column: Column, value: Within, lost: LostWatermark | None = None) -> Column:
    """Returns `column` with the watermarks of `value`; if there are none, with the reason why it `lost` its own."""
    lost = lost if value == NOTHING else None
    return replace(column, event_time=value.time, lost=lost, held=value.held, may_carry=not value.held.is_known)


def taken(held: HeldWatermarks, name: str) -> Within:
    """Returns the watermarks of the field `name` of a value with `held`."""
    if not held.is_known:
        return Within(held=UNKNOWN_HELD)
    if held.elements is not None:  # the field of each struct in an array
        return Within(held=HeldWatermarks(elements=taken(held.elements, name).held))
    if held.values is not None:
        return Within(held=held.values)
    for field, time, inner in held.fields:
        if field == name.lower():
            return Within(time, inner)
    return NOTHING


def element(held: HeldWatermarks) -> HeldWatermarks:
    """Returns the watermarks inside each element or map value of a value with `held`."""
    if not held.is_known:
        return UNKNOWN_HELD
    return held.elements or held.values or NOTHING_HELD


def within(node: exp.Expr, context: Context) -> Within:
    """Returns the watermark of an expression that reads a struct's field, and those inside any expression."""
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        return taken(_held(node.this, context), node.expression.name)
    if isinstance(node, exp.Bracket):
        return _bracket(node, context)
    return Within(held=_built(node, context))


def generated(node: exp.Expr, names: Iterable[str], context: Context) -> list[Within]:
    """Returns the watermarks of each column of a generator; `names` are the names that Spark gives them."""
    first = next(node.iter_expressions(), None)
    held = _held(first, context) if first is not None else NOTHING_HELD
    name = context.name(node)
    if name.startswith("inline"):
        return [taken(element(held), column) for column in names]
    if not name.startswith(("explode", "posexplode")):
        return [Within(held=NOTHING_HELD if held == NOTHING_HELD else UNKNOWN_HELD) for _ in names]
    return [Within(held=element(held)) if column in ("col", "value") else NOTHING for column in names]


def _held(node: exp.Expr, context: Context) -> HeldWatermarks:
    return context.column(node).held


def _bracket(node: exp.Bracket, context: Context) -> Within:
    held = _held(node.this, context)
    key = node.expressions[0] if node.expressions else None
    if held.fields and isinstance(key, exp.Literal) and key.is_string:
        return taken(held, key.name)
    return Within(held=element(held))


def _built(node: exp.Expr, context: Context) -> HeldWatermarks:
    """Returns the watermarks inside the result of a function or other expression."""
    name = context.name(node)
    first = next(node.iter_expressions(), None)
    if isinstance(node, exp.Struct):
        return _struct(node, context)
    if isinstance(node, exp.VarMap):
        return HeldWatermarks(values=_same(node.args["values"].expressions, context))
    if name in _LISTS_OF:
        return HeldWatermarks(elements=_same(node.iter_expressions(), context))
    if name in _SAME_AS_FIRST and first is not None:
        return _held(first, context)
    if name in _WITHOUT:
        return NOTHING_HELD
    choices = _choices(node)
    return _same(choices, context) if choices else UNKNOWN_HELD


def _choices(node: exp.Expr) -> list[exp.Expr]:
    """Returns the values of which an expression returns one unchanged."""
    if isinstance(node, exp.Coalesce):
        return [node.this, *node.expressions]
    branches = [node] if isinstance(node, exp.If) else list(node.args["ifs"]) if isinstance(node, exp.Case) else []
    last = node.args.get("false") or node.args.get("default")
    return [*(branch.args["true"] for branch in branches), *([last] if branches and last is not None else [])]


def _struct(node: exp.Struct, context: Context) -> HeldWatermarks:
    fields: list[tuple[str, EventTime | None, HeldWatermarks]] = []
    for argument in node.expressions:
        if isinstance(argument, exp.PropertyEQ):  # sqlglot reads `a as b` and `a` in a struct as a name and a value
            column = context.column(argument.expression)
            fields.append((argument.this.name.lower(), column.event_time, column.held))
            continue
        columns = context.star(argument) if argument.is_star else (context.column(argument),)
        if columns is None:
            return UNKNOWN_HELD
        fields += ((column.name.lower(), column.event_time, column.held) for column in columns)
    return HeldWatermarks(fields=tuple(fields))


def _same(parts: Iterable[exp.Expr], context: Context) -> HeldWatermarks:
    """Returns the watermarks inside all values except NULLs. If structs differ, Spark drops their watermarks."""
    found = {_held(part, context) for part in parts if not isinstance(part, exp.Null)}
    if any(not held.is_known for held in found):
        return UNKNOWN_HELD
    return found.pop() if len(found) == 1 else NOTHING_HELD
