"""Finds SQL that sqlglot parses although Spark may not: sqlglot also knows other dialects, and skips some mistakes.

The compiler asks Spark's own parser about such a text, so a doubt alone refuses nothing. It costs a start of Java, so
valid SQL should raise none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date

from sqlglot import exp

from sqlstream.compiler.sql.clauses import NO_TOKEN, at, skip_parentheses
from sqlstream.compiler.sql.intervals import IntervalError, parse_span
from sqlstream.compiler.sql.spark_reading import PipeStage
from sqlstream.compiler.sql.tokens import Token, TokenKind, Tokens

_WORD, _STRING = TokenKind.WORD, TokenKind.STRING

_INFIX_WORDS = frozenset({"AND", "BETWEEN", "LIKE", "OR", "RLIKE"})
_BEFORE_OPERAND = _INFIX_WORDS | frozenset({
    "BY", "DISTINCT", "ELSE", "FROM", "HAVING", "IN", "IS", "JOIN", "ON", "SELECT", "THEN", "UNION", "USING", "WHEN",
    "WHERE",
})  # fmt: skip
"""Words that something must follow, unless they are names."""

_NO_OPERANDS = _INFIX_WORDS | frozenset({"FROM", "HAVING", "ON", "THEN", "USING", "WHERE"})
"""Words that cannot follow those."""

_OPERATORS = frozenset(
    {"(", "[", ",", "+", "-", "/", "%", "||", "=", "==", "<>", "!=", "<=", ">=", "<=>", "->", "=>", "::"}
)
_INFIX = frozenset(
    {"/", "%", "||", "=", "==", "<>", "!=", "<=", ">=", "<=>", "->", "=>", "::", ":", ".", "|>", "&", "^"}
)
_ENDS = frozenset({",", ")", "]", ";", ""})

_BEFORE_STRING = _BEFORE_OPERAND - {"FROM", "JOIN"} | frozenset({
    "ALL", "ANY", "BOTH", "CASE", "COMMENT", "ESCAPE", "FORMAT", "ILIKE", "LEADING", "LIMIT", "NOT", "OFFSET",
    "PLACING", "REGEXP", "SERDE", "SOME", "TERMINATED", "TO", "TRAILING", "VALUES",
})  # fmt: skip
"""Words before a string that is a separate value."""

_BEFORE_QUERY = frozenset(
    {"ALL", "AS", "DISTINCT", "EXCEPT", "EXISTS", "INTERSECT", "MINUS", "UNION", "(", ")", "|>", ""}
)
_NOT_BEFORE_QUERY = (_BEFORE_OPERAND | {"LATERAL"}) - _BEFORE_QUERY

_NEVER_IN_SPARK = frozenset({"APPLY", "FETCH", "GLOB", "ISNULL", "NOTNULL", "SIMILAR"})
"""Keywords of other dialects that are functions or names in Spark."""

_NEEDS_BRACKET = frozenset({"EXCEPT", "IF", "TABLESAMPLE", "USING"})
"""Words that sqlglot also accepts without the bracket that Spark needs, where it reads them as keywords."""

_PAIRS = frozenset({
    ("ASC", "ASC"), ("ASC", "DESC"), ("DESC", "ASC"), ("DESC", "DESC"), ("ALL", "ALL"), ("FOR", ")"), ("CUBE", "WITH"),
    ("ROLLUP", "WITH"),
})  # fmt: skip
"""Neighbors that sqlglot accepts and Spark does not."""

_KEYWORDS = (
    _BEFORE_OPERAND
    | _NEVER_IN_SPARK
    | _NEEDS_BRACKET
    | {first for first, _ in _PAIRS}
    | {"FILTER", "INTERVAL", "LATERAL", "NATURAL", "OFFSET", "SELECT", "TABLESAMPLE", "WITH"}
)
"""The words that are doubtful in some places."""

_DAY = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_TIME = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?:[ T][0-2]\d:[0-5]\d(?::[0-5]\d(?:\.\d{1,6})?)?(?:Z|[+-][01]\d:\d\d)?)?")
_TIMES = {"DATE": _DAY, "TIMESTAMP": _TIME, "TIMESTAMP_LTZ": _TIME, "TIMESTAMP_NTZ": _TIME}
_CLOCK = re.compile(r"[0-2]\d:[0-5]\d(?::[0-5]\d(?:\.\d{1,6})?)?")
_AMOUNT = re.compile(r"[+-]?\d{1,9}(?:\.\d{1,6})?")
_UNIT = re.compile(r"(?:YEAR|MONTH|WEEK|DAY|HOUR|MINUTE|SECOND|MILLISECOND|MICROSECOND)S?")
_SPAN = re.compile(r"[+-]?(?:\d{1,4}-(?:\d|1[01])|(?:\d{1,4} )?(?:[01]?\d|2[0-3])(?::[0-5]?\d){0,2}(?:\.\d{1,6})?)")
"""The text of an interval from one unit to another, such as `interval '1-2' year to month`."""

_NUMBER = re.compile(r"\d{1,18}L?|\d{1,2}Y|\d{1,4}S|(?=.{1,38}$)\d*\.?\d*(?:E[+-]?\d{1,2})?(?:D|F|BD)?", re.IGNORECASE)


def is_doubtful(tokens: Tokens, nodes: Sequence[exp.Expr], stages: Sequence[PipeStage]) -> bool:
    """Returns whether Spark may not parse the text with these tokens, of which sqlglot makes `nodes` and `stages`."""
    padded = (NO_TOKEN, NO_TOKEN, *tokens, NO_TOKEN, NO_TOKEN, NO_TOKEN)  # so that every token has neighbors
    if any(map(_is_unread, stages)) or any(_is_doubtful(padded, index) for index in _not_plain_names(padded)):
        return True
    others = (node for stage in stages if stage.tree is not None for node in stage.tree.walk())
    return any(type(node) in _FOREIGN and _FOREIGN[type(node)](node) for node in (*nodes, *others))


def _not_plain_names(tokens: Tokens) -> Iterator[int]:
    """Yields the indexes of all tokens but names, which are half of them, and the tokens around the text."""
    kinds = [token.kind for token in tokens]
    for index in range(2, len(tokens) - 3):
        if kinds[index] is not _WORD or tokens[index].key in _KEYWORDS or kinds[index + 1] is _STRING:
            yield index


def _is_doubtful(tokens: Tokens, index: int) -> bool:
    token, before, following = tokens[index], tokens[index - 1], tokens[index + 1]
    if token.kind is TokenKind.SYMBOL:
        return _is_doubtful_symbol(tokens, index)
    if token.kind is TokenKind.NUMBER:
        return _NUMBER.fullmatch(token.text) is None or following.kind is TokenKind.NUMBER
    if token.kind is TokenKind.HINT:
        return before.key not in ("SELECT", "MAP", "REDUCE")
    return token.kind is TokenKind.WORD and before.key not in (".", "AS") and _is_doubtful_word(tokens, index)


def _is_doubtful_symbol(tokens: Tokens, index: int) -> bool:
    """Returns whether Spark's grammar does not allow something next to a symbol."""
    token, before, following = tokens[index], tokens[index - 1], tokens[index + 1]
    if token.key == ".":
        return not (following.is_name or following.key == "*")
    if token.key == "[" and (before.key in _OPERATORS or before.key in _BEFORE_OPERAND or not before.text):
        return True
    if token.key == "," and (before.key in _BEFORE_OPERAND or tokens[index - 2].key == "LIMIT"):
        return True
    if token.key in ("<", ">") and following.key == token.key:  # array<array<int>>
        return token.key == "<" or following.start > token.end
    if token.key == ")" and following.kind is TokenKind.STRING:
        return True
    if token.key not in _OPERATORS or following.kind is not TokenKind.SYMBOL:
        return before is NO_TOKEN and token.key != "("
    if token.key == "(" and following.key == ")":  # a call without arguments, or the empty set of GROUPING SETS
        return before.key in _BEFORE_OPERAND or before.key in _NEEDS_BRACKET
    return following.key in _ENDS or following.key in _INFIX


def _is_doubtful_word(tokens: Tokens, index: int) -> bool:
    token, before, following = tokens[index], tokens[index - 1], tokens[index + 1]
    if (token.key, following.key) in _PAIRS:
        return True
    if token.key == "INTERVAL" and following.kind in (TokenKind.NUMBER, TokenKind.STRING):
        value, unit = following.text.strip("'\""), tokens[index + 2].key
        is_span = tokens[index + 3].key == "TO"
        return _SPAN.fullmatch(value) is None if is_span else not _is_interval(value, unit)
    if following.kind is TokenKind.STRING:
        return token.key not in _BEFORE_STRING and not _is_literal(token, following)
    if token.key in ("SELECT", "WITH"):
        is_end = following.key in ("FROM", "AS") or (following.kind is TokenKind.SYMBOL and following.key in _ENDS)
        return before.key in _NOT_BEFORE_QUERY or (token.key == "SELECT" and is_end)
    if token.key in _BEFORE_OPERAND:
        return _lacks_operand(token, following)
    if token.key == "OFFSET":
        return tokens[index + 2].key == "LIMIT"
    return _is_doubtful_keyword(tokens, index)


def _lacks_operand(token: Token, following: Token) -> bool:
    """Returns whether no operand follows a word that needs one."""
    if following.kind is TokenKind.SYMBOL:
        return following.key in _ENDS or following.key in _INFIX
    if token.key == "USING":
        return following.kind is not TokenKind.STRING
    return following.key in _NO_OPERANDS and (token.key, following.key) != ("DISTINCT", "FROM")


def _is_doubtful_keyword(tokens: Tokens, index: int) -> bool:
    token, before, following = tokens[index], tokens[index - 1], tokens[index + 1]
    is_operand = following.kind in (TokenKind.NUMBER, TokenKind.QUOTED, TokenKind.WORD)
    if token.key in _NEVER_IN_SPARK:
        return following.key != "("
    if token.key == "FILTER":
        return following.key == "(" and tokens[index + 2].key not in ("WHERE", "SELECT") and before.key == ")"
    if token.key == "LATERAL":
        return following.key == "(" and before.key not in ("JOIN", ",")
    if token.key == "TABLESAMPLE":
        return is_operand and following.key not in ("BERNOULLI", "SYSTEM")
    if token.key in _NEEDS_BRACKET:
        return is_operand and (token.key != "EXCEPT" or before.key == "*")
    if token.key == "INTERVAL":
        return before.key == "OF" and _UNIT.fullmatch(following.key) is not None
    return token.key == "NATURAL" and _has_condition(tokens, index)


def _has_condition(tokens: Tokens, index: int) -> bool:
    """Returns whether ON or USING comes after NATURAL JOIN and its relation."""
    while index < len(tokens) and tokens[index].key != "JOIN":
        index += 1
    index += 1
    index = skip_parentheses(tokens, index) if at(tokens, index).key == "(" else index + 1
    return any(at(tokens, place).key in ("ON", "USING") for place in range(index, index + 3))


def _is_literal(kind: Token, text: Token) -> bool:
    """Returns whether a word and a string are certainly a literal of Spark, such as `date '2024-01-31'`."""
    value = text.text[1:-1]
    if kind.key in ("X", "TIME"):
        return (re.compile(r"(?:[0-9A-Fa-f]{2})*") if kind.key == "X" else _CLOCK).fullmatch(value) is not None
    found = _TIMES[kind.key].fullmatch(value) if kind.key in _TIMES else None
    if found is None:
        return False
    try:
        date(*map(int, found.groups()))
    except ValueError:
        return False
    return True


def _is_interval(value: str, unit: str) -> bool:
    """Returns whether Spark certainly reads `interval value unit`, or `interval value` before another word."""
    if _UNIT.fullmatch(unit):
        return _AMOUNT.fullmatch(value.strip()) is not None
    try:
        parse_span(value)
    except IntervalError:
        return False
    return True


def _is_unread(stage: PipeStage) -> bool:
    """Returns whether a stage is not known completely. A text with such a stage is followed up to there."""
    return stage.keys is None or (stage.tree is None and not (stage.keyword == "AS" and stage.name))


_FOREIGN: dict[type[exp.Expr], Callable[[exp.Expr], bool]] = {
    exp.Any: lambda node: not isinstance(node.this, exp.Tuple | exp.Paren | exp.Subquery),
    exp.Bracket: lambda node: len(node.expressions) != 1 or isinstance(node.expressions[0], exp.Slice),
    exp.Escape: lambda node: len(node.args["expression"].name) != 1,
    exp.Extract: lambda node: isinstance(node.this, exp.Literal),
    exp.In: lambda node: (
        bool(node.args.get("field")) or not any(map(node.args.get, ("expressions", "query", "unnest")))
    ),
    exp.Is: lambda node: not isinstance(node.args["expression"], exp.Null | exp.Boolean),
    exp.Lateral: lambda node: bool(node.args.get("view")) and not (node.args.get("alias") and node.args["alias"].args),
    exp.Limit: lambda node: bool(node.args.get("limit_options")),
    exp.Lock: lambda _node: True,
    exp.Paren: lambda node: isinstance(node.this, exp.Alias),
    exp.Select: lambda node: sum(bool(node.args.get(name)) for name in ("order", "sort", "cluster")) > 1,
    exp.Substring: lambda node: node.args.get("start") is None,
    exp.WindowSpec: lambda node: isinstance(node.args.get("start"), exp.Literal) and not node.args.get("start_side"),
}
"""Nodes of sqlglot's tree, and whether Spark does not have such a form of them."""
