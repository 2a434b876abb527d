"""A model can read every source format that comes with Spark, with the options that choose its files."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqlstream.errors import FindingsError
from sqlstream.state.runs.progress import BatchProgress
from tests.spark.conftest import ProjectFolder

Rows = Callable[[Path], list[dict[str, Any]]]

XML = "<rows><row><id>1</id><name>a</name></row><row><id>2</id><name>b</name></row></rows>"


def declare(folder: ProjectFolder, table: str, columns: str = "*", sink: str = "lake") -> None:
    """Adds a source to the project, and a model that reads it."""
    folder.write(
        {
            "models/_made.yml": f"sources:\n  - name: made\n    tables:\n      - {{name: rows, {table}}}\n",
            "models/out.sql": f"{{{{ config(sink='{sink}') }}}} select {columns} from {{{{ source('made', 'rows') }}}}",
        }
    )


def test_xml_is_read_with_its_row_tag(folder: ProjectFolder, read_parquet: Rows) -> None:
    """Each element of an XML file is a row."""
    folder.write({"in/rows/0.xml": XML})
    declare(folder, "format: xml, schema: 'id int, name string', path: in/rows, options: {rowTag: row}")

    assert folder.result("out").rows_in == 2

    assert read_parquet(folder.root / "store/out") == [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]


def test_binary_files_need_no_schema(folder: ProjectFolder, read_parquet: Rows) -> None:
    """A stream of binary files starts with its fixed columns declared; folder names add no columns."""
    folder.write({"in/rows/day=2024-01-01/a.bin": "hello"})
    declare(folder, "format: binaryFile, path: in/rows")

    folder.result("out")

    (row,) = read_parquet(folder.root / "store/out")
    assert set(row) == {"path", "modificationTime", "length", "content"}
    assert (row["length"], row["content"]) == (5, b"hello")


def test_text_has_one_column_unless_more_are_declared(folder: ProjectFolder, read_parquet: Rows) -> None:
    """Text has one column; folder names add columns only to a declared schema."""
    folder.write({"in/rows/day=2024-01-01/a.txt": "one\ntwo\n"})
    declare(folder, "format: text, path: in/rows")
    folder.result("out")
    assert [set(row) for row in read_parquet(folder.root / "store/out")] == [{"value"}, {"value"}]

    declare(folder, "format: text, path: in/rows, schema: 'line string, day date'")
    folder.result("out", full_refresh=True)

    assert {row["line"] for row in read_parquet(folder.root / "store/out.v2")} == {"one", "two"}


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        ("format: rate-micro-batch, options: {rowsPerBatch: 3}", "timestamp, value"),
        ("format: rate, options: {rowsPerSecond: 50, numPartitions: 1}", "timestamp, value"),
    ],
)
def test_generators_give_rows(folder: ProjectFolder, table: str, columns: str) -> None:
    """The compiler knows the two columns of the generator formats."""
    declare(folder, table, columns)

    outcome = folder.run_until(lambda events: isinstance(events[-1], BatchProgress) and bool(events[-1].rows_out))

    assert outcome.succeeded
    assert (outcome.results[0].rows_out or 0) > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "names", "batches"),
    [
        ("maxFilesPerTrigger: 1", {"old", "new", "deep", "other"}, 4),
        ("maxFilesPerTrigger: 1, latestFirst: true, maxFileAge: 365d", {"old", "new", "deep", "other"}, 4),
        ("pathGlobFilter: '*.json'", {"old", "new", "deep"}, 1),
        ("recursiveFileLookup: true", {"old", "new", "deep", "other"}, 1),
    ],
)
def test_options_choose_the_files(
    folder: ProjectFolder, read_parquet: Rows, options: str, names: set[str], batches: int
) -> None:
    """Options choose which files are read, and how many per batch."""
    write_files(folder)
    declare(folder, f"format: json, schema: name string, path: in/rows, options: {{{options}}}")

    result = folder.result("out")

    assert {row["name"] for row in read_parquet(folder.root / "store/out")} == names
    assert result.batches == batches


def test_a_pattern_chooses_the_files(folder: ProjectFolder, read_parquet: Rows) -> None:
    """A path may contain wildcards."""
    write_files(folder)
    declare(folder, "format: json, schema: name string, path: 'in/rows/*/{old,new}.json'")

    folder.result("out")

    assert {row["name"] for row in read_parquet(folder.root / "store/out")} == {"old", "new"}


def test_files_are_archived_after_reading(folder: ProjectFolder, read_parquet: Rows) -> None:
    """`cleanSource: archive` moves a batch's files after the next batch was read, and no file is read twice."""
    write_files(folder)
    archive = folder.root / "archive"
    declare(
        folder,
        "format: json, schema: name string, path: in/rows, options: {maxFilesPerTrigger: 1, cleanSource: archive, "
        f"sourceArchiveDir: '{archive}'}}",
    )

    folder.result("out")
    folder.rows("in/rows/part=a/late.json", [{"name": "late"}])
    folder.result("out")

    assert any(archive.rglob("*.json"))
    read = [row["name"] for row in read_parquet(folder.root / "store/out")]
    assert sorted(read) == ["deep", "late", "new", "old", "other"]


def write_files(folder: ProjectFolder) -> None:
    """Writes four files of one row each with distinct times; one of them has another extension."""
    for age, name in enumerate(["part=a/old.json", "part=a/new.json", "part=b/deep.json", "part=b/other.txt"]):
        path = folder.root / "in/rows" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"name": path.stem}) + "\n")
        at = time.time() - 3600 + age
        os.utime(path, (at, at))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["xml", "json", "csv", "text"])
def test_static_tables_are_read(orders: ProjectFolder, read_parquet: Rows, name: str) -> None:
    """`mode: batch` joins a static table of each format with a stream."""
    files = {"xml": XML, "json": '{"id": 1}\n{"id": 2}\n', "csv": "1\n2\n", "text": "1\n2\n"}
    orders.write({"in/rows/0": files[name]})
    schema = "" if name == "text" else ", schema: id int"
    options = ", options: {rowTag: row}" if name == "xml" else ""
    declare(orders, f"format: {name}, mode: batch, path: in/rows{schema}{options}")
    key = "cast(value as int)" if name == "text" else "id"
    orders.write(
        {
            "models/out.sql": "{{ config(sink='lake') }} select o.id from {{ source('shop', 'orders') }} o "
            f"join (select {key} as id from {{{{ source('made', 'rows') }}}}) r on r.id = o.id"
        }
    )

    orders.result("out")

    assert sorted(row["id"] for row in read_parquet(orders.root / "store/out")) == [1, 2]


@pytest.mark.parametrize(
    ("table", "code"),
    [
        ("format: rate, schema: value bigint", "fixed-schema"),
        ("format: rate-micro-batch", "missing-key"),
        ("format: xml, schema: id int, path: in/rows", "missing-key"),
        ("format: binaryFile, path: in/rows, schema: 'path string'", "fixed-schema"),
        ("format: text, path: in/rows, options: {modifiedAfter: '2000-01-01T00:00:00'}", "option-value"),
    ],
)
def test_late_refusals_of_spark_are_found_early(folder: ProjectFolder, table: str, code: str) -> None:
    """Problems that Spark would report late are found before anything starts."""
    declare(folder, table)

    with pytest.raises(FindingsError) as caught:
        folder.run("out")

    assert code in {finding.code for finding in caught.value.findings}
