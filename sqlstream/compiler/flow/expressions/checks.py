"""All checks of one expression: its names, the clauses and arguments of functions, its types, and foreign syntax."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import date
from itertools import pairwise

from sqlglot import exp

from sqlstream.compiler.flow.expressions.column import Expressions
from sqlstream.compiler.flow.expressions.function_types import TIME_FIELDS
from sqlstream.compiler.flow.expressions.literals import WITHOUT_PLACE
from sqlstream.compiler.flow.expressions.mismatches import COMPARISONS, Mismatches
from sqlstream.compiler.flow.expressions.misplaced_functions import Clause, misplaced_functions
from sqlstream.compiler.flow.functions import FUNCTIONS, Signature
from sqlstream.compiler.flow.names import Scope
from sqlstream.compiler.flow.text import NOWHERE, Text
from sqlstream.compiler.flow.type_rules import BIGINT, DATETIME, DIGITS, DOUBLE, NUMBER, family, kind
from sqlstream.compiler.sql.clauses import at
from sqlstream.compiler.sql.edits import SqlProblem
from sqlstream.compiler.sql.tokens import Token, TokenKind, Tokens
from sqlstream.numbers import plural
from sqlstream.project.formats.option_types import may_be_zone
from sqlstream.project.types.data_types import DataType
from sqlstream.project.wording import alternatives, did_you_mean, quoted

CONDITIONS = {Clause.WHERE: "the condition of WHERE", Clause.ON: "the condition of the join"}
"""The clauses whose expression must be a boolean, with their names in messages. Spark casts HAVING to boolean."""


def check_expression(expressions: Expressions, node: exp.Expr, scope: Scope, clause: Clause) -> None:
    """Adds the problems of `node`, whose names resolve in `scope`, to those of `expressions`."""
    expressions.check(node, scope)
    if isinstance(node, exp.Column) and clause not in CONDITIONS:
        return  # most items of a select list are names
    mismatches = Mismatches(expressions, scope)
    found = [*_function_problems(node, scope, expressions), *mismatches.problems(node)]
    found += _failing_casts(node, scope, expressions)
    if clause in CONDITIONS:
        found += mismatches.condition(node, CONDITIONS[clause])
    expressions.problems.extend(found)
    correlated = scope.outer is not None
    expressions.problems.extend(misplaced_functions(node, clause, expressions.text, correlated=correlated))


# Text literals that Spark casts but cannot: with ANSI mode on, the query fails at its first row.
#
# The rules are those of `UTF8String.toLong`, `Cast`, `SparkDateTimeUtils` and `StringUtils` of Spark 4.3;
# `tests/spark/test_text_casts.py` compares them with the installed Spark.

_COMPARING = (*COMPARISONS, exp.Between, exp.In)
_CASTING = (*_COMPARING, exp.Cast)
_ALWAYS_EVALUATED = (*_COMPARING, exp.And, exp.Not, exp.Paren, exp.Alias, exp.Is)
_CLAUSES = (exp.Select, exp.Where, exp.Having, exp.Join)

_BLANKS = " \t\n\r\f\v\0"
_WHOLE = re.compile(r"[+-]?[0-9]+")
_FRACTION = re.compile(
    r"""[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?[df]?|inf(?:inity)?|0x[0-9a-f.]+p[+-]?[0-9]+[df]?)|nan""",
    re.IGNORECASE,
)
_BOOLEANS = frozenset({"t", "true", "y", "yes", "1", "f", "false", "n", "no", "0"})
_SPECIAL_TIME = re.compile(r"(?:epoch|now|today|tomorrow|yesterday)(?:\s+(?P<zone>.*))?", re.IGNORECASE)
_DAY = re.compile(r"[+-]?([0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[^0-9].*)?)?)?", re.DOTALL)
_TIME_OF_DAY = re.compile(r"T?[0-9]{1,2}:.*", re.IGNORECASE)
_YEARS = range(1, 10_000)
"""The years in Python's calendar."""


def _failing_casts(node: exp.Expr, scope: Scope, expressions: Expressions) -> Iterator[SqlProblem]:
    """Yields a problem for each text in `node` that Spark casts in every row and cannot cast."""
    text = expressions.text
    parts = (part for part in text.parts_of(node).parts if isinstance(part, _CASTING))
    for part in (part for part in parts if _is_evaluated(part)):
        for literal, type_ in list(_failing(part, scope, expressions))[:1]:
            what = f"the text {quoted(text.written(literal))} cannot be cast to {type_}"
            why = "Spark casts it at run time, and the query fails with CAST_INVALID_INPUT"
            fix = f"use a value of type {type_}; try_cast returns null instead of failing"
            yield text.problem(literal, "type-mismatch", what, why, fix)


def _is_evaluated(node: exp.Expr) -> bool:
    """Returns whether Spark evaluates `node` in every row: no OR, CASE or function around it decides that."""
    around = node.parent
    while isinstance(around, _ALWAYS_EVALUATED):
        around = around.parent
    return isinstance(around, _CLAUSES)


def _failing(part: exp.Expr, scope: Scope, expressions: Expressions) -> Iterator[tuple[exp.Expr, DataType]]:
    """Yields each text that cannot be cast, and the type; for IN, only if that is true of all its values."""
    if isinstance(part, exp.Cast):
        yield from () if part.args.get("safe") else _casts([part.this], expressions.type_of(part, scope))
        return
    for value, others in _sides(part):
        found = list(_casts(others, _compared_as(expressions.type_of(value, scope))))
        if not isinstance(part, exp.In) or len(found) == len(others):
            yield from found


def _sides(part: exp.Expr) -> Iterator[tuple[exp.Expr, list[exp.Expr]]]:
    """Yields each compared value and the values on the other side."""
    if isinstance(part, exp.In):
        yield part.this, part.expressions
    elif isinstance(part, exp.Between):
        yield part.this, [part.args["low"], part.args["high"]]
    else:
        yield part.this, [part.args["expression"]]
        yield part.args["expression"], [part.this]


def _casts(values: list[exp.Expr], type_: DataType | None) -> Iterator[tuple[exp.Expr, DataType]]:
    for value in values:
        literal = value.unnest()
        # text without a place is not in the query: sqlglot reads 1.5BD as a cast of text
        is_text = isinstance(literal, exp.Literal) and literal.is_string and "start" in literal.meta
        if type_ is not None and is_text and cannot_be_cast(literal.name, type_):
            yield literal, type_


def _compared_as(type_: DataType | None) -> DataType | None:
    """Returns the type to which text is cast beside a value of `type_`."""
    if family(type_) == NUMBER:
        return BIGINT if kind(type_) in DIGITS else DOUBLE
    return type_


def cannot_be_cast(text: str, target: DataType | None) -> bool:
    """Returns whether Spark certainly cannot cast `text` to `target`; False for unknown types."""
    text = text.strip(_BLANKS)
    group = family(target)
    if group == NUMBER and text.isascii():  # Java's decimals accept the digits of other scripts
        return (_WHOLE if kind(target) in DIGITS else _FRACTION).fullmatch(text) is None
    if group == DATETIME:
        return _is_no_time(text, takes_time_of_day=kind(target) == "timestamp")
    return group == "boolean" and text.lower() not in _BOOLEANS


def _is_no_time(text: str, *, takes_time_of_day: bool) -> bool:
    special = _SPECIAL_TIME.fullmatch(text)
    if special is not None:
        return special["zone"] is not None and not may_be_zone(special["zone"])
    if takes_time_of_day and _TIME_OF_DAY.fullmatch(text):  # Spark adds today's date
        return False
    found = _DAY.fullmatch(text)
    if found is None:
        return True
    year, month, day = (int(part or 1) for part in found.groups())
    if year not in _YEARS:
        return False
    try:
        date(year, month, day)
    except ValueError:
        return True
    return False


# The number of arguments of each function call, and the type of the first one.

_UNCOUNTABLE = frozenset({"*", "=>", "FROM", "FOR", "IN", "USING"})
"""Tokens in arguments that commas do not separate: a star, a name, or special syntax."""

_BEFORE_CALLS = frozenset(
    """
    SELECT DISTINCT WHERE AND OR NOT ON BY WHEN THEN ELSE HAVING BETWEEN ( , = <> != > <= >= + - * / ||
    """.split()  # noqa: SIM905 - a list of words
)
"""Tokens that can come before a call, and, except for the comma, not before a type, an alias or the name of a CTE."""

_SCRIPT = frozenset({"USING", "ROW"})
"""Tokens that follow `TRANSFORM (...)` if it is the clause that runs a script, and not the function."""

_TYPES = frozenset({"decimal", "char", "time", "timestamp", "string", "binary"})
"""Functions whose names are also types, which have their own arguments."""


def _function_problems(node: exp.Expr, scope: Scope, expressions: Expressions) -> Iterator[SqlProblem]:
    """Yields a problem for each function in `node` with a number of arguments, or a first one, that Spark refuses."""
    text = expressions.text
    walked = text.parts_of(node)
    for _, part in walked.functions:
        index = text.token_at(part.meta["start"]) if "start" in part.meta else None
        function = None if index is None else FUNCTIONS.get(text.tokens[index].name.lower())
        if index is not None and function is not None:
            count = _count(text, index + 1)
            yield from _count_problem(text, index, function, count)
            yield from _type_problem(part, function.families(count or 0), scope, expressions)
    for part in walked.parts if not WITHOUT_PLACE.keys().isdisjoint(walked.kinds) else ():
        if type(part) in WITHOUT_PLACE and "start" not in part.meta:
            yield from _unplaced(part, text)


def _type_problem(
    call: exp.Expr, families: frozenset[str], scope: Scope, expressions: Expressions
) -> Iterator[SqlProblem]:
    """Yields the problem of a call whose first argument is of none of `families` (empty: any is accepted)."""
    text = expressions.text
    first = _first_argument(call, text) if families else None
    type_ = None if first is None else expressions.type_of(first, scope)
    if first is not None and family(type_) not in families | {"", "void"}:
        what = f"the argument {quoted(text.written(first))} of {quoted(text.function(call))} has type {type_}"
        why = f"it accepts {alternatives(sorted(families))}, and Spark does not cast this type implicitly"
        fix = "extract a part of the value, or use another function"
        yield text.problem(first, "type-mismatch", what, why, fix)


def _first_argument(call: exp.Expr, text: Text) -> exp.Expr | None:
    """Returns the first argument in the text if it reads a column: Spark accepts literals of more types."""
    children = sorted(call.iter_expressions(), key=lambda child: text.where(child).offset)
    first = children[0] if children else None
    if isinstance(first, exp.Cast) and not isinstance(first, exp.TryCast):  # sqlglot adds such casts
        first = first.this
    return first if first is not None and text.parts_of(first).names else None


def unread_argument_problems(text: Text) -> Iterator[SqlProblem]:
    """Yields the same problems for a text that sqlglot cannot parse, because of a function with too few arguments."""
    for index in sorted(opening - 1 for opening in text.after):
        is_call = at(text.tokens, index).name.lower() not in _TYPES and at(text.tokens, index - 1).key in _BEFORE_CALLS
        following = [at(text.tokens, text.after[index + 1] + step).key for step in (0, 1)]
        if is_call and following != ["AS", "("] and following[0] not in _SCRIPT:  # name(columns) AS ( is a CTE
            yield from _call_problem(text, index)


def _unplaced(part: exp.Expr, text: Text) -> Iterator[SqlProblem]:
    """Yields the problem of a call without a place, if the text calls the function only once."""
    places = [index for name in WITHOUT_PLACE[type(part)] for index in text.calls.get(name, ())]
    if len(places) == 1:
        yield from _call_problem(text, places[0])


def _call_problem(text: Text, index: int) -> Iterator[SqlProblem]:
    """Yields the problem of the call whose name is at `index`, if it has a wrong number of arguments."""
    function = FUNCTIONS.get(text.tokens[index].name.lower())
    if function is not None:
        yield from _count_problem(text, index, function, _count(text, index + 1))


def _count_problem(text: Text, index: int, function: Signature, count: int | None) -> Iterator[SqlProblem]:
    name = text.tokens[index]
    wanted = None if count is None or at(text.tokens, index - 1).key == "." else function.counts.wanted(count)
    if wanted is not None:
        what = f"{quoted(name.text)} has {plural(count or 0, 'argument')}"
        why = f"this Spark function takes {wanted}"
        fix = "add or remove arguments; `describe function extended` in a Spark shell shows examples"
        yield SqlProblem(name.start, "argument-count", what, why, fix)


def _count(text: Text, opening: int) -> int | None:
    """Returns the number of arguments in the parentheses at `opening`; None if commas do not separate them."""
    if opening not in text.after:  # sqlglot treats some other characters as blanks
        return None
    level = list(_level(text, opening + 1, text.after[opening] - 1))
    if any(text.tokens[index].key in _UNCOUNTABLE and not _is_operator(text.tokens, index) for index in level):
        return None
    return 1 + sum(text.tokens[index].key == "," for index in level) if level else 0


def _level(text: Text, start: int, end: int) -> Iterator[int]:
    """Yields the indexes of the tokens from `start` to `end`, but only the opening bracket of those in brackets."""
    tokens, index = text.tokens, start
    while index < end:
        yield index
        depth = 1 if tokens[index].key == "[" else 0  # `Text.after` knows only parentheses
        index = text.after.get(index, index + 1)
        while depth and index < end:
            depth += {"[": 1, "]": -1}.get(tokens[index].key, 0)
            index += 1


def _is_operator(tokens: Tokens, index: int) -> bool:
    """Returns whether a star is between two operands."""
    return tokens[index].key == "*" and at(tokens, index - 1).key not in ("(", ",", ".", "DISTINCT")


# SQL that sqlglot accepts and Spark does not: parameters, and syntax of other dialects.

_IN_ORDER = {"where": "WHERE", "group": "GROUP BY", "having": "HAVING", "order": "ORDER BY", "limit": "LIMIT"}
"""The clauses of a SELECT after FROM, in Spark's order."""

_FOREIGN = (exp.Placeholder, exp.AtTimeZone, exp.Select, exp.Array, exp.Extract)

_BEFORE_OPERAND = frozenset({"WHERE", "AND", "OR", "WHEN", "THEN", "ELSE", "BETWEEN", "LIKE", "LIMIT"})
"""Keywords that are no operand, so that a `:` after them begins a parameter."""


def foreign_syntax(nodes: Iterable[exp.Expr], text: Text) -> Iterator[SqlProblem]:
    """Yields a problem for each syntax in `nodes` that Spark does not have, and for each parameter."""
    parameters: set[str] = set()
    for node in (node for node in nodes if isinstance(node, _FOREIGN)):
        if isinstance(node, exp.Placeholder):
            parameters.add(str(node.this or ""))
        elif isinstance(node, exp.AtTimeZone) and "start" not in node.meta:  # from_utc_timestamp() has a place
            what, why = "AT TIME ZONE does not exist in Spark SQL", "Spark timestamps have no time zone"
            fix = f"use from_utc_timestamp({text.written(node.this)}, {text.written(node.args['zone'])})"
            yield text.problem(node, "sql-syntax", what, why, fix)
        elif isinstance(node, exp.Select):
            yield from _order_of_clauses(node, text)
        elif isinstance(node, exp.Extract) and node.this.name.lower() not in TIME_FIELDS:
            field = node.this.name.lower()
            why = "Spark extracts only parts of dates, timestamps and intervals, such as year, week, hour and second"
            seconds = "use unix_timestamp() for the seconds since 1970"
            fix = seconds if field == "epoch" else did_you_mean(field, sorted(TIME_FIELDS))
            yield text.problem(node, "unknown-field", f"{quoted(field)} is not a part of a time", why, fix)
        elif isinstance(node, exp.Array) and any(isinstance(item, exp.Select) for item in node.expressions):
            why = "array() takes values; a query inside an expression needs parentheses and returns one value"
            fix = "use (select collect_list(column) from ...)"
            yield text.problem(node, "sql-syntax", "ARRAY of a query does not exist in Spark SQL", why, fix)
    yield from _parameters(parameters, text) if parameters else ()


def _order_of_clauses(select: exp.Select, text: Text) -> Iterator[SqlProblem]:
    """Yields a problem for each clause that is after one that must follow it."""
    clauses = [(words, select.args[name]) for name, words in _IN_ORDER.items() if select.args.get(name) is not None]
    placed = [(words, clause) for words, clause in clauses if text.start(clause) != NOWHERE]
    for (first, before), (second, clause) in pairwise(placed):
        if text.start(clause) < text.start(before):
            why = f"the clauses of a query must have the order {', '.join(_IN_ORDER.values())}"
            yield text.problem(
                before, "sql-syntax", f"{first} comes after {second}", why, f"move {first} before {second}"
            )


def _parameters(names: set[str], text: Text) -> Iterator[SqlProblem]:
    """Yields a problem for each `?` and `:name`. After an operand, as in `body:name`, it is a path."""
    for index, token in enumerate(text.tokens):
        name = at(text.tokens, index + 1).name
        if token.key == "?" and "" in names:
            yield _parameter(token, "?")
        elif token.key == ":" and name in names and _ends_no_operand(at(text.tokens, index - 1)):
            yield _parameter(token, f":{name}")


def _parameter(token: Token, written: str) -> SqlProblem:
    what = f"the parameter {quoted(written)} has no value"
    why = "a program can pass parameters with its SQL, but a model has no parameters"
    fix = "use {{ var('name') }}, and set it in project.yml"
    return SqlProblem(token.start, "sql-syntax", what, why, fix)


def _ends_no_operand(token: Token) -> bool:
    return token.key in _BEFORE_OPERAND or (token.kind is TokenKind.SYMBOL and token.key not in (")", "]"))
