"""What a join's condition says about event time: whether it is among the keys, and which side's rows it lets go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from sqlstream.compiler.flow.nodes import Column
from sqlstream.compiler.flow.scope import Resolved, Scope


@dataclass(frozen=True)
class Sides:
    """The scopes of the two sides of a join."""

    left: Scope
    right: Scope

    def of(self, node: exp.Expr) -> tuple[str, Column] | None:
        """Returns the side that the name `node` belongs to, and its column; None where it is no such name."""
        if not isinstance(node, exp.Column):
            return None
        parts = tuple(part.name for part in node.parts)
        for side, scope in (("left", self.left), ("right", self.right)):
            found = scope.resolve(parts)
            if isinstance(found, Resolved) and not found.fields:
                return side, found.column
        return None

    @property
    def known(self) -> bool:
        """Whether the columns of both sides are known."""
        return all(item.columns is not None for scope in (self.left, self.right) for item in scope.relations)


def conjuncts(condition: exp.Expr | None) -> Iterator[exp.Expr]:
    """Gives the parts of a condition that must all hold."""
    if isinstance(condition, exp.Paren):
        yield from conjuncts(condition.this)
    elif isinstance(condition, exp.And):
        yield from conjuncts(condition.this)
        yield from conjuncts(condition.expression)
    elif isinstance(condition, exp.Between):
        yield exp.GTE(this=condition.this.copy(), expression=condition.args["low"].copy())
        yield exp.LTE(this=condition.this.copy(), expression=condition.args["high"].copy())
    elif condition is not None:
        yield condition


def has_time_key(condition: exp.Expr | None, using: Sequence[str], sides: Sides) -> bool | None:
    """Returns whether an equality of both sides has a column that carries a watermark; None where it is not known."""
    if not sides.known:
        return None
    for name in using:
        found = [scope.resolve((name,)) for scope in (sides.left, sides.right)]
        if any(isinstance(item, Resolved) and item.column.event_time for item in found):
            return True
    for part in conjuncts(condition):
        if isinstance(part, exp.EQ | exp.NullSafeEQ):
            pair = [sides.of(part.this), sides.of(part.expression)]
            if any(item is not None and item[1].event_time for item in pair) and _crosses(part, sides):
                return True
    return False


def has_equality(condition: exp.Expr | None, using: Sequence[str], sides: Sides, *, filtered: bool) -> bool | None:
    """Returns whether columns of both sides must be equal; None where it is not known, or a WHERE may say so."""
    if using:
        return True
    parts = list(conjuncts(condition))
    if any(isinstance(part, exp.EQ | exp.NullSafeEQ) and _crosses(part, sides) for part in parts):
        return True
    return None if filtered or not sides.known or (condition is not None and condition.find(exp.EQ)) else False


def _crosses(part: exp.Expr, sides: Sides) -> bool:
    found = {item[0] for item in map(sides.of, part.find_all(exp.Column)) if item is not None}
    return len(found) == 2


def bounded_sides(condition: exp.Expr | None, sides: Sides) -> frozenset[str] | None:
    """Returns the sides whose rows the other side's watermark lets go; None where it is not known.

    A side is let go where a condition says that a time of it is later than the other side's event time, but for a
    constant: `l.ts >= r.ts - interval 1 hour` bounds the left side, if `r.ts` carries a watermark
    (org.apache.spark.sql.catalyst.analysis.StreamingJoinHelper.getStateValueWatermark).
    """
    if not sides.known:
        return None
    found: set[str] = set()
    for part in conjuncts(condition):
        if isinstance(part, exp.GT | exp.GTE | exp.LT | exp.LTE):
            bounds = _bounds(part, sides)
            if bounds is None:
                return None
            found |= bounds
    return frozenset(found)


def _bounds(part: exp.Binary, sides: Sides) -> set[str] | None:
    """The side that one comparison of two times bounds, if any."""
    low, high = _linear(part.this, sides), _linear(part.expression, sides)
    if isinstance(part, exp.GT | exp.GTE):
        low, high = high, low
    if low is None or high is None:
        return None if part.find(exp.Cast, exp.Func, exp.Mul, exp.Div) else set()
    terms = [(sign, side, column) for sign, side, column in high]
    terms += [(-sign, side, column) for sign, side, column in low]
    if len(terms) != 2 or {terms[0][1], terms[1][1]} != {"left", "right"}:
        return set()
    greater = [side for sign, side, _ in terms if sign > 0]
    lesser = [column for sign, _, column in terms if sign < 0]
    return set(greater) if len(greater) == 1 and lesser[0].event_time else set()


Term = tuple[int, str, Column]
"""A column in a sum: its sign, its side, and itself."""


def _linear(node: exp.Expr, sides: Sides) -> list[Term] | None:
    """The columns in a sum of them and intervals; None for anything that is not such a sum."""
    if isinstance(node, exp.Paren):
        return _linear(node.this, sides)
    if isinstance(node, exp.Interval):
        unit = str(node.args.get("unit") or "").upper()
        return None if unit.startswith(("MONTH", "YEAR")) else []
    if isinstance(node, exp.Add | exp.Sub):
        left, right = _linear(node.this, sides), _linear(node.expression, sides)
        if left is None or right is None:
            return None
        sign = -1 if isinstance(node, exp.Sub) else 1
        return [*left, *((sign * value, side, column) for value, side, column in right)]
    found = sides.of(node)
    return [(1, *found)] if found is not None else None
