"""Finds nesting that is certain to overflow the stack of Spark's parser, with the default stack size of a thread.

The depth at which it overflows depends on what the JVM has compiled: 400 to 530 brackets, 300 to 600 function calls,
600 to 1,500 CASE, or chains of 1,050 to 1,600 operators (measured on Spark 4.3 with Java 17). The limits are higher by
a few times, because other JVMs may accept more. Chains of AND and OR have no limit.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlstream.compiler.sql.clauses import at
from sqlstream.compiler.sql.problem import SqlProblem
from sqlstream.compiler.sql.tokens import Kind, Token, Tokens

DEEPEST_CALLS = 1_500
DEEPEST_BRACKETS = 2_500
DEEPEST_CASES = 4_000
LONGEST_CHAIN = 6_000

_OPERATORS = frozenset({"+", "-", "*", "/", "%", "||"})
_ENDS_CHAIN = frozenset({
    ",", ";", "AND", "OR", "WHEN", "THEN", "ELSE", "AS", "SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER",
    "UNION", "EXCEPT", "INTERSECT", "JOIN", "ON", "=", "<", ">", "<=", ">=", "<>", "!=", "<=>", "|>",
})  # fmt: skip
_BEFORE_BRACKETS = _ENDS_CHAIN | {
    "IN", "NOT", "EXISTS", "ANY", "ALL", "SOME", "BETWEEN", "LIKE", "DISTINCT", "LATERAL", "VALUES", "OVER", "FILTER",
    "BY", "USING", "CASE", "LIMIT", "OFFSET",
}  # fmt: skip
"""Words after which a bracket is not a function call."""

_CLOSING = {"(": ")", "[": "]", "CASE": "END"}


def nesting_problem(tokens: Tokens) -> Iterator[SqlProblem]:
    """Yields a problem for the first token that is nested too deeply, or that makes a chain of operators too long."""
    if len(tokens) <= DEEPEST_CALLS:
        return
    closings: list[str] = []
    depths, chains = [0.0], [0]
    for index, token in enumerate(tokens):
        if token.key in _CLOSING:
            closings.append(_CLOSING[token.key])
            depths.append(depths[-1] + 1 / _deepest(token, at(tokens, index - 1)))
            chains.append(0)
        elif closings and token.key == closings[-1]:
            closings.pop()
            depths.pop()
            chains.pop()
        elif token.key in _OPERATORS:
            chains[-1] += 1
        elif token.key in _ENDS_CHAIN:
            chains[-1] = 0
        if depths[-1] > 1:
            yield _problem(token, f"{len(closings):,} brackets, calls or CASE expressions are nested here")
            return
        if chains[-1] > LONGEST_CHAIN:
            yield _problem(token, f"more than {LONGEST_CHAIN:,} operators are chained here")
            return


def _deepest(token: Token, before: Token) -> int:
    """Returns the deepest allowed nesting of brackets, calls or CASE expressions, whichever `token` opens."""
    if token.key == "CASE":
        return DEEPEST_CASES
    is_call = token.key == "(" and before.kind is Kind.WORD and before.key not in _BEFORE_BRACKETS
    return DEEPEST_CALLS if is_call else DEEPEST_BRACKETS


def _problem(token: Token, message: str) -> SqlProblem:
    return SqlProblem(
        token.start,
        "sql-syntax",
        message,
        "Spark's parser is recursive, and its stack overflows (FAILED_TO_PARSE_TOO_COMPLEX)",
        "compute parts of it in a subquery, CTE or upstream model; for many values use a join, or IN with a list",
    )
