"""Decides whether a word in a query is a keyword, such as SELECT or UNION, or just a name."""

from __future__ import annotations

from sqlstream.compiler.sql.clauses import at, starts_clause
from sqlstream.compiler.sql.tokens import Tokens

SET_OPERATORS = frozenset({"UNION", "EXCEPT", "MINUS", "INTERSECT"})
AFTER_QUERY = SET_OPERATORS | {"ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET", "WINDOW", "|>", ")"}
"""The words that can follow a query in parentheses, but not an expression or a relation in parentheses."""

_STARTS_OPERAND = frozenset({"SELECT", "FROM", "ALL", "DISTINCT", "TABLE", "WITH", "("})
_ENDS_FROM = frozenset(
    {"CLUSTER", "DISTRIBUTE", "GROUP", "HAVING", "MAP", "ORDER", "QUALIFY", "REDUCE", "SORT", "WHERE", "WINDOW"}
)


def is_keyword(tokens: Tokens, index: int) -> bool:
    """Whether the word at `index` can be a keyword: not a field after a dot, and not a name after AS."""
    return at(tokens, index - 1).key not in (".", "AS")


def is_select(tokens: Tokens, index: int) -> bool:
    """Whether the token at `index` is the keyword SELECT."""
    return at(tokens, index).key == "SELECT" and is_keyword(tokens, index)


def is_from_clause(tokens: Tokens, index: int) -> bool:
    """Whether a FROM clause starts at `index`, which must be outside a function's parentheses.

    A column can be named `from` in Spark, and `IS DISTINCT FROM` is a comparison.
    """
    if at(tokens, index).key != "FROM" or not is_keyword(tokens, index):
        return False
    if at(tokens, index - 1).key == "DISTINCT" and at(tokens, index - 2).key in ("IS", "NOT"):
        return False
    following = at(tokens, index + 1)
    return following.key == "(" or (following.is_name and following.key not in ("FROM", "AS"))


def is_set_operator(tokens: Tokens, index: int) -> bool:
    """Whether the token at `index` is a set operator, and not the EXCEPT of `* EXCEPT (column)`."""
    key = at(tokens, index).key
    if key not in SET_OPERATORS or not is_keyword(tokens, index):
        return False
    if key != "EXCEPT" or at(tokens, index - 1).key != "*":
        return True
    is_opened = at(tokens, index + 1).key == "("
    return at(tokens, index + 2 if is_opened else index + 1).key in _STARTS_OPERAND


def ends_from(tokens: Tokens, index: int) -> bool:
    """Whether the token at `index` ends a FROM clause. A comma after it does not introduce a relation."""
    key = at(tokens, index).key
    if key == "|>" or is_select(tokens, index) or is_set_operator(tokens, index):
        return True
    if key == "LATERAL":
        return at(tokens, index + 1).key == "VIEW"
    return key in _ENDS_FROM and is_keyword(tokens, index) and starts_clause(tokens, index)
