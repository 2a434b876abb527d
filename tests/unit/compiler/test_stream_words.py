"""STREAM before a relation: the pairs in fixtures/stream_words."""

from __future__ import annotations

import pytest
from sql_cases import SqlCase, read_cases

from sqlstream.compiler.rewrite.sql import drop_stream_words
from sqlstream.compiler.sql.edits import apply_edits
from sqlstream.compiler.sql.sql_text import read_sql


@pytest.mark.parametrize("case", read_cases("stream_words"), ids=lambda case: case.name)
def test_the_word_before_a_stream_is_dropped(case: SqlCase) -> None:
    """Of the relations, `x` alone is a stream of the project."""
    edits = drop_stream_words(read_sql(case.before), {"x"})

    assert apply_edits(case.before, edits).text == case.after
