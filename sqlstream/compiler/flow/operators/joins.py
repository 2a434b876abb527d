"""The kind of a join, what its condition says about event time (whether it is a key, and which rows it bounds), and the
errors in its condition, in USING and in subqueries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

from sqlglot import exp

from sqlstream.compiler.flow.columns import Column, Columns
from sqlstream.compiler.flow.expressions.column import Expressions
from sqlstream.compiler.flow.expressions.mismatches import COMPARISONS
from sqlstream.compiler.flow.functions import RANDOM
from sqlstream.compiler.flow.names import ResolvedName, Scope, UnresolvedName, name_problem
from sqlstream.compiler.flow.nodes import Hints
from sqlstream.compiler.flow.text import Text, name_parts
from sqlstream.compiler.flow.type_rules import DATETIME, DATETIMES, DIGITS, NUMBER, SPANS, can_be_compared, family, kind
from sqlstream.compiler.sql.edits import SqlProblem, Where
from sqlstream.errors import Severity
from sqlstream.project.types.data_types import DataType, Primitive
from sqlstream.project.wording import quoted

_CLOCKS: dict[type[exp.Expr], str] = {
    exp.CurrentDate: "current_date",
    exp.CurrentTimestamp: "current_timestamp",
    exp.Localtimestamp: "localtimestamp",
}
"""Functions of the start time of a batch, by sqlglot's classes, which also represent them inside `unix_timestamp()`.

A streaming query replaces them, but not `now()`, by expressions that are not deterministic.
"""

KINDS = {"": "inner", "left": "left", "right": "right", "full": "full"}
"""The kind of a join by its side in sqlglot."""


def join_kind(join: exp.Join, text: Text) -> str:
    """Returns the kind of a join: inner, left, right, full, left semi, left anti or cross."""
    side, kind = (join.side or "").lower(), (join.kind or "").lower()
    if kind in ("semi", "anti"):
        return f"left {kind}"  # SEMI and ANTI alone mean LEFT too
    return "cross" if kind == "cross" and _says_cross(join.this, text) else KINDS.get(side, "inner")


def _says_cross(relation: exp.Expr, text: Text) -> bool:
    """Returns whether CROSS JOIN is before a relation: for sqlglot a comma is one too, for Spark an inner join."""
    starts = [part.meta["start"] for part in relation.parts if "start" in part.meta] if _is_table(relation) else []
    alias = relation.args.get("alias")
    if isinstance(relation, exp.Subquery) and alias is not None and alias.this and "start" in alias.this.meta:
        # a subquery has no place itself, so its `(` is found from the alias behind it
        end = text.token_at(alias.this.meta["start"]) or 0
        end -= 1 if text.tokens[end - 1].key == "AS" else 0
        starts = [text.tokens[opening].start for opening, after in text.after.items() if after == end]
    index = text.token_at(min(starts)) if starts else None
    while index is not None and index > 2 and text.tokens[index - 1].key == "(":  # CROSS JOIN (b)
        index -= 1
    return index is not None and [token.key for token in text.tokens[max(index - 2, 0) : index]] == ["CROSS", "JOIN"]


def _is_table(relation: exp.Expr) -> TypeGuard[exp.Table]:
    return isinstance(relation, exp.Table) and isinstance(relation.this, exp.Identifier)


def clock_in(condition: exp.Expr | None) -> str:
    """Returns the name of a function of the current time in a join condition; empty if there is none."""
    found = condition.find(*_CLOCKS) if condition is not None else None
    return _CLOCKS[type(found)] if found is not None else ""


@dataclass(frozen=True)
class Sides:
    """The scopes of the two sides of a join."""

    left: Scope
    right: Scope

    def of(self, node: exp.Expr) -> tuple[str, Column] | None:
        """Returns the side and the column to which the name `node` refers; None if it is no name of a column."""
        for side, scope in (("left", self.left), ("right", self.right)) if isinstance(node, exp.Column) else ():
            found = scope.resolve(name_parts(node))
            if isinstance(found, ResolvedName) and not found.fields:
                return side, found.column
        return None

    def of_all(self, node: exp.Expr) -> set[str] | None:
        """Returns the sides of the names in `node`; None if one of them is unknown."""
        found: set[str] = set()
        for name in node.find_all(exp.Column):
            in_sides = [isinstance(scope.resolve(name_parts(name)), ResolvedName) for scope in (self.left, self.right)]
            # a name that both sides have, or neither, says nothing
            if in_sides not in ([True, False], [False, True]):
                return None
            found.add("left" if in_sides[0] else "right")
        return found

    @property
    def known(self) -> bool:
        """Whether all columns of both sides are known."""
        return all(item.columns is not None for scope in (self.left, self.right) for item in scope.relations)


def conjuncts(condition: exp.Expr | None) -> Iterator[exp.Expr]:
    """Yields the parts of a condition that must all be true."""
    if isinstance(condition, exp.Paren):
        yield from conjuncts(condition.this)
    elif isinstance(condition, exp.And):
        yield from conjuncts(condition.this)
        yield from conjuncts(condition.expression)
    elif isinstance(condition, exp.Between):
        # copies: sqlglot makes a new node the parent of its operands, which must keep their own
        yield exp.GTE(this=condition.this.copy(), expression=condition.args["low"].copy())
        yield exp.LTE(this=condition.this.copy(), expression=condition.args["high"].copy())
    elif condition is not None:
        yield condition


def time_keys(condition: exp.Expr | None, using: Sequence[str], sides: Sides) -> tuple[Column, ...] | None:
    """Returns the columns with a watermark in equalities of both sides; None if they are unknown."""
    if not sides.known:
        return None
    merged = [scope.resolve((name,)) for name in using for scope in (sides.left, sides.right)]
    # not `<=>`, which compares expressions of the columns
    equal = [part for part in conjuncts(condition) if isinstance(part, exp.EQ) and _crosses(part, sides)]
    pairs = [sides.of(operand) for part in equal for operand in (part.this, part.expression)]
    columns = [item.column for item in merged if isinstance(item, ResolvedName)]
    columns += [found[1] for found in pairs if found is not None]
    return tuple(column for column in columns if column.event_time is not None)


def has_equality(condition: exp.Expr | None, using: Sequence[str], sides: Sides) -> bool | None:
    """Returns whether an expression of one side must equal one of the other side; None if only Spark knows.

    Spark looks for such keys in the condition as the optimizer leaves it (ExtractEquiJoinKeys, BooleanSimplification):
    `not (l.id <> r.id)` and `(l.id = r.id) = true` have one, and `l.id in (r.id)` has none. Each operand must belong to
    one side only: `l.id - r.id = 0` is no key.
    """
    if using:
        return True
    found = _has_key(condition, sides) if condition is not None else False
    return None if found is False and not sides.known else found


def hints_of(condition: exp.Expr | None, sides: Sides | None = None) -> Hints:
    """Returns what a condition can add to the joins below it: to the inner join of `sides`, or to any (None)."""
    if condition is None:
        return Hints()
    may_have_key = condition.find(*_SIMPLIFIED, exp.In) is not None  # most conditions have none of them
    return Hints(
        may_equate=may_have_key and _has_key(condition, sides) is not False,
        may_bound=condition.find(exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between) is not None,
    )


_EQUAL = (exp.EQ, exp.NullSafeEQ, exp.EqualNull)
_UNEQUAL = (exp.NEQ, exp.NullSafeNEQ)
_SIMPLIFIED = (*_EQUAL, *_UNEQUAL, exp.Case, exp.Coalesce, exp.Collate, exp.DecodeCase, exp.If, exp.Nullif, exp.Nvl2)
"""Expressions that Spark may replace by an equality or by one of their operands, depending on what can be null."""


def _has_key(node: exp.Expr, sides: Sides | None, *, negated: bool = False) -> bool | None:
    """Returns whether the condition `node`, or its negation, requires an equality of both sides; None if it may."""
    parts = list(_operands(node, exp.And, negated=negated))
    if len(parts) > 1:
        found = [_has_key(part, sides, negated=is_negated) for part, is_negated in parts]
        if True in found:
            return True
        return None if None in found or _may_absorb(parts) else False
    ((part, is_negated),) = parts
    choices = list(_operands(part, exp.Or, negated=is_negated))
    if len(choices) > 1:
        return _have_common_key(choices, sides)
    return _is_key(part, sides, negated=is_negated)


def _operands(node: exp.Expr, kind: type[exp.Connector], *, negated: bool) -> Iterator[tuple[exp.Expr, bool]]:
    """Yields the operands that AND or OR (`kind`) combines in a condition, and whether each is negated."""
    if isinstance(node, exp.Paren):
        yield from _operands(node.this, kind, negated=negated)
    elif isinstance(node, exp.Not):
        yield from _operands(node.this, kind, negated=not negated)
    # NOT makes an OR of an AND, and the other way round
    elif isinstance(node, exp.And | exp.Or) and isinstance(node, kind) != negated:
        yield from _operands(node.this, kind, negated=negated)
        yield from _operands(node.expression, kind, negated=negated)
    else:
        yield node, negated


def _may_absorb(parts: Sequence[tuple[exp.Expr, bool]]) -> bool:
    """Returns whether Spark may remove a choice from an OR because of another part of the condition."""
    names = [{tuple(map(str.lower, name_parts(name))) for name in part.find_all(exp.Column)} for part, _ in parts]
    unions = [index for index, part in enumerate(parts) if len(list(_operands(part[0], exp.Or, negated=part[1]))) > 1]
    return any(names[one] & names[other] for one in unions for other in range(len(parts)) if other != one)


def _have_common_key(choices: Sequence[tuple[exp.Expr, bool]], sides: Sides | None) -> bool | None:
    """Returns whether all choices of an OR require the same equality, which Spark then moves out of it."""
    found = [_has_key(choice, sides, negated=negated) for choice, negated in choices]
    if set(found) == {False}:
        return False
    if sides is None or None in found or any(_may_be_false(*choice) for choice in choices):
        return None
    if False in found:
        return False
    keys = [_column_keys(choice, sides, negated=negated) for choice, negated in choices]
    if any(key is None for key in keys):
        return None
    return bool(frozenset.intersection(*(key for key in keys if key is not None)))


def _may_be_false(choice: exp.Expr, negated: bool) -> bool:
    """Returns whether Spark may remove a choice of an OR: one with a constant, or `l.id is null and r.id is null`,
    which makes the equality beside it `<=>`.
    """
    parts = [part for part, _ in _operands(choice, exp.And, negated=negated)]
    null_tests = [part for part in parts if isinstance(part, exp.Is)]
    return len(null_tests) > 1 or any(part.find(exp.Column) is None for part in parts)


def _column_keys(node: exp.Expr, sides: Sides, *, negated: bool) -> frozenset[tuple[str, int, int]] | None:
    """Returns the equalities of two columns in a condition; None if there are others, which may equal them."""
    keys = set()
    for part, is_negated in _operands(node, exp.And, negated=negated):
        if _is_key(part, sides, negated=is_negated):
            found = [sides.of(operand) for operand in (part.this, part.args["expression"])]
            left, right = (dict(item for item in found if item is not None).get(side) for side in ("left", "right"))
            if left is None or right is None:
                return None
            keys.add(("=" if isinstance(part, exp.EQ | exp.NEQ) else "<=>", id(left), id(right)))
    return frozenset(keys)


def _is_key(part: exp.Expr, sides: Sides | None, *, negated: bool) -> bool | None:
    """Returns whether a comparison, or its negation, is an equality of both sides; None if Spark may make it one."""
    if isinstance(part, exp.EQ | exp.NEQ):
        for value, other in ((part.this, part.expression), (part.expression, part.this)):
            if isinstance(value, exp.Boolean):  # (l.id = r.id) = true
                # `= false` and `<> true` negate the other operand
                flips = (not value.this) != isinstance(part, exp.NEQ)
                return _has_key(other, sides, negated=negated != flips)
    if isinstance(part, _UNEQUAL if negated else _EQUAL):
        return _equates(part.this, part.args["expression"], sides)
    if isinstance(part, exp.In):
        return None if part.args.get("query") else False
    operands = (part.this, part.args["expression"]) if isinstance(part, (*_EQUAL, *_UNEQUAL)) else (part,)
    return None if any(operand.find(*_SIMPLIFIED) for operand in operands) else False


def _equates(one: exp.Expr, other: exp.Expr, sides: Sides | None) -> bool | None:
    """Returns whether the equality of two expressions is one of both sides."""
    in_sides = [sides.of_all(one), sides.of_all(other)] if sides is not None else [None, None]
    if in_sides in ([{"left"}, {"right"}], [{"right"}, {"left"}]):
        return True
    if one.find(*_SIMPLIFIED) or other.find(*_SIMPLIFIED):
        return None
    # `l.id = 1` is a condition on one side, even if other names are unknown
    has_constant = one.find(exp.Column) is None or other.find(exp.Column) is None
    return None if None in in_sides and not has_constant else False


def _crosses(part: exp.Expr, sides: Sides) -> bool:
    found = {item[0] for item in map(sides.of, part.find_all(exp.Column)) if item is not None}
    return len(found) == 2


def bounded_sides(condition: exp.Expr | None, sides: Sides) -> frozenset[str] | None:
    """Returns the sides whose rows Spark can drop by the other side's watermark; None if it is unknown.

    For that, a time of the side must be later than the other side's event time, plus or minus a constant:
    `l.ts >= r.ts - interval 1 hour` bounds the left side if `r.ts` has a watermark
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
            found |= {side for side in OTHER if difference is not None and _bounds(side, difference, sides)}
    # unclear parts cannot undo a bound
    return None if unclear and len(found) < len(OTHER) else frozenset(found)


OTHER = {"left": "right", "right": "left"}


def _difference(part: exp.Binary, sides: Sides) -> Sum | None:
    """Returns the smaller side of a comparison minus the greater side; None if it is unknown."""
    low, high = sum_of(part.this, sides.of), sum_of(part.expression, sides.of)
    if isinstance(part, exp.GT | exp.GTE):
        low, high = high, low
    known = [item for item in (low, high) if item is not None]
    # before the next test: one side that certainly is no sum is enough
    if not all(item.is_sum for item in known):
        return NO_SUM
    if low is None or high is None:
        return None
    return Sum((*low.terms, *high.negated().terms), has_constant=low.has_constant or high.has_constant)


def _bounds(side: str, difference: Sum, sides: Sides) -> bool:
    """Returns whether `difference < 0` is a lower bound for times of `side` by the other side's watermark."""
    own = [term for term in difference.terms if term.side == side]
    other = [term for term in difference.terms if term.side == OTHER[side]]
    # own time > other time: with a positive sign, the other side's time would be the later one
    if not difference.is_sum or len(own) != 1 or own[0].sign > 0 or len(other) > 1:
        return False
    if other:
        return other[0].column.event_time is not None
    # Spark also accepts only a constant if a column of the other side has a watermark
    scope = sides.right if side == "left" else sides.left
    watermark = any(column.event_time for item in scope.relations for column in item.columns or ())
    return difference.has_constant and watermark


_CAST = {NUMBER: "a number", DATETIME: "a date or timestamp in the session's time zone", "boolean": "true or false"}
"""The families to which Spark casts text beside them, and what the text must then contain."""

_CANNOT_COMPARE = "Spark cannot compare these two types"


def condition_problems(condition: exp.Expr, scope: Scope, expressions: Expressions) -> Iterator[SqlProblem]:
    """Yields a problem for each random function in a join condition, and a warning for text beside another type."""
    for call in expressions.calls(condition, RANDOM):
        what = f"`{call.name}` is not allowed in a join condition"
        why = "Spark accepts only deterministic join conditions"
        fix = "compute it in a subquery before the join, or in WHERE"
        yield SqlProblem(call.where.offset, "join-condition", what, why, fix)
    text = expressions.text
    for part in (part for part in text.parts_of(condition).parts if isinstance(part, COMPARISONS)):
        sides = [side for side in (part.this, part.args["expression"]) if text.parts_of(side).names]
        if len(sides) == len(("left", "right")):
            left, right = (expressions.type_of(side, scope) for side in sides)
            if left != right:
                yield from _text_warning(text.written(part), left, right, text.where(part).offset)


def _text_warning(written: str, left: DataType | None, right: DataType | None, offset: int) -> Iterator[SqlProblem]:
    """Yields the warning for a comparison of text with a type to which Spark casts the text."""
    types = {family(left): left, family(right): right}
    other = next((group for group in types if group in _CAST), None)
    if other is not None and "string" in types:
        what = f"{quoted(written)} compares {left} with {right}"
        why = f"Spark casts each text to {types[other]}, and the query fails for a text that is not {_CAST[other]}"
        casts = "cast(... as string) compares as text, try_cast of the text returns null if it fails"
        yield SqlProblem(offset, "join-type", what, why, f"cast one side explicitly: {casts}", Severity.WARNING)


def using_problems(names: Sequence[str], left: Scope, right: Scope, where: Where) -> Iterator[SqlProblem]:
    """Yields the problems of the columns that USING or NATURAL compares."""
    for name in names:
        # USING sees neither the aliases of the select list nor the outer query
        found = [Scope(scope.relations).resolve((name,)) for scope in (left, right)]
        missing = [item for item in found if isinstance(item, UnresolvedName)]
        yield from (name_problem(item, (name,), where) for item in missing[:1])  # one, also if both lack it
        one, other = (item.column.type if isinstance(item, ResolvedName) else None for item in found)
        if not can_be_compared(one, other):
            what = f"the join column {quoted(name)} has type {one} on one side and {other} on the other"
            fix = "use ON to compare the two columns, and cast one of them"
            yield SqlProblem(where.offset, "type-mismatch", what, _CANNOT_COMPARE, fix)
        yield from _text_warning(name, one, other, where.offset)


def subquery_problems(
    query: exp.Query, columns: Columns | None, scope: Scope, expressions: Expressions
) -> Iterator[SqlProblem]:
    """Yields the problem of `x IN (query)`, or of a comparison with a scalar subquery, if the types do not match.

    `columns` are those of the query. `scope` is that of the expression around it.
    """
    around = query.parent
    while isinstance(around, exp.Subquery | exp.Paren):
        around = around.parent
    if not isinstance(around, (*COMPARISONS, exp.In)) or columns is None or len(columns) != 1:
        return
    value = around.this
    if not isinstance(around, exp.In) and value.find(exp.Query) is not None:
        value = around.args["expression"]  # the query is on the left
    if value.find(exp.Query) is not None:
        return
    one, other = expressions.type_of(value, scope), columns[0].type
    written = expressions.text.written(value)
    if not can_be_compared(one, other):
        what = f"{quoted(written)} has type {one}, but the subquery that it is compared with returns {other}"
        fix = "compare a part of the value, or cast one side to the type of the other"
        yield expressions.text.problem(around, "type-mismatch", what, _CANNOT_COMPARE, fix)
    elif isinstance(around, exp.In):
        yield from _text_warning(f"{written} in (...)", one, other, expressions.text.where(around).offset)


# A side of a comparison as a sum of columns and constants, as Spark reads it to find a bound on event time.


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
