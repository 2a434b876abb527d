"""Distinguishes queries from commands and from empty text, by the keywords of a model's SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sqlstream.compiler.sql.clauses import NEVER_ALIASES, at, is_select, step_over
from sqlstream.compiler.sql.edits import SqlProblem
from sqlstream.compiler.sql.relations import skip_ctes
from sqlstream.compiler.sql.sql_text import SqlText
from sqlstream.compiler.sql.tokens import Token, TokenKind, Tokens, find_comments
from sqlstream.errors import Severity
from sqlstream.project.wording import excerpt, quoted

COMMANDS = frozenset(
    """
    add alter analyze begin cache call clear comment commit create declare delete desc describe dfs drop execute explain
    export grant import insert list load lock merge msck refresh repair replace reset revoke rollback set show start
    truncate uncache unlock unset update use
    """.upper().split()
)
"""The first words of commands (`statement` and `dmlStatementNoWith` in `SqlBaseParser.g4` of Spark 4.3). A query begins
with SELECT, WITH, FROM, VALUES, TABLE, MAP, REDUCE or `(`."""

BEGINNINGS = ("FROM", "MAP", "REDUCE", "SELECT", "TABLE", "VALUES", "WITH")
"""The words that can begin a query, besides `(` and hints."""

_SELECT = re.compile(r"(?<=[^\s-])\s*(?:\bwith\s+\w+\s+as\b|select(?:\s|$))", re.IGNORECASE)
"""The beginning of a query in a comment, after the comment's own text."""

_TRIMS = re.compile(r"\{[%{#]-|-[%}#]\}")
"""A Jinja tag that removes the white space before or after it."""

_TAIL = re.compile(r"(?=(--.*))")  # a lookahead, so that it finds each `--` of a line
_TAG_BEGINS = re.compile(r"\{[%{#]")
_TAG = re.compile(r"\{%.*?%\}|\{#.*?#\}")
_OUTPUT = re.compile(r"\{\{|\{%[-+]?\s*for\b")
_TRIMMED_BEFORE = re.compile(r"\s*\{[%{#]-")
_WORD = re.compile(r"\w")

_WRITES = frozenset({"DELETE", "INSERT", "MERGE", "UPDATE"})
"""The commands that can follow the CTEs of a WITH."""

_BEFORE_RELATION = NEVER_ALIASES | {"AS", "FROM", "AND", "OR", "NOT"}


def statement_problem(text: SqlText, name: str, template: str = "") -> SqlProblem | None:
    """Returns a problem if the rendered SQL of the model `name` is empty or a command. `template` is its template.

    Text that can be a query is not a problem, even if Spark cannot parse it.
    """
    first = next(
        (token for token in text.tokens if token.kind is not TokenKind.HINT and token.key not in (";", "(")), None
    )
    hidden = _hidden_select(text, first) if _TRIMS.search(template) else None
    if hidden is not None:
        what = f"the SELECT of `{name}` is inside a comment"
        why = "a `--` comment ends only at a line break, and nothing breaks the line before this SELECT"
        fix = "the `-` of a Jinja tag removes line breaks: remove it, or write the comment as {# ... #}"
        return SqlProblem(hidden, "no-query", what, why, fix)
    if first is None:
        why = "the file has only comments, whitespace or Jinja that renders to nothing"
        fix = "add a SELECT, delete the file, or disable it with {{ config(enabled=false) }}"
        return SqlProblem(0, "no-query", f"`{name}` contains no query", why, fix)
    command = command_word(text)
    return command_problem(name, command.key, command.start) if command else None


def _hidden_select(text: SqlText, first: Token | None) -> int | None:
    """Returns the offset of a SELECT in a `--` comment before `first`, the first word, if no query begins there."""
    if first is not None and (first.kind is not TokenKind.WORD or first.key in COMMANDS | set(BEGINNINGS)):
        return None
    end = len(text.sql) if first is None else first.start
    comments = [(start, found) for start, found in find_comments(text.sql) if start < end and found.startswith("--")]
    hidden = ((start, _SELECT.search(comment)) for start, comment in reversed(comments))
    return next((start + found.start() for start, found in hidden if found is not None), None)


def swallowed_sql(text: SqlText, name: str, templates: Sequence[str]) -> Iterator[SqlProblem]:
    """Yields a warning for each `--` comment that contains SQL of later lines of the `templates` of the model `name`,
    because a tag has removed the line break after it.
    """
    trimming = [template for template in templates if "--" in template and _TRIMS.search(template)]
    if not trimming or "--" not in text.sql:
        return
    lines = [
        _CommentLine(match[1], template[match.end(1) :]) for template in trimming for match in _TAIL.finditer(template)
    ]
    for start, comment in find_comments(text.sql):
        offset = start + _comment_length(comment.rstrip(), lines) if comment.startswith("--") else len(text.sql)
        hidden = text.sql[offset : start + len(comment)]
        if hidden.strip():
            what = f"SQL of `{name}` is inside a comment: {quoted(excerpt(hidden.strip()))}"
            why = "a `--` comment ends only at a line break, and the `-` of a Jinja tag has removed the one after it"
            fix = "remove the `-` of the tag after the comment, or write the comment as {# ... #}"
            at_word = offset + len(hidden) - len(hidden.lstrip())
            yield SqlProblem(at_word, "hidden-sql", what, why, fix, Severity.WARNING)


class _CommentLine:
    """The end of a line of a template, from `--` on, with the text of the template `after` it."""

    def __init__(self, tail: str, after: str) -> None:
        self.tail = tail.rstrip()
        self.beginning = _TAG_BEGINS.split(tail, maxsplit=1)[0].rstrip()
        self.written = None if _OUTPUT.search(tail) else _TAG.sub("", tail).rstrip()
        """The comment that the line makes, None if Jinja writes into it."""
        self.is_trimmed = self.tail.endswith(("-%}", "-#}", "-}}")) or _TRIMMED_BEFORE.match(after) is not None


def _comment_length(comment: str, lines: Sequence[_CommentLine]) -> int:
    """Returns the length of the part of `comment` that was written as a comment."""
    if any(line.tail == comment for line in lines):
        return len(comment)
    found = [line for line in lines if _WORD.search(line.beginning) and comment.startswith(line.beginning)]
    longest = max((len(line.beginning) for line in found), default=0)
    # comments can begin alike: the one with the longest beginning is meant
    found = [line for line in found if len(line.beginning) == longest]
    written = {line.written for line in found if line.is_trimmed}
    length = len(next(iter(written)) or "") if len(written) == 1 and all(line.is_trimmed for line in found) else 0
    if not length:
        return len(comment)
    rest = comment[length:].lstrip()
    behind = len(comment) - len(rest)
    return behind + _comment_length(rest, lines) if rest.startswith("--") else length  # the next line is a comment too


def command_problem(name: str, command: str, offset: int = 0) -> SqlProblem:
    """Returns the problem of the model `name`, whose SQL is a `command` (its first word, or Spark's name for it)."""
    message = f"`{name}` is not a query but a command ({command})"
    why = "a model is one SELECT; Spark would run a command immediately, and it could change or delete data"
    return SqlProblem(offset, "no-query", message, why, "keep only the SELECT; the sink defines where its rows go")


def command_word(text: SqlText) -> Token | None:
    """Returns the word that makes a statement a command, such as the INSERT of `WITH x AS (...) INSERT INTO y ...`;
    None for queries and for unclear text.
    """
    tokens = text.tokens
    index = next(
        (i for i, token in enumerate(tokens) if token.kind is not TokenKind.HINT and token.key != ";"), len(tokens)
    )
    first = at(tokens, index)
    if first.key in COMMANDS:
        return first
    if _WRITES.isdisjoint(text.keys):
        return None
    index = skip_ctes(tokens, text.after, index)
    if first.key == "WITH" and at(tokens, index).key in _WRITES:
        return tokens[index]
    return _insert_after_from(tokens, index + 1) if at(tokens, index).key == "FROM" else None


def _insert_after_from(tokens: Tokens, index: int) -> Token | None:
    """Returns the INSERT of Hive's `FROM x INSERT INTO y SELECT ...`, which precedes the first SELECT.

    A table or column can also be named `insert`. The keyword is between a whole relation and INTO or OVERWRITE.
    """
    while index < len(tokens) and not is_select(tokens, index) and tokens[index].key != "|>":
        before, following = at(tokens, index - 1), at(tokens, index + 1)
        ends_relation = before.key == ")" or (before.is_name and before.key not in _BEFORE_RELATION)
        if tokens[index].key == "INSERT" and following.key in ("INTO", "OVERWRITE") and ends_relation:
            return tokens[index]
        index = step_over(tokens, index)
    return None
