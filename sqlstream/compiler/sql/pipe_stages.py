"""Parses the stages of a query in pipe syntax, `FROM t |> WHERE a > 1 |> SELECT b`, each as a separate tree.

sqlglot would turn them into CTEs, with names and offsets that the text does not have. Here each stage becomes a query
over a placeholder for the previous rows. Offsets in the trees refer to the whole text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import exp

from sqlstream.compiler.sql.tokens import Token, Tokens

ParseQuery = Callable[[str], exp.Query | None]
"""Parses a query. Returns None if that is not possible."""

PREVIOUS_ROWS = "SELECT * FROM p "
"""The text before a stage that changes or joins the previous rows."""

_ON_ROWS = frozenset(
    """
    ANTI CLUSTER CROSS DISTRIBUTE EXCEPT FULL INNER INTERSECT JOIN LEFT LIMIT MINUS NATURAL OFFSET ORDER PIVOT RIGHT
    SEMI SORT TABLESAMPLE UNION UNPIVOT WHERE
    """.split()  # noqa: SIM905 - a list of words
)
_ON_LISTS = frozenset({"SELECT", "EXTEND", "SET", "DROP"})
"""The stages that consist of a list of expressions."""


@dataclass(frozen=True)
class PipeStage:
    """One stage: its first word in capitals, the offset of that word, and the contents.

    `tree` is a query over the previous rows. For a list of expressions it is a SELECT without FROM. It is None for
    other stages, and if it cannot be parsed. `keys` are the GROUP BY keys of AGGREGATE, None if they cannot be parsed.
    `name` is the alias of AS.
    """

    keyword: str
    start: int
    tree: exp.Query | None = None
    keys: tuple[exp.Expr, ...] | None = ()
    name: str = ""


def cut(tokens: Tokens) -> list[int] | None:
    """Returns the indexes of the `|>` of a query; None if some are in parentheses."""
    found = [index for index, token in enumerate(tokens) if token.key == "|>"]
    return found if set(found) <= set(_outside(tokens)) else None


def _outside(tokens: Tokens) -> Iterator[int]:
    """Yields the indexes of the tokens that are not in parentheses."""
    depth = 0
    for index, token in enumerate(tokens):
        depth += (token.key == "(") - (token.key == ")")
        if not depth:
            yield index


def parse_stages(tokens: Tokens, cuts: list[int], text: str, parse: ParseQuery) -> tuple[PipeStage, ...]:
    """Returns the stages after the indexes `cuts`. The offsets of the tokens refer to `text`."""
    edges = pairwise([*cuts, len(tokens)])
    return tuple(_stage(tokens[start + 1 : end], text, parse) for start, end in edges)


def _stage(tokens: Tokens, text: str, parse: ParseQuery) -> PipeStage:
    if not tokens:
        return PipeStage("", len(text))
    key, start = tokens[0].key, tokens[0].start
    if key == "AS" and len(tokens) == 2:
        return PipeStage("AS", start, name=tokens[1].name)
    if key == "AGGREGATE":
        return _aggregate(tokens, text, parse)
    if key in _ON_ROWS:
        return PipeStage(key, start, _parsed(PREVIOUS_ROWS, tokens, text, parse))
    if key in _ON_LISTS:
        return PipeStage(key, start, _parsed("SELECT ", tokens[1:], text, parse))
    return PipeStage(key, start)


def _aggregate(tokens: Tokens, text: str, parse: ParseQuery) -> PipeStage:
    """Returns the stage of AGGREGATE: a list, which may be empty, and the keys of GROUP BY, which may have aliases."""
    keys = [token.key for token in tokens]
    at = next((index for index in _outside(tokens) if keys[index : index + 2] == ["GROUP", "BY"]), len(tokens))
    listed, grouped = (
        _parsed("SELECT ", part, text, parse) if part else exp.Select() for part in (tokens[1:at], tokens[at + 2 :])
    )
    group_keys = None if grouped is None else tuple(grouped.args.get("expressions") or ())
    return PipeStage("AGGREGATE", tokens[0].start, listed, group_keys)


def _parsed(prefix: str, tokens: tuple[Token, ...], text: str, parse: ParseQuery) -> exp.Query | None:
    """Returns the tree of `prefix` and the text of the tokens, with offsets that refer to the whole text."""
    tree = parse(prefix + text[tokens[0].start : tokens[-1].end]) if tokens else None
    if tree is None:
        return None
    moved = tokens[0].start - len(prefix)
    for node in tree.walk():
        if node.meta.get("start", -1) >= len(prefix):
            node.meta["start"] += moved
            node.meta["end"] += moved
        else:
            node.meta.pop("start", None)
            node.meta.pop("end", None)
    return tree
