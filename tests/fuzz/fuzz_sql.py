"""Mutations of SQL."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

from tests.fuzz.fuzz_bases import sql_texts
from tests.fuzz.fuzz_pools import insert, odd_text, size
from tests.fuzz.fuzz_sql_pieces import CHAINS, NESTS, WORDS

_TOKEN = re.compile(r"\s+|\w+|\{\{.*?\}\}|\{%.*?%\}|.", re.DOTALL)


def _tokens(change: Callable[[Random, list[str]], None]) -> Callable[[Random, str], str]:
    def mutation(rng: Random, text: str) -> str:
        tokens = _TOKEN.findall(text) or [""]
        change(rng, tokens)
        return "".join(tokens)

    mutation.__name__ = change.__name__
    return mutation


@_tokens
def delete_tokens(rng: Random, tokens: list[str]) -> None:
    """Removes one or more adjacent tokens."""
    at = rng.randrange(len(tokens))
    del tokens[at : at + size(rng, 12)]


@_tokens
def duplicate_tokens(rng: Random, tokens: list[str]) -> None:
    """Repeats some tokens, possibly many times."""
    at = rng.randrange(len(tokens))
    tokens[at:at] = tokens[at : at + size(rng, 30)] * size(rng, 100)


@_tokens
def swap_tokens(rng: Random, tokens: list[str]) -> None:
    """Swaps two tokens."""
    one, other = rng.randrange(len(tokens)), rng.randrange(len(tokens))
    tokens[one], tokens[other] = tokens[other], tokens[one]


@_tokens
def replace_token(rng: Random, tokens: list[str]) -> None:
    """Replaces a token by a piece of SQL."""
    tokens[rng.randrange(len(tokens))] = f" {rng.choice(WORDS)} "


@_tokens
def insert_words(rng: Random, tokens: list[str]) -> None:
    """Inserts a few pieces of SQL between tokens."""
    for _ in range(rng.randint(1, 4)):
        tokens.insert(rng.randint(0, len(tokens)), f" {rng.choice(WORDS)} ")


@_tokens
def odd_identifier(rng: Random, tokens: list[str]) -> None:
    """Replaces a token by an odd name, quoted or not."""
    quote = rng.choice(("", "`", "'", '"'))
    tokens[rng.randrange(len(tokens))] = quote + odd_text(rng) + quote


@_tokens
def nest(rng: Random, tokens: list[str]) -> None:
    """Replaces a token by very deep nesting, which is sometimes not closed."""
    tokens[rng.randrange(len(tokens))] = " " + nested(rng) + " "


@_tokens
def chain(rng: Random, tokens: list[str]) -> None:
    """Inserts a very long chain after a token."""
    tokens.insert(rng.randint(0, len(tokens)), rng.choice(CHAINS) * size(rng, 10_000))


@_tokens
def splice(rng: Random, tokens: list[str]) -> None:
    """Inserts a part of another query."""
    other = _TOKEN.findall(rng.choice(sql_texts()))
    start = rng.randrange(len(other))
    at = rng.randint(0, len(tokens))
    tokens[at:at] = [" ", *other[start : start + size(rng, len(other))], " "]


def nested(rng: Random) -> str:
    """Returns very deep nesting, of one kind or of two alternating kinds."""
    depth = size(rng, 20_000)
    before, inner, after = rng.choice(NESTS)
    if rng.random() < 0.3:
        first, _, last = rng.choice(NESTS)
        before, after = before + first, last + after
    return before * depth + inner + after * rng.choice((depth, depth, depth - 1, 0))


def wrap(rng: Random, text: str) -> str:
    """Wraps the query in another one."""
    before, after = rng.choice(
        (
            ("select * from (", ")"),
            ("with c as (", ") select * from c"),
            ("with c as (", ") select * from c a join c b on a.x = b.x"),
            ("select * from (", ") WATERMARK a DELAY OF INTERVAL 1 DAY"),
            ("select count(*) from (", ")"),
            ("(", ")"),
            ("select (", ")"),
            ("from (", ")"),
            (f"{text} union all ", ""),
            (f"{text} union ", ""),
            (f"select * from ({text}) a join (", ") b using (a)"),
        )
    )
    return before + text + after


def wrap_many(rng: Random, text: str) -> str:
    """Wraps the query several times."""
    for _ in range(rng.randint(2, 5)):
        text = wrap(rng, text)
    return text[:200_000]


def long_list(rng: Random, text: str) -> str:
    """Adds a very long IN list."""
    items = ", ".join(rng.choice(("1", "'a'", "a", "null", "1.5", "(1, 2)")) for _ in range(size(rng, 20_000)))
    return f"{text} where a in ({items})"


def line_ends(rng: Random, text: str) -> str:
    """Changes line ends."""
    return text.replace("\n", rng.choice(("\r", "\r\n", "\n\r", "\u2028", "\x85", "\v", "\f", " ", "")))


def insert_text(rng: Random, text: str) -> str:
    """Inserts an odd text."""
    return insert(rng, text, odd_text(rng))


SQL_MUTATIONS: tuple[Callable[[Random, str], str], ...] = (
    *(delete_tokens, duplicate_tokens, swap_tokens, replace_token, insert_words, odd_identifier, nest, chain, splice),
    *(wrap, wrap_many, long_list, line_ends, insert_text, delete_tokens, swap_tokens, insert_words, splice),
    *(replace_token,),
)
"""Mutations of a model's text. Repeated ones are more likely."""
