"""What sqlglot reads as SQL and Spark does not: parameters, operators and forms of other dialects."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sqlstream.compiler.flow.text import NOWHERE, Text
from sqlstream.compiler.sql.clauses import at
from sqlstream.compiler.sql.problem import SqlProblem
from sqlstream.compiler.sql.tokens import Kind, Token
from sqlstream.project.wording import quoted

CLAUSES = {"where": "WHERE", "group": "GROUP BY", "having": "HAVING", "order": "ORDER BY", "limit": "LIMIT"}
"""The clauses of a SELECT that follow its FROM, in Spark's order."""

LOOKED_AT = (exp.Placeholder, exp.AtTimeZone, exp.Select, exp.Array)

BEFORE_OPERAND = frozenset({"WHERE", "AND", "OR", "WHEN", "THEN", "ELSE", "BETWEEN", "LIKE", "LIMIT"})


def foreign_syntax(tree: exp.Expr, text: Text) -> Iterator[SqlProblem]:
    """Gives a problem for each form in `tree` that Spark's grammar does not have, or that needs values from outside."""
    parameters: set[str] = set()
    for node in (node for node in text.nodes(tree) if isinstance(node, LOOKED_AT)):
        if isinstance(node, exp.Placeholder):
            parameters.add(str(node.this or ""))
        elif isinstance(node, exp.AtTimeZone) and "start" not in node.meta:  # from_utc_timestamp() has a place
            what = "AT TIME ZONE does not exist in Spark SQL"
            why = "Spark timestamps have no time zone"
            fix = f"use from_utc_timestamp({text.written(node.this)}, {text.written(node.args['zone'])})"
            yield _problem(node, text, what, why, fix)
        elif isinstance(node, exp.Select):
            yield from _order_of_clauses(node, text)
        elif isinstance(node, exp.Array) and any(isinstance(item, exp.Select) for item in node.expressions):
            why = "array() takes values; a query inside an expression needs parentheses and returns one value"
            fix = "use (select collect_list(column) from ...)"
            yield _problem(node, text, "ARRAY of a query does not exist in Spark SQL", why, fix)
    if parameters:
        yield from _parameters(parameters, text)


def _order_of_clauses(select: exp.Select, text: Text) -> Iterator[SqlProblem]:
    """A clause that stands behind one that it must stand before."""
    before: exp.Expr | None = None
    for name in CLAUSES:
        clause = select.args.get(name)
        if clause is None or text.start(clause) == NOWHERE:
            continue
        if before is not None and text.start(clause) < text.start(before):
            what = f"{CLAUSES[before.key]} comes after {CLAUSES[name]}"
            why = f"the clauses of a query must have the order {', '.join(CLAUSES.values())}"
            fix = f"move {CLAUSES[before.key]} before {CLAUSES[name]}"
            yield _problem(before, text, what, why, fix)
        before = clause


def _parameters(names: set[str], text: Text) -> Iterator[SqlProblem]:
    """The problem of each `?` (the empty name) and `:name`; behind an operand, as in `body:name`, it is a path."""
    for index, token in enumerate(text.tokens):
        if token.key == "?" and "" in names:
            yield _parameter(token, "?")
        elif token.key == ":" and _ends_no_operand(at(text.tokens, index - 1)):
            name = at(text.tokens, index + 1).name
            if name in names:
                yield _parameter(token, f":{name}")


def _parameter(token: Token, written: str) -> SqlProblem:
    what = f"the parameter {quoted(written)} has no value"
    why = "a program can pass parameters with its SQL, but a model has no parameters"
    fix = "use {{ var('name') }}, and set it in project.yml"
    return SqlProblem(token.start, "sql-syntax", what, why, fix)


def _ends_no_operand(token: Token) -> bool:
    return token.key in BEFORE_OPERAND or (token.kind is Kind.SYMBOL and token.key not in (")", "]"))


def _problem(node: exp.Expr, text: Text, message: str, why: str, fix: str) -> SqlProblem:
    return SqlProblem(text.where(node).offset, "sql-syntax", message, why, fix)
