"""`sqlstream retry`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from sqlstream.app.request import ProjectRequest, RunRequest, UnitTestRequest
from sqlstream.app.systems import require_spark_system
from sqlstream.cli.options import project_options
from sqlstream.cli.output import DONE, FAILED, echo_progress, output_option, refusals_printed
from sqlstream.cli.run_options import full_refresh_option, log_format_option, threads_option

if TYPE_CHECKING:
    from sqlstream.app.run.retry import Retry


@click.command("retry")
@project_options
@threads_option
@full_refresh_option
@click.option(
    "--state",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="PATH",
    help="Folder with the run_results.json of the command to retry (default: target/).",
)
@log_format_option
@output_option("As the repeated command: lines, or one JSON object at the end.")
def retry(
    project: ProjectRequest,
    debug: bool,
    threads: int | None,
    full_refresh: bool,
    state: Path | None,
    log_format: str,
    output: str,
) -> int:
    """Repeat the last run, build, test or backfill of the project, with its options, for the nodes that failed, were
    skipped or did not reach their end.

    target/run_results.json says what these are. A query whose new version a --full-refresh has started continues that
    version.
    """
    from sqlstream.app.run.retry import RetryRequest, plan_retry
    from sqlstream.cli.run_output import RunPrinter
    from sqlstream.report.run_json import outcome_json

    require_spark_system("retry")
    is_json = "json" in (log_format, output)
    request = RetryRequest(
        project=project if _is_given("target") else replace(project, target=None),
        state=state,
        replaces_vars=_is_given("variables"),
        threads=threads if _is_given("threads") else None,
        full_refresh=full_refresh and _is_given("full_refresh"),
        debug=debug,
        is_json=is_json,
    )
    planned = plan_retry(request)
    if planned.request is None:
        if output == "json":
            echo_progress(planned.text)
            click.echo(outcome_json(planned.which, None, (), (), succeeded=True))
        else:
            click.echo(planned.text, err=is_json)
        return DONE
    echo_progress(planned.text)
    if isinstance(planned.request, RunRequest):
        return RunPrinter(planned.which, log_format, output, debug)(planned.run)
    return _repeat(planned, output, debug)


def _is_given(name: str) -> bool:
    """Returns whether an option is on the command line: variables of the environment do not override the record."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def _repeat(planned: Retry, output: str, debug: bool) -> int:
    """Repeats a command that starts no query."""
    from sqlstream.app.backfill.backfill import BackfillRequest, backfilled_json, backfilled_text
    from sqlstream.app.backfill.backfill_query import backfill_query  # loads pyspark
    from sqlstream.app.data_tests.results import DataTestRequest
    from sqlstream.app.test.unit_tests import run_tests
    from sqlstream.cli.data_test_output import check_data_tests
    from sqlstream.cli.test_output import print_outcome, result_printer

    request = planned.request
    if isinstance(request, DataTestRequest):
        return check_data_tests(request, output, debug)
    with refusals_printed(output, debug):
        if isinstance(request, UnitTestRequest):
            outcome = run_tests(request, result_printer(output))
            print_outcome(outcome, output)
            return DONE if outcome.succeeded else FAILED
        if isinstance(request, BackfillRequest):
            found = backfill_query(request)
            click.echo(backfilled_json(found) if output == "json" else backfilled_text(found))
            return DONE
    raise TypeError(f"{planned.which} cannot be repeated")
