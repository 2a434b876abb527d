"""Naming second references to the same view, with the cases in fixtures/second_references."""

from __future__ import annotations

import pytest

from sqlstream.compiler.rewrite.sql import Occurrence, name_second_references
from sqlstream.compiler.rewrite.watermarks import place_watermarks
from sqlstream.compiler.sql.edits import apply_edits
from sqlstream.compiler.sql.sql_text import read_sql
from tests.support.sql_cases import SqlCase, read_cases


@pytest.mark.parametrize("case", read_cases("second_references"), ids=lambda case: case.name)
def test_name_second_references(case: SqlCase) -> None:
    """Further references to `x` get the names given in the case, in order."""
    edits, occurrences = name_second_references(read_sql(case.before), {"x"})
    assert apply_edits(case.before, edits).text == case.after
    assert ", ".join(occurrence.name_in_text for occurrence in occurrences) == case.reads


def test_taken_names_are_skipped() -> None:
    """A new name never equals the name of another view, in any letter case."""
    sql = "select 1 from Orders a, orders b, orders c"
    edits, occurrences = name_second_references(read_sql(sql), {"orders"}, {"ORDERS__2"})
    assert apply_edits(sql, edits).text == "select 1 from Orders a, orders__3 b, orders__4 c"
    assert occurrences == (
        Occurrence("orders", "orders"),
        Occurrence("orders", "orders__3"),
        Occurrence("orders", "orders__4"),
    )


def test_each_view_has_its_own_numbering() -> None:
    """Each view has its own numbering, and only the given views are renamed."""
    sql = "select 1 from a, b, c, a a2, c c2, b b2"
    edits, occurrences = name_second_references(read_sql(sql), {"a", "b"})
    assert apply_edits(sql, edits).text == "select 1 from a, b, c, a__2 a2, c c2, b__2 b2"
    assert [occurrence.name_in_text for occurrence in occurrences] == ["a", "b", "a__2", "b__2"]


def test_edits_of_both_passes_can_be_combined() -> None:
    """A watermark clause and an alias at the same position are inserted in the order of Spark's grammar."""
    sql = "select /*+ WATERMARK(b.ts, '1 day') */ 1 from b union all select /*+ WATERMARK(b.ts, '1 day') */ 1 from b"
    text = read_sql(sql)
    edits = (*place_watermarks(text)[0], *name_second_references(text, {"b"})[0])
    clause = "WATERMARK ts DELAY OF INTERVAL 1 DAY"
    assert apply_edits(sql, edits).text == f"select 1 from b {clause} union all select 1 from b__2 {clause} AS b"
