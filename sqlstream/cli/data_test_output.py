"""Checks data tests, and prints their results as text or JSON."""

from __future__ import annotations

import click

from sqlstream.app.data_tests.check_data import check_data
from sqlstream.app.data_tests.results import DataTestRequest, DataTestResult, done_text, result_text, results_json
from sqlstream.cli.output import DONE, FAILED, echo_warnings, refusals_printed
from sqlstream.cli.terminal import terminal_width


def check_data_tests(request: DataTestRequest, output: str, debug: bool) -> int:
    """Checks data tests, prints each result, or all as one JSON object at the end, and returns the exit code."""
    count, width = 0, terminal_width()

    def show(result: DataTestResult, total: int) -> None:
        nonlocal count
        count += 1
        click.echo(result_text(result, count, total, width))

    with refusals_printed(output, debug):
        results = check_data(request, show) if output == "text" else check_data(request)
    if output == "json":
        click.echo(results_json(results))
    else:
        echo_warnings(results.warnings)
        click.echo(f"\n{done_text(results)}")
    return DONE if results.succeeded else FAILED
