"""Hints read from tokens, and those that Spark would ignore in silence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches

from sqlstream.compiler.clauses import at, skip_parentheses
from sqlstream.compiler.sql_shape import is_select
from sqlstream.compiler.tokens import Kind, Token, Tokens
from sqlstream.errors import Severity

WATERMARK = "WATERMARK"

SPARK_HINTS = frozenset(
    {
        "BROADCAST",
        "BROADCASTJOIN",
        "MAPJOIN",
        "MERGE",
        "MERGEJOIN",
        "SHUFFLE_MERGE",
        "SHUFFLE_HASH",
        "SHUFFLE_REPLICATE_NL",
        "COALESCE",
        "REPARTITION",
        "REPARTITION_BY_RANGE",
        "REBALANCE",
    }
)
"""The hints of Spark 4.3: the aliases of `JoinStrategyHint.strategies` and the names in `ResolveCoalesceHints`."""

_NEAR_WATERMARK = 0.7
"""From this likeness on (1.0: the same word) a name is taken for a misspelt WATERMARK, whose loss changes results."""


@dataclass(frozen=True)
class HintProblem:
    """What is wrong with one hint; `offset` is that of the hint's name, or of the part of it that is wrong."""

    offset: int
    code: str
    message: str
    why: str
    fix: str
    severity: Severity = Severity.ERROR


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
    """One hint comment: `items` are its hints in order, `select` the index of the SELECT that it directly follows."""

    token: Token
    items: tuple[HintItem, ...]
    select: int | None


def read_hints(tokens: Tokens) -> tuple[Hint, ...]:
    """Returns all hint comments in order; several may follow one SELECT."""
    return tuple(
        Hint(token, tuple(_items(token.inside)), _select_before(tokens, index))
        for index, token in enumerate(tokens)
        if token.kind is Kind.HINT
    )


def unknown_hint(item: HintItem) -> HintProblem | None:
    """Returns what is wrong with a hint that neither Spark nor sqlstream knows: an error where WATERMARK was meant."""
    name = item.name.name.upper()
    if item.is_watermark or name in SPARK_HINTS:
        return None
    meant_watermark = SequenceMatcher(None, name, WATERMARK).ratio() >= _NEAR_WATERMARK
    near = get_close_matches(name, sorted(SPARK_HINTS), n=1, cutoff=_NEAR_WATERMARK)
    fix = f"did you mean `{near[0]}`?" if near else "remove it, or write one of Spark's hints, such as BROADCAST(name)"
    return HintProblem(
        item.start,
        "unknown-hint",
        f"`{item.name.name}` is not a hint that Spark or sqlstream knows",
        "Spark ignores a hint that it does not know, without a word",
        "did you mean `WATERMARK`?" if meant_watermark else fix,
        Severity.ERROR if meant_watermark else Severity.WARNING,
    )


def _select_before(tokens: Tokens, index: int) -> int | None:
    while at(tokens, index).kind is Kind.HINT:
        index -= 1
    return index if is_select(tokens, index) else None


def _items(inside: Tokens) -> Iterator[HintItem]:
    """Gives the hints within one comment; Spark lets the commas between them be left out."""
    index = 0
    while index < len(inside):
        name = inside[index]
        index += 1
        if not name.is_name:
            continue
        if at(inside, index).key != "(":
            yield HintItem(name, None, name.end)
            continue
        after = skip_parentheses(inside, index)
        yield HintItem(name, tuple(_arguments(inside[index + 1 : after - 1])), inside[after - 1].end)
        index = after


def _arguments(tokens: Tokens) -> Iterator[Tokens]:
    start = index = 0
    while index < len(tokens):
        if tokens[index].key == ",":
            yield tokens[start:index]
            start = index + 1
        index = skip_parentheses(tokens, index) if tokens[index].key == "(" else index + 1
    if tokens:
        yield tokens[start:]
