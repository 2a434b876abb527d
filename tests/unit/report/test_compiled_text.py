"""The output of `sqlstream compile`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sqlstream.app.loading.load import load
from sqlstream.app.request import ProjectRequest
from sqlstream.compiler.compiled import CompiledProject
from sqlstream.errors import Finding, Severity
from sqlstream.report.compiled import LONGEST_SQL, compiled_json, compiled_text, found_line

FILES = {
    "project.yml": "name: shop\nversion: 1.0.0\n",
    "sources.yml": "sources:\n  - name: shop\n    tables:\n      - {name: orders, format: rate}\n",
    "sinks.yml": "sinks:\n  - {name: nowhere, format: noop}\n",
    "models/fast.sql": "select value from {{ source('shop', 'orders') }}\n",
    "models/slow.sql": "{{ config(sink='nowhere') }}\nselect value from {{ ref('fast') }}\n",
}
WARNING = Finding("empty-selection", "nothing", "why", "fix", severity=Severity.WARNING)


@pytest.fixture
def compiled(tmp_path: Path) -> CompiledProject:
    """A compiled project of two models."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return load(ProjectRequest(tmp_path)).compiled


def test_nodes_are_counted(compiled: CompiledProject) -> None:
    """The summary counts models, sources and sinks, and seeds if there are any."""
    assert found_line(compiled) == "Found 2 models, 1 source, 1 sink"


def test_several_models_are_counted(compiled: CompiledProject) -> None:
    """For several models the output gives their number and the folder of their SQL."""
    assert compiled_text(compiled, tuple(compiled.models.values())).splitlines() == [
        "Found 2 models, 1 source, 1 sink",
        "Compiled 2 models to target/compiled/shop/",
    ]


def test_the_sql_of_a_single_model_is_shown(compiled: CompiledProject) -> None:
    """A single model's SQL is printed, as in dbt, with its file."""
    model = compiled.models["model.shop.fast"]

    assert compiled_text(compiled, [model]).splitlines() == [
        "Found 2 models, 1 source, 1 sink",
        "Compiled fast to target/compiled/shop/models/fast.sql:",
        "",
        model.sql.strip(),
    ]


def test_a_megabyte_of_sql_is_not_printed(compiled: CompiledProject) -> None:
    """Of very long SQL only the beginning is printed; the file has all of it."""
    model = replace(compiled.models["model.shop.fast"], sql="select '" + "x" * 1_000_000 + "'")

    text = compiled_text(compiled, [model])

    assert len(text) < LONGEST_SQL + 300
    assert text.endswith(f"({1_000_009 - LONGEST_SQL:,} more characters)")


def test_the_version_of_spark_is_named(compiled: CompiledProject) -> None:
    """The output and the JSON name the Spark version that checked the models, and the number of models."""
    models = tuple(compiled.models.values())

    assert "Spark 4.3.0 accepts 2 models" in compiled_text(compiled, models, "4.3.0").splitlines()
    assert json.loads(compiled_json(compiled, models, (), "4.3.0"))["checked_by_spark"] == "4.3.0"


def test_json_is_one_object(compiled: CompiledProject) -> None:
    """The JSON object has success, the project, each model with its SQL and file, and the warnings."""
    model = compiled.models["model.shop.slow"]

    assert json.loads(compiled_json(compiled, [model], [WARNING])) == {
        "succeeded": True,
        "project": "shop",
        "checked_by_spark": None,
        "models": [
            {
                "unique_id": "model.shop.slow",
                "compiled_path": "target/compiled/shop/models/slow.sql",
                "compiled_sql": model.sql,
                "reads": {"fast": "view"},
            }
        ],
        "findings": [WARNING.as_json()],
    }
