"""The finding for a corrupt record: the file or the declaration of its source can be wrong."""

from __future__ import annotations

import pytest

from sqlstream.location import Location, Place
from sqlstream.project.configuration.columns import Schema
from sqlstream.project.values import SourceTable
from sqlstream.spark.reading.corrupt_errors import CorruptRecord, corrupt_record_finding
from sqlstream.spark.secrets import Secrets


def source(name: str, path: str, ddl: str = "id int, at string, temp int", **options: object) -> SourceTable:
    """Returns a CSV table at an absolute path."""
    return SourceTable(
        source="climate",
        name=name,
        format="csv",
        path=path,
        spark_schema=Schema(Location("models/_sources.yml", 9, 18), ddl=ddl),
        options=options,
        location=Location("models/_sources.yml", 7, 15),
    )


def fix(values: str, reason: str, *tables: SourceTable, file: str = "/data/in/1.csv") -> str:
    """Returns the fix of the finding for a record."""
    record = CorruptRecord(file, values, reason)
    return corrupt_record_finding(record, "it", Place(Location("models/a.sql")), Secrets({}), tables).fix


@pytest.mark.parametrize("path", ["/data/in", "/data/in/1.csv", "/data/i*/", "/data/{in,out}"])
def test_the_fix_names_the_file_and_the_declared_column(path: str) -> None:
    """If one source contains the file and one column has no value, the fix names both."""
    assert fix("[61,today,null]", 'For input string: "27.9"', source("days", path), source("other", "/data/in2")) == (
        "fix the file; if the file is correct, fix the type of the column `temp` in models/_sources.yml:9:18, "
        "or set on_corrupt: drop or quarantine in the source; then run again"
    )


@pytest.mark.parametrize("values", ["[61,to,day,null]", "[null,today,null]", "[61]"])
def test_the_fix_names_a_column_only_if_it_is_certain(values: str) -> None:
    """If text has commas, or several values are missing, the fix names no column."""
    assert "fix the column's type in models/_sources.yml:9:18" in fix(values, "", source("days", "/data/in"))


def test_the_fix_names_no_declaration_if_several_sources_match() -> None:
    """If two sources have the same folder, the fix names neither declaration."""
    said = fix("[61,today,null]", "", source("days", "/data/in"), source("hours", "/data"))

    assert said.startswith("fix the file, or the type of the column in the source, or set on_corrupt")


def test_files_behind_a_uri_are_found() -> None:
    """A file and its source match even if Spark writes the URI with other slashes."""
    assert "`temp`" in fix("[1,a,null]", "", source("days", "s3a:/lake/in"), file="s3a://lake/in/1.csv")


def test_a_header_line_read_as_a_record_is_recognized() -> None:
    """If the invalid number is the name of a column, the fix is to set the option header."""
    reason, days = 'For input string: "id"', "source `climate.days` at models/_sources.yml:7:15"

    assert fix("[null,at,null]", reason, source("days", "/data/in")).startswith(
        f"set the option header: true of {days}"
    )
    assert "header" not in fix("[null,at,null]", reason, source("days", "/data/in", header=True))
