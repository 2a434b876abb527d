"""Errors in unselected models are counted, and do not block `compile`, `run` or `test`."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream import FindingsError, ProjectRequest, compile_models
from sqlstream.app.request import EVERYTHING, Selection
from sqlstream.app.test.unit_tests import open_tests, select_tests

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
    """Writes the project; the keys of `files` are file names in models/ without extension."""
    for name, text in {**FILES, **{f"models/{stem}.sql": text for stem, text in files.items()}}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def refused(root: Path, *select: str) -> list[str]:
    """Returns the files of the errors for which the selection is refused."""
    with pytest.raises(FindingsError) as raised:
        compile_models(ProjectRequest(root), Selection(select) if select else EVERYTHING)
    return sorted(finding.location.path for finding in raised.value.findings if finding.is_error and finding.location)


def test_the_errors_of_other_models_are_counted(tmp_path: Path) -> None:
    """The selected model compiles, and the number of errors in other models is reported."""
    messages: list[str] = []

    compiled = compile_models(ProjectRequest(project(tmp_path), notify=messages.append), Selection(("good",)))

    assert [model.name for model in compiled.models] == ["good"]
    assert messages == ["4 errors in models that are not selected; `sqlstream compile` shows them"]


@pytest.mark.parametrize(
    ("selected", "files"),
    [
        ("wrong", ["models/wrong.sql"]),
        ("below", ["models/view.sql"]),
        ("ticks", ["sources.yml"]),
        ("lake", ["sinks.yml"]),
    ],
)
def test_errors_upstream_of_a_selected_model_count(tmp_path: Path, selected: str, files: list[str]) -> None:
    """An error in a selected model, in any upstream node or in its sink refuses the selection."""
    assert refused(project(tmp_path), selected) == files


def test_without_a_selection_every_error_counts(tmp_path: Path) -> None:
    """Without a selection every error is reported, as if all models were selected."""
    assert refused(project(tmp_path)) == ["models/view.sql", "models/wrong.sql", "sinks.yml", "sources.yml"]


def test_an_error_in_a_template_still_blocks(tmp_path: Path) -> None:
    """An error in a template blocks every selection, because the project cannot be read."""
    assert refused(project(tmp_path, broken="{{ nothing( }}"), "good") == ["models/broken.sql"]


def test_unreadable_sql_still_blocks(tmp_path: Path) -> None:
    """Unreadable SQL blocks every command, as in `sqlstream test`."""
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
def test_an_error_in_one_model_does_not_hide_others(tmp_path: Path, lost: str) -> None:
    """A model's error counts for it and its readers; rules still check the other models."""
    root = project(tmp_path, lost=lost, child="{{ config(sink='out') }} select id from {{ ref('lost') }}")

    assert compile_models(ProjectRequest(root), Selection(("good",))).models[0].name == "good"
    assert refused(root, "lost") == ["models/lost.sql"]
    assert refused(root, "child") == ["models/lost.sql"]
    assert refused(root, "wrong") == ["models/wrong.sql"]


def test_an_error_of_the_project_blocks(tmp_path: Path) -> None:
    """An error of the project blocks every selection."""
    root = project(tmp_path)
    (root / "project.yml").write_text("name: shop\ntargets: {far: {master: 'spark://host:7077', storage: here}}\n")

    assert refused(root, "good") == ["project.yml"]


def test_tests_are_selected_despite_errors_elsewhere(tmp_path: Path) -> None:
    """A model's tests can be selected despite errors elsewhere, which are counted but are no findings of the tests."""
    messages: list[str] = []
    opened = open_tests(ProjectRequest(project(tmp_path), notify=messages.append))

    chosen, findings = select_tests(opened, Selection(("good",)))

    assert [test.name for test in chosen] == ["passes"]
    assert [finding for finding in findings if finding.is_error] == []
    assert messages == ["4 errors in models that are not selected; `sqlstream compile` shows them"]
