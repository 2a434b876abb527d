"""What sinks ask of a model's columns, by their formats."""

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
  - {name: buses, format: kafka, options: {kafka.bootstrap.servers: 'kafka:9092'}}
  - {name: lines, format: text, path: lines}
  - {name: lake, format: parquet, path: lake}
  - {name: days, format: json, path: days, partition_by: [tags]}
  - {name: rows, format: xml, path: rows, options: {rowTag: row}}
""",
}


def codes(folder: Path, sink: str, columns: str) -> list[str]:
    """Returns the codes of the errors of a model that writes `columns` into `sink`."""
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
        ("buses", "name as value, 'orders' as topic"),
        ("lines", "name"),
        ("lake", "id, tags, m, interval 1 day as span"),
        ("rows", "id"),
    ],
)
def test_what_a_sink_takes_has_no_finding(tmp_path: Path, sink: str, columns: str) -> None:
    """Columns of the right names and types go through."""
    assert codes(tmp_path, sink, columns) == []


@pytest.mark.parametrize(
    ("sink", "columns", "expected"),
    [
        ("bus", "id", ["sink-schema"]),
        ("bus", "id as value", ["sink-schema"]),
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
def test_what_a_sink_does_not_take_is_found(tmp_path: Path, sink: str, columns: str, expected: list[str]) -> None:
    """A missing column, a wrong type, or a column too many has one finding each."""
    assert codes(tmp_path, sink, columns) == expected
