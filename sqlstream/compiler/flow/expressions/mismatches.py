"""Expressions of types that Spark does not take at their place: conditions, comparisons, operators, parts and casts.

The rules are those of `checkInputDataTypes` with ANSI on; where a type is not known, nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise

from sqlglot import exp

from sqlstream.compiler.flow.expressions.column import Expressions
from sqlstream.compiler.flow.names.scope import Scope
from sqlstream.compiler.flow.types.arithmetic import cannot_be_moved
from sqlstream.compiler.flow.types.families import DATETIME, can_be_cast, can_be_compared, family, have_common_type
from sqlstream.compiler.flow.types.values import DIGITS, kind
from sqlstream.compiler.sql.problem import SqlProblem
from sqlstream.project.types.types import Array, DataType, Map, Primitive, Struct
from sqlstream.project.wording import quoted

COMPARISONS = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
ARITHMETIC = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}
NO_OPERANDS = frozenset({"boolean", "binary", "array", "map", "struct", "variant"})
BOOLEANS = frozenset({"", "void", "boolean"})
CHOICES = (exp.Case, exp.If, exp.Coalesce)
CHOOSERS = frozenset({"coalesce", "nvl", "ifnull", "if", "array"})
"""Functions whose arguments have a common type."""

TIME_FUNCTIONS = frozenset(
    {
        *("make_time", "to_time", "try_to_time", "time_diff", "time_trunc", "time_from_seconds", "time_from_millis"),
        *("time_from_micros", "time_to_seconds", "time_to_millis", "time_to_micros", "time"),
    }
)
"""Functions of the type TIME, which Spark 4.3 refuses unless `spark.sql.timeType.enabled` is set."""


_RULES: tuple[tuple[tuple[type[exp.Expr], ...], str], ...] = (
    (COMPARISONS, "_comparison"),
    ((exp.Between,), "_between"),
    ((exp.In,), "_in"),
    (tuple(ARITHMETIC), "_arithmetic"),
    ((exp.And, exp.Or), "_logic"),
    ((exp.Not,), "_negation"),
    ((exp.If,), "_if"),
    (CHOICES, "_choice"),
    ((exp.Bracket,), "_bracket"),
    ((exp.Alias,), "_path"),
    ((exp.TryCast,), "_cast"),
    ((exp.Func,), "_function"),
)
"""Nodes, and the method that looks at them."""

_BY_CLASS: dict[type[exp.Expr], tuple[str, ...]] = {}


def _rules_for(kind: type[exp.Expr]) -> tuple[str, ...]:
    if kind not in _BY_CLASS:
        _BY_CLASS[kind] = tuple(rule for kinds, rule in _RULES if issubclass(kind, kinds))
    return _BY_CLASS[kind]


@dataclass(frozen=True)
class Mismatches:
    """Looks at the types in expressions that are read in `scope`."""

    expressions: Expressions
    scope: Scope

    def condition(self, node: exp.Expr, what: str) -> Iterator[SqlProblem]:
        """Gives the problem of a condition, called `what` in the message, that is no BOOLEAN; text is none either."""
        type_ = self.expressions.type_of(node, self.scope)
        if family(type_) not in ("", "boolean"):
            message = f"{what} has type {type_}, not boolean"
            why = (
                "Spark keeps the rows for which the condition is true, and does not convert other types to boolean here"
            )
            fix = f"compare it, for example {self._written(node)} is not null"
            yield self._problem(node, message, why, fix)

    def problems(self, node: exp.Expr) -> Iterator[SqlProblem]:
        """Gives the problem of each operator or function in `node` whose operands do not fit."""
        for part in self.expressions.text.parts_of(node).parts:
            for rule in _rules_for(type(part)):
                yield from getattr(self, rule)(part)

    def _type(self, node: object) -> DataType | None:
        return self.expressions.type_of(node, self.scope) if isinstance(node, exp.Expr) else None

    def _pair(self, node: exp.Expr, left: object, right: object) -> Iterator[SqlProblem]:
        one, other = self._type(left), self._type(right)
        if self._is_mismatch(left) or self._is_mismatch(right):
            return  # which is reported, and what it gives is nothing to compare
        if not can_be_compared(one, other) and one is not None and other is not None:
            why = "Spark cannot compare these two types"
            fix = "compare a part of the value, or cast one side to the type of the other"
            if isinstance(one, Map) and isinstance(left, exp.Expr):
                name = self._written(left)
                why = "map entries have no order, so Spark cannot compare maps"
                fix = f"compare values, as in {name}['key'], or array_sort(map_entries({name}))"
            yield self._problem(node, f"{quoted(self._written(node))} compares {one} with {other}", why, fix)

    def _is_mismatch(self, node: object) -> bool:
        """Whether this is a comparison of two types that do not fit."""
        side = node.unnest() if isinstance(node, exp.Expr) else node
        return isinstance(side, COMPARISONS) and not can_be_compared(self._type(side.this), self._type(side.expression))

    def _comparison(self, node: exp.Binary) -> Iterator[SqlProblem]:
        if not isinstance(node.expression, exp.Any | exp.All | exp.Query):
            yield from self._pair(node, node.this, node.expression)

    def _between(self, node: exp.Between) -> Iterator[SqlProblem]:
        for bound in ("low", "high"):
            yield from list(self._pair(node, node.this, node.args[bound]))[:1]

    def _in(self, node: exp.In) -> Iterator[SqlProblem]:
        # within arrays and structs Spark looks for a common type of all, with other casts than a comparison has
        is_nested = isinstance(self._type(node.this), Array | Struct)
        values = (
            value
            for value in node.expressions
            if not isinstance(value, exp.Query) and not (is_nested and isinstance(self._type(value), Array | Struct))
        )
        yield from islice((problem for value in values for problem in self._pair(node, node.this, value)), 1)

    def _arithmetic(self, node: exp.Binary) -> Iterator[SqlProblem]:
        operator = ARITHMETIC[type(node)]
        for side in (node.this, node.expression):
            type_ = self._type(side)
            wrong = NO_OPERANDS if operator in "+-" else NO_OPERANDS | {DATETIME}
            if family(type_) in wrong:
                what = f"{quoted(self._written(side))} has type {type_}, which does not work with {quoted(operator)}"
                why = "arithmetic works with numbers, and + and - also with dates, timestamps and intervals"
                fix = "extract a number from it, or use a function for its type"
                yield self._problem(side, what, why, fix)
                return
        left, right = self._type(node.this), self._type(node.expression)
        if operator in "+-" and cannot_be_moved(operator, left, right):
            what = f"{quoted(self._written(node))} combines {left} and {right} with {quoted(operator)}"
            why = "add an interval to a timestamp, and an interval or an INT of days to a date"
            fix = "use an interval, for example + interval 1 day; cast text to the intended type"
            yield self._problem(node, what, why, fix)

    def _logic(self, node: exp.Binary) -> Iterator[SqlProblem]:
        for side in (node.this, node.expression):
            yield from self._truth(side, BOOLEANS | {"string"})

    def _negation(self, node: exp.Not) -> Iterator[SqlProblem]:
        yield from self._truth(node.this, BOOLEANS | {"string"})

    def _if(self, node: exp.If) -> Iterator[SqlProblem]:
        within = node.parent
        if not isinstance(within, exp.Case) or within.this is None:
            yield from self._truth(node.this, BOOLEANS)
        else:
            yield from self._pair(node.this, within.this, node.this)

    def _truth(self, node: exp.Expr, taken: frozenset[str]) -> Iterator[SqlProblem]:
        type_ = self._type(node)
        if family(type_) not in taken:
            what = f"{quoted(self._written(node))} has type {type_} but is used as a boolean"
            why = "Spark does not convert it to boolean"
            fix = f"compare it, for example {self._written(node)} is not null"
            yield self._problem(node, what, why, fix)

    def _choice(self, node: exp.Expr) -> Iterator[SqlProblem]:
        name = self.expressions.text.function(node)
        if isinstance(node, exp.Case):
            values = [item.args.get("true") for item in node.args["ifs"]] + [node.args.get("default")]
        elif isinstance(node, exp.If) and not isinstance(node.parent, exp.Case):
            values = [node.args.get("true"), node.args.get("false")]
        elif name in CHOOSERS:
            values = list(node.iter_expressions())
        else:
            return
        found = [(value, self._type(value)) for value in values if value is not None]
        known = [(value, type_) for value, type_ in found if family(type_) not in ("", "void")]
        for (_, one), (value, other) in pairwise(known):
            if not have_common_type(one, other):
                what = f"{quoted(self._written(value))} has type {other}, but the value before it has type {one}"
                why = "all values that an expression can return must have a common type"
                fix = f"cast one of them, for example cast({self._written(value)} as string)"
                yield self._problem(value, what, why, fix)
                return

    def _bracket(self, node: exp.Bracket) -> Iterator[SqlProblem]:
        if not self._is_written_with_brackets(node):
            return
        type_ = self._type(node.this)
        key = node.expressions[0] if node.expressions else None
        index = self._type(key)
        written = self._written(node.this)
        if kind(type_) and kind(type_) != "void" and not isinstance(type_, Array | Map | Struct):
            fix = (
                f"use substring({written}, 1, 1), or split it first"
                if family(type_) == "string"
                else "remove the brackets"
            )
            what = f"{quoted(written)} has type {type_}, which has no elements"
            why = "brackets access an element of an array, map or struct"
            yield self._problem(node, what, why, fix)
        is_field = isinstance(type_, Array) and isinstance(type_.element, Struct)
        if isinstance(type_, Array) and not is_field and kind(index) not in ("", "void", *DIGITS):
            why = f"{quoted(written)} has type {type_}, whose elements are numbered from 0"
            what = f"an array has no element {quoted(self._written(key or node))}"
            fix = "use a number"
            yield self._problem(node, what, why, fix)

    def _is_written_with_brackets(self, node: exp.Bracket) -> bool:
        """Whether it is not `element_at(...)`, which sqlglot reads alike."""
        text = self.expressions.text
        starts = [part.meta["start"] for part in node.this.walk() if "start" in part.meta]
        index = text.token_at(max(starts)) if starts else None
        before = text.token_at(min(starts)) if starts else None
        if index is None or before is None:
            return False
        return not any(
            token.key in ("ELEMENT_AT", "TRY_ELEMENT_AT") for token in text.tokens[max(before - 2, 0) : before]
        )

    def _path(self, node: exp.Alias) -> Iterator[SqlProblem]:
        """`body:name` in a select list, which sqlglot takes for an alias that is a parameter."""
        type_ = self._type(node.this) if isinstance(node.args["alias"], exp.Placeholder) else None
        if family(type_) in ("", "variant"):
            return
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
        """Functions of TIME, the rows of `stack`, which make columns of one type each, and `inline`, which takes
        structs.
        """
        name = self.expressions.text.function(node)
        if name in TIME_FUNCTIONS:
            yield self._time_problem(node)
        elif name == "stack" and isinstance(node.this, exp.Literal) and node.this.name.isdecimal():
            rows = int(node.this.name)
            width = -(-len(node.expressions) // rows) if rows else 0
            for place in range(width):
                yield from self._stacked(node.expressions[place::width])
        elif name in ("inline", "inline_outer"):
            argument = node.expressions[0] if isinstance(node, exp.Anonymous) else node.this
            type_ = self._type(argument)
            element = type_.element if isinstance(type_, Array) else type_
            if family(element) not in ("", "void") and not (isinstance(type_, Array) and isinstance(element, Struct)):
                why = "it takes an array of structs, and returns one column per field"
                yield self._problem(argument, f"{quoted(name)} gets {type_}", why, "use explode")

    def _stacked(self, values: list[exp.Expr]) -> Iterator[SqlProblem]:
        known = [(value, self._type(value)) for value in values]
        known = [(value, type_) for value, type_ in known if family(type_) not in ("", "void")]
        for (_, one), (value, other) in pairwise(known):
            if family(one) != family(other):
                what = f"{quoted(self._written(value))} has type {other}, but the row above has {one} in this column"
                why = "stack turns its arguments into columns, and does not cast values to a common type"
                fix = "cast all values of the column to one type"
                yield self._problem(value, what, why, fix)
                return

    def _written(self, node: exp.Expr) -> str:
        return self.expressions.text.written(node)

    def _problem(self, node: exp.Expr, message: str, why: str, fix: str) -> SqlProblem:
        return SqlProblem(self.expressions.text.where(node).offset, "type-mismatch", message, why, fix)
