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
        ("struct<a:int,b:bigint>", "struct<b:int,A:int>"),
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
        ("struct<a:int,b:int>", "struct<a:int>"),
        ("map<struct<a:int>,int>", "map<struct<a:int,b:int>,int>"),
        ("map<struct<a:int,b:int>,int>", "map<struct<b:int,a:int>,int>"),
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


@pytest.mark.parametrize(
    ("stored", "given", "can_widen"),
    [
        ("int", "bigint", True),
        ("float", "double", True),
        ("decimal(10,2)", "decimal(12,2)", True),
        ("decimal(10,2)", "decimal(12,3)", False),
        ("int", "string", False),
        ("bigint", "double", False),
        ("array<int>", "array<bigint>", False),
    ],
)
def test_a_column_of_a_table_can_get_a_wider_type(stored: str, given: str, *, can_widen: bool) -> None:
    """The fix has the statement. Delta Lake has a feature for it, which the user turns on."""
    for each in ("delta", "iceberg"):
        new = replace(query(a=given), sink_format=each)
        (problem,) = table_column_problems("t", [OutputColumn("a", stored)], (), new, None)
        assert (f"ALTER TABLE t ALTER COLUMN a TYPE {given}; or cast it" in (problem.undo or "")) == can_widen
        assert ("enableTypeWidening" in (problem.undo or "")) == (can_widen and each == "delta")


@pytest.mark.parametrize(
    ("stored", "given", "path"),
    [
        ("struct<sku:string>", "struct<lot:bigint,sku:string>", "item.lot bigint"),
        ("struct<x:struct<sku:string>>", "struct<x:struct<SKU:string,`a b`:int>>", "item.x.`a b` int"),
        ("array<struct<sku:string>>", "array<struct<sku:string,lot:bigint>>", "item.element.lot bigint"),
        ("map<string,struct<sku:string>>", "map<string,struct<sku:string,lot:bigint>>", "item.value.lot bigint"),
        ("struct<sku:string>", "struct<sku:string,x:struct<lot:bigint>>", "item.x struct<lot: bigint>"),
    ],
)
def test_only_a_field_that_the_model_has_got_is_added(stored: str, given: str, path: str) -> None:
    """A field within a column is like a column. A field that the query wrote before was dropped from the table."""
    table, new, old = [OutputColumn("item", stored)], query(item=given), query(item=stored)

    (problem,) = table_column_problems("t", table, (), new, None)
    assert (problem.column, problem.undo) == ("item", f"run ALTER TABLE t ADD COLUMNS ({path})")
    assert table_column_problems("t", table, (), new, old) == ()
    assert table_column_problems("t", table, (), new, new) == (problem,)


def test_a_new_field_is_found_in_any_letter_case() -> None:
    """The run adds a field that the query has got, also if the table spells the column in another way."""
    table = [OutputColumn("Item", "struct<SKU:int>")]
    old, new = query(item="struct<sku:int>"), query(item="struct<sku:int,lot:int>")

    assert table_column_problems("t", table, (), new, old) == ()


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
