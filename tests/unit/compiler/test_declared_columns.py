"""Columns declared in properties files are compared with the columns that the compiler infers."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream import ProjectRequest, compile_models

SCHEMA = "id bigint, name char(5), s struct<a: int, b: array<string>>, m map<string, double>"
FILES = {
    "project.yml": "name: shop\n",
    "sources.yml": f"sources:\n  - name: shop\n    tables: [{{name: orders, format: json, path: in, schema: '{SCHEMA}'}}]\n",
    "sinks.yml": "sinks:\n  - {name: out, format: noop}\n",
    "models/orders.sql": "{{ config(sink='out') }} select id, name, s, m from {{ source('shop', 'orders') }}",
}


def warnings(root: Path, declared: str) -> list[str]:
    """Returns the code and place of each warning about a model with this declared column."""
    files = {**FILES, "models/orders.yml": f"models:\n  - name: orders\n    columns:\n      - {declared}\n"}
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    found = compile_models(ProjectRequest(root)).loaded.warnings
    return [f"{finding.code} {finding.location}" for finding in found]


@pytest.mark.parametrize(
    "declared",
    [
        "{name: id}",
        "{name: ID, data_type: long}",
        "{name: name, data_type: string}",
        "{name: name, data_type: varchar(10)}",
        "{name: s, data_type: 'struct<A: integer not null, b: array<string>>'}",
        "{name: m, data_type: 'map<string, double>'}",
    ],
)
def test_matching_columns_have_no_finding(tmp_path: Path, declared: str) -> None:
    """Declared columns match in any letter case, with any alias of the type and with or without `not null`."""
    assert warnings(tmp_path, declared) == []


@pytest.mark.parametrize(
    ("declared", "place"),
    [
        ("{name: idd}", "4:16"),
        ("{name: id, data_type: int}", "4:31"),
        ("{name: id, data_type: bigin}", "4:31"),
        ("{name: s, data_type: 'struct<a: int, c: array<string>>'}", "4:30"),
        ("{name: s, data_type: 'struct<a: int, b: array<int>>'}", "4:30"),
        ("{name: m, data_type: 'map<string, int>'}", "4:30"),
        ("{name: m, data_type: string}", "4:30"),
    ],
)
def test_different_columns_give_a_warning(tmp_path: Path, declared: str, place: str) -> None:
    """An unknown column, a different type or an invalid type gives a warning at its place."""
    assert warnings(tmp_path, declared) == [f"declared-column models/orders.yml:{place}"]


def test_unknown_columns_are_not_compared(tmp_path: Path) -> None:
    """Declared columns are not compared if the model's columns are unknown, as for Python models and Delta sources."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "python_model.py").write_text(
        "def model(sqlstream, spark):\n    sqlstream.config(sink='out')\n    return sqlstream.source('shop', 'orders')\n"
    )
    (tmp_path / "models" / "more.yml").write_text(
        "models:\n  - {name: python_model, columns: [{name: anything}]}\n  - {name: from_hudi, columns: [{name: anything}]}\n"
        "sources:\n  - {name: lake, tables: [{name: orders, format: hudi, path: in}]}\n"
    )
    (tmp_path / "models" / "from_hudi.sql").write_text(
        "{{ config(sink='out') }} select * from {{ source('lake', 'orders') }}"
    )

    assert warnings(tmp_path, "{name: id}") == []
