"""Misspelt keywords, found by asking a parser whether it reads on when a word is taken for the keyword it resembles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlstream.compiler.spark_parser import ParseWithSpark, SyntaxRefusal
from sqlstream.compiler.sql.problem import SqlProblem
from sqlstream.compiler.sql.sql_text import SqlText
from sqlstream.compiler.sql.tokens import Kind, Token
from sqlstream.project.nearest import nearest
from sqlstream.project.wording import quoted

MOST_TYPOS = 5
"""Typos that are looked for in one text."""

KEYWORDS = frozenset(
    """
    all and anti any as asc between by case cast cluster cross cube delay desc distinct distribute else end escape
    except exists false filter first following from full group grouping having ilike in inner intersect interval is join
    last lateral left like limit minus natural not null nulls of offset on or order outer over partition pivot preceding
    range right rlike rollup row rows select semi sets sort tablesample then true unbounded union unpivot using values
    view watermark when where window with within
    """.upper().split()
)
"""The keywords of queries; those of commands are not meant in a model."""

AROUND = (-1, 0, -2, -3, 1)
"""Where a typo is looked for, in tokens from the one at which the parser stops. A misspelt keyword is read as an alias
or a name, so that the parser stops at what follows it.
"""

LIKENESSES = (0.7, 0.6)
"""How like a keyword a word must be (1.0 is the same word): words that are very like one come first."""


@dataclass(frozen=True)
class Typo:
    """The word at `index` of the tokens, and the keyword that it should be."""

    index: int
    keyword: str


def misspelt(token: Token, keyword: str) -> SqlProblem:
    """Returns the problem of a word that should be `keyword`, which is shown in the word's own case."""
    meant = keyword.lower() if token.text.islower() else keyword
    return SqlProblem(
        token.start,
        "sql-syntax",
        f"Spark cannot parse the SQL at {quoted(token.text)}",
        f"Spark reads {quoted(token.text)} as a name, but expects a keyword here",
        f"did you mean {quoted(meant)}?",
    )


def find_typos(text: SqlText, refusal: SyntaxRefusal, parse: ParseWithSpark) -> tuple[Typo, ...]:
    """Returns the misspelt keywords of a text that `parse` refuses: with each one corrected the parser comes further,
    and with all of them to the end, unless more is wrong.
    """
    typos: list[Typo] = []
    stopped: SyntaxRefusal | None = refusal
    while stopped is not None and len(typos) < MOST_TYPOS:
        found = _next_typo(text, typos, stopped, parse)
        if found is None:
            break
        typo, stopped = found
        typos.append(typo)
    return tuple(typos)


def _next_typo(
    text: SqlText, typos: Sequence[Typo], refusal: SyntaxRefusal, parse: ParseWithSpark
) -> tuple[Typo, SyntaxRefusal | None] | None:
    """The next typo, and where the parser stops with it corrected."""
    index = _stop_index(text, typos, refusal)
    if index is None:
        return None
    for likeness in LIKENESSES:
        further: tuple[Typo, SyntaxRefusal | None] | None = None
        for typo in _candidates(text, index, likeness):
            stopped = parse(_corrected(text, [*typos, typo]))
            if stopped is None:
                return typo, None
            stop = _stop_index(text, [*typos, typo], stopped)
            if further is None and stop is not None and stop > index + 1:
                further = (typo, stopped)
        if further is not None:
            return further
    return None


def _candidates(text: SqlText, index: int, likeness: float) -> Iterator[Typo]:
    for around in AROUND:
        place = index + around
        token = text.tokens[place] if 0 <= place < len(text.tokens) else None
        if token is None or token.kind is not Kind.WORD or token.key in KEYWORDS:
            continue
        for keyword in nearest(token.text, sorted(KEYWORDS), likeness=likeness):
            yield Typo(place, keyword)


def _corrected(text: SqlText, typos: Sequence[Typo]) -> str:
    sql = text.sql
    for typo in sorted(typos, key=lambda typo: -typo.index):
        token = text.tokens[typo.index]
        sql = sql[: token.start] + typo.keyword + sql[token.end :]
    return sql


def _stop_index(text: SqlText, typos: Sequence[Typo], refusal: SyntaxRefusal) -> int | None:
    """The token at which the parser stops in the corrected text: the number of tokens where that is its end."""
    if refusal.offset is None:
        return None
    longer = {typo.index: len(typo.keyword) - len(text.tokens[typo.index].text) for typo in typos}
    shift = 0
    for index, token in enumerate(text.tokens):
        shift += longer.get(index, 0)
        if token.end + shift > refusal.offset:
            return index
    return len(text.tokens)
