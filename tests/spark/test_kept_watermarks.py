"""A query keeps the watermark of each of its inputs from run to run, which Spark keeps only in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqlstream import ProjectRequest
from sqlstream.app.request import Selection, UnitTestRequest
from sqlstream.app.test.unit_tests import run_tests
from sqlstream.spark.queries import watermarks
from sqlstream.state.runs.case_outcomes import Outcome
from sqlstream.state.runs.events import Notice
from tests.spark.conftest import PROJECT, ProjectFolder

pytestmark = pytest.mark.slow

Rows = Callable[[Path], list[dict[str, Any]]]

UNION = """{{ config(sink='lake', trigger='available_now') }}
select window.start as since, count(*) as n from (
  select at from {{ source('x', 'a') }} watermark at delay of interval 1 minute
  union all
  select at from {{ source('x', 'b') }} watermark at delay of interval 1 minute
) group by window(at, '5 minutes')
"""

CASES = """unit_tests:
  - name: rows_in_turns
    model: both
    given:
      - {input: "source('x', 'a')", batches: [{rows: [{at: 2024-01-01 12:01}, {at: 2024-01-01 13:00}]}, restart]}
      - {input: "source('x', 'b')", batches: [{rows: [{at: 2024-01-01 12:02}, {at: 2024-01-01 13:00}]}, restart]}
      - {input: "source('x', 'a')", batches: [{rows: [{at: 2024-01-01 13:10}]}]}
    expect: {rows: [{since: 2024-01-01 12:00, n: 2}]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> ProjectFolder:
    """Returns a project with a union of two streams, each with its own watermark."""
    made = ProjectFolder(tmp_path)
    tables = ", ".join(f"{{name: {name}, format: json, path: in/{name}, schema: 'at timestamp'}}" for name in "ab")
    made.write(
        {
            "project.yml": PROJECT,
            "sources.yml": f"sources: [{{name: x, tables: [{tables}]}}]\n",
            "sinks.yml": 'sinks: [{name: lake, format: parquet, path: "{{ model.name }}"}]\n',
            "models/both.sql": UNION,
            "tests/models/cases.yml": CASES,
            "in/b/.keep": "",
        }
    )
    return made


def _arrive(folder: ProjectFolder, source: str, number: int, *times: str) -> None:
    folder.rows(f"in/{source}/{number}.json", [{"at": f"2024-01-01T{time}:00Z"} for time in times], modified=number)


def test_scheduled_runs_over_inputs_that_get_rows_in_turns_emit_them(folder: ProjectFolder, read_parquet: Rows) -> None:
    """Runs that find new rows in one of two inputs emit a window once both have passed it, as a long run does."""
    _arrive(folder, "a", 1, "12:02", "12:10")
    assert folder.result().rows_out == 0
    _arrive(folder, "b", 1, "12:03", "13:00")
    assert folder.result().rows_out == 1
    _arrive(folder, "a", 2, "13:10")
    assert folder.result().rows_out == 1

    rows = read_parquet(folder.root / "store/both")
    found = sorted((str(row["since"]), row["n"]) for row in rows)
    assert found == [("2024-01-01 12:00:00", 2), ("2024-01-01 12:10:00", 1)]


def test_watermarks_of_another_query_or_a_later_batch_are_not_restored(folder: ProjectFolder) -> None:
    """Kept watermarks have no effect if the query has changed, or if the checkpoint no longer has their batch."""
    _arrive(folder, "a", 1, "12:02", "12:10")
    folder.result()
    kept = folder.root / "store/queries/both/v1/checkpoint/sqlstream-watermarks.json"
    text = kept.read_text()
    assert '"watermarks": [1704110940000, null]' in text

    wrong = (text.replace('"batch": 0', '"batch": 99'), text.replace('"query": "', '"query": "x'), "{")
    for number, other in enumerate(wrong, start=1):
        kept.write_text(other)
        _arrive(folder, "b", number, "13:00")
        assert folder.result().rows_out == 0


def test_watermarks_that_cannot_be_restored_are_reported_and_kept(
    folder: ProjectFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query that cannot restore its watermarks says so, and leaves them for the next run."""
    _arrive(folder, "a", 1, "12:02", "12:10")
    folder.result()
    monkeypatch.setattr(watermarks, "START_SECONDS", 0.0)
    _arrive(folder, "b", 1, "12:03", "13:00")
    assert folder.result().rows_out == 0
    notices = [event.text for event in folder.events if isinstance(event, Notice)]
    assert [text for text in notices if "the watermarks of its inputs were not restored" in text]

    monkeypatch.undo()
    _arrive(folder, "b", 2, "13:01")
    assert folder.result().rows_out == 1


def test_the_equivalence_of_a_test_also_restarts(folder: ProjectFolder) -> None:
    """Unit tests restore the watermarks as a run does: with restarts, the same rows come out."""
    request = UnitTestRequest(ProjectRequest(folder.root), Selection(), equivalence=True)

    (result,) = run_tests(request, lambda _result, _total: None).results

    assert result.outcome is Outcome.PASSED
