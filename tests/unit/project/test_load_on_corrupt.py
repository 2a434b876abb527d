"""How `on_corrupt` of a source table changes a project, and the locations of the models that it adds."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream.project.configuration.config import merge_configs
from sqlstream.project.declarations.on_corrupt import captures_corrupt
from tests.support.loading_cases import load, load_good

SINKS = "sinks:\n  - {name: lake, format: parquet, path: '{{ model.name }}'}\n"


def sources(rest: str, schema: str = "id int") -> str:
    """Returns a sources.yml with one table."""
    return f"sources:\n  - name: shop\n    tables:\n      - name: orders\n        path: in\n        schema: '{schema}'\n{rest}"


QUARANTINE = "        format: json\n        on_corrupt: quarantine\n        quarantine_sink: lake\n"


def test_a_quarantine_is_a_stream_and_a_model(tmp_path: Path) -> None:
    """A quarantine adds a stream and a model, both located at `on_corrupt`; the stream is read like the table."""
    project = load_good(
        tmp_path, {"sources.yml": sources(QUARANTINE + "        options: {multiLine: true}\n"), "sinks.yml": SINKS}
    )

    orders, corrupt = project.sources
    assert (corrupt.full_name, corrupt.corrupt_of, corrupt.options) == ("shop.orders__corrupt", orders, orders.options)
    assert corrupt.spark_schema is not None
    assert corrupt.spark_schema.ddl == "`record` string, `file` string, `reason` string, `quarantined_at` timestamp"
    (model,) = project.models
    assert (model.name, model.path, str(model.location)) == (
        "shop__orders__corrupt",
        "sources.yml/shop__orders__corrupt.sql",
        "sources.yml:8:21",
    )
    assert "source('shop', 'orders__corrupt')" in model.text
    assert merge_configs(model.configs).locations["sink"].line == 9


@pytest.mark.parametrize("answer", ["", "        on_corrupt: fail\n", "        on_corrupt: drop\n"])
def test_other_values_add_no_model(answer: str, tmp_path: Path) -> None:
    """`fail` and `drop` add no model, because only the reader uses them."""
    project = load_good(tmp_path, {"sources.yml": sources("        format: csv\n" + answer)})

    assert (len(project.sources), project.models) == (1, ())


def test_a_quarantine_inherits_how_it_runs(tmp_path: Path) -> None:
    """A quarantine takes trigger and retries from the configuration of all models, but not their output mode; its own
    properties take precedence.
    """
    files = {
        "project.yml": "name: shop\nmodels: {+trigger: 1 minute, +retries: 3, +output_mode: complete, +tags: [all]}\n",
        "sources.yml": sources(QUARANTINE),
        "sinks.yml": SINKS,
        "models/shop.yml": "models: [{name: shop__orders__corrupt, config: {retries: 5, tags: [bad]}}]\n",
    }

    (model,) = load_good(tmp_path, files).models

    config = merge_configs(model.configs).config
    assert config is not None
    assert (config.sink, str(config.trigger), config.output_mode) == ("lake", "1 minute", "append")
    assert (config.retries.attempts, config.tags) == (5, ("all", "bad"))


def test_a_target_can_override_on_corrupt(tmp_path: Path) -> None:
    """A target can override `on_corrupt`; an override without a value removes a key."""
    files = {
        "project.yml": "name: shop\ntargets: {dev: {sources: {shop.orders: {on_corrupt: drop, quarantine_sink: }}}}\n",
        "sources.yml": sources(QUARANTINE),
        "sinks.yml": SINKS,
    }

    (orders,) = load_good(tmp_path, files, "dev").sources

    assert (orders.on_corrupt, orders.quarantine_sink) == ("drop", None)


def test_another_format_has_no_required_columns(tmp_path: Path) -> None:
    """`required` belongs to the declared format, as `on_corrupt` does; the columns stay."""
    columns = "        format: json\n        columns: [{name: id, required: true, description: a number}]\n"
    files = {
        "project.yml": "name: shop\ntargets: {dev: {sources: {shop.orders: {format: parquet, path: fixed}}}}\n",
        "sources.yml": sources(columns),
    }

    (orders,) = load_good(tmp_path, files, "dev").sources

    assert [(column.name, column.required, column.description) for column in orders.columns] == [
        ("id", False, "a number")
    ]


def test_an_unknown_value_is_refused(tmp_path: Path) -> None:
    """An unknown value is refused with the allowed ones."""
    result = load(tmp_path, {"sources.yml": sources("        format: json\n        on_corrupt: skip\n")})

    (finding,) = result.findings
    assert (finding.code, str(finding.location)) == ("invalid-value", "sources.yml:8:21")
    assert "quarantine" in finding.fix


@pytest.mark.parametrize(
    ("schema", "options", "default", "captures"),
    [
        ("id int", "{}", "_corrupt_record", False),
        ("id int, _CORRUPT_record string", "{}", "_corrupt_record", True),
        ("id int, _corrupt_record string", "{}", "bad", False),
        ("id int, bad string", "{columnnameofcorruptrecord: bad}", "_corrupt_record", True),
    ],
)
def test_declared_corrupt_columns_are_captured(
    schema: str, options: str, default: str, captures: bool, tmp_path: Path
) -> None:
    """A model captures corrupt records if the schema declares the column of the option or of Spark's setting."""
    text = sources(f"        format: json\n        options: {options}\n", schema)
    (table,) = load_good(tmp_path, {"sources.yml": text}).sources

    assert captures_corrupt(table, default) is captures
