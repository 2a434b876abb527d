"""The stages of a query in pipe syntax, `FROM t |> WHERE a > 1 |> SELECT b`, each as a tree of its own.

sqlglot makes CTEs of them, whose names and places the text does not have. Each stage is read as a query over a table
that stands for the rows so far instead; places are offsets in the whole text all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import exp

from sqlstream.compiler.sql.tokens import Token, Tokens

ParseQuery = Callable[[str], exp.Query | None]
"""Reads a query, None where that is not possible."""

ROWS_SO_FAR = "SELECT * FROM p "
"""What stands before a stage that changes or joins the rows so far."""

_ON_ROWS = frozenset(
    """
    ANTI CLUSTER CROSS DISTRIBUTE EXCEPT FULL INNER INTERSECT JOIN LEFT LIMIT MINUS NATURAL OFFSET ORDER PIVOT RIGHT
    SEMI SORT TABLESAMPLE UNION UNPIVOT WHERE
    """.split()  # noqa: SIM905 - a list of words
)
_LISTS = {"SELECT": "", "EXTEND": "SELECT ", "SET": "SELECT ", "DROP": "SELECT ", "AGGREGATE": "SELECT "}
"""The stages that hold a list of expressions, and what stands before the list, in the place of their own word."""


@dataclass(frozen=True)
class Stage:
    """One stage: its first word in capitals, the offset of that, and what it says.

    `tree` is a query over the rows so far; of a stage that is only a list of expressions it is a SELECT of them without
    FROM. It is None where there is no such list or query, or where it cannot be read. `keys` are those of the GROUP BY
    of AGGREGATE, None where they cannot be read; `name` is that of AS.
    """

    keyword: str
    start: int
    tree: exp.Query | None = None
    keys: tuple[exp.Expr, ...] | None = ()
    name: str = ""


def cut(tokens: Tokens) -> list[int] | None:
    """Returns the places of the `|>` of a query among its tokens; None where some stand within parentheses."""
    depth, found = 0, []
    for index, token in enumerate(tokens):
        depth += (token.key == "(") - (token.key == ")")
        if token.key == "|>":
            if depth:
                return None
            found.append(index)
    return found


def parse_stages(tokens: Tokens, cuts: list[int], text: str, parse: ParseQuery) -> tuple[Stage, ...]:
    """Returns the stages behind the places `cuts`, read from `text`, in which the tokens have their offsets."""
    edges = pairwise([*cuts, len(tokens)])
    return tuple(_stage(tokens[start + 1 : end], text, parse) for start, end in edges)


def _stage(tokens: Tokens, text: str, parse: ParseQuery) -> Stage:
    if not tokens:
        return Stage("", len(text))
    first = tokens[0]
    if first.key == "AS" and len(tokens) == 2:
        return Stage("AS", first.start, name=tokens[1].name)
    if first.key in _ON_ROWS:
        return Stage(first.key, first.start, _parsed(ROWS_SO_FAR, tokens, text, parse))
    if first.key == "AGGREGATE":
        return _aggregate(tokens, text, parse)
    if first.key in _LISTS:
        listed = tokens if first.key == "SELECT" else tokens[1:]
        return Stage(first.key, first.start, _parsed(_LISTS[first.key], listed, text, parse))
    return Stage(first.key, first.start)


def _aggregate(tokens: Tokens, text: str, parse: ParseQuery) -> Stage:
    """AGGREGATE with its own list, which may be empty, and that of its GROUP BY, in which keys may have aliases."""
    at = next(_group_by(tokens), len(tokens))
    listed, grouped = tokens[1:at], tokens[at + 2 :]
    tree = _parsed("SELECT ", listed, text, parse) if listed else exp.Select()
    keys = _parsed("SELECT ", grouped, text, parse) if grouped else exp.Select()
    return Stage(
        "AGGREGATE", tokens[0].start, tree, None if keys is None else tuple(keys.args.get("expressions") or ())
    )


def _group_by(tokens: Tokens) -> Iterator[int]:
    depth = 0
    for index, (token, after) in enumerate(pairwise(tokens)):
        depth += (token.key == "(") - (token.key == ")")
        if not depth and (token.key, after.key) == ("GROUP", "BY"):
            yield index


def _parsed(prefix: str, tokens: tuple[Token, ...], text: str, parse: ParseQuery) -> exp.Query | None:
    """The tree of `prefix` and the text of the tokens, with the places that these have in the whole text."""
    if not tokens:
        return None
    tree = parse(prefix + text[tokens[0].start : tokens[-1].end])
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
