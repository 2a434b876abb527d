"""Replaces the present time in SQL by the time of a case, because the clock of a batch query cannot be set.

Replaces calls of functions for the present time by a literal time (Spark's SQL reference, "Date and Timestamp
Functions").
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlstream.compiler.sql.tokens import TokenKind, Tokens, tokenize
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
"""The functions for the present time, and their replacements. `at` is in ms since 1970."""

_BARE = ("CURRENT_TIMESTAMP", "CURRENT_DATE", "LOCALTIMESTAMP")
"""The functions that can be called without parentheses."""


def pin_time(case: Case, milliseconds: int) -> Case:
    """Returns the case with SQL in which the present time is `milliseconds` since 1970."""
    models = {
        node: model if model.file.is_python else replace(model, sql=pin_time_in_sql(model.sql, milliseconds))
        for node, model in case.compiled.models.items()
    }
    return replace(case, compiled=replace(case.compiled, models=models), model=models[case.model.unique_id])


def pin_time_in_sql(sql: str, milliseconds: int) -> str:
    """Returns `sql` in which the present time is `milliseconds` since 1970."""
    parts, at = [], 0
    for start, end, form in _time_calls(tokenize(sql)):
        parts += [sql[at:start], form.format(at=milliseconds)]
        at = end
    return "".join([*parts, sql[at:]])


def _time_calls(tokens: Tokens) -> Iterator[tuple[int, int, str]]:
    """Yields the start and the end of each call for the present time, and its replacement."""
    for number, token in enumerate(tokens):
        before = tokens[number - 1].key if number else ""
        behind = tuple(each.key for each in tokens[number + 1 : number + 3])
        if token.kind is not TokenKind.WORD or token.key not in _TIMES or before in (".", "AS"):
            continue
        if behind == ("(", ")"):
            yield token.start, tokens[number + 2].end, _TIMES[token.key]
        elif token.key in _BARE and behind[:1] != ("(",):
            yield token.start, token.end, _TIMES[token.key]
