"""Prints unit tests while they run, and their outcome as text or JSON."""

from __future__ import annotations

from collections.abc import Callable

import click

from sqlstream.app.test.unit_tests import UnitTestOutcome
from sqlstream.cli.output import echo_warnings
from sqlstream.cli.terminal import terminal_width
from sqlstream.report.unit_tests_json import results_json
from sqlstream.report.unit_tests_text import done_line, failure_text, result_line
from sqlstream.state.runs.case_outcomes import CaseResult


def result_printer(output: str) -> Callable[[CaseResult, int], None]:
    """Returns the function that prints each result with the number of tests; JSON has all of them at the end."""
    return ResultLines(terminal_width()) if output == "text" else _silent


class ResultLines:
    """Prints each result, and below it why it failed."""

    def __init__(self, width: int | None) -> None:
        self._width = width
        self._count = 0

    def __call__(self, result: CaseResult, total: int) -> None:
        """Prints the result of one of `total` tests."""
        self._count += 1
        click.echo(result_line(result, self._count, total))
        said = failure_text(result, self._width)
        if said:
            click.echo(said)

    def restart(self) -> None:
        """Counts from 1 again: the next round of --watch can have another number of tests."""
        self._count = 0


def _silent(_result: CaseResult, _total: int) -> None:
    """Prints nothing: JSON has all results in one object at the end."""


def print_outcome(outcome: UnitTestOutcome, output: str) -> None:
    """Prints the end of the output."""
    if output == "json":
        click.echo(results_json(outcome.results, outcome.findings, succeeded=outcome.succeeded))
        return
    echo_warnings(outcome.findings)
    click.echo("")
    click.echo(done_line(outcome.results, outcome.findings))
