"""`schema_changes` and `required` of a source table: the column that they add, and where they cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream.project.configuration.columns import fields_of
from tests.support.loading_cases import load, load_good

KAFKA = "format: kafka, options: {kafka.bootstrap.servers: b, subscribe: t}"


CSV = "format: csv, path: in, schema: id int"


def _sources(keys: str) -> dict[str, str]:
    record = '{"type": "record", "name": "r", "fields": [{"name": "id", "type": "int"}]}'
    return {"sources.yml": f"sources: [{{name: shop, tables: [{{name: orders, {keys}}}]}}]\n", "a.avsc": record}


@pytest.mark.parametrize(
    ("keys", "rescued"),
    [
        ("format: json, path: in, schema: id int -- a comment, schema_changes: rescue", True),
        ("format: json, path: in, schema: id int, schema_changes: ignore", False),
        (f"{KAFKA}, value_format: json, schema: id int, schema_changes: rescue", True),
        (f"{KAFKA}, value_format: avro, schema_file: a.avsc, schema_changes: rescue", True),
        (f"{KAFKA}, value_format: debezium, schema: id int, schema_changes: evolve", True),
        (f"{CSV}, options: {{header: true, sep: '\\t', encoding: ISO-8859-1}}, schema_changes: rescue", True),
        (
            "format: json, path: in, schema: id int, options: {encoding: UTF-8, multiLine: false}, schema_changes: fail",
            False,
        ),
    ],
)
def test_rescue_adds_the_last_column(keys: str, rescued: bool, tmp_path: Path) -> None:
    """Only `rescue` adds a column; it is the last one."""
    (table,) = load_good(tmp_path, _sources(keys)).sources

    names = [field.name for field in fields_of(table.spark_schema)]
    assert ("_rescued_data" in names, names[-1] == "_rescued_data") == (rescued, rescued)


@pytest.mark.parametrize(
    ("keys", "where", "message"),
    [
        (
            "format: parquet, path: in, schema: id int, schema_changes: fail",
            "schema_changes",
            "sets schema_changes, but its format is `parquet`",
        ),
        ("format: avro, path: in, schema: id int, schema_changes: fail", "schema_changes", "its format is `avro`"),
        (f"{KAFKA}, value_format: text, schema_changes: fail", "schema_changes", "its format is `text`"),
        (f"{KAFKA}, schema_changes: fail", "schema_changes", "its format is `kafka`"),
        (
            f"{KAFKA}, value_format: avro, schema_file: a.avsc, schema_changes: evolve",
            "schema_changes",
            "sets schema_changes: evolve, but its messages are Avro",
        ),
        ("format: json, path: in, schema_changes: ignore", "schema_changes", "declares no columns"),
        (
            "format: json, path: in, schema: id int, options: {Multiline: true}, schema_changes: fail",
            "Multiline",
            "both schema_changes and Multiline: true",
        ),
        (
            "format: json, path: in, schema: id int, options: {mode: DROPMALFORMED}, schema_changes: fail",
            "schema_changes",
            "an option or a column handles its corrupt records",
        ),
        (
            "format: json, path: in, schema: 'id int, _Rescued_Data string', schema_changes: rescue",
            "schema_changes",
            "declares the column `_rescued_data`",
        ),
        ("format: json, path: in, schema: id int, schema_changes: evolved", "evolved", "schema_changes"),
        (f"{CSV}, options: {{sep: ';'}}, schema_changes: fail", "schema_changes", "its files have no header"),
        (f"{CSV}, options: {{Header: 'false'}}, schema_changes: fail", "Header", "its files have no header"),
        (f"{CSV}, options: {{header: true, sep: .}}, schema_changes: fail", "sep", "both schema_changes and sep: ."),
        (f"{CSV}, options: {{header: true, delimiter: '||'}}, schema_changes: fail", "delimiter", "and delimiter: ||"),
        (
            f"{CSV}, options: {{header: true, multiLine: true}}, schema_changes: fail",
            "multiLine",
            "and multiLine: true",
        ),
        (f"{CSV}, options: {{header: true, encoding: utf-16}}, schema_changes: fail", "encoding", "encoding: utf-16"),
        (f"{CSV}, options: {{header: true, enforceSchema: false}}, schema_changes: fail", "enforce", "enforceSchema"),
        (
            "format: csv, path: in, schema: 'id int, tags array<int>', options: {header: true}, schema_changes: fail",
            "schema_changes",
            "declares the column `tags` with a type that CSV does not have",
        ),
        ("format: delta, path: in, columns: [{name: id, required: true}]", "columns", "does not check its records"),
        ("format: json, path: in, columns: [{name: id, required: true}]", "columns", "required columns but no schema"),
        (
            "format: json, path: in, schema: id int, columns: [{name: ide, required: true}]",
            "columns",
            "`ide` of source `shop.orders` is not declared",
        ),
    ],
)
def test_where_they_cannot_be(keys: str, where: str, message: str, tmp_path: Path) -> None:
    """A key that cannot work is an error at the key."""
    findings = load(tmp_path, _sources(keys)).findings

    assert any(message in finding.message for finding in findings), findings
    start = _sources(keys)["sources.yml"].index(where)
    places = [finding.location for finding in findings]
    assert any(place is not None and start < place.column < start + 30 for place in places)


def test_the_schema_of_a_registry_need_not_be_pinned_yet(tmp_path: Path) -> None:
    """`sqlstream source schema` loads the source before it pins the columns."""
    registry = "schema_registry: {url: 'http://localhost:1', subject: orders}"
    (table,) = load_good(tmp_path, _sources(f"{KAFKA}, value_format: avro, {registry}, schema_changes: rescue")).sources

    assert table.schema_changes == "rescue"
