"""Which watermarks are within a value: Spark keeps them on the fields of structs, whatever these are put into.

A struct's field carries the watermark of the column that it is made from as it is, and hands it on when it is taken out
again (`CreateNamedStruct.dataType`, `GetStructField.metadata` and `Alias.metadata` of Spark 4.3). An array's element, a
map's value, and what any other expression gives carry none, but a struct in them still has that of its fields.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp

from sqlstream.compiler.flow.columns import NOTHING_HELD, Column, EventTime, HeldWatermarks

UNKNOWN_HELD = HeldWatermarks(is_known=False)

_LISTS_OF = frozenset({"array", "collect_list", "collect_set", "array_agg"})
_ANEW = frozenset({"from_csv", "from_json", "from_xml", "parse_json", "to_csv", "to_json", "to_xml", "window"})
_SAME_AS_FIRST = frozenset(
    """
    any_value array_compact array_distinct array_sort filter first first_value last last_value max max_by min min_by
    reverse shuffle slice sort_array
    """.split()  # noqa: SIM905 - a list of words
)


class Context(Protocol):
    """What is known of an expression's parts."""

    def name(self, node: exp.Expr) -> str:
        """Returns the function that `node` calls, in lower case; empty where it is no call."""

    def column(self, node: exp.Expr) -> Column:
        """Returns the column that `node` would give."""

    def star(self, node: exp.Expr) -> tuple[Column, ...] | None:
        """Returns the columns that `*` stands for, None where they are not known."""


@dataclass(frozen=True)
class Within:
    """The watermark of a value itself, and those that it holds."""

    time: EventTime | None = None
    held: HeldWatermarks = NOTHING_HELD


NOTHING = Within()
"""No watermark, neither of the value itself nor within it."""


def taken(held: HeldWatermarks, name: str) -> Within:
    """Returns what the field `name` of a value that holds `held` is."""
    if not held.is_known:
        return Within(held=UNKNOWN_HELD)
    if held.elements is not None:  # that field of every struct in an array
        return Within(held=HeldWatermarks(elements=taken(held.elements, name).held))
    if held.values is not None:
        return Within(held=held.values)
    for field, time, inner in held.fields:
        if field == name.lower():
            return Within(time, inner)
    return NOTHING


def element(held: HeldWatermarks) -> HeldWatermarks:
    """Returns what an element or a value of something that holds `held` holds."""
    if not held.is_known:
        return UNKNOWN_HELD
    return held.elements or held.values or NOTHING_HELD


def within(node: exp.Expr, context: Context) -> Within:
    """Returns the watermark that an expression other than a column has by being a struct's field, and what it holds."""
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        return taken(_held(node.this, context), node.expression.name)
    if isinstance(node, exp.Bracket):
        return _bracket(node, context)
    return Within(held=_built(node, context))


def generated(node: exp.Expr, names: Iterable[str], context: Context) -> list[Within]:
    """Returns what each column of a generator is, whose columns Spark calls `names`."""
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
    """What the result of a function, or of any other expression, holds."""
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
    if name in _ANEW:
        return NOTHING_HELD
    choices = _choices(node)
    return _same(choices, context) if choices else UNKNOWN_HELD


def _choices(node: exp.Expr) -> list[exp.Expr]:
    """The values of which an expression gives one as it is."""
    if isinstance(node, exp.Coalesce):
        return [node.this, *node.expressions]
    branches = [node] if isinstance(node, exp.If) else list(node.args["ifs"]) if isinstance(node, exp.Case) else []
    last = node.args.get("false") or node.args.get("default")
    return [*(branch.args["true"] for branch in branches), *([last] if branches and last is not None else [])]


def _struct(node: exp.Struct, context: Context) -> HeldWatermarks:
    fields: list[tuple[str, EventTime | None, HeldWatermarks]] = []
    for argument in node.expressions:
        if isinstance(argument, exp.PropertyEQ):  # a name and a value, as sqlglot has `a as b` and plain `a` there
            column = context.column(argument.expression)
            fields.append((argument.this.name.lower(), column.event_time, column.held))
            continue
        columns = context.star(argument) if argument.is_star else (context.column(argument),)
        if columns is None:
            return UNKNOWN_HELD
        fields += ((column.name.lower(), column.event_time, column.held) for column in columns)
    return HeldWatermarks(fields=tuple(fields))


def _same(parts: Iterable[exp.Expr], context: Context) -> HeldWatermarks:
    """What all of several values hold, NULLs aside: structs of different fields are made anew, without watermarks."""
    found = {_held(part, context) for part in parts if not isinstance(part, exp.Null)}
    if any(not held.is_known for held in found):
        return UNKNOWN_HELD
    return found.pop() if len(found) == 1 else NOTHING_HELD
