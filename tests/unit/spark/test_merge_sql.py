"""The MERGE of a batch into a table."""

from __future__ import annotations

from sqlstream.spark.writing.table_formats.merging import merge_sql


def test_only_columns_of_the_query_are_updated_and_nulls_match() -> None:
    """Names are quoted, keys take the letter case of the table, and a deleting row without a match adds nothing."""
    sql = merge_sql("t", "batch", ["Id", "a b", "extra"], ["ID"], ["id", "a b"])

    insert = "INSERT (`Id`, `a b`, `extra`) VALUES (source.`Id`, source.`a b`, source.`extra`)"
    assert sql.splitlines() == [
        "MERGE INTO t AS target USING batch AS source ON target.`Id` <=> source.`Id`",
        "WHEN MATCHED AND source.__sqlstream_deletes THEN DELETE",
        "WHEN MATCHED THEN UPDATE SET `Id` = source.`Id`, `a b` = source.`a b`",
        f"WHEN NOT MATCHED AND NOT source.__sqlstream_deletes THEN {insert}",
    ]


def test_a_row_with_a_higher_sequence_stays() -> None:
    """With `sequence_by`, a row of the batch updates or deletes only a row that is not newer."""
    lines = merge_sql("t", "batch", ["id", "at", "n"], ["id"], ["id", "at", "n"], ["at", "n"]).splitlines()

    later = "struct(source.`at`, source.`n`) >= struct(target.`at`, target.`n`)"
    assert lines[1] == f"WHEN MATCHED AND source.__sqlstream_deletes AND {later} THEN DELETE"
    assert lines[2].startswith(f"WHEN MATCHED AND {later} THEN UPDATE SET ")
