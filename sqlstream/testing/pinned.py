"""SQL over static tables at a time that a case sets: a batch of Spark's reads the time of day, which nothing can set.

What asks for the time is written as the time itself (Spark's SQL reference, "Date and Timestamp Functions").
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlstream.compiler.sql.tokens import Kind, Tokens, tokenize
from sqlstream.testing.cases import Case

_NOW = "timestamp_millis({at})"

_TIMES = {
    "CURRENT_TIMESTAMP": _NOW,
    "NOW": _NOW,
    "CURRENT_DATE": f"date({_NOW})",
    "CURDATE": f"date({_NOW})",
    "LOCALTIMESTAMP": f"cast({_NOW} as timestamp_ntz)",
    "UNIX_TIMESTAMP": f"unix_seconds({_NOW})",
}
"""What asks for the time, and what says it; `at` is in ms since 1970."""

_BARE = ("CURRENT_TIMESTAMP", "CURRENT_DATE", "LOCALTIMESTAMP")
"""What asks for it without brackets, too."""


def pinned(case: Case, milliseconds: int) -> Case:
    """Returns the case with SQL that takes `milliseconds` since 1970 for the present time."""
    models = {
        node: model if model.file.is_python else replace(model, sql=pinned_sql(model.sql, milliseconds))
        for node, model in case.compiled.models.items()
    }
    return replace(case, compiled=replace(case.compiled, models=models), model=models[case.model.unique_id])


def pinned_sql(sql: str, milliseconds: int) -> str:
    """Returns `sql` in which all that asks for the present time says `milliseconds` since 1970."""
    parts, at = [], 0
    for start, end, form in _asking(tokenize(sql)):
        parts += [sql[at:start], form.format(at=milliseconds)]
        at = end
    return "".join([*parts, sql[at:]])


def _asking(tokens: Tokens) -> Iterator[tuple[int, int, str]]:
    """Where the time is asked for: from where to where in the SQL, and what says it instead."""
    for number, token in enumerate(tokens):
        before = tokens[number - 1].key if number else ""
        behind = tuple(each.key for each in tokens[number + 1 : number + 3])
        if token.kind is not Kind.WORD or token.key not in _TIMES or before in (".", "AS"):
            continue
        if behind == ("(", ")"):
            yield token.start, tokens[number + 2].end, _TIMES[token.key]
        elif token.key in _BARE and behind[:1] != ("(",):
            yield token.start, token.end, _TIMES[token.key]
