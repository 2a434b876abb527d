"""The results of unit tests in files: the last of each in `target/test_results.json`, and those of the last `test` in
`target/run_results.json`, where `retry` finds the tests that did not pass.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlstream.app.last_command import ShortCommand, arguments_of_tests
from sqlstream.app.loading.atomic_writes import write_file
from sqlstream.app.loading.load import Loaded
from sqlstream.app.request import UnitTestRequest
from sqlstream.errors import Finding, UsageError
from sqlstream.report.unit_tests_text import failure_text
from sqlstream.state.runs.case_outcomes import CaseResult, Outcome
from sqlstream.state.runs.events import SelectedTest
from sqlstream.state.runs.tracked_run import TrackedTest
from sqlstream.times import utc_now
from sqlstream.version import __version__

TEST_RESULTS = "test_results.json"


def record_results(loaded: Loaded, results: Sequence[CaseResult], existing: Collection[str]) -> None:
    """Writes `results`. Earlier results of other tests stay if the test is one of `existing`, which are full names.

    Does nothing if target/ cannot be written: the results have been printed.
    """
    now = utc_now()
    before = {name: entry for name, entry in read_results(loaded.target_folder).items() if name in existing}
    found = {result.full_name: _entry(result, now) for result in results if result.model is not None}
    content = {
        "metadata": {"sqlstream_version": __version__, "generated_at": now},
        "results": dict(sorted({**before, **found}.items())),
    }
    with suppress(UsageError):
        write_file(str(loaded.target_folder / TEST_RESULTS), json.dumps(content, indent=2).encode() + b"\n")


def _entry(result: CaseResult, at: str) -> dict[str, object]:
    is_bad = result.outcome in (Outcome.FAILED, Outcome.BROKEN)
    return {
        "model": result.model,
        "status": str(result.outcome),
        "at": at,
        "seconds": round(result.seconds, 3),
        "message": failure_text(result, None) if is_bad else None,
    }


def read_results(target_folder: Path) -> Mapping[str, Mapping[str, Any]]:
    """Returns the last result of each unit test by its full name: `model`, `status`, `at` (UTC, ISO 8601), `seconds`,
    and `message` if it failed. Empty if no test has run since `clean`.
    """
    try:
        found = json.loads((target_folder / TEST_RESULTS).read_bytes())["results"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


@dataclass(frozen=True)
class RecordedTests:
    """The record of the unit tests of one command."""

    tests: Sequence[SelectedTest]
    command: ShortCommand

    def end(self, results: Sequence[CaseResult], findings: Sequence[Finding], *, succeeded: bool) -> None:
        """Writes the results. Tests that did not run because of --fail-fast are skipped."""
        found = {result.full_name: result for result in results}
        states = (_state(test, found.get(test.name)) for test in self.tests)
        self.command.write([state.as_json() for state in states], succeeded, findings)


def _state(test: SelectedTest, result: CaseResult | None) -> TrackedTest:
    return TrackedTest(test, Outcome.SKIPPED if result is None else result.outcome, result)


def begin_record(loaded: Loaded, request: UnitTestRequest, tests: Sequence[SelectedTest]) -> RecordedTests:
    """Returns the record of `tests`, and writes that they have not run yet."""
    project = loaded.compiled.project
    command = ShortCommand(project.root, project.target.name, arguments_of_tests(request))
    command.write([TrackedTest(test).as_json() for test in tests], succeeded=None)
    return RecordedTests(tests, command)
