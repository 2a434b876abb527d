"""What a condition says about event time: Spark checks such conditions after the watermark, and others before it.

Spark moves each part of a condition, between ANDs, below EventTimeWatermark if it is deterministic and does not read
the column of the watermark (PushPredicateThroughNonJoin). So a row that a part with the event time removes has already
advanced the watermark.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.flow.expressions.column import Expressions
from sqlstream.compiler.flow.functions import RANDOM
from sqlstream.compiler.flow.names import ResolvedName, Scope
from sqlstream.compiler.flow.nodes import TimeCondition
from sqlstream.compiler.flow.text import Text, name_parts

PERIODIC = frozenset(
    """
    hour minute second day dayofmonth dayofweek weekday dayofyear day_of_week month quarter weekofyear week
    dayname monthname
    """.split()  # noqa: SIM905 - as a list of quoted words this would be three times as long
)
"""Functions and units of `extract` whose values return with each period, so a limit on them is none on the time."""

INCREASING = frozenset(
    """
    date to_date date_trunc trunc year to_timestamp timestamp unix_timestamp to_unix_timestamp unix_seconds unix_millis
    unix_micros unix_date date_add date_sub dateadd timestampadd
    """.split()  # noqa: SIM905 - as above
)
"""Functions that do not decrease when their time increases."""

_NULL_CHECKS = frozenset({"isnull", "isnotnull"})
_BOUNDS = (exp.GT, exp.GTE, exp.LT, exp.LTE)


def time_conditions(
    condition: exp.Expr | None, scope: Scope, expressions: Expressions
) -> tuple[tuple[TimeCondition, ...], bool]:
    """Returns the parts of a condition that read an event time of the relations in `scope`, and whether there are
    other parts, which Spark checks before the watermark.
    """
    found: list[TimeCondition] = []
    others = False
    for part in _parts(condition):
        times = _times(part, scope, expressions.text)
        called = {name for name, _ in expressions.text.parts_of(part).functions}
        # Spark does not move a random part below the watermark
        others = others or not (times or called & RANDOM)
        if times:
            (name, column), *_ = times
            of_rows = _is_of_one_relation(part, scope, expressions.text) and not expressions.text.is_aggregate(part)
            limits = of_rows and _Limits(expressions.text, times).may_end(part, is_kept=True)
            found.append(TimeCondition(column.name, expressions.text.where(name), limits))
    return tuple(found), others


def _parts(condition: exp.Expr | None) -> Iterator[exp.Expr]:
    """Yields the parts of a condition between its ANDs."""
    inner = condition.unnest() if condition is not None else None
    if isinstance(inner, exp.And):
        yield from _parts(inner.this)
        yield from _parts(inner.expression)
    elif inner is not None:
        yield inner


def _times(part: exp.Expr, scope: Scope, text: Text) -> list[tuple[exp.Expr, Column]]:
    """Returns the names in `part` of columns with a watermark, or computed from one with a watermark."""
    found = ((node, scope.resolve(names)) for names, node in text.parts_of(part).names)
    return [
        (node, name.column)
        for node, name in found
        if isinstance(name, ResolvedName) and (name.column.event_time is not None or name.column.lost is not None)
    ]


def _is_of_one_relation(part: exp.Expr, scope: Scope, text: Text) -> bool:
    """Returns whether all columns in `part` belong to one relation and to the sources of its event time. A condition on
    several relations is one on matching rows.
    """
    found = [scope.resolve(names) for names, _ in text.parts_of(part).names]
    columns = [name.column for name in found if isinstance(name, ResolvedName)]
    timed = [column for column in columns if column.event_time is not None or column.lost is not None]
    sources = {source for column in timed for source, _ in column.origins}
    if any(source not in sources for column in columns for source, _ in column.origins):
        return False
    relations = (relation.columns or () for relation in scope.relations)
    return sum(any(own is column for own in relation for column in columns) for relation in relations) <= 1


class _Limits:
    """Decides whether a part of a condition can remove rows that are later than those that it keeps."""

    def __init__(self, text: Text, times: list[tuple[exp.Expr, Column]]) -> None:
        self._text = text
        self._times = {id(node) for node, _ in times}

    def may_end(self, part: exp.Expr, *, is_kept: bool) -> bool:
        """Returns whether `part` may remove the latest rows. `is_kept`: it keeps rows for which it is true."""
        node = part.unnest()
        if isinstance(node, exp.Not):
            return self.may_end(node.this, is_kept=not is_kept)
        if isinstance(node, exp.And | exp.Or):
            sides = [side for side in (node.this, node.expression) if self._reads(side)]
            return any(self.may_end(side, is_kept=is_kept) for side in sides)
        if isinstance(node, exp.Is) or self._text.function(node) in _NULL_CHECKS or self._is_periodic(node):
            return False
        return not (isinstance(node, _BOUNDS) and self._is_start(node, is_kept=is_kept))

    def _is_start(self, node: exp.Expr, *, is_kept: bool) -> bool:
        """Returns whether a comparison only removes rows that are earlier than those that it keeps."""
        left, right = node.this, node.expression
        if self._reads(left) == self._reads(right):
            return False
        side = left if self._reads(left) else right
        keeps_greater = isinstance(node, exp.GT | exp.GTE) == (side is left)
        return keeps_greater == is_kept and self._increases(side)

    def _increases(self, node: exp.Expr) -> bool:
        """Returns whether the value of `node` cannot decrease when the time increases."""
        node = node.unnest()
        if name_parts(node):
            return True
        if isinstance(node, exp.Add):
            return all(self._increases(side) for side in (node.this, node.expression) if self._reads(side))
        if isinstance(node, exp.Sub):
            # `a - ts` decreases when `ts` increases
            return not self._reads(node.expression) and self._increases(node.this)
        inner = [part for part in node.iter_expressions() if self._reads(part)]
        # sqlglot puts a TsOrDsToDate into `year(ts)`
        known = isinstance(node, exp.Cast | exp.TsOrDsToDate) or self._text.function(node) in INCREASING
        return known and all(map(self._increases, inner))

    def _is_periodic(self, node: exp.Expr) -> bool:
        """Returns whether `node` reads the time only in functions such as `hour`."""
        times = [part for part in node.walk() if id(part) in self._times]
        return bool(times) and all(self._in_period(time, node) for time in times)

    def _in_period(self, time: exp.Expr, top: exp.Expr) -> bool:
        around: exp.Expr | None = time
        while around is not None and around is not top.parent:
            unit = around.this.name.lower() if isinstance(around, exp.Extract) else self._text.function(around)
            if unit in PERIODIC:
                return True
            around = around.parent
        return False

    def _reads(self, node: exp.Expr) -> bool:
        return any(id(part) in self._times for part in node.walk())
