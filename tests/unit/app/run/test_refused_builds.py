"""What a build refuses before Spark starts."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from sqlstream import FindingsError, ProjectRequest, RunRequest
from sqlstream.app.request import Selection
from sqlstream.app.run.build import build_models
from sqlstream.state.runs.events import QueriesSelected, RunEvent, UnitTestEnded, UnitTestsSelected, WarningEmitted

LIVE = "{{ config(sink='nowhere', trigger='10 seconds') }} select value from {{ source('s', 't') }}"
VIEW = "select value from {{ source('s', 't') }}"
ENDS = "{{ config(sink='nowhere', trigger='available_now') }} select value from {{ ref('view') }}"
TEST = """unit_tests:
  - name: keeps
    model: view
    given: [{input: "source('s', 't')", rows: [{value: 1}]}]
    expect: {rows: [{valu: 1}]}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A view, a query that ends, and one that never ends, without a unit test."""
    files = {
        "project.yml": "name: p\nversion: 1.0.0\ntargets: {local: {master: 'local[1]'}}\n",
        "sources.yml": "sources:\n  - {name: s, tables: [{name: t, format: rate}]}\n",
        "sinks.yml": "sinks:\n  - {name: nowhere, format: noop}\n",
        "models/live.sql": LIVE,
        "models/view.sql": VIEW,
        "models/ends.sql": ENDS,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "tests/models").mkdir(parents=True)
    return tmp_path


def request(project: Path, *select: str, types: tuple[str, ...] = (), excluded: tuple[str, ...] = ()) -> RunRequest:
    """Returns the request to build a selection where no Java is on the PATH."""
    selection = Selection(select, resource_types=types, excluded_types=excluded)
    return RunRequest(ProjectRequest(project, env={"PATH": ""}), selection)


@pytest.mark.parametrize(
    ("select", "location"), [(("live",), "models/live.sql:1:27"), (("view",), "None"), (("source:s.t",), "None")]
)
def test_a_selection_with_nothing_to_do_is_refused(project: Path, select: tuple[str, ...], location: str) -> None:
    """A build of only endless queries, views or sources without unit tests is an error, at the trigger if there is one."""
    with pytest.raises(FindingsError) as caught:
        build_models(request(project, *select), print)

    (finding,) = caught.value.findings
    assert (finding.code, str(finding.location)) == ("nothing-to-build", location)


def test_a_broken_test_of_a_view_skips_the_queries_below(project: Path) -> None:
    """No Spark starts if all queries are skipped; the results name the test and the reason."""
    (project / "tests/models/t.yml").write_text(TEST)
    events: list[RunEvent] = []

    outcome = build_models(request(project), events.append)

    assert not outcome.succeeded
    assert [result.reason for result in outcome.results] == ["unit test view.keeps did not pass"]
    entries = json.loads((project / "target/run_results.json").read_text())["results"]
    assert [(entry["unique_id"], entry["status"]) for entry in entries] == [
        ("unit_test.p.view.keeps", "error"),
        ("model.p.ends", "skipped"),
        ("model.p.live", "no-op"),
    ]
    assert list(outcome.entries) == entries
    kinds = [type(event) for event in events]
    assert kinds.index(UnitTestsSelected) < kinds.index(UnitTestEnded) < kinds.index(QueriesSelected)


def test_a_build_that_ends_in_its_unit_tests_records_its_queries(project: Path) -> None:
    """If a build ends before its queries, its results have them as skipped, so that `retry` runs them."""
    good = TEST.replace("keeps", "others").replace("valu:", "value:")
    (project / "tests/models/t.yml").write_text(TEST + good.removeprefix("unit_tests:\n"))

    with pytest.raises(FindingsError) as caught:  # no Java is on the PATH
        build_models(request(project), print)

    assert [finding.code for finding in caught.value.findings] == ["java-missing"]
    entries = json.loads((project / "target/run_results.json").read_text())["results"]
    assert {entry["unique_id"]: entry["status"] for entry in entries} == {
        "unit_test.p.view.keeps": "error",
        "unit_test.p.view.others": "skipped",
        "model.p.ends": "skipped",
    }


def test_an_unreadable_test_file_refuses_the_build(project: Path) -> None:
    """A file of unit tests that cannot be read may contain tests of the selection, so nothing runs, as in dbt."""
    (project / "tests/models/t.yml").write_text(TEST)
    (project / "tests/models/u.yml").write_text("unit_tests: [")

    with pytest.raises(FindingsError) as caught:
        build_models(request(project), print)

    assert [finding.code for finding in caught.value.findings] == ["yaml-syntax"]


def test_only_models_or_only_tests(project: Path) -> None:
    """--resource-type unit_test runs no query, and --exclude-resource-type unit_test no test."""
    (project / "tests/models/t.yml").write_text(TEST)

    outcome = build_models(request(project, types=("unit_test",)), print)
    assert (len(outcome.tests), outcome.results, outcome.not_run) == (1, (), ())

    with pytest.raises(FindingsError) as caught:  # the query would start: no Java is on the PATH
        build_models(request(project, excluded=("unit_test",)), print)
    assert [finding.code for finding in caught.value.findings] == ["java-missing"]


def test_a_stop_before_the_unit_tests_starts_none(project: Path) -> None:
    """A signal that comes while the project compiles ends the build before Spark starts."""
    (project / "tests/models/view.yml").write_text(TEST.replace("valu:", "value:"))
    events: list[RunEvent] = []

    def stop(event: RunEvent) -> None:
        events.append(event)
        if isinstance(event, WarningEmitted):
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(KeyboardInterrupt):
        build_models(request(project, "ends", "view", "nothing_is_called_so"), stop)
    assert [event for event in events if isinstance(event, WarningEmitted)]
    assert not [event for event in events if isinstance(event, UnitTestsSelected)]
