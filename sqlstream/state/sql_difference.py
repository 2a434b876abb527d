"""The first difference between two texts of SQL, as an excerpt of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from sqlstream.compiler.sql.tokens import SqlTokenError, Token, TokenKind, Tokens, tokenize

MAX_EXCERPT = 80
"""Maximum number of characters to quote from each side."""

MAX_CALL = 60
"""Maximum number of characters of a call that is quoted as a whole because a part of its clause differs."""

MAX_TOKENS = 2_000
"""Maximum number of tokens to compare one by one, which takes quadratic time. A longer difference is one range."""

_EDGES = frozenset(
    ", ; SELECT FROM WHERE GROUP HAVING ORDER BY ON AND OR UNION JOIN LATERAL WATERMARK DISTINCT ALL WITH".split()  # noqa: SIM905
)
"""Tokens at which an excerpt ends: between list items, clauses, and parts of a condition."""

_CLAUSES, _QUERY = frozenset(("BY", "DISTINCT", "ORDER", "WHERE")), frozenset(("SELECT", "FROM"))
"""Tokens in the brackets of a call before one of its clauses, and tokens in those of a query."""

_Range = tuple[int, int, int, int]
"""A range in which two lists of tokens differ: start and end in the old list, start and end in the new list."""

_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


@dataclass(frozen=True)
class SqlDifference:
    """One difference at `offset` of the new text (0-based): the text before and after, empty if there is none. `more`
    counts the other differences.
    """

    offset: int
    before: str
    after: str
    more: int = 0

    def __str__(self) -> str:
        if not self.before:
            text = f"`{self.after}` is new"
        elif not self.after:
            text = f"`{self.before}` was removed"
        else:
            text = f"`{self.before}` is now `{self.after}`"
        places = "1 other change" if self.more == 1 else f"{self.more} other changes"
        return f"{text}, and {places}" if self.more else text


def sql_difference(old: str, new: str) -> SqlDifference | None:
    """Returns the first difference between two texts of SQL, None if they mean the same or cannot be parsed.

    Ignores comments, white space and the case of keywords, like `fingerprint`.
    """
    try:
        before, after = _flat(tokenize(old)), _flat(tokenize(new))
    except SqlTokenError:
        return None
    ranges = _changed_ranges(list(map(_key, before)), list(map(_key, after)))
    if not ranges:
        return None
    start, end, new_start, new_end, rest = _first_part(before, after, ranges)
    at = after[new_start].start if new_start < len(after) else len(new.rstrip())
    return SqlDifference(at, _excerpt(old, before[start:end]), _excerpt(new, after[new_start:new_end]), rest)


def _flat(tokens: Sequence[Token]) -> Tokens:
    """Returns the tokens, with those inside hints, without semicolons at the end."""
    flat = [part for token in tokens for part in (token.inside if token.kind is TokenKind.HINT else (token,))]
    while flat and flat[-1].key == ";":
        flat.pop()
    return tuple(flat)


def _key(token: Token) -> str:
    return token.text.upper() if token.kind is TokenKind.NUMBER else token.key or token.text


def _changed_ranges(before: list[str], after: list[str]) -> list[_Range]:
    """Returns the ranges that differ, in order."""
    # Cut off what both have in common at the ends, because SequenceMatcher takes quadratic time.
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    middle = before[start : len(before) - end], after[start : len(after) - end]
    if not any(middle):
        return []
    if max(map(len, middle)) > MAX_TOKENS:
        return [(start, len(before) - end, start, len(after) - end)]
    codes = SequenceMatcher(None, *middle, autojunk=False).get_opcodes()
    return [(a + start, b + start, c + start, d + start) for tag, a, b, c, d in codes if tag != "equal"]


def _first_part(before: Tokens, after: Tokens, ranges: list[_Range]) -> tuple[int, int, int, int, int]:
    """Returns the first range, extended to the item, clause or condition around it, and the number of ranges outside of
    it.
    """
    (a, b, c, d), *_ = ranges
    start, is_one_sided, first = a, a == b or c == d, (before[a:b] or after[c:d])[0].key
    if not is_one_sided or first not in _EDGES:
        start = _part_start(before, a)
    call = _call_start(before, start, has_clause=first in _CLAUSES)
    if call is not None:
        part = _to_end_of_part(before, after, ranges, call)
        if max(_length(before[part[0] : part[1]]), _length(after[part[2] : part[3]])) <= MAX_CALL:
            return part
    return _to_end_of_part(before, after, ranges, start)


def _to_end_of_part(before: Tokens, after: Tokens, ranges: list[_Range], start: int) -> tuple[int, int, int, int, int]:
    """Returns the first range, from the index `start` of `before` to the end of the item, clause or condition, and the
    number of ranges outside of it.
    """
    (a, b, c, d), *rest = ranges
    a, c = start, c - (a - start)  # before the first range, both sides are the same
    while b < len(before) or d < len(after):
        if rest and (b, d) == (rest[0][0], rest[0][2]):
            b, d = rest[0][1], rest[0][3]
            del rest[0]
            continue
        is_closed = _depth(after[c:d] or before[a:b]) <= 0
        if is_closed and (before[b].key in _CLOSING or _is_edge(before, b)):
            break
        b, d = b + 1, d + 1
    return a, b, c, d, len(rest)


def _part_start(tokens: Tokens, index: int) -> int:
    """Returns the index at which the item, clause or condition around `index` starts."""
    depth = 0
    while index:
        key = tokens[index - 1].key
        if depth == 0 and _is_edge(tokens, index - 1):
            break
        depth = max(0, depth + (key in _CLOSING) - (key in _OPENING))  # 0 on the way out of the brackets around it
        index -= 1
    return index


def _is_edge(tokens: Tokens, index: int) -> bool:
    """Returns whether an excerpt may end at a token: not within BETWEEN ... AND, or WITHIN GROUP."""
    key, depth = tokens[index].key, 0
    if key != "AND":
        return key in _EDGES and not (key == "GROUP" and index > 0 and tokens[index - 1].key == "WITHIN")
    while index:
        index -= 1
        depth += (tokens[index].key in _CLOSING) - (tokens[index].key in _OPENING)
        if depth < 0 or (depth == 0 and tokens[index].key in _EDGES):
            break
        if depth == 0 and tokens[index].key == "BETWEEN":
            return False
    return True


def _call_start(tokens: Tokens, index: int, *, has_clause: bool) -> int | None:
    """Returns the index at which the call around `index` starts, if a clause of the call comes before `index`, such as
    ORDER BY, or with `has_clause` at it: such a part of a call is no whole expression. None otherwise.
    """
    depth = 0
    while index:
        key = tokens[index - 1].key
        if depth == 0 and key in _OPENING:
            return _part_start(tokens, index) if has_clause else None
        if depth == 0 and key in _QUERY:
            return None
        has_clause = has_clause or (depth == 0 and key in _CLAUSES)
        depth += (key in _CLOSING) - (key in _OPENING)
        index -= 1
    return None


def _length(tokens: Sequence[Token]) -> int:
    return tokens[-1].end - tokens[0].start if tokens else 0


def _depth(tokens: Sequence[Token]) -> int:
    return sum((token.key in _OPENING) - (token.key in _CLOSING) for token in tokens)


def _excerpt(sql: str, tokens: Sequence[Token]) -> str:
    if not tokens:
        return ""
    text = " ".join(sql[tokens[0].start : tokens[-1].end].split())
    opened, closed = text.rfind("/*+"), text.find("*/")
    if closed >= 0 and not 0 <= text.find("/*+") < closed:  # the part begins or ends within a hint
        text = f"/*+ {text}"
    if opened > text.rfind("*/"):
        text = f"{text} */"
    return text if len(text) <= MAX_EXCERPT else f"{text[:MAX_EXCERPT]}…"
