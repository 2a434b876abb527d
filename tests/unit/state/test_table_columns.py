"""Which columns of a query a table of Delta Lake or Iceberg can hold."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstream.state.ledger import OutputColumn, QueryIdentity
from sqlstream.state.output_columns import table_column_problems
from tests.support.identities import STATEFUL


def query(*partition_by: str, **columns: str) -> QueryIdentity:
    """Returns a query with these columns."""
    written = tuple(OutputColumn(name, type_) for name, type_ in columns.items())
    return replace(STATEFUL, sink_format="delta", columns=written, partition_by=partition_by)


@pytest.mark.parametrize(
    ("stored", "given"),
    [
        ("int", "int"),
        ("bigint", "tinyint"),
        ("double", "float"),
        ("string", "varchar(3)"),
        ("string", "void"),
        ("decimal(12,2)", "decimal(10,2)"),
        ("array<struct<a:bigint>>", "array<struct<A:int>>"),
        ("map<string,int>", "map<string,int>"),
    ],
)
def test_a_table_holds_narrower_types(stored: str, given: str) -> None:
    """All values of the query's type fit."""
    assert table_column_problems("t", [OutputColumn("a", stored)], (), query(A=given), None) == ()


@pytest.mark.parametrize(
    ("stored", "given"),
    [
        ("int", "bigint"),
        ("int", "string"),
        ("string", "int"),
        ("float", "double"),
        ("timestamp", "timestamp_ntz"),
        ("decimal(10,2)", "decimal(10,3)"),
        ("struct<a:int>", "struct<a:int,b:int>"),
        ("array<int>", "array<string>"),
        ("struct<a:int>", "int"),
    ],
)
def test_a_table_does_not_hold_other_types(stored: str, given: str) -> None:
    """Values would be lost or changed; the fix names the table's type."""
    (problem,) = table_column_problems("t", [OutputColumn("a", stored)], (), query(a=given), None)

    assert (problem.column, problem.text) == ("a", f"column `a` is {given}, and the table has it as {stored}")
    assert f"as {stored})" in (problem.undo or "")


def test_only_a_column_that_the_model_has_got_is_added() -> None:
    """A table that somebody else made must have all columns; a run adds those that are new in the model."""
    table = [OutputColumn("a", "int")]

    (problem,) = table_column_problems("t", table, (), query(a="int", b="date"), None)
    assert problem.undo == "run ALTER TABLE t ADD COLUMNS (b date)"
    assert table_column_problems("t", table, (), query(a="int", b="date"), query(a="int")) == ()
    assert table_column_problems("t", table, (), query(a="int", b="date"), query(a="int", b="date")) == (problem,)


def test_partitions_stay_as_they_are() -> None:
    """A query without partition_by takes those of the table."""
    table = [OutputColumn("a", "int"), OutputColumn("b", "int")]

    assert table_column_problems("t", table, ("a",), query(a="int"), None) == ()
    assert table_column_problems("t", table, ("a",), query("A", a="int"), None) == ()
    (problem,) = table_column_problems("t", table, ("a",), query("b", a="int"), None)
    assert problem.text == "the table is partitioned by a, and the query by b"
    assert problem.undo == "set partition_by to [a]"


def test_columns_that_an_upsert_leaves_behind_are_problems() -> None:
    """MERGE keeps their values in updated rows; a new column of their type can be their new name."""
    table = [OutputColumn("k", "int"), OutputColumn("a", "int"), OutputColumn("more", "int")]
    old = replace(query(k="int", a="int"), unique_key=("k",))
    renamed, removed = (
        replace(query(**columns), unique_key=("k",)) for columns in ({"k": "int", "b": "int"}, {"k": "int"})
    )

    (problem,) = table_column_problems("t", table, (), renamed, old)
    assert "ALTER TABLE t RENAME COLUMN a TO b" in str(problem.undo)
    (problem,) = table_column_problems("t", table, (), removed, old)
    assert "ALTER TABLE t DROP COLUMN a" in str(problem.undo)
    assert "RENAME" not in str(problem.undo)
    kept = [OutputColumn("k", "int"), OutputColumn("b", "int")]
    assert table_column_problems("t", kept, (), renamed, old) == ()
    for harmless in (replace(removed, unique_key=()), replace(removed, output_mode="complete")):
        assert table_column_problems("t", table, (), harmless, old) == ()
    assert table_column_problems("t", table, (), removed, None) == ()
