"""Prints a run or a build while it goes: as lines, in a terminal as a table, or as JSON; and returns its exit code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from sqlstream.app.run.recorded import RunOutcome
from sqlstream.cli.output import DONE, FAILED, RunLines, RunScreen, echo_trace, is_screen, refusals_printed
from sqlstream.errors import Finding, FindingsError
from sqlstream.report.live_table import LiveReporter
from sqlstream.report.run_json import JsonReporter, outcome_json
from sqlstream.report.run_text import Counts, TextReporter, summary_text
from sqlstream.state.runs.events import RunEvent, WarningEmitted

Execute = Callable[[Callable[[RunEvent], None]], RunOutcome]
"""Runs something and passes its events to the callback."""


@dataclass(frozen=True)
class RunPrinter:
    """How to print the events and the outcome of `command`: `log_format` is that of the events, `output` that of the
    outcome. With `output` json, events go to stderr.
    """

    command: str
    log_format: str
    output: str
    debug: bool

    def __call__(self, execute: Execute) -> int:
        """Executes and prints; returns the exit code."""
        if self.output == "json":
            return self._as_object(execute)
        if self.log_format == "json":
            return self._as_json_lines(execute)
        return _on_screen(execute, RunLines()) if is_screen() else _as_text(execute, RunLines())

    def _as_object(self, execute: Execute) -> int:
        """Prints the outcome as one JSON object on stdout, and the events on stderr."""
        write = RunLines(to_stderr=True)
        reporter = JsonReporter(write) if self.log_format == "json" else TextReporter(write)
        with refusals_printed(self.output, self.debug, self._refused):
            outcome = execute(reporter)
        if isinstance(reporter, JsonReporter):
            reporter.done(len(outcome.results), len(outcome.tests), succeeded=outcome.succeeded)
        text = outcome_json(
            self.command, outcome.invocation_id, outcome.entries, outcome.warnings, succeeded=outcome.succeeded
        )
        RunLines()(text)
        return _code(outcome)

    def _refused(self, findings: Sequence[Finding]) -> str:
        return outcome_json(self.command, None, (), findings, succeeded=False)

    def _as_json_lines(self, execute: Execute) -> int:
        """Prints one JSON line for every event, including the findings that refuse the run."""
        reporter = JsonReporter(RunLines())
        try:
            outcome = execute(reporter)
        except FindingsError as error:
            for finding in error.findings:
                reporter(WarningEmitted(finding))
            reporter.done(0, succeeded=False)
            if self.debug:
                echo_trace()
            return FAILED
        reporter.done(len(outcome.results), len(outcome.tests), succeeded=outcome.succeeded)
        return _code(outcome)


def _as_text(execute: Execute, write: RunLines) -> int:
    outcome = execute(TextReporter(write))
    write(summary_text(outcome.results, _counts(outcome), Path.cwd(), outcome.alerts))
    return _code(outcome)


def _on_screen(execute: Execute, write: RunLines) -> int:
    """Runs with a table that is redrawn, instead of a line for every batch."""
    reporter = LiveReporter(cast("IO[str]", RunScreen()))
    try:
        outcome = execute(reporter)
    finally:
        reporter.close()
    shown = (outcome.results, _counts(outcome), Path.cwd(), outcome.alerts)
    write(reporter.summary(*shown) or summary_text(*shown))
    return _code(outcome)


def _code(outcome: RunOutcome) -> int:
    return DONE if outcome.succeeded else FAILED


def _counts(outcome: RunOutcome) -> Counts:
    return Counts(len(outcome.warnings), outcome.tests, len(outcome.not_run))
