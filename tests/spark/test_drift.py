"""What happens when the data of a source changes is what the table in docs/schema-changes.md says, for each format.

The table is edited by hand: a test that fails prints what it should say.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyspark.sql import SparkSession
from pyspark.sql.functions import col

from sqlstream.app.stored.file_types import stored_type
from sqlstream.project.configuration.columns import fields_of
from sqlstream.project.formats.stored_types import READS_RIGHTLY, misread_fields
from sqlstream.project.types.data_types import Struct
from sqlstream.project.values import SourceTable
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.reading.corrupt import Counters
from sqlstream.spark.reading.messages import read_messages
from sqlstream.spark.reading.sources import Readers
from sqlstream.spark.secrets import Secrets
from tests.services.avro_bytes import avro_file, avro_schema, avro_value, framed
from tests.spark.conftest import avro_session
from tests.support.drift import COLUMNS, DRIFTS, FORMATS, NESTED, Drift, as_csv, as_json, expected
from tests.support.loading_cases import load_good

CASES = dict(enumerate(DRIFTS, start=1))
START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session that reads Avro."""
    with avro_session(tmp_path_factory.mktemp("avro")) as session:
        yield session


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
def test_changes_follow_the_table(form: str, session: SparkSession, tmp_path: Path) -> None:
    """Each change gives what the table says."""
    if form == "Kafka, Avro":
        found = _of_messages(session, tmp_path)
    else:
        found = (_of_text if form in ("JSON", "CSV") else _of_columns)(session, tmp_path, form)

    assert found == expected(form)


def _of_messages(spark: SparkSession, root: Path) -> dict[str, str]:
    """Returns what happens to messages of Avro. The schema of each is another version."""
    cases = {number: name for number, name in CASES.items() if name in expected("Kafka, Avro")}
    schemas, messages = {}, []
    for number, name in cases.items():
        table = _table(DRIFTS[name], number)
        kind = pa.struct(list(table.schema))
        schemas[number] = avro_schema(kind, "Row")
        messages.append((None, framed(number, avro_value(table.to_pylist()[0], kind)), "t", 0, number, START, 0))
    versions = [{"version": number, "id": number, "schema": schema} for number, schema in schemas.items()]
    keys = (
        "name: rows, format: kafka, value_format: avro, schema_file: row.avsc, schema_changes: rescue, "
        "options: {kafka.bootstrap.servers: b, subscribe: t}, schema_registry: {url: 'http://127.0.0.1:1', subject: rows}, "
        "columns: [{name: need, required: true}], on_corrupt: quarantine, quarantine_sink: lake"
    )
    files = {
        "row.avsc": json.dumps(schemas[1]),
        "registry/rows.json": json.dumps({"subject": "rows", "versions": versions}),
        "sources.yml": f"sources: [{{name: made, tables: [{{{keys}}}]}}]\n",
        "sinks.yml": "sinks: [{name: lake, format: parquet, path: out}]\n",
    }
    columns = (
        "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
    )
    frame = spark.createDataFrame(messages, columns)
    rows: dict[int, dict[str, Any]] = {}
    reasons: set[int] = set()
    for table in load_good(root, files).sources:
        assert table.messages is not None
        for row in read_messages(frame, table, table.messages, {}, Counters()).collect():
            if table.corrupt_of is not None:
                reasons.add(row["offset"])
            else:
                found = row.asDict(recursive=True)
                number = found.pop("_kafka_offset")
                rows[number] = found
    base = dict(rows[1])
    assert not rows.keys() & reasons
    outcomes = {number: _outcome(base, row) for number, row in rows.items()} | dict.fromkeys(reasons, "corrupt")
    return {CASES[number]: outcome for number, outcome in outcomes.items()}


def _of_text(spark: SparkSession, root: Path, form: str) -> dict[str, str]:
    """Returns what happens in a format of text: all records are in one source."""
    (root / "in").mkdir()
    for number, name in CASES.items():
        drift = DRIFTS[name]
        if form == "JSON":
            (root / f"in/{number}.json").write_text(as_json(drift, number))
        elif name in expected(form):
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
        if name not in expected(form):
            continue
        _write(_table(DRIFTS[name]), folder / "in/a", form)
        (source,) = _declare(folder, form, "tags: []")
        try:
            frame = Readers(spark, Secrets({}), folder, counts=False).open_table(source)
            (row,) = frame.withColumn("day", col("day").cast("string")).collect()  # Python has no dates after 9999
        except SPARK_ERRORS:
            outcome = "ends the query"
        else:
            base = base or row.asDict(recursive=True)
            outcome = _outcome(base, row.asDict(recursive=True))
        is_refused = source.format in READS_RIGHTLY and any(_misread(spark, folder / "in/a", source))
        found[name] = f"refused; later {outcome}" if is_refused else outcome
    return found


def _write(table: pa.Table, path: Path, form: str) -> None:
    if form == "Avro":
        kind = pa.struct(list(table.schema))
        path.write_bytes(avro_file(avro_schema(kind, "Row"), avro_value(table.to_pylist()[0], kind)))
    else:
        (orc.write_table if form == "ORC" else pq.write_table)(table, path)


def _misread(spark: SparkSession, path: Path, source: SourceTable) -> Iterator[object]:
    """Returns the columns of a file whose types a query refuses when it starts."""
    stored = stored_type(source.format, str(path), spark)
    assert isinstance(stored, Struct)
    return misread_fields(source.format, stored.fields, fields_of(source.spark_schema))


def _declare(root: Path, form: str, keys: str) -> tuple[SourceTable, ...]:
    columns = COLUMNS if form == "CSV" else f"{COLUMNS}, {NESTED}"
    required = "" if form in ("Parquet", "ORC", "Avro") else ", columns: [{name: need, required: true}]"
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
        f"`{name}` is `{json.dumps(value, default=str)}`"
        for name, value in row.items()
        if name != "id" and value != base[name]
    ]
    new = [f"new: `{json.dumps(rescued)}`"] if rescued else []
    return ", ".join([*changed, *new]) or "the same row"


def _table(drift: Drift, number: int = 1) -> pa.Table:
    row = drift.row()
    row["id"] = (number, row["id"][1])
    return pa.table({name: pa.array([value], _type(kind)) for name, (value, kind) in row.items()})


def _type(text: str) -> pa.DataType:
    if text.startswith("decimal128"):
        return pa.decimal128(*map(int, text[len("decimal128(") : -1].split(",")))
    if text.startswith("list<"):
        return pa.list_(_type(text[len("list<") : -1]))
    if text.startswith("struct<"):
        return pa.struct([_field(part) for part in _parts(text[len("struct<") : -1]) if part])
    if text == "item":
        return _type("struct<sku: string, parts: list<struct<no: int32>>>")
    if text.startswith("timestamp"):
        return pa.timestamp(text[len("timestamp(") : -1], "UTC")
    return getattr(pa, text.replace("bool", "bool_"))()


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
