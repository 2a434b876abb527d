"""Whether a sink's format can store changed columns beside the existing rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstream.project.formats.file_options import CSV, layout_options
from sqlstream.state.ledger import OutputColumn, QueryIdentity
from sqlstream.state.output_columns import column_changes, layout_changes
from tests.support.identities import STATEFUL


def query(columns: str, sink_format: str = "parquet", partition_by: tuple[str, ...] = ()) -> QueryIdentity:
    """Returns a query that writes `columns`, such as `id int, city string`."""
    pairs = (column.strip().split(" ", 1) for column in columns.split(", "))
    sql = f"select {', '.join(column.strip().split(' ', 1)[0] for column in columns.split(', '))} from clean"
    return replace(
        STATEFUL,
        models={"clean": "select 1", "per_hour": sql},
        columns=tuple(OutputColumn(*pair) for pair in pairs),
        sink_format=sink_format,
        partition_by=partition_by,
    )


@pytest.mark.parametrize(
    ("sink_format", "before", "after"),
    [
        ("parquet", "id int, qty int", "id int, qty string"),
        ("orc", "id int, qty int", "id int, qty bigint"),
        ("parquet", "id int, qty decimal(10,2)", "id int, qty decimal(12,2)"),
        ("parquet", "id int, qty int", "id int"),
        ("json", "id int, qty int", "id int, quantity int"),
        ("json", "id int, qty int", "id int, QTY int"),
        ("csv", "id int, qty int", "qty int, id int"),
        ("csv", "id int, qty int", "id int, qty int, more int"),
        ("parquet", "id int, at struct<a:int>", "id int, at struct<a:string>"),
        ("parquet", "id int, at array<int>", "id int, at array<bigint>"),
    ],
)
def test_changes_that_readers_cannot_read_are_refused(sink_format: str, before: str, after: str) -> None:
    """Each change that readers cannot read is found, with its fix."""
    (change,) = [
        change for change in column_changes(query(before, sink_format), query(after, sink_format)) if change.undo
    ]

    assert change.undo


@pytest.mark.parametrize(
    ("sink_format", "before", "after", "changes"),
    [
        ("parquet", "id int", "id int, qty int", 1),
        ("parquet", "id int, qty int", "qty int, id int", 0),
        ("parquet", "id int, qty int", "id int, QTY int", 0),
        ("parquet", "id int, at struct<a:int>", "id int, at struct<a:int,b:int>", 1),
        ("json", "id int", "id string", 1),
        ("csv", "id int", "id string", 0),
        ("kafka", "value string", "value binary", 0),
        ("noop", "id int", "id string", 0),
    ],
)
def test_changes_that_the_format_can_store_are_accepted(
    sink_format: str, before: str, after: str, changes: int
) -> None:
    """New columns, and changes without an effect for readers, are accepted; visible changes are reported."""
    found = column_changes(query(before, sink_format), query(after, sink_format))

    assert [change.undo for change in found] == [None] * changes


@pytest.mark.parametrize("sink_format", ["parquet", "json", "csv"])
def test_other_partitions_are_refused(sink_format: str) -> None:
    """Spark reads a folder with the partitions of one part, and silently skips the other part."""
    old, new = query("id int, day date", sink_format), query("id int, day date", sink_format, ("day",))

    (change,) = column_changes(old, new)

    assert change.undo == "set partition_by back to []"


def test_the_values_of_a_partition_are_text() -> None:
    """A partition column can change its type, because its values are text in folder names."""
    old, new = (query(f"id int, day {kind}", "parquet", ("day",)) for kind in ("date", "string"))

    assert column_changes(old, new) == ()


def test_a_ledger_without_columns_has_no_changes() -> None:
    """A ledger of an early sqlstream without columns has no changes."""
    assert column_changes(replace(query("id int"), columns=None), query("id string")) == ()


def test_the_location_is_the_columns_name() -> None:
    """The offset of a change is that of the column's name in the outermost select list."""
    old, new = query("id int, qty int"), query("id int, qty string")

    (change,) = column_changes(old, new)

    assert change.offset == new.models["per_hour"].index("qty")


def test_a_renamed_column_is_distinguished_from_a_removed_one() -> None:
    """A new column of the same type can be the old one, and so can the only one of another type."""
    renamed, gone = (
        next(change for change in column_changes(query("id int, qty int"), query(after)) if change.undo)
        for after in ("id int, quantity int", "id int")
    )

    assert "quantity" in renamed.text
    assert renamed.undo == (
        "select `quantity` under the old name, as qty; or, if it is another column, keep it: cast(null as int) as qty"
    )
    assert gone.undo == "keep it: cast(null as int) as qty"
    pairs = column_changes(query("id int, a int, b string, c int"), query("id int, x string, y int, z int"))
    assert [change.column for change in pairs if change.undo] == ["y", "x", "z"]
    retyped = column_changes(query("id int, qty int"), query("id int, quantity string"))
    assert retyped[0].column == "quantity"


@pytest.mark.parametrize(
    ("before", "after", "is_changed"),
    [
        ({}, {"sep": ","}, False),
        ({}, {"delimiter": ";"}, True),
        ({"delimiter": ";"}, {"sep": ";", "delimiter": "|"}, False),
        ({"sep": "\\t"}, {"SEP": "\t"}, False),
        ({}, {"header": "TRUE"}, True),
        ({"compression": "gzip"}, {"quoteAll": "true"}, False),
        ({"encoding": "UTF-8"}, {"charset": "utf8"}, False),
        ({}, {"dateFormat": "dd.MM.yyyy"}, True),
        ({}, {"timestampFormat": "yyyy"}, False),
        ({}, {"nullValue": "-", "lineSep": "\r\n"}, True),
    ],
)
def test_files_of_text_with_other_options(before: dict[str, str], after: dict[str, str], *, is_changed: bool) -> None:
    """Options without which text is misread are a change; a stored model refuses it. A default is none, and neither is
    an option of a type that no column has, or one that a reader finds out.
    """
    columns = (OutputColumn("id", "int"), OutputColumn("day", "struct<a:date>"))
    old, new = (
        replace(STATEFUL, sink_format="csv", columns=columns, layout=layout_options(CSV, options))
        for options in (before, after)
    )
    note, stored = [*layout_changes(old, new)], [*layout_changes(old, replace(new, is_stored=True))]
    assert ([change.undo for change in note], bool(stored and stored[0].undo)) == ([None] * is_changed, is_changed)
    assert not [*layout_changes(replace(old, layout=None), new)]
    assert not [*layout_changes(old, replace(new, output_mode="complete"))]
