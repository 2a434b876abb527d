"""Columns that sinks of each format require."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream import FindingsError, ProjectRequest, compile_models

FILES = {
    "project.yml": "name: shop\ntargets:\n  local: {master: local, storage: store}\ndefault_target: local\n",
    "sources.yml": """sources:
  - name: shop
    tables:
      - {name: orders, format: json, path: orders, schema: "id int, name string, tags array<string>, m map<string,int>"}
""",
    "sinks.yml": """sinks:
  - {name: bus, format: kafka, options: {topic: orders, kafka.bootstrap.servers: 'kafka:9092'}}
  - {name: raw, format: kafka, value_format: raw, options: {topic: t, kafka.bootstrap.servers: 'kafka:9092'}}
  - {name: made, format: kafka, key: ID, headers: [name], options: {topic: t, kafka.bootstrap.servers: 'kafka:9092'}}
  - {name: buses, format: kafka, options: {kafka.bootstrap.servers: 'kafka:9092'}}
  - {name: lines, format: text, path: lines}
  - {name: lake, format: parquet, path: lake}
  - {name: days, format: json, path: days, partition_by: [tags]}
  - {name: rows, format: xml, path: rows, options: {rowTag: row}}
""",
}


def codes(folder: Path, sink: str, columns: str) -> list[str]:
    """Returns the error codes of a model that writes `columns` to `sink`."""
    texts = {
        **FILES,
        "models/asked.sql": f"{{{{ config(sink='{sink}') }}}} select {columns} from {{{{ source('shop', 'orders') }}}}",
    }
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    try:
        compile_models(ProjectRequest(folder))
    except FindingsError as error:
        return [finding.code for finding in error.findings if finding.is_error]
    return []


@pytest.mark.parametrize(
    ("sink", "columns"),
    [
        ("bus", "name as value"),
        ("bus", "cast(id as string) as key, to_json(struct(*)) as value, 1 as partition"),
        ("bus", "id"),
        ("bus", "id as value, tags as partition"),
        ("made", "id, name, tags"),
        ("made", "id, array(struct('a' as key, encode(name, 'UTF-8') as value)) as name"),
        ("buses", "name as value, 'orders' as topic"),
        ("buses", "id, 'orders' as topic"),
        ("lines", "name"),
        ("lake", "id, tags, m, interval 1 day as span"),
        ("rows", "id"),
    ],
)
def test_valid_columns_have_no_error(tmp_path: Path, sink: str, columns: str) -> None:
    """Columns with the names and types that the sink requires give no error."""
    assert codes(tmp_path, sink, columns) == []


@pytest.mark.parametrize(
    ("sink", "columns", "expected"),
    [
        ("raw", "id", ["sink-schema"]),
        ("raw", "id as value", ["sink-schema"]),
        ("made", "name as value", ["unknown-column", "unknown-column"]),
        ("made", "id, tags as name", ["sink-schema"]),
        ("bus", "id, name as ID", ["sink-schema"]),
        ("buses", "id", ["sink-schema"]),
        ("buses", "id, id as topic", ["sink-schema"]),
        ("bus", "name as value, id as key, id as topic", ["sink-schema", "sink-schema"]),
        ("buses", "name as value", ["sink-schema"]),
        ("lines", "id", ["sink-schema"]),
        ("lines", "name, name as other", ["sink-schema"]),
        ("lake", "id, array(make_interval(1)) as spans", ["sink-schema"]),
        ("lake", "id, struct() as nothing", ["sink-schema"]),
        ("lake", "id, time '12:00:00' as clock", ["sink-schema"]),
        ("days", "id, tags", ["partition-column"]),
    ],
)
def test_invalid_columns_have_an_error(tmp_path: Path, sink: str, columns: str, expected: list[str]) -> None:
    """Each missing column, wrong type or extra column gives one error."""
    assert codes(tmp_path, sink, columns) == expected
