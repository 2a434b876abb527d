"""Comments that look like hints."""

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
def test_a_comment_that_looks_like_a_hint_gives_a_warning(sql: str) -> None:
    """A comment that looks like a hint gives a warning at the comment's start."""
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
def test_other_comments_give_no_warning(sql: str) -> None:
    """Real hints and other comments give no warning, even commented-out SQL that starts with a plus."""
    assert list(ignored_hints(sql, tokenize(sql))) == []
