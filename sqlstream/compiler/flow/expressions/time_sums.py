"""A side of a comparison as a sum of columns and constants, as Spark reads it to find a bound on event time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp

from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.flow.types import DATETIMES, DIGITS, SPANS, kind
from sqlstream.project.types.types import DataType, Primitive


@dataclass(frozen=True)
class Term:
    """A column in a sum, with its sign and its side of the join."""

    sign: int
    side: str
    column: Column


@dataclass(frozen=True)
class Sum:
    """A sum of columns and constants. `is_sum` is False for an expression that Spark does not read as a sum.

    `kind` is `time`, `date`, `number`, `interval`, or `unknown`. `has_constant` means that the sum has a constant that
    Spark can evaluate.
    """

    terms: tuple[Term, ...] = ()
    kind: str = "unknown"
    has_constant: bool = False
    is_sum: bool = True

    def negated(self) -> Sum:
        """Returns the sum with the opposite sign."""
        return replace(self, terms=tuple(replace(term, sign=-term.sign) for term in self.terms))


NO_SUM = Sum(is_sum=False)

Find = Callable[[exp.Expr], tuple[str, Column] | None]
"""Returns the side and the column to which a name refers; None for a field."""

_EXACT_UNITS = ("WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")


def sum_of(node: exp.Expr, find: Find) -> Sum | None:
    """Returns `node` as a sum; None if it is unknown whether it is one.

    The rules are those of `collectTerms` of org.apache.spark.sql.catalyst.analysis.StreamingJoinHelper in Spark 4.3. A
    sum contains `+`, `-` and casts to numbers and timestamps of columns, numbers and intervals without months. It does
    not contain functions, fields, products, or differences of two times, for which Spark has another expression.
    """
    node = node.unnest()
    if isinstance(node, exp.Neg):
        inner = sum_of(node.this, find)
        return None if inner is None else inner.negated()
    if isinstance(node, exp.Interval):
        return _interval(node)
    if isinstance(node, exp.Literal):
        return NO_SUM if node.is_string else Sum(kind="number", has_constant=True)
    if isinstance(node, exp.Cast):
        return _cast(node, find)
    if isinstance(node, exp.Add | exp.Sub):
        return _added(node, find)
    if isinstance(node, exp.Column):
        found = find(node)
        return NO_SUM if found is None else Sum((Term(1, *found),), _kind(found[1].type))
    return NO_SUM


def _interval(node: exp.Interval) -> Sum:
    units = [part.name.upper().removesuffix("S") for part in node.find_all(exp.Var)]
    exact = bool(units) and all(unit in _EXACT_UNITS for unit in units)
    return Sum(kind="interval", has_constant=True) if exact else NO_SUM


def _cast(node: exp.Cast, find: Find) -> Sum | None:
    to = node.to.this
    inner = sum_of(node.this, find)
    if inner is None or not inner.is_sum:
        return inner
    if to in exp.DataType.NUMERIC_TYPES:
        return replace(inner, kind="number")
    return replace(inner, kind="time") if to in (exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ) else NO_SUM


def _added(node: exp.Binary, find: Find) -> Sum | None:
    left, right = sum_of(node.this, find), sum_of(node.expression, find)
    if left is None or right is None:
        return None
    if not left.is_sum or not right.is_sum:
        return NO_SUM
    times = [side.kind in ("time", "date") for side in (left, right)]
    if all(times):
        return NO_SUM
    # Spark has other expressions for arithmetic with dates, and for a difference that may be one of two times
    if "date" in (left.kind, right.kind) or (isinstance(node, exp.Sub) and right.kind == "unknown"):
        return None
    other = right.negated() if isinstance(node, exp.Sub) else right
    total = "time" if any(times) else left.kind
    return Sum((*left.terms, *other.terms), total, left.has_constant or right.has_constant)


def _kind(type_: DataType | None) -> str:
    name = kind(type_) if type_ is not None else ""
    if name in DATETIMES:
        return "date" if name == "date" else "time"
    if name in SPANS:
        return "interval"
    is_number = name in DIGITS or name in ("float", "double", "decimal", "string")
    return "number" if is_number and (name == "decimal" or isinstance(type_, Primitive)) else "unknown"
