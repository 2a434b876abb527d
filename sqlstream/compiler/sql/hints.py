"""Reads hints from SQL, and finds those that Spark would silently ignore."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches

from sqlstream.compiler.sql.clauses import at, is_select, skip_parentheses, split_at_commas
from sqlstream.compiler.sql.edits import SqlProblem
from sqlstream.compiler.sql.tokens import Token, TokenKind, Tokens, find_comments
from sqlstream.errors import Severity

WATERMARK = "WATERMARK"

SPARK_HINTS = frozenset({
    "BROADCAST", "BROADCASTJOIN", "MAPJOIN", "MERGE", "MERGEJOIN", "SHUFFLE_MERGE", "SHUFFLE_HASH",
    "SHUFFLE_REPLICATE_NL", "COALESCE", "REPARTITION", "REPARTITION_BY_RANGE", "REBALANCE",
})  # fmt: skip
"""The hints of Spark 4.3: the aliases of `JoinStrategyHint.strategies` and the names in `ResolveCoalesceHints`."""

_LIKENESS = 0.7
"""The least similarity (1.0: the same word) of a name and the hint that was probably meant."""

_COMMENTED_HINT = re.compile(r"(?P<opening>/\*\s+\+|--\s*\+)\s*(?P<name>\w+)\s*\(")


@dataclass(frozen=True)
class HintItem:
    """One hint such as `BROADCAST(a)`: `arguments` are the tokens between its commas, None without parentheses."""

    name: Token
    arguments: tuple[Tokens, ...] | None
    end: int

    @property
    def start(self) -> int:
        """The offset of the hint's name."""
        return self.name.start

    @property
    def is_watermark(self) -> bool:
        """Whether sqlstream compiles this hint."""
        return self.name.name.upper() == WATERMARK


@dataclass(frozen=True)
class Hint:
    """One hint comment: `items` are its hints in order, `select` the index of the SELECT directly before it."""

    token: Token
    items: tuple[HintItem, ...]
    select: int | None


def read_hints(tokens: Tokens) -> tuple[Hint, ...]:
    """Returns all hint comments in order. Several can follow one SELECT."""
    hints: list[Hint] = []
    last, select = -1, None
    for index in [index for index, token in enumerate(tokens) if token.kind is TokenKind.HINT]:
        if index - 1 != last:
            select = index - 1 if is_select(tokens, index - 1) else None
        hints.append(Hint(tokens[index], tuple(_items(tokens[index].inside)), select))
        last = index
    return tuple(hints)


def unknown_hint(item: HintItem) -> SqlProblem | None:
    """Returns the problem of a hint that neither Spark nor sqlstream knows, an error if it resembles WATERMARK."""
    name = item.name.name.upper()
    if item.is_watermark or name in SPARK_HINTS:
        return None
    is_watermark = _resembles_watermark(name)  # to lose it changes results
    near = [WATERMARK] if is_watermark else get_close_matches(name, sorted(SPARK_HINTS), n=1, cutoff=_LIKENESS)
    severity = Severity.ERROR if is_watermark else Severity.WARNING
    message = f"`{item.name.name}` is not a hint in Spark or sqlstream"
    fix = f"did you mean `{near[0]}`?" if near else "remove it, or use one of Spark's hints, such as BROADCAST(name)"
    return SqlProblem(item.start, "unknown-hint", message, "Spark silently ignores unknown hints", fix, severity)


def ignored_hints(sql: str, tokens: Tokens) -> Iterator[SqlProblem]:
    """Yields a warning for each comment in `sql` that was meant as a hint: `/* + WATERMARK(...) */` or `--+ ...`.

    A comment with one of Spark's own hints counts only directly after SELECT, where a hint is allowed. Elsewhere it can
    be commented-out SQL, such as `+ coalesce(x, 0)`.
    """
    for start, text in find_comments(sql) if _COMMENTED_HINT.search(sql) else ():
        meant = _COMMENTED_HINT.match(text)
        if meant is not None and _is_meant_as_hint(meant["name"].upper(), start, tokens):
            yield SqlProblem(
                start,
                "unknown-hint",
                f"`{meant['opening']} {meant['name']}` is a comment, not a hint",
                "a hint starts with exactly /*+, and Spark ignores comments",
                f"use /*+ {meant['name']}(...) */, or remove the + if it is a comment",
                Severity.WARNING,
            )


def _is_meant_as_hint(name: str, start: int, tokens: Tokens) -> bool:
    if _resembles_watermark(name):
        return True
    return name in SPARK_HINTS and is_select(tokens, bisect_left(tokens, start, key=lambda token: token.start) - 1)


def _resembles_watermark(name: str) -> bool:
    return SequenceMatcher(None, name, WATERMARK).ratio() >= _LIKENESS


def _items(inside: Tokens) -> Iterator[HintItem]:
    """Yields the hints in one comment. Commas between them are optional in Spark."""
    index = 0
    while index < len(inside):
        name, after = inside[index], index + 1
        if name.is_name and at(inside, after).key == "(":
            after = skip_parentheses(inside, index + 1)
            yield HintItem(name, tuple(split_at_commas(inside[index + 2 : after - 1])), inside[after - 1].end)
        elif name.is_name:
            yield HintItem(name, None, name.end)
        index = after
