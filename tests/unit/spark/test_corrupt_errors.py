"""What is said about a record that Spark cannot read: the file may be wrong, or what its source declares."""

from __future__ import annotations

import pytest

from sqlstream.location import Location, Place
from sqlstream.project.values import Schema, SourceTable
from sqlstream.spark.reading.corrupt_errors import CorruptRecord, corrupt_record_finding
from sqlstream.spark.secrets import Secrets


def source(name: str, path: str, ddl: str = "id int, at string, temp int", **options: object) -> SourceTable:
    """A CSV table at an absolute path."""
    return SourceTable(
        "climate",
        name,
        "csv",
        path,
        Schema(Location("models/_sources.yml", 9, 18), ddl=ddl),
        "stream",
        options,  # type: ignore[arg-type]  # only their names count
        None,
        (),
        "",
        (),
        {},
        Location("models/_sources.yml", 7, 15),
    )


def fix(values: str, reason: str, *tables: SourceTable, file: str = "/data/in/1.csv") -> str:
    """The fix of the finding for a record."""
    record = CorruptRecord(file, values, reason)
    return corrupt_record_finding(record, "it", Place(Location("models/a.sql")), Secrets({}), tables).fix


@pytest.mark.parametrize("path", ["/data/in", "/data/in/1.csv", "/data/i*/", "/data/{in,out}"])
def test_the_declaration_may_be_wrong_and_not_the_file(path: str) -> None:
    """Where one source has the file and one column has no value, both are named."""
    assert fix("[61,today,null]", 'For input string: "27.9"', source("days", path), source("other", "/data/in2")) == (
        "fix the file; if the file is correct, fix the type of the column `temp` in models/_sources.yml:9:18, "
        "or set on_corrupt: drop or quarantine in the source; then run again"
    )


@pytest.mark.parametrize("values", ["[61,to,day,null]", "[null,today,null]", "[61]"])
def test_a_column_is_named_only_where_it_is_certain(values: str) -> None:
    """A text may have a comma, several values may be missing, and Spark may have read some columns alone."""
    assert "fix the column's type in models/_sources.yml:9:18" in fix(values, "", source("days", "/data/in"))


def test_no_declaration_is_named_where_the_file_may_be_of_several_sources() -> None:
    """The two have the same folder."""
    said = fix("[61,today,null]", "", source("days", "/data/in"), source("hours", "/data"))

    assert said.startswith("fix the file, or the type of the column in the source, or set on_corrupt")


def test_files_behind_a_uri_are_found() -> None:
    """Spark spells the scheme with two slashes, and paths are compared in one spelling."""
    assert "`temp`" in fix("[1,a,null]", "", source("days", "s3a:/lake/in"), file="s3a://lake/in/1.csv")


def test_a_header_that_is_read_as_a_record_is_recognized() -> None:
    """The value that is no number is the name of a column, and nothing says that files have a header."""
    reason, days = 'For input string: "id"', "source `climate.days` at models/_sources.yml:7:15"

    assert fix("[null,at,null]", reason, source("days", "/data/in")).startswith(
        f"set the option header: true of {days}"
    )
    assert "header" not in fix("[null,at,null]", reason, source("days", "/data/in", header=True))
