"""`sqlstream compile --explain`, for the examples and for a query that cannot run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqlstream.cli.main import main

REPOSITORY = Path(__file__).parents[3]


def explain(*arguments: str, folder: Path = REPOSITORY) -> int:
    """Runs the command on a project (default: the repository's own) and returns its exit code."""
    with pytest.raises(SystemExit) as ended:
        main(["compile", "--project-dir", str(folder), "--explain", *arguments])
    return int(ended.value.code or 0)


def test_a_query_is_explained_in_times(capsys: pytest.CaptureFixture[str]) -> None:
    """The text output explains a query with example times."""
    assert explain("cloudtrail_hourly") == 0

    shown = capsys.readouterr().out
    assert (
        "window 12:00-13:00 is emitted when an event with the time 13:10 or later has arrived, in the next batch"
        in shown
    )


def test_json_has_the_same_facts(capsys: pytest.CaptureFixture[str]) -> None:
    """JSON output has the same facts, with times in ISO 8601 and UTC and delays in seconds."""
    assert explain("device_sliding_windows", "--output", "json") == 0

    found = json.loads(capsys.readouterr().out)
    (operator,) = found["operators"]
    assert (found["model"], operator["release"]) == ("device_sliding_windows", "window")
    assert operator["example"]["events"] == ["2024-01-01T12:20:00+00:00"]
    assert found["watermarks"][0]["delay_seconds"] == 600
    assert [guarantee["rows"] for guarantee in found["guarantees"].values()] == ["exactly once"]


@pytest.mark.parametrize("output", ["text", "json"])
def test_a_query_that_cannot_run_shows_its_findings(
    tmp_path: Path, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A query that cannot run shows its findings with exit code 1, and no statement about rows."""
    source = "sources:\n  - name: shop\n    tables:\n      - {name: orders, format: json, path: in, schema: id int}\n"
    (tmp_path / "project.yml").write_text("name: shop\nversion: 1.0.0\ntargets: {local: {master: local, storage: s}}\n")
    (tmp_path / "sources.yml").write_text(source)
    (tmp_path / "sinks.yml").write_text("sinks:\n  - {name: nowhere, format: noop}\n")
    (tmp_path / "models").mkdir()
    sql = "{{ config(sink='nowhere') }} select id from {{ source('shop', 'orders') }} group by id"
    (tmp_path / "models/asked.sql").write_text(sql)

    assert explain("asked", "--output", output, folder=tmp_path) == 1

    shown = capsys.readouterr()
    if output == "json":
        assert [finding["code"] for finding in json.loads(shown.out)["findings"]] == ["append-without-watermark"]
    else:
        assert shown.out == ""
        assert shown.err.startswith("`asked` cannot run, so it emits no rows:\nmodels/asked.sql:1:")


@pytest.mark.parametrize(
    "arguments",
    [["cloudtrail_hurly"], ["cloudtrail_in_order"], ["cloudtrail_hourly", "--check"], ["a", "--select", "b"]],
)
def test_unexplainable_models_are_usage_errors(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown name, a view, and options about other models are usage errors."""
    assert explain(*arguments) == 2

    assert capsys.readouterr().err.startswith("Error: ")
