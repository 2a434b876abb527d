"""Finds syntax errors that are certain from the tokens alone, misspelled keywords among them.

Spark also accepts most keywords as names, so only few errors are certain. Spark's own parser finds the others
(`SqlBaseParser.g4` of Spark 4.3).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile, pairwise

from sqlstream.compiler.spark_versions import ParseWithSpark, SyntaxRefusal
from sqlstream.compiler.sql.clauses import (
    AFTER_ALIAS,
    NO_TOKEN,
    at,
    is_from_clause,
    is_select,
    skip_alias,
    skip_watermark,
)
from sqlstream.compiler.sql.edits import Edit, EditedText, SqlProblem, apply_edits
from sqlstream.compiler.sql.relations import SqlRelation
from sqlstream.compiler.sql.sql_text import SqlText
from sqlstream.compiler.sql.statement import BEGINNINGS, COMMANDS
from sqlstream.compiler.sql.tokens import Token, TokenKind, Tokens
from sqlstream.project.wording import did_you_mean, nearest, quoted

CLOSING = {"(": ")", "[": "]"}
BRACKETS = frozenset("()[]")

DEEPEST_CALLS = 1_500
DEEPEST_BRACKETS = 2_500
DEEPEST_CASES = 4_000
LONGEST_CHAIN = 6_000
"""Nesting that is certain to overflow the stack of Spark's parser, with the default stack size of a thread.

The depth at which it overflows depends on what the JVM has compiled: 400 to 530 brackets, 300 to 600 function calls,
600 to 1,500 CASE, or chains of 1,050 to 1,600 operators (measured on Spark 4.3 with Java 17). The limits are higher by
a few times, because other JVMs may accept more. Chains of AND and OR have no limit.
"""
_SPLIT = "compute parts of it in a subquery, CTE or upstream model; for many values use a join, or IN with a list"

_CHAINED = frozenset({"+", "-", "*", "/", "%", "||"})
_ENDS_CHAIN = frozenset({
    ",", ";", "AND", "OR", "WHEN", "THEN", "ELSE", "AS", "SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER",
    "UNION", "EXCEPT", "INTERSECT", "JOIN", "ON", "=", "<", ">", "<=", ">=", "<>", "!=", "<=>", "|>",
})  # fmt: skip
_BEFORE_BRACKETS = _ENDS_CHAIN | {
    "IN", "NOT", "EXISTS", "ANY", "ALL", "SOME", "BETWEEN", "LIKE", "DISTINCT", "LATERAL", "VALUES", "OVER", "FILTER",
    "BY", "USING", "CASE", "LIMIT", "OFFSET",
}  # fmt: skip
"""Words after which a bracket is not a function call."""
_NESTED_CLOSING = {**CLOSING, "CASE": "END"}

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


def grammar_problems(text: SqlText, views: Collection[str] = ()) -> list[SqlProblem]:
    """Returns the problems of a text in the order of their offsets.

    `views` are the views that the text reads, in lower case.
    """
    tokens, ends = text.tokens, text.ends
    found = [*bracket_problems(tokens), *_commas(tokens), *_statements(tokens), *_nesting(tokens)]
    found += _stars(tokens) if "*" in text.keys else ()
    found += _delays(tokens) if "DELAY" in text.keys else ()
    found += _empty_groups(tokens) if "GROUP" in text.keys else ()
    found += _names(tokens) if not text.sql.isascii() else ()
    for relation in text.relations:
        found += _after_alias(tokens, ends[relation.alias_at] + 1)
        if relation.name is not None and relation.name.lower() in views:
            found += _pipeline_syntax(tokens, ends[relation.name_end], relation)
    return sorted(found, key=lambda problem: problem.offset)


def _problem(token: Token, message: str, why: str, fix: str) -> SqlProblem:
    return SqlProblem(token.start, "sql-syntax", message, why, fix)


def _indexes(tokens: Tokens, key: str) -> list[int]:
    return [index for index, token in enumerate(tokens) if token.key == key]


def bracket_problems(tokens: Tokens) -> Iterator[SqlProblem]:
    """Yields the problem of the first bracket without a partner."""
    opened: list[Token] = []
    for token in tokens:
        if token.key not in BRACKETS:
            continue
        if token.key in CLOSING:
            opened.append(token)
        elif not opened or CLOSING[opened.pop().key] != token.key:
            message = f"{quoted(token.key)} has no opening bracket"
            yield _problem(token, message, "no bracket of this kind is open", "remove it")
            return
    if opened:
        last, closing = opened[-1], quoted(CLOSING[opened[-1].key])
        message = f"{quoted(last.key)} is not closed"
        yield _problem(last, message, f"the SQL ends before {closing}", f"add {closing} after its contents")


def _nesting(tokens: Tokens) -> Iterator[SqlProblem]:
    """Yields a problem for the first token that is nested too deeply, or that makes a chain of operators too long."""
    # Fewer tokens cannot nest more deeply.
    if len(tokens) <= DEEPEST_CALLS:
        return
    depth, chain = 0.0, 0
    outer: list[tuple[str, float, int]] = []  # the closing word of each open level; depth and chain outside
    for before, token in pairwise((NO_TOKEN, *tokens)):
        if token.key in _NESTED_CLOSING:
            outer.append((_NESTED_CLOSING[token.key], depth, chain))
            # Each kind of nesting takes its own share of the stack, so shares are added.
            depth, chain = depth + 1 / _deepest(token, before), 0
        elif outer and token.key == outer[-1][0]:
            _, depth, chain = outer.pop()
        elif token.key in _CHAINED:
            chain += 1
        elif token.key in _ENDS_CHAIN:
            chain = 0
        if depth > 1 or chain > LONGEST_CHAIN:
            nested = f"{len(outer):,} brackets, calls or CASE expressions are nested here"
            message = nested if depth > 1 else f"more than {LONGEST_CHAIN:,} operators are chained here"
            why = "Spark's parser is recursive, and its stack overflows (FAILED_TO_PARSE_TOO_COMPLEX)"
            yield _problem(token, message, why, _SPLIT)
            return


def _deepest(token: Token, before: Token) -> int:
    """Returns the deepest allowed nesting of brackets, calls or CASE expressions, whichever `token` opens."""
    if token.key == "CASE":
        return DEEPEST_CASES
    is_call = token.key == "(" and before.kind is TokenKind.WORD and before.key not in _BEFORE_BRACKETS
    return DEEPEST_CALLS if is_call else DEEPEST_BRACKETS


def _commas(tokens: Tokens) -> Iterator[SqlProblem]:
    """Yields a problem for each comma without a following item."""
    why, fix = "Spark does not allow a comma after the last item", "remove it"
    before_from = []
    for index in _indexes(tokens, ","):
        following = at(tokens, index + 1)
        if following.key == "FROM":
            before_from.append(index)
        elif following.key in (")", "]", ",", ";", "") and following.kind is TokenKind.SYMBOL:
            yield _problem(tokens[index], "nothing follows this comma", why, fix)
    starts = _select_lists(tokens) if before_from else {}
    for index in before_from:
        if index + 1 in starts and any(is_select(tokens, place) for place in range(starts[index + 1], index)):
            yield _problem(tokens[index], "nothing follows this comma before FROM", why, fix)


def _select_lists(tokens: Tokens) -> dict[int, int]:
    """Returns, for each FROM clause, the index at which its level of brackets begins. Omits each FROM that shares its
    level with another one, as it may be a column.
    """
    found: dict[int, int] = {}
    levels: list[tuple[int, list[int]]] = [(0, [])]
    for index, token in enumerate(tokens):
        if token.key == "FROM":
            levels[-1][1].append(index)
        elif token.key in CLOSING:
            levels.append((index + 1, []))
        elif token.key in BRACKETS and len(levels) > 1:
            start, froms = levels.pop()
            found |= {froms[0]: start} if len(froms) == 1 else {}
    found |= {froms[0]: start for start, froms in levels if len(froms) == 1}
    return {index: start for index, start in found.items() if is_from_clause(tokens, index)}


def _stars(tokens: Tokens) -> Iterator[SqlProblem]:
    """Yields a problem for each `.*` after anything but a name."""
    for index in _indexes(tokens, "*"):
        before = at(tokens, index - 2)
        if at(tokens, index - 1).key == "." and before.kind not in (TokenKind.WORD, TokenKind.QUOTED, TokenKind.NUMBER):
            yield _problem(
                tokens[index - 1],
                f"`.*` cannot follow {quoted(before.text)}",
                "Spark allows `.*` after a relation or a struct column, but not after an expression",
                "name the struct in a subquery or an upstream model: select s.* from (select ... as s from ...)",
            )


def _statements(tokens: Tokens) -> Iterator[SqlProblem]:
    """Yields a problem for a second statement, and for a first word that cannot begin a statement."""
    words = list(dropwhile(lambda token: token.kind is TokenKind.HINT or token.key == ";", tokens))
    ended = next((index for index, token in enumerate(words) if token.key == ";"), len(words))
    second = next((token for token in words[ended:] if token.kind is not TokenKind.HINT and token.key != ";"), None)
    if second is not None:
        why, fix = "a model is a single query", "move it to another model, or remove it"
        yield _problem(second, "a second statement starts here", why, fix)
    first = next((token for token in words if token.key != "("), None)
    if first is not None and first.kind is TokenKind.WORD and first.key not in COMMANDS | set(BEGINNINGS):
        why = "a query starts with SELECT, WITH, FROM or VALUES"
        fix = did_you_mean(first.key, BEGINNINGS)
        yield _problem(first, f"a query cannot start with {quoted(first.text)}", why, fix)


def _names(tokens: Tokens) -> Iterator[SqlProblem]:
    """Yields a problem for each unquoted name with letters other than a to z."""
    for token in tokens:
        if token.kind is TokenKind.WORD and not token.text.isascii() and "://" not in token.text:
            why = "unquoted names can contain only the letters a to z, digits and underscores"
            yield _problem(token, f"{quoted(token.text)} needs backquotes", why, f"use backquotes: `{token.text}`")


def _delays(tokens: Tokens) -> Iterator[SqlProblem]:
    for index in _indexes(tokens, "DELAY"):
        delay = at(tokens, index + 2)
        if at(tokens, index + 1).key == "OF" and delay.kind in (TokenKind.STRING, TokenKind.NUMBER):
            yield _problem(
                delay,
                "the delay of the watermark is not an interval",
                "Spark's clause needs an interval, which starts with INTERVAL",
                "use delay of interval 10 minutes, or the hint /*+ WATERMARK(column, '10 minutes') */",
            )


def _empty_groups(tokens: Tokens) -> Iterator[SqlProblem]:
    for index in _indexes(tokens, "GROUP"):
        if [token.key for token in tokens[index + 1 : index + 4]] == ["BY", "(", ")"]:
            yield _problem(
                tokens[index],
                "GROUP BY () does not exist in Spark SQL",
                "Spark allows the empty set only inside GROUPING SETS",
                "remove GROUP BY to aggregate all rows into one",
            )


def _after_alias(tokens: Tokens, start: int) -> Iterator[SqlProblem]:
    """Yields a problem if a watermark or an unexpected word follows the alias that begins at `start`."""
    index, alias = skip_alias(tokens, start)
    if alias is None:
        return
    if skip_watermark(tokens, index) == index:
        yield from _misspelt_after(tokens, start, index)
        return
    message, fix = f"the watermark comes after the alias {quoted(alias)}", f"move {quoted(alias)} after the clause"
    yield _problem(tokens[index], message, "Spark's clause belongs to the relation, and the alias comes last", fix)


def _misspelt_after(tokens: Tokens, start: int, index: int) -> Iterator[SqlProblem]:
    """Yields a problem if the word at `index`, after the alias at `start`, cannot follow a relation. Most likely it or
    the alias is a misspelled keyword.
    """
    following, alias = at(tokens, index), tokens[start]
    is_sure = alias.key == "AS" or alias.key not in AFTER_ALIAS
    if following.kind in (TokenKind.SYMBOL, TokenKind.HINT) or following.key in AFTER_ALIAS or not is_sure:
        return
    for token, keywords in ((alias, _keywords_before(following)), (following, AFTER_ALIAS)):
        close = nearest(token.key, sorted(keywords), 1, likeness=0.7)
        if close and alias.key != "AS":
            yield misspelt(token, close[0])
            return
    why = f"{quoted(at(tokens, index - 1).text)} ends the relation: only a clause, a join or a comma can follow it"
    fix = "add a comma, JOIN or the keyword of a clause before it, or remove it"
    yield _problem(following, f"Spark cannot parse the SQL at {quoted(following.text)}", why, fix)


def _keywords_before(token: Token) -> frozenset[str]:
    """Returns the keywords that can appear between a relation and `token`."""
    if token.key == "BY":
        return frozenset({"GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE"})
    return frozenset({"LIMIT", "OFFSET"} if token.kind is TokenKind.NUMBER else {"HAVING", "JOIN", "QUALIFY", "WHERE"})


def _pipeline_syntax(tokens: Tokens, index: int, relation: SqlRelation) -> Iterator[SqlProblem]:
    """Yields a problem for STREAM before a static table, and for IDENTIFIED BY of Spark's declarative pipelines.

    The last part of the relation's name is at `index`. `drop_stream_words` has already removed STREAM before streams.
    """
    before = at(tokens, index - 1)
    before = at(tokens, index - 2) if before.key == "(" else before
    if before.key == "STREAM" and before.start != relation.name_start:
        yield _problem(
            before,
            f"STREAM is used with {quoted(relation.name)}, which is not a stream",
            "Spark accepts only streams after STREAM, and this relation is read once per run",
            "remove STREAM",
        )
    elif at(tokens, index + 1).key == "IDENTIFIED" and at(tokens, index + 2).key == "BY":
        yield _problem(
            tokens[index + 1],
            f"IDENTIFIED BY is used with {quoted(relation.name)}",
            "it names a source that is read with STREAM, as in Spark's declarative pipelines",
            "remove it; sqlstream names the sources of a query itself",
        )


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
            # The best correction is one with which the whole text is valid. Otherwise the most likely one comes first.
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
