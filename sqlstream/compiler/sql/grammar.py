"""What a text's tokens tell for certain of Spark's grammar: the mistakes that no query can hold.

Most words are names as well as keywords to Spark, so little is certain. What is not, Spark's own parser decides
(`SqlBaseParser.g4` of Spark 4.3).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import dropwhile

from sqlstream.compiler.sql.clauses import AFTER_ALIAS, at, skip_alias, skip_watermark
from sqlstream.compiler.sql.nesting import nesting_problem
from sqlstream.compiler.sql.problem import SqlProblem
from sqlstream.compiler.sql.relations import SqlRelation
from sqlstream.compiler.sql.sql_shape import is_from_clause, is_select
from sqlstream.compiler.sql.sql_text import SqlText
from sqlstream.compiler.sql.statement import COMMANDS
from sqlstream.compiler.sql.tokens import Kind, Token, Tokens
from sqlstream.compiler.sql.typos import misspelt
from sqlstream.project.nearest import did_you_mean, nearest
from sqlstream.project.wording import quoted

CLOSING = {"(": ")", "[": "]"}
BRACKETS = frozenset("()[]")
BEGINNINGS = ("FROM", "MAP", "REDUCE", "SELECT", "TABLE", "VALUES", "WITH")
"""The words that a query begins with, beside `(` and hints."""


def grammar_problems(text: SqlText, views: Collection[str] = ()) -> list[SqlProblem]:
    """Returns what is wrong in a text that reads `views`, in the order of its places.

    `views` are in lower case.
    """
    tokens = text.tokens
    found = [*_parentheses(tokens), *_commas(tokens), *_statements(tokens), *nesting_problem(tokens)]
    found += _stars(tokens) if "*" in text.keys else ()
    found += _clauses(tokens) if "DELAY" in text.keys or "GROUP" in text.keys else ()
    found += _names(tokens) if not text.sql.isascii() else ()
    ends = text.ends
    for relation in text.relations:
        found += _after_alias(tokens, ends[relation.alias_at] + 1)
        if relation.name is not None and relation.name.lower() in views:
            found += _of_pipelines(tokens, ends[relation.name_end], relation)
    return sorted(found, key=lambda problem: problem.offset)


def _problem(token: Token, message: str, why: str, fix: str) -> SqlProblem:
    return SqlProblem(token.start, "sql-syntax", message, why, fix)


def _parentheses(tokens: Tokens) -> Iterator[SqlProblem]:
    """The first bracket that is not closed, or closes nothing."""
    opened: list[Token] = []
    for token in tokens:
        if token.key not in BRACKETS:
            continue
        if token.key in CLOSING:
            opened.append(token)
        elif not opened or CLOSING[opened.pop().key] != token.key:
            yield _problem(
                token, f"{quoted(token.key)} has no opening bracket", "no bracket of this kind is open", "remove it"
            )
            return
    if opened:
        yield _problem(
            opened[-1],
            f"{quoted(opened[-1].key)} is not closed",
            f"the SQL ends before {quoted(CLOSING[opened[-1].key])}",
            f"add {quoted(CLOSING[opened[-1].key])} after its contents",
        )


def _commas(tokens: Tokens) -> Iterator[SqlProblem]:
    """A comma with nothing behind it, or before a FROM that is its SELECT's only one, and so no column of that name."""
    froms: dict[int, int] | None = None
    for index, token in enumerate(tokens):
        if token.key != ",":
            continue
        following = at(tokens, index + 1)
        if following.key == "FROM" and froms is None:
            froms = _only_froms(tokens)
        if following.key in (")", "]", ",", ";", "") and following.kind is Kind.SYMBOL:
            yield _problem(
                token, "nothing follows this comma", "Spark does not allow a comma after the last item", "remove it"
            )
        elif froms is not None and index + 1 in froms and _ends_select_list(tokens, froms[index + 1], index):
            yield _problem(
                token,
                "nothing follows this comma before FROM",
                "Spark does not allow a comma after the last item",
                "remove it",
            )


def _ends_select_list(tokens: Tokens, start: int, index: int) -> bool:
    """Whether the comma at `index` of the level that begins at `start` stands between a select list and its FROM."""
    return is_from_clause(tokens, index + 1) and any(is_select(tokens, place) for place in range(start, index))


def _stars(tokens: Tokens) -> Iterator[SqlProblem]:
    """`.*` behind anything but a name, of which Spark's grammar knows nothing."""
    for index, token in enumerate(tokens):
        before = at(tokens, index - 2)
        is_star = token.key == "*" and at(tokens, index - 1).key == "."
        if is_star and before.kind not in (Kind.WORD, Kind.QUOTED, Kind.NUMBER):
            yield _problem(
                tokens[index - 1],
                f"`.*` cannot follow {quoted(before.text)}",
                "Spark allows `.*` after a relation or a struct column, but not after an expression",
                "name the struct in a subquery or an upstream model: select s.* from (select ... as s from ...)",
            )


def _only_froms(tokens: Tokens) -> dict[int, int]:
    """The words FROM that are the only ones on their level, each with the index at which its level begins."""
    found: dict[int, int] = {}
    levels: list[tuple[int, list[int]]] = [(0, [])]
    for index, token in enumerate(tokens):
        if token.key not in BRACKETS and token.key != "FROM":
            continue
        if token.key in CLOSING:
            levels.append((index + 1, []))
        elif token.key in CLOSING.values() and len(levels) > 1:
            start, froms = levels.pop()
            found |= {froms[0]: start} if len(froms) == 1 else {}
        elif token.key == "FROM":
            levels[-1][1].append(index)
    return found | {froms[0]: start for start, froms in levels if len(froms) == 1}


def _statements(tokens: Tokens) -> Iterator[SqlProblem]:
    """A text is one statement, and begins with a word that statements begin with."""
    words = list(dropwhile(lambda token: token.kind is Kind.HINT or token.key == ";", tokens))
    ended = next((index for index, token in enumerate(words) if token.key == ";"), len(words))
    second = next((token for token in words[ended:] if token.kind is not Kind.HINT and token.key != ";"), None)
    if second is not None:
        why, fix = "a model is a single query", "move it to another model, or remove it"
        yield _problem(second, "a second statement starts here", why, fix)
    first = next((token for token in words if token.key != "("), None)
    if first is not None and first.kind is Kind.WORD and first.key not in COMMANDS | set(BEGINNINGS):
        why = "a query starts with SELECT, WITH, FROM or VALUES"
        fix = did_you_mean(first.key, BEGINNINGS)
        yield _problem(first, f"a query cannot start with {quoted(first.text)}", why, fix)


def _names(tokens: Tokens) -> Iterator[SqlProblem]:
    """A name with other letters than a to z, which only backquotes let Spark read."""
    for token in tokens:
        if token.kind is Kind.WORD and not token.text.isascii() and "://" not in token.text:
            yield _problem(
                token,
                f"{quoted(token.text)} needs backquotes",
                "unquoted names can contain only the letters a to z, digits and underscores",
                f"use backquotes: `{token.text}`",
            )


def _clauses(tokens: Tokens) -> Iterator[SqlProblem]:
    """What goes with a relation in another form than Spark's."""
    for index, token in enumerate(tokens):
        if token.key not in ("DELAY", "GROUP"):
            continue
        follows = [at(tokens, index + step) for step in (1, 2)]
        if token.key == "DELAY" and follows[0].key == "OF" and follows[1].kind in (Kind.STRING, Kind.NUMBER):
            yield _problem(
                follows[1],
                "the delay of the watermark is not an interval",
                "Spark's clause needs an interval, which starts with INTERVAL",
                "use delay of interval 10 minutes, or the hint /*+ WATERMARK(column, '10 minutes') */",
            )
        if token.key == "GROUP" and [item.key for item in follows] == ["BY", "("] and at(tokens, index + 3).key == ")":
            why, fix = (
                "Spark allows the empty set only inside GROUPING SETS",
                "remove GROUP BY to aggregate all rows into one",
            )
            yield _problem(token, "GROUP BY () does not exist in Spark SQL", why, fix)


def _after_alias(tokens: Tokens, start: int) -> Iterator[SqlProblem]:
    index, alias = skip_alias(tokens, start)
    if alias is None:
        return
    if skip_watermark(tokens, index) == index:
        yield from _misspelt_after(tokens, start, index)
        return
    yield _problem(
        tokens[index],
        f"the watermark comes after the alias {quoted(alias)}",
        "Spark's clause belongs to the relation, and the alias comes last",
        f"move {quoted(alias)} after the clause",
    )


def _misspelt_after(tokens: Tokens, start: int, index: int) -> Iterator[SqlProblem]:
    """What follows the alias that begins at `start` and ends before `index`, and is none of what can: most likely the
    alias, or what follows, is a keyword with a typo.
    """
    following, alias = at(tokens, index), tokens[start]
    is_sure = alias.key == "AS" or alias.key not in AFTER_ALIAS
    if following.kind in (Kind.SYMBOL, Kind.HINT) or following.key in AFTER_ALIAS or not is_sure:
        return
    meant = _meant_before(following)
    for token, keywords in ((alias, meant), (following, AFTER_ALIAS)):
        close = nearest(token.key, sorted(keywords), 1, likeness=0.7)
        if close and alias.key != "AS":
            yield misspelt(token, close[0])
            return
    why = f"{quoted(at(tokens, index - 1).text)} ends the relation: only a clause, a join or a comma can follow it"
    yield _problem(
        following,
        f"Spark cannot parse the SQL at {quoted(following.text)}",
        why,
        "add a comma, JOIN or the keyword of a clause before it, or remove it",
    )


def _meant_before(token: Token) -> frozenset[str]:
    """The keywords that may stand before `token` and after a relation."""
    if token.key == "BY":
        return frozenset({"GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE"})
    return frozenset({"LIMIT", "OFFSET"} if token.kind is Kind.NUMBER else {"HAVING", "JOIN", "QUALIFY", "WHERE"})


def _of_pipelines(tokens: Tokens, index: int, relation: SqlRelation) -> Iterator[SqlProblem]:
    """STREAM before a static table, and IDENTIFIED BY, with which declarative pipelines name what they read.

    The relation's name is at `index`. STREAM before a stream is gone by now: see `stream_words`.
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
