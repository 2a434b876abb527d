"""Finds misspelled keywords: words that, when replaced with a similar keyword, let the parser read further."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlstream.compiler.spark_parser import ParseWithSpark, SyntaxRefusal
from sqlstream.compiler.sql.clauses import at
from sqlstream.compiler.sql.edits import Edit, EditedText, apply_edits
from sqlstream.compiler.sql.problem import SqlProblem
from sqlstream.compiler.sql.sql_text import SqlText
from sqlstream.compiler.sql.tokens import Token, TokenKind
from sqlstream.project.nearest import nearest
from sqlstream.project.wording import quoted

MOST_TYPOS = 5
"""The most typos to look for in one text."""

KEYWORDS = frozenset(
    """
    all and anti any as asc between by case cast cluster cross cube delay desc distinct distribute else end escape
    except exists false filter first following from full group grouping having ilike in inner intersect interval is join
    last lateral left like limit minus natural not null nulls of offset on or order outer over partition pivot preceding
    range right rlike rollup row rows select semi sets sort tablesample then true unbounded union unpivot using values
    view watermark when where window with within
    """.upper().split()
)
"""The keywords of queries. Those of commands are not valid in a model."""

AROUND = (-1, 0, -2, -3, 1)
"""Where to look for a typo, in tokens from the one at which the parser stops. The parser reads a misspelled keyword as
an alias or a name, and stops at what follows it.
"""

LIKENESSES = (0.7, 0.6)
"""The least similarity of a word and a keyword (1.0 is the same word): very similar words are tried first."""


@dataclass(frozen=True)
class Typo:
    """The token at `index` should be `keyword`."""

    index: int
    keyword: str


def misspelt(token: Token, keyword: str) -> SqlProblem:
    """Returns the problem of a token that should be `keyword`. The fix shows it in the letter case of the token."""
    word, meant = quoted(token.text), quoted(keyword.lower() if token.text.islower() else keyword)
    why = f"Spark reads {word} as a name, but expects a keyword here"
    return SqlProblem(token.start, "sql-syntax", f"Spark cannot parse the SQL at {word}", why, f"did you mean {meant}?")


def find_typos(text: SqlText, refusal: SyntaxRefusal, parse: ParseWithSpark) -> tuple[Typo, ...]:
    """Returns the misspelled keywords of a text that `parse` rejects.

    With each correction the parser reads further. With all of them it accepts the text, unless it has other errors.
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
    """Returns the next typo, and where the parser stops after its correction."""
    if refusal.offset is None:
        return None
    index = text.index_at(_corrected(text, typos).original_offset(refusal.offset))
    for likeness in LIKENESSES:
        found = list(_corrections(text, typos, index, likeness, parse))
        if found:
            return found[-1] if found[-1][1] is None else found[0]
    return None


def _corrections(
    text: SqlText, typos: Sequence[Typo], index: int, likeness: float, parse: ParseWithSpark
) -> Iterator[tuple[Typo, SyntaxRefusal | None]]:
    """Yields the typos near `index` whose correction lets the parser read further, up to one that it accepts."""
    known = {typo.index for typo in typos}
    for typo in (typo for typo in _candidates(text, index, likeness) if typo.index not in known):
        corrected = _corrected(text, [*typos, typo])
        refusal = parse(corrected.text)
        if refusal is None:
            yield typo, None
            return
        if refusal.offset is not None and text.index_at(corrected.original_offset(refusal.offset)) > index + 1:
            yield typo, refusal


def _candidates(text: SqlText, index: int, likeness: float) -> Iterator[Typo]:
    for place in (index + around for around in AROUND):
        token = at(text.tokens, place)
        if token.kind is TokenKind.WORD and token.key not in KEYWORDS:
            yield from (Typo(place, keyword) for keyword in nearest(token.text, sorted(KEYWORDS), likeness=likeness))


def _corrected(text: SqlText, typos: Sequence[Typo]) -> EditedText:
    tokens = [(text.tokens[typo.index], typo.keyword) for typo in typos]
    return apply_edits(text.sql, [Edit(token.start, token.end, keyword) for token, keyword in tokens])
