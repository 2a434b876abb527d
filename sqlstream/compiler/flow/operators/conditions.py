"""What a join's condition says about event time: whether it is among the keys, and which side's rows it lets go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.flow.expressions.time_sums import NO_SUM, Sum, sum_of
from sqlstream.compiler.flow.names.scope import Resolved, Scope
from sqlstream.compiler.flow.nodes import Hints


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

    def of_all(self, node: exp.Expr) -> set[str] | None:
        """Returns the sides that the names in `node` belong to, None where one of them is not known."""
        found: set[str] = set()
        for name in node.find_all(exp.Column):
            parts = tuple(part.name for part in name.parts)
            in_sides = [isinstance(scope.resolve(parts), Resolved) for scope in (self.left, self.right)]
            if in_sides not in ([True, False], [False, True]):
                return None
            found.add("left" if in_sides[0] else "right")
        return found

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
        if isinstance(part, exp.EQ):  # `<=>` compares what is made of the columns
            pair = [sides.of(part.this), sides.of(part.expression)]
            if any(item is not None and item[1].event_time for item in pair) and _crosses(part, sides):
                return True
    return False


def has_equality(condition: exp.Expr | None, using: Sequence[str], sides: Sides) -> bool | None:
    """Returns whether something of the one side must equal something of the other; None where it is not known.

    Each operand must be of one side alone: `a.id - b.id = 0` is no key to Spark (ExtractEquiJoinKeys).
    """
    if using:
        return True
    found: list[bool | None] = [_is_key(part, sides) for part in conjuncts(condition)]
    if True in found:
        return True
    return None if not sides.known or None in found else False


def _is_key(part: exp.Expr, sides: Sides) -> bool | None:
    """Whether one part of a condition is such an equality; None for what Spark may make one of."""
    if not isinstance(part, exp.EQ | exp.NullSafeEQ):
        return None if hints_of(part).may_equate else False
    operands = [sides.of_all(part.this), sides.of_all(part.expression)]
    if None in operands:
        return None
    return operands in ([{"left"}, {"right"}], [{"right"}, {"left"}])


def hints_of(condition: exp.Expr | None) -> Hints:
    """Returns what a condition may add to a join that it stands above."""
    if condition is None:
        return Hints()
    return Hints(
        may_equate=condition.find(exp.EQ, exp.NullSafeEQ, exp.EqualNull, exp.NEQ, exp.In) is not None,
        may_bound=condition.find(exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between) is not None,
    )


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
    unclear = False
    for part in conjuncts(condition):
        if isinstance(part, exp.GT | exp.GTE | exp.LT | exp.LTE):
            difference = _difference(part, sides)
            unclear = unclear or difference is None
            found |= {side for side in OTHER if difference is not None and _lets_go(side, difference, sides)}
    return None if unclear and len(found) < len(OTHER) else frozenset(found)


OTHER = {"left": "right", "right": "left"}


def _difference(part: exp.Binary, sides: Sides) -> Sum | None:
    """The lesser side of a comparison less the greater one."""
    low, high = sum_of(part.this, sides.of), sum_of(part.expression, sides.of)
    if isinstance(part, exp.GT | exp.GTE):
        low, high = high, low
    known = [item for item in (low, high) if item is not None]
    if not all(item.is_sum for item in known):
        return NO_SUM
    if low is None or high is None:
        return None
    return Sum((*low.terms, *high.negated().terms), has_constant=low.has_constant or high.has_constant)


def _lets_go(side: str, difference: Sum, sides: Sides) -> bool:
    """Whether `difference < 0` bounds the times of `side` from below by the other side's watermark."""
    own = [term for term in difference.terms if term.side == side]
    other = [term for term in difference.terms if term.side == OTHER[side]]
    if not difference.is_sum or len(own) != 1 or own[0].sign > 0 or len(other) > 1:
        return False
    if other:
        return other[0].column.event_time is not None
    # Spark reckons with a constant alone as well, if only the other side has a watermark somewhere
    scope = sides.right if side == "left" else sides.left
    watermark = any(column.event_time for item in scope.relations for column in item.columns or ())
    return difference.has_constant and watermark
