"""Type errors in conditions, comparisons, operators, element accesses and casts.

The rules are those of `checkInputDataTypes` with ANSI mode on. Unknown types cause no errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice, pairwise

from sqlglot import exp

from sqlstream.compiler.flow.expressions.column import Expressions
from sqlstream.compiler.flow.names import Scope
from sqlstream.compiler.flow.type_rules import (
    DATETIME,
    DIGITS,
    can_be_cast,
    can_be_compared,
    cannot_be_moved,
    family,
    have_common_type,
    kind,
)
from sqlstream.compiler.sql.edits import SqlProblem
from sqlstream.project.types.data_types import Array, DataType, Map, Primitive, Struct
from sqlstream.project.wording import quoted

COMPARISONS = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_ARITHMETIC = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}
_NO_OPERANDS = frozenset({"boolean", "binary", "array", "map", "struct", "variant"})
_BOOLEANS = frozenset({"", "void", "boolean"})
_CHOICES = (exp.Case, exp.If, exp.Coalesce)
_CHOOSERS = frozenset({"coalesce", "nvl", "ifnull", "if", "array"})
"""Functions whose arguments must have a common type."""

_TIME_FUNCTIONS = frozenset(
    """
    make_time to_time try_to_time time_diff time_trunc time_from_seconds time_from_millis time_from_micros
    time_to_seconds time_to_millis time_to_micros time
    """.split()  # noqa: SIM905 - a list of words
)
"""Functions of the type TIME, which Spark 4.3 rejects unless `spark.sql.timeType.enabled` is set."""

_RULES: tuple[tuple[tuple[type[exp.Expr], ...], str], ...] = (
    (COMPARISONS, "_comparison"),
    ((exp.Between,), "_between"),
    ((exp.In,), "_in"),
    (tuple(_ARITHMETIC), "_arithmetic"),
    ((exp.And, exp.Or, exp.Not), "_logic"),
    ((exp.If,), "_if"),
    (_CHOICES, "_choice"),
    ((exp.Bracket,), "_bracket"),
    ((exp.Alias,), "_path"),
    ((exp.TryCast,), "_cast"),
    ((exp.Func,), "_function"),
)
"""Node classes, and the method that checks them."""


_BY_CLASS: dict[type[exp.Expr], tuple[str, ...]] = {}
"""The rules of each node class that has occurred."""


def _rules_for(kind: type[exp.Expr]) -> tuple[str, ...]:
    if kind not in _BY_CLASS:
        _BY_CLASS[kind] = tuple(rule for kinds, rule in _RULES if issubclass(kind, kinds))
    return _BY_CLASS[kind]


@dataclass(frozen=True)
class Mismatches:
    """Checks the types in expressions in `scope`."""

    expressions: Expressions
    scope: Scope

    def condition(self, node: exp.Expr, name: str) -> Iterator[SqlProblem]:
        """Yields the problem of a condition that is not BOOLEAN; text is an error too. Messages call it `name`."""
        type_ = self._type(node)
        if family(type_) not in ("", "boolean"):
            keeps = "Spark keeps the rows for which the condition is true"
            why = f"{keeps}, and does not convert other types to boolean here"
            fix = f"compare it, for example {self._written(node)} is not null"
            yield self._problem(node, f"{name} has type {type_}, not boolean", why, fix)

    def problems(self, node: exp.Expr) -> Iterator[SqlProblem]:
        """Yields a problem for each operator or function in `node` with operands of the wrong type."""
        for part in self.expressions.text.parts_of(node).parts:
            for rule in _rules_for(type(part)):
                yield from getattr(self, rule)(part)

    def _type(self, node: object) -> DataType | None:
        return self.expressions.type_of(node, self.scope) if isinstance(node, exp.Expr) else None

    def _pair(self, node: exp.Expr, left: exp.Expr, right: exp.Expr) -> Iterator[SqlProblem]:
        one, other = self._type(left), self._type(right)
        if one is None or other is None or can_be_compared(one, other):
            return
        if self._is_mismatch(left) or self._is_mismatch(right):
            return  # already reported; its result has no useful type
        why = "Spark cannot compare these two types"
        fix = "compare a part of the value, or cast one side to the type of the other"
        if isinstance(one, Map):
            name = self._written(left)
            why = "map entries have no order, so Spark cannot compare maps"
            fix = f"compare values, as in {name}['key'], or array_sort(map_entries({name}))"
        yield self._problem(node, f"{quoted(self._written(node))} compares {one} with {other}", why, fix)

    def _is_mismatch(self, node: exp.Expr) -> bool:
        """Returns whether `node` is a comparison of two types that Spark cannot compare."""
        side = node.unnest()
        return isinstance(side, COMPARISONS) and not can_be_compared(self._type(side.this), self._type(side.expression))

    def _comparison(self, node: exp.Binary) -> Iterator[SqlProblem]:
        # `subquery_problems` compares the types of subqueries
        if not isinstance(node.expression, exp.Any | exp.All | exp.Query):
            yield from self._pair(node, node.this, node.expression)

    def _between(self, node: exp.Between) -> Iterator[SqlProblem]:
        for bound in ("low", "high"):
            yield from self._pair(node, node.this, node.args[bound])

    def _in(self, node: exp.In) -> Iterator[SqlProblem]:
        # inside arrays and structs Spark looks for a common type, with other casts than in a comparison
        is_nested = isinstance(self._type(node.this), Array | Struct)
        values = (
            value
            for value in node.expressions
            if not isinstance(value, exp.Query) and not (is_nested and isinstance(self._type(value), Array | Struct))
        )
        yield from islice(chain.from_iterable(self._pair(node, node.this, value) for value in values), 1)

    def _arithmetic(self, node: exp.Binary) -> Iterator[SqlProblem]:
        operator = _ARITHMETIC[type(node)]
        sides = [(side, self._type(side)) for side in (node.this, node.expression)]
        wrong = _NO_OPERANDS if operator in "+-" else _NO_OPERANDS | {DATETIME}
        for side, type_ in [(side, type_) for side, type_ in sides if family(type_) in wrong][:1]:
            what = f"{quoted(self._written(side))} has type {type_}, which does not work with {quoted(operator)}"
            why = "arithmetic works with numbers, and + and - also with dates, timestamps and intervals"
            fix = "extract a number from it, or use a function for its type"
            yield self._problem(side, what, why, fix)
            return
        (_, left), (_, right) = sides
        if operator in "+-" and cannot_be_moved(operator, left, right):
            what = f"{quoted(self._written(node))} combines {left} and {right} with {quoted(operator)}"
            why = "Spark adds only intervals to timestamps, and only intervals and an INT of days to dates"
            fix = "use an interval, for example + interval 1 day; cast text to the intended type"
            yield self._problem(node, what, why, fix)

    def _logic(self, node: exp.Expr) -> Iterator[SqlProblem]:
        for side in node.iter_expressions():
            # these operators cast text to boolean, unlike IF, CASE WHEN and WHERE
            yield from self._truth(side, _BOOLEANS | {"string"})

    def _if(self, node: exp.If) -> Iterator[SqlProblem]:
        case = node.parent
        # sqlglot has an If in each branch; `case x when y` compares, `case when y` tests
        if isinstance(case, exp.Case) and case.this is not None:
            yield from self._pair(node.this, case.this, node.this)
        else:
            yield from self._truth(node.this, _BOOLEANS)

    def _truth(self, node: exp.Expr, accepted: frozenset[str]) -> Iterator[SqlProblem]:
        type_ = self._type(node)
        if family(type_) not in accepted:
            what = f"{quoted(self._written(node))} has type {type_} but is used as a boolean"
            why = "Spark does not convert it to boolean"
            yield self._problem(node, what, why, f"compare it, for example {self._written(node)} is not null")

    def _choice(self, node: exp.Expr) -> Iterator[SqlProblem]:
        if isinstance(node, exp.Case):
            values = [item.args.get("true") for item in node.args["ifs"]] + [node.args.get("default")]
        elif isinstance(node, exp.If) and not isinstance(node.parent, exp.Case):
            values = [node.args.get("true"), node.args.get("false")]
        else:
            is_chooser = self.expressions.text.function(node) in _CHOOSERS
            values = list(node.iter_expressions()) if is_chooser else []
        for value, type_, before in self._neighbours(values):
            if not have_common_type(before, type_):
                what = f"{quoted(self._written(value))} has type {type_}, but the value before it has type {before}"
                why = "all values that an expression can return must have a common type"
                fix = f"cast one of them, for example cast({self._written(value)} as string)"
                yield self._problem(value, what, why, fix)
                return

    def _neighbours(
        self, values: Iterable[exp.Expr | None]
    ) -> Iterator[tuple[exp.Expr, DataType | None, DataType | None]]:
        """Yields each value with its type and that of the value before it, without NULLs and unknown types."""
        found = [(value, self._type(value)) for value in values if value is not None]
        known = [(value, type_) for value, type_ in found if family(type_) not in ("", "void")]
        return ((value, type_, before) for (_, before), (value, type_) in pairwise(known))

    def _bracket(self, node: exp.Bracket) -> Iterator[SqlProblem]:
        if not self._has_brackets(node):
            return
        type_, written = self._type(node.this), self._written(node.this)
        key = node.expressions[0] if node.expressions else None
        if kind(type_) not in ("", "void", "array", "map", "struct"):
            fix = f"use substring({written}, 1, 1), or split it first"
            what = f"{quoted(written)} has type {type_}, which has no elements"
            why = "brackets access an element of an array, map or struct"
            yield self._problem(node, what, why, fix if family(type_) == "string" else "remove the brackets")
        is_field = isinstance(type_, Array) and isinstance(type_.element, Struct)
        if isinstance(type_, Array) and not is_field and kind(self._type(key)) not in ("", "void", *DIGITS):
            what = f"an array has no element {quoted(self._written(key or node))}"
            why = f"{quoted(written)} has type {type_}, whose elements are numbered from 0"
            yield self._problem(node, what, why, "use a number")

    def _has_brackets(self, node: exp.Bracket) -> bool:
        """Returns whether `node` is not `element_at(...)`, which sqlglot reads the same way."""
        text = self.expressions.text
        starts = [part.meta["start"] for part in node.this.walk() if "start" in part.meta]
        first = text.token_at(min(starts)) if starts else None
        if first is None or text.token_at(max(starts)) is None:
            return False
        before = text.tokens[max(first - 2, 0) : first]
        return not any(token.key in ("ELEMENT_AT", "TRY_ELEMENT_AT") for token in before)

    def _path(self, node: exp.Alias) -> Iterator[SqlProblem]:
        """Checks `body:name` in a select list, which sqlglot reads as an alias that is a parameter."""
        type_ = self._type(node.this) if isinstance(node.args["alias"], exp.Placeholder) else None
        if family(type_) not in ("", "variant"):
            written = self._written(node.this)
            what = f"{quoted(written)} has type {type_}, but a path after a colon works only on VARIANT"
            why = "Spark treats JSON text as plain text"
            fix = f"use parse_json({written}):name or get_json_object; for a field of a struct, use a dot"
            yield self._problem(node, what, why, fix)

    def _time_problem(self, node: exp.Expr) -> SqlProblem:
        why = "Spark 4.3 defines this type but rejects queries that use it"
        fix = "use a timestamp, or text such as date_format(ts, 'HH:mm:ss')"
        return self._problem(node, f"{quoted(self._written(node))} has type TIME", why, fix)

    def _cast(self, node: exp.TryCast) -> Iterator[SqlProblem]:
        value, target = self._type(node.this), self._type(node)
        if isinstance(target, Primitive) and target.name == "time":
            yield self._time_problem(node)
        if not can_be_cast(value, target):
            what = f"{quoted(self._written(node.this))} has type {value}, which cannot be cast to {target}"
            why = "Spark does not allow this cast"
            fix = "use a function for the conversion, such as timestamp_seconds, to_json or element_at"
            yield self._problem(node, what, why, fix)

    def _function(self, node: exp.Expr) -> Iterator[SqlProblem]:
        """Checks the functions of TIME, and the arguments of `stack` and `inline`."""
        name = self.expressions.text.function(node)
        if name in _TIME_FUNCTIONS:
            yield self._time_problem(node)
        elif name == "stack" and isinstance(node.this, exp.Literal) and node.this.name.isdecimal():
            rows = int(node.this.name)
            width = -(-len(node.expressions) // rows) if rows else 0  # rounded up: the last row may be shorter
            for place in range(width):
                yield from self._stacked(node.expressions[place::width])
        elif name in ("inline", "inline_outer"):
            yield from self._inlined(name, node.expressions[0] if isinstance(node, exp.Anonymous) else node.this)

    def _inlined(self, name: str, argument: exp.Expr) -> Iterator[SqlProblem]:
        type_ = self._type(argument)
        element = type_.element if isinstance(type_, Array) else type_
        if family(element) not in ("", "void") and not (isinstance(type_, Array) and isinstance(element, Struct)):
            why = "it takes an array of structs, and returns one column per field"
            yield self._problem(argument, f"{quoted(name)} gets {type_}", why, "use explode")

    def _stacked(self, values: list[exp.Expr]) -> Iterator[SqlProblem]:
        """Checks the values of one column of `stack`."""
        for value, type_, before in self._neighbours(values):
            if family(before) != family(type_):
                what = f"{quoted(self._written(value))} has type {type_}, but the row above has {before} in this column"
                why = "stack turns its arguments into columns, and does not cast values to a common type"
                yield self._problem(value, what, why, "cast all values of the column to one type")
                return

    def _written(self, node: exp.Expr) -> str:
        return self.expressions.text.written(node)

    def _problem(self, node: exp.Expr, what: str, why: str, fix: str) -> SqlProblem:
        return self.expressions.text.problem(node, "type-mismatch", what, why, fix)
