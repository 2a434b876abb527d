"""Records `sqlstream test` in target/run_results.json, where `retry` finds the tests that did not pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlstream.app.loading.load import Loaded
from sqlstream.app.records.arguments import arguments_of_tests
from sqlstream.app.records.last_command import ShortCommand
from sqlstream.app.request import UnitTestRequest
from sqlstream.errors import Finding
from sqlstream.state.runs.events import SelectedTest
from sqlstream.state.runs.run_state import TestState
from sqlstream.state.runs.unit_tests import CaseResult, Outcome


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


def _state(test: SelectedTest, result: CaseResult | None) -> TestState:
    return TestState(test, Outcome.SKIPPED if result is None else result.outcome, result)


def begin_record(loaded: Loaded, request: UnitTestRequest, tests: Sequence[SelectedTest]) -> RecordedTests:
    """Returns the record of `tests`, and writes that they have not run yet."""
    project = loaded.compiled.project
    command = ShortCommand(project.root, project.target.name, arguments_of_tests(request))
    command.write([TestState(test).as_json() for test in tests], succeeded=None)
    return RecordedTests(tests, command)
