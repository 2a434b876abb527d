"""Errors of models that are not selected are counted, and block neither `compile`, `run` nor `test`."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream import FindingsError, ProjectRequest, compile_models
from sqlstream.app.request import EVERYTHING, Selection
from sqlstream.app.test import open_tests, select_tests

READS = "{{ config(sink='out') }} select %s from {{ source('shop', '%s') }}"

FILES = {
    "project.yml": "name: shop\n",
    "sources.yml": "sources:\n  - name: shop\n    tables:\n      - {name: orders, format: json, path: in, schema: 'id int'}\n"
    "      - {name: ticks, format: rate, options: {rowsPerSecond: 0}}\n",
    "sinks.yml": "sinks:\n  - {name: out, format: noop}\n  - {name: lake, format: json, path: x, options: {compression: zstd}}\n",
    "models/good.sql": READS % ("id", "orders"),
    "models/wrong.sql": READS % ("nothing", "orders"),
    "models/view.sql": "select none as id from {{ source('shop', 'orders') }}",
    "models/below.sql": "{{ config(sink='out') }} select id from {{ ref('view') }}",
    "models/ticks.sql": READS % ("value", "ticks"),
    "models/lake.sql": "{{ config(sink='lake') }} select id from {{ source('shop', 'orders') }}",
    "tests/models/good.yml": """unit_tests:
  - name: passes
    model: good
    given:
      - input: source('shop', 'orders')
        rows: [{id: 1}]
    expect: {rows: [{id: 1}]}
""",
}


def project(root: Path, **files: str) -> Path:
    """Writes the project; `files` are by their stems in models/."""
    for name, text in {**FILES, **{f"models/{stem}.sql": text for stem, text in files.items()}}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def refused(root: Path, *select: str) -> list[str]:
    """The files of the errors for which the selection is refused."""
    with pytest.raises(FindingsError) as raised:
        compile_models(ProjectRequest(root), Selection(select) if select else EVERYTHING)
    return sorted(finding.location.path for finding in raised.value.findings if finding.is_error and finding.location)


def test_the_errors_of_other_models_are_counted(tmp_path: Path) -> None:
    """And the selected model is compiled."""
    told: list[str] = []

    compiled = compile_models(ProjectRequest(project(tmp_path), notify=told.append), Selection(("good",)))

    assert [model.name for model in compiled.models] == ["good"]
    assert told == ["4 errors in models that are not selected; `sqlstream compile` shows them"]


@pytest.mark.parametrize(
    ("selected", "files"),
    [
        ("wrong", ["models/wrong.sql"]),
        ("below", ["models/view.sql"]),
        ("ticks", ["sources.yml"]),
        ("lake", ["sinks.yml"]),
    ],
)
def test_what_a_selected_model_is_made_of_must_be_right(tmp_path: Path, selected: str, files: list[str]) -> None:
    """It, all that it reads, and its sink."""
    assert refused(project(tmp_path), selected) == files


def test_without_a_selection_every_error_counts(tmp_path: Path) -> None:
    """As for all that is selected together."""
    assert refused(project(tmp_path)) == ["models/view.sql", "models/wrong.sql", "sinks.yml", "sources.yml"]


def test_an_error_in_a_template_still_blocks(tmp_path: Path) -> None:
    """Nothing is known of the project then."""
    assert refused(project(tmp_path, broken="{{ nothing( }}"), "good") == ["models/broken.sql"]


def test_sql_that_cannot_be_read_still_blocks(tmp_path: Path) -> None:
    """Such a project compiles for no command, as `sqlstream test` says too."""
    torn = "select id from {{ source('shop', 'orders') }} wher id > 1"

    assert "models/torn.sql" in refused(project(tmp_path, torn=torn), "good")


@pytest.mark.parametrize(
    "lost",
    [
        "{{ config(sink='nowhere') }} select id from {{ source('shop', 'orders') }}",
        "select /*+ WATERMARK(other.id, '1 minute') */ id from {{ source('shop', 'orders') }}",
    ],
    ids=["an unknown sink", "a misplaced watermark"],
)
def test_what_only_one_model_lacks_keeps_no_rule_from_the_others(tmp_path: Path, lost: str) -> None:
    """Its own error counts for it and for what reads it; the rules find what is wrong with the others."""
    root = project(tmp_path, lost=lost, child="{{ config(sink='out') }} select id from {{ ref('lost') }}")

    assert compile_models(ProjectRequest(root), Selection(("good",))).models[0].name == "good"
    assert refused(root, "lost") == ["models/lost.sql"]
    assert refused(root, "child") == ["models/lost.sql"]
    assert refused(root, "wrong") == ["models/wrong.sql"]


def test_an_error_of_the_project_blocks(tmp_path: Path) -> None:
    """It belongs to every selection."""
    root = project(tmp_path)
    (root / "project.yml").write_text("name: shop\ntargets: {far: {master: 'spark://host:7077', storage: here}}\n")

    assert refused(root, "good") == ["project.yml"]


def test_the_tests_of_a_model_are_selected_beside_errors_elsewhere(tmp_path: Path) -> None:
    """They are counted, and no finding of the tests."""
    told: list[str] = []
    opened = open_tests(ProjectRequest(project(tmp_path), notify=told.append))

    chosen, findings = select_tests(opened, Selection(("good",)))

    assert [test.name for test in chosen] == ["passes"]
    assert [finding for finding in findings if finding.is_error] == []
    assert told == ["4 errors in models that are not selected; `sqlstream compile` shows them"]
