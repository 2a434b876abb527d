"""The outcome of a run or a build."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlstream.errors import Finding
from sqlstream.state.results.unit_tests import CaseResult, Outcome
from sqlstream.state.runs.events import AlertChanged, QueryNotRun, QueryResult, Status

BAD = (Outcome.FAILED, Outcome.BROKEN)
"""The outcomes of unit tests that fail a command."""


@dataclass(frozen=True)
class RunOutcome:
    """The results of a run in the order of their start, all warnings, and the alerts that are open at its end. A build
    also has the results of its unit tests, and the queries that it does not run because they never end. `entries` are
    the results as in run_results.json.
    """

    results: tuple[QueryResult, ...]
    warnings: tuple[Finding, ...]
    tests: tuple[CaseResult, ...] = ()
    not_run: tuple[QueryNotRun, ...] = ()
    entries: tuple[Mapping[str, object], ...] = ()
    invocation_id: str = ""
    alerts: tuple[AlertChanged, ...] = ()

    @property
    def succeeded(self) -> bool:
        """Whether no query and no unit test failed. Queries are skipped if another node failed, or after a stop."""
        failed = any(result.status is Status.ERROR for result in self.results)
        return not failed and not any(test.outcome in BAD for test in self.tests)
