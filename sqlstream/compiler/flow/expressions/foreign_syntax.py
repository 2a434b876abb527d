"""SQL that sqlglot accepts and Spark does not: parameters, and syntax of other dialects."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from sqlglot import exp

from sqlstream.compiler.flow.expressions.function_types import TIME_FIELDS
from sqlstream.compiler.flow.text import NOWHERE, Text
from sqlstream.compiler.sql.clauses import at
from sqlstream.compiler.sql.edits import SqlProblem
from sqlstream.compiler.sql.tokens import Token, TokenKind
from sqlstream.project.wording import did_you_mean, quoted

CLAUSES = {"where": "WHERE", "group": "GROUP BY", "having": "HAVING", "order": "ORDER BY", "limit": "LIMIT"}
"""The clauses of a SELECT after FROM, in Spark's order."""

CODE = "sql-syntax"

LOOKED_AT = (exp.Placeholder, exp.AtTimeZone, exp.Select, exp.Array, exp.Extract)

BEFORE_OPERAND = frozenset({"WHERE", "AND", "OR", "WHEN", "THEN", "ELSE", "BETWEEN", "LIKE", "LIMIT"})


def foreign_syntax(tree: exp.Expr, text: Text) -> Iterator[SqlProblem]:
    """Yields a problem for each syntax in `tree` that Spark does not have, and for each parameter."""
    parameters: set[str] = set()
    for node in (node for node in text.nodes(tree) if isinstance(node, LOOKED_AT)):
        if isinstance(node, exp.Placeholder):
            parameters.add(str(node.this or ""))
        elif isinstance(node, exp.AtTimeZone) and "start" not in node.meta:  # from_utc_timestamp() has a place
            what, why = "AT TIME ZONE does not exist in Spark SQL", "Spark timestamps have no time zone"
            fix = f"use from_utc_timestamp({text.written(node.this)}, {text.written(node.args['zone'])})"
            yield text.problem(node, CODE, what, why, fix)
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
            yield text.problem(node, CODE, "ARRAY of a query does not exist in Spark SQL", why, fix)
    yield from _parameters(parameters, text) if parameters else ()


def _order_of_clauses(select: exp.Select, text: Text) -> Iterator[SqlProblem]:
    """Yields a problem for each clause that is after one that must follow it."""
    clauses = [(words, select.args[name]) for name, words in CLAUSES.items() if select.args.get(name) is not None]
    placed = [(words, clause) for words, clause in clauses if text.start(clause) != NOWHERE]
    for (first, before), (second, clause) in pairwise(placed):
        if text.start(clause) < text.start(before):
            why = f"the clauses of a query must have the order {', '.join(CLAUSES.values())}"
            yield text.problem(before, CODE, f"{first} comes after {second}", why, f"move {first} before {second}")


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
    return SqlProblem(token.start, CODE, what, why, fix)


def _ends_no_operand(token: Token) -> bool:
    return token.key in BEFORE_OPERAND or (token.kind is TokenKind.SYMBOL and token.key not in (")", "]"))
