"""Removing STREAM before a relation, with the cases in fixtures/stream_words."""

from __future__ import annotations

import pytest

from sqlstream.compiler.rewrite.sql import drop_stream_words
from sqlstream.compiler.sql.edits import apply_edits
from sqlstream.compiler.sql.sql_text import read_sql
from tests.support.sql_cases import SqlCase, read_cases


@pytest.mark.parametrize("case", read_cases("stream_words"), ids=lambda case: case.name)
def test_the_word_before_a_stream_is_removed(case: SqlCase) -> None:
    """STREAM is removed before `x`, which is a stream of the project, and before no other relation."""
    edits = drop_stream_words(read_sql(case.before), {"x"})

    assert apply_edits(case.before, edits).text == case.after
