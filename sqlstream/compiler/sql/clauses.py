"""Finds keywords and clauses among the tokens of a query, by their neighbors.

The functions that skip a clause return the index after it, or the same index if there is none. In Spark's default mode
nearly every keyword can also be an alias, so a word starts a clause only if the following tokens fit
(`SqlBaseParser.g4` of Spark 4.3).
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlstream.compiler.sql.tokens import Token, TokenKind, Tokens, tokenize

_JOIN_WORDS = frozenset({"ANTI", "CROSS", "FULL", "INNER", "JOIN", "LEFT", "NATURAL", "ON", "RIGHT", "SEMI", "USING"})
NEVER_ALIASES = _JOIN_WORDS | {"EXCEPT", "INTERSECT", "LATERAL", "MINUS", "UNION"}
"""Spark's strict non-reserved words, which are never an alias in FROM."""

AFTER_ALIAS = NEVER_ALIASES | frozenset(
    """
    approx as asof bin changes cluster distribute exact for from group having identified insert limit map offset order
    pivot qualify reduce select set sort system_time system_version tablesample then timestamp unpivot values version
    watermark when where window with
    """.upper().split()
)
"""The only words that can follow a relation with an alias, and those that look like an alias there."""

_TIME_TRAVEL = frozenset({"VERSION", "TIMESTAMP", "SYSTEM_VERSION", "SYSTEM_TIME"})
_FOLLOWED_BY: dict[str, frozenset[str]] = {
    **dict.fromkeys(("GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "IDENTIFIED", "BIN"), frozenset({"BY"})),
    **dict.fromkeys(_TIME_TRAVEL, frozenset({"AS"})),
    "FOR": _TIME_TRAVEL,
    "CHANGES": frozenset({"FROM"}),
    **dict.fromkeys(("WITH", "PIVOT"), frozenset({"("})),
    "UNPIVOT": frozenset({"(", "INCLUDE", "EXCLUDE"}),
    "TABLESAMPLE": frozenset({"(", "SYSTEM", "BERNOULLI"}),
    "ASOF": frozenset({"JOIN"}),
    **dict.fromkeys(("APPROX", "EXACT"), frozenset({"NEAREST"})),
}
_BEFORE_EXPRESSION = frozenset({"WHERE", "HAVING", "QUALIFY", "LIMIT", "OFFSET"})
_ENDS = frozenset({"", ")", ",", ";", "|>"})
_ENDS_SCRIPT = frozenset({")", ";", "|>", "SELECT", "FROM", "JOIN"})
_OPERATORS = frozenset({"+", "-", "*", "/", "%", "||", "::", "."})
_UNITS = ("NANOSECOND", "MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR")
_INTERVAL_UNITS = frozenset((*_UNITS, *(f"{unit}S" for unit in _UNITS)))
NO_TOKEN = Token(TokenKind.SYMBOL, "", 0, 0)
"""The token before the first and after the last one."""

SET_OPERATORS = frozenset({"UNION", "EXCEPT", "MINUS", "INTERSECT"})
AFTER_QUERY = SET_OPERATORS | {"ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET", "WINDOW", "|>", ")"}
"""The words that can follow a query in parentheses, but not an expression or a relation in parentheses."""

_STARTS_OPERAND = frozenset({"SELECT", "FROM", "ALL", "DISTINCT", "TABLE", "WITH", "("})
_ENDS_FROM = frozenset({
    "CLUSTER", "DISTRIBUTE", "GROUP", "HAVING", "MAP", "ORDER", "QUALIFY", "REDUCE", "SORT", "WHERE", "WINDOW",
})  # fmt: skip


def at(tokens: Tokens, index: int) -> Token:
    """Returns the token at `index`, or `NO_TOKEN` if there is none."""
    return tokens[index] if 0 <= index < len(tokens) else NO_TOKEN


def identifier_at(tokens: Tokens, index: int) -> str | None:
    """Returns the text in `IDENTIFIER('text')`, Spark's clause for a name, at `index`; None for anything else."""
    word, opening, text, closing = (at(tokens, index + place) for place in range(4))
    keys = (word.key, opening.key, closing.key)
    return text.text[1:-1] if keys == ("IDENTIFIER", "(", ")") and text.kind is TokenKind.STRING else None


def skip_parentheses(tokens: Tokens, index: int) -> int:
    """Returns the index after the `)` that closes the `(` at `index`, at most the number of tokens."""
    depth = 0
    while index < len(tokens):
        depth += {"(": 1, ")": -1}.get(tokens[index].key, 0)
        index += 1
        if depth <= 0:
            break
    return index


def step_over(tokens: Tokens, index: int) -> int:
    """Returns the index after the token at `index`, or after the `)` if the token is a `(`."""
    return skip_parentheses(tokens, index) if tokens[index].key == "(" else index + 1


def split_at_commas(tokens: Tokens) -> Iterator[Tokens]:
    """Yields the tokens between the commas outside parentheses. Yields nothing for no tokens."""
    start = index = 0
    while index < len(tokens):
        if tokens[index].key == ",":
            yield tokens[start:index]
            start = index + 1
        index = step_over(tokens, index)
    if tokens:
        yield tokens[start:]


def after_parentheses(tokens: Tokens) -> dict[int, int]:
    """Returns the result of `skip_parentheses` for every `(` of a text, by index."""
    after: dict[int, int] = {}
    open_ones: list[int] = []
    for index, token in enumerate(tokens):
        if token.key == "(":
            open_ones.append(index)
        elif token.key == ")" and open_ones:
            after[open_ones.pop()] = index + 1
    return {**dict.fromkeys(open_ones, len(tokens)), **after}


def is_keyword(tokens: Tokens, index: int) -> bool:
    """Whether the word at `index` can be a keyword: not a field after a dot, and not a name after AS."""
    return at(tokens, index - 1).key not in (".", "AS")


def is_select(tokens: Tokens, index: int) -> bool:
    """Whether the token at `index` is the keyword SELECT."""
    return at(tokens, index).key == "SELECT" and is_keyword(tokens, index)


def select_items(sql: str) -> tuple[int, ...]:
    """Returns the offset of each item in the select list of a query; none if it has no SELECT outside parentheses,
    several, or a `*`. Raises: SqlTokenError.
    """
    tokens, depth, starts = tokenize(sql), 0, []
    for index, token in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(token.key, 0)
        if depth == 0 and is_select(tokens, index):
            starts.append(index + 1)
    if len(starts) != 1:
        return ()
    start = starts[0]
    while at(tokens, start).kind is TokenKind.HINT or at(tokens, start).key in ("ALL", "DISTINCT"):
        start += 1
    end = start
    while end < len(tokens) and not is_from_clause(tokens, end) and tokens[end].key != ";":
        end = step_over(tokens, end)
    items = tuple(split_at_commas(tokens[start:end]))
    return () if any(item[-1].key == "*" for item in items) else tuple(item[0].start for item in items)


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


def starts_clause(tokens: Tokens, index: int) -> bool:
    """Whether the word at `index`, after a relation, starts a clause or a join and is not the relation's alias."""
    key, following = at(tokens, index).key, at(tokens, index + 1)
    if key in NEVER_ALIASES or key == "SELECT":
        return True
    if key in _FOLLOWED_BY:
        return following.key in _FOLLOWED_BY[key]
    if key == "WINDOW":
        return following.is_name and at(tokens, index + 2).key == "AS"
    if key == "WATERMARK":
        return skip_watermark(tokens, index) > index
    if key in ("MAP", "REDUCE"):
        return _has_script(tokens, index + 1)
    if key in _BEFORE_EXPRESSION:
        # In `FROM t having WHERE ...`, the word is the alias of `t`.
        return not _follows_alias(tokens, index + 1) and not (key != "WHERE" and following.key == "WHERE")
    return False


def _has_script(tokens: Tokens, index: int) -> bool:
    """Whether `USING 'script'` follows the expressions of a MAP or REDUCE, which begin at `index`."""
    while index < len(tokens) and tokens[index].key not in _ENDS_SCRIPT:
        if tokens[index].key == "USING" and at(tokens, index + 1).kind is TokenKind.STRING:
            return True
        index = step_over(tokens, index)
    return False


def _follows_alias(tokens: Tokens, index: int) -> bool:
    """Whether the token at `index` can only follow an alias, so that the keyword before it is an alias."""
    token = at(tokens, index)
    if token.kind not in (TokenKind.WORD, TokenKind.SYMBOL):
        return False
    # left() and right() are also functions.
    if token.key in ("LEFT", "RIGHT") and at(tokens, index + 1).key == "(":
        return False
    return token.key in _ENDS or token.key in NEVER_ALIASES


def skip_alias(tokens: Tokens, index: int) -> tuple[int, str | None]:
    """Returns the index after `[AS] alias [(columns)]`, and the alias without backquotes."""
    after_as = index + 1 if at(tokens, index).key == "AS" else index
    token = at(tokens, after_as)
    if not token.is_name or (after_as == index and starts_clause(tokens, index)):
        return index, None
    after = after_as + 1
    return (skip_parentheses(tokens, after) if at(tokens, after).key == "(" else after), token.name


def skip_primary_clauses(tokens: Tokens, index: int) -> int:
    """Returns the index after the clauses between a relation and its watermark clause.

    These are `@version`, time travel, change data, options, IDENTIFIED BY and TABLESAMPLE.
    """
    if at(tokens, index).key in ("@", "@V"):
        index += 2
    while starts_clause(tokens, index):
        after = _skip_primary_clause(tokens, index)
        if after == index:
            break
        index = after
    return min(index, len(tokens))  # the SQL may end in the middle of a clause


def _skip_primary_clause(tokens: Tokens, index: int) -> int:
    key = tokens[index].key
    if key == "WITH":
        return skip_parentheses(tokens, index + 1)
    if key == "IDENTIFIED":
        return index + 3
    if key == "TABLESAMPLE":
        return _skip_sample(tokens, index)
    if key == "CHANGES":
        return _skip_changes(tokens, index + 2)
    if key == "FOR" or key in _TIME_TRAVEL:
        return _skip_value(tokens, index + (4 if key == "FOR" else 3))
    return index


def _skip_sample(tokens: Tokens, index: int) -> int:
    opening = index + 1 if at(tokens, index + 1).key == "(" else index + 2
    after = skip_parentheses(tokens, opening)
    if at(tokens, after).key == "REPEATABLE" and at(tokens, after + 1).key == "(":
        return skip_parentheses(tokens, after + 1)
    return after


def _skip_changes(tokens: Tokens, index: int) -> int:
    """Skips `VERSION a [INCLUSIVE] [TO VERSION b [INCLUSIVE]]` after `CHANGES FROM`, also with TIMESTAMP."""
    index = _skip_bound(tokens, index)
    return _skip_bound(tokens, index + 1) if at(tokens, index).key == "TO" else index


def _skip_bound(tokens: Tokens, index: int) -> int:
    index = _skip_value(tokens, index + 1)
    return index + 1 if at(tokens, index).key in ("INCLUSIVE", "EXCLUSIVE") else index


def _skip_value(tokens: Tokens, index: int) -> int:
    """Skips a value such as `3`, `'2026-01-01'`, `current_date() - interval 1 day` or `date '2026-01-01'`."""
    while index < len(tokens):
        if at(tokens, index).key == "INTERVAL":
            return _skip_interval(tokens, index + 1)
        if at(tokens, index).key != "(":
            index += 1
        if at(tokens, index).key == "(":
            index = skip_parentheses(tokens, index)
        if at(tokens, index).kind is TokenKind.STRING:
            index += 1
        if at(tokens, index).key not in _OPERATORS:
            break
        index += 1
    return index


def skip_watermark(tokens: Tokens, index: int) -> int:
    """Returns the index after `WATERMARK expression [AS name] DELAY OF INTERVAL ...`."""
    if at(tokens, index).key != "WATERMARK":
        return index
    delay = index + 1
    while delay < len(tokens) and not (at(tokens, delay).key == "DELAY" and at(tokens, delay + 1).key == "OF"):
        if tokens[delay].key in (")", ",", ";", "SELECT", "JOIN"):
            return index
        delay = step_over(tokens, delay)
    after = _skip_interval(tokens, delay + 3) if at(tokens, delay + 2).key == "INTERVAL" else index
    return min(after, len(tokens))


def _skip_interval(tokens: Tokens, index: int) -> int:
    """Skips the values and units of an interval literal, which begin at `index`."""
    while True:
        unit = index + (2 if at(tokens, index).key in ("+", "-") else 1)
        if (
            at(tokens, unit - 1).kind not in (TokenKind.NUMBER, TokenKind.STRING)
            or at(tokens, unit).key not in _INTERVAL_UNITS
        ):
            return index
        index = unit + 1
        if at(tokens, index).key == "TO" and at(tokens, index + 1).key in _INTERVAL_UNITS:
            index += 2
