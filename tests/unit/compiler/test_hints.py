"""Comments that were meant as hints."""

from __future__ import annotations

import pytest

from sqlstream.compiler.sql.hints import ignored_hints
from sqlstream.compiler.sql.tokens import tokenize
from sqlstream.errors import Severity


@pytest.mark.parametrize(
    "sql",
    [
        "select /* + WATERMARK(ts, '10 minutes') */ a from x",
        "select a /* + watermark(ts, '10 minutes') */ from x",
        "select /*\n+ WATERMAK (ts, '10 minutes') */ a from x",
        "select --+ WATERMARK(ts, '10 minutes')\na from x",
        "-- + WATERMARK(ts, '10 minutes')\nselect a from x",
        "select /* + BROADCAST(x) */ a from x",
        "select --+BROADCAST(x)\na from x",
    ],
)
def test_a_comment_that_was_meant_as_a_hint_is_a_warning(sql: str) -> None:
    """At the comment's first character."""
    (problem,) = ignored_hints(sql, tokenize(sql))

    assert (problem.code, problem.severity) == ("unknown-hint", Severity.WARNING)
    assert sql[problem.offset :].startswith(("/*", "--"))


@pytest.mark.parametrize(
    "sql",
    [
        "select /*+ WATERMARK(ts, '10 minutes') */ a from x",
        "select a /* + coalesce(b, 0) */ from x",
        "select a -- + coalesce(b, 0)\nfrom x",
        "select /* + the watermark */ a from x",
        "select '/* + WATERMARK(ts) */' from x",
    ],
)
def test_other_comments_are_left_alone(sql: str) -> None:
    """Among them SQL that was commented out, which may begin with a plus."""
    assert list(ignored_hints(sql, tokenize(sql))) == []
