"""What happens when the data of a source changes is what the table in docs/schema-changes.md says, for each format.

The table is `RESULTS` in tests/support/drift.py; `python -m tests.tools.make_drift` writes it into the page.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyspark.sql import SparkSession

from sqlstream.project.configuration.columns import fields_of
from sqlstream.project.formats.orc_types import misread_fields
from sqlstream.project.types.data_types import Struct, read_json_schema
from sqlstream.project.values import SourceTable
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.reading.sources import Readers
from sqlstream.spark.secrets import Secrets
from tests.support.drift import COLUMNS, DRIFTS, FORMATS, NESTED, RESULTS, Drift, as_csv, as_json
from tests.support.loading_cases import load_good

CASES = dict(enumerate(DRIFTS, start=1))


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
def test_changes_follow_the_table(form: str, spark: SparkSession, tmp_path: Path) -> None:
    """Each change gives what the table says."""
    found = _of_text(spark, tmp_path, form) if form in ("JSON", "CSV") else _of_columns(spark, tmp_path, form)

    at = FORMATS.index(form)
    assert found == {name: results[at] for name, results in RESULTS.items() if results[at]}


def _of_text(spark: SparkSession, root: Path, form: str) -> dict[str, str]:
    """Returns what happens in a format of text: all records are in one source."""
    (root / "in").mkdir()
    for number, name in CASES.items():
        drift = DRIFTS[name]
        if form == "JSON":
            (root / f"in/{number}.json").write_text(as_json(drift, number))
        elif RESULTS[name][FORMATS.index(form)]:
            (root / f"in/{number}.csv").write_text(as_csv(drift, number))
    keys = "schema_changes: rescue, on_corrupt: quarantine, quarantine_sink: lake"
    source, corrupt = _declare(root, form, f"{keys}, options: {{header: true}}" if form == "CSV" else keys)
    readers = Readers(spark, Secrets({}), root, counts=False)
    rows = {row["id"]: row.asDict(recursive=True) for row in readers.open_table(source).collect()}
    reasons = {int(Path(row["file"]).stem): row["reason"] for row in readers.open_table(corrupt).collect()}
    base = dict(rows[1])
    assert not rows.keys() & reasons.keys()
    outcomes = {number: _outcome(base, row) for number, row in rows.items()} | dict.fromkeys(reasons, "corrupt")
    return {CASES[number]: outcome for number, outcome in outcomes.items()}


def _of_columns(spark: SparkSession, root: Path, form: str) -> dict[str, str]:
    """Returns what happens in a format with types: each record is a source, because an error ends the query."""
    found: dict[str, str] = {}
    base: dict[str, Any] = {}
    for number, name in CASES.items():
        folder = root / str(number)
        (folder / "in").mkdir(parents=True)
        if not RESULTS[name][FORMATS.index(form)]:
            continue
        (orc.write_table if form == "ORC" else pq.write_table)(_table(DRIFTS[name]), folder / "in/a")
        (source,) = _declare(folder, form, "tags: []")
        try:
            (row,) = Readers(spark, Secrets({}), folder, counts=False).open_table(source).collect()
        except SPARK_ERRORS:
            outcome = "ends the query"
        else:
            base = base or row.asDict(recursive=True)
            outcome = _outcome(base, row.asDict(recursive=True))
        is_refused = form == "ORC" and any(_misread(spark, folder / "in", source))
        found[name] = f"refused; later {outcome}" if is_refused else outcome
    return found


def _misread(spark: SparkSession, folder: Path, source: SourceTable) -> Iterator[object]:
    """Returns the columns of an ORC file whose types a query refuses when it starts."""
    stored = read_json_schema(spark.read.orc(str(folder)).schema.json())
    assert isinstance(stored, Struct)
    return misread_fields(stored.fields, fields_of(source.spark_schema))


def _declare(root: Path, form: str, keys: str) -> tuple[SourceTable, ...]:
    columns = COLUMNS if form == "CSV" else f"{COLUMNS}, {NESTED}"
    required = "" if form in ("Parquet", "ORC") else ", columns: [{name: need, required: true}]"
    table = f"{{name: rows, format: {form.lower()}, path: in, schema: '{columns}, need string'{required}, {keys}}}"
    files = {
        "sources.yml": f"sources: [{{name: made, tables: [{table}]}}]\n",
        "sinks.yml": "sinks: [{name: lake, format: parquet, path: out}]\n",
    }
    return load_good(root, files).sources


def _outcome(base: dict[str, Any], row: dict[str, Any]) -> str:
    """Returns how a row differs from the one without a change."""
    rescued = json.loads(row.pop("_rescued_data", None) or "{}")
    rescued.pop("_file_path", None)
    changed = [
        f"`{name}` is {'null' if value is None else json.dumps(value, default=str)}"
        for name, value in row.items()
        if name != "id" and value != base[name]
    ]
    new = [f"new field {json.dumps(rescued)}"] if rescued else []
    return ", ".join([*changed, *new]) or "the same row"


def _table(drift: Drift) -> pa.Table:
    row = drift.row()
    return pa.table({name: pa.array([value], _type(kind)) for name, (value, kind) in row.items()})


def _type(text: str) -> pa.DataType:
    if text.startswith("decimal128"):
        return pa.decimal128(*map(int, text[len("decimal128(") : -1].split(",")))
    if text.startswith("list<"):
        return pa.list_(_type(text[len("list<") : -1]))
    if text.startswith("struct<"):
        return pa.struct([_field(part) for part in _parts(text[len("struct<") : -1])])
    if text == "item":
        return _type("struct<sku: string, parts: list<struct<no: int32>>>")
    return pa.timestamp("us", "UTC") if text == "timestamp(us)" else getattr(pa, text.replace("bool", "bool_"))()


def _field(text: str) -> pa.Field:
    name, _, kind = text.strip().partition(": ")
    return pa.field(name, _type(kind))


def _parts(text: str) -> list[str]:
    parts, depth = [""], 0
    for character in text:
        depth += {"<": 1, ">": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts
