"""`sqlstream test`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from sqlstream.app.request import ProjectRequest, Selection, UnitTestRequest
from sqlstream.app.systems import require_spark_system
from sqlstream.cli.options import project_options, selection_options
from sqlstream.cli.output import DONE, FAILED, echo_progress, output_option, refusals_printed
from sqlstream.cli.terminal import terminal_width
from sqlstream.errors import UsageError
from sqlstream.report.findings import findings_text

if TYPE_CHECKING:
    from sqlstream.app.test.unit_tests import UnitTestOutcome
    from sqlstream.state.runs.case_outcomes import Coverage

RECORDED_ROWS = 20
"""Default number of rows to record of each input."""

record_limit_option = click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=RECORDED_ROWS,
    show_default=True,
    help="Maximum number of rows that --record takes from each input.",
)


@click.command("test")
@project_options
@selection_options
@click.option(
    "-x",
    "--fail-fast",
    is_flag=True,
    envvar="SQLSTREAM_FAIL_FAST",
    show_envvar=True,
    help="Stop after the first test that does not pass.",
)
@click.option(
    "--equivalence/--no-equivalence",
    default=False,
    envvar="SQLSTREAM_EQUIVALENCE",
    show_envvar=True,
    help="Also run each case as a batch, as one micro-batch and row by row; all results must be equal.",
)
@click.option("--watch", is_flag=True, help="After each change of a file, run the affected tests again.")
@click.option(
    "--update",
    is_flag=True,
    help="Show the differences, and write the actual rows to the test files.",
)
@click.option(
    "--record",
    metavar="MODEL",
    help="Write a test case from real input rows of MODEL and its output; see --limit.",
)
@record_limit_option
@click.option("--data", is_flag=True, help="Check the data tests of the selected models on the rows in their sinks.")
@click.option(
    "--store-failures",
    is_flag=True,
    envvar="SQLSTREAM_STORE_FAILURES",
    show_envvar=True,
    help="With --data, write the rows that violate a test to target/data_tests/ as Parquet files.",
)
@click.option("--coverage", is_flag=True, help="Show models and columns without tests; runs no test.")
@click.option(
    "--coverage-min",
    type=click.FloatRange(0, 100),
    metavar="PERCENT",
    help="Also fail if tests cover less than this percentage of columns.",
)
@click.option(
    "--junit-xml",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also write the results as JUnit XML.",
)
@output_option("Text, or one JSON object at the end.")
def test(
    project: ProjectRequest,
    debug: bool,
    selection: Selection,
    fail_fast: bool,
    equivalence: bool,
    watch: bool,
    update: bool,
    record: str | None,
    limit: int,
    data: bool,
    store_failures: bool,
    coverage: bool,
    coverage_min: float | None,
    junit_xml: Path | None,
    output: str,
) -> int:
    """Run the unit tests of the selected models, or the tests that unit_test:NAME selects.

    A test gives rows to a model, batch by batch, and states the rows that it emits. It needs no source and no
    network. With --data, check the data tests of the models on the rows that their sinks hold.
    """
    from sqlstream.app.test.coverage import find_coverage
    from sqlstream.app.test.unit_tests import run_tests
    from sqlstream.app.test.update import update_expectations
    from sqlstream.cli.test_output import print_outcome, result_printer

    require_spark_system("test")
    modes = {
        "--data": data,
        "--coverage": coverage,
        "--watch": watch,
        "--record": record is not None,
        "--update": update,
    }
    _check_modes([flag for flag, is_given in modes.items() if is_given], junit_xml)
    if data:
        if equivalence or coverage_min is not None:
            option = "--equivalence" if equivalence else "--coverage-min"
            raise UsageError(f"--data and {option} cannot be combined; {option} is about unit tests")
        from sqlstream.app.data_tests.results import DataTestRequest
        from sqlstream.cli.data_test_output import check_data_tests

        return check_data_tests(DataTestRequest(project, selection, fail_fast, store_failures), output, debug)
    if (
        store_failures
        and click.get_current_context().get_parameter_source("store_failures") is ParameterSource.COMMANDLINE
    ):
        raise UsageError("--store-failures needs --data")
    request = UnitTestRequest(project, selection, fail_fast, equivalence)
    if watch:
        return _watch(request, output)
    with refusals_printed(output, debug):
        if coverage:
            return _cover(find_coverage(request), coverage_min, output)
        if record is not None:
            return _record(request, record, limit, output)
        outcome = run_tests(request, result_printer(output))
    if junit_xml is not None:
        _write_xml(outcome, junit_xml)
    print_outcome(outcome, output)
    if update:
        for line in update_expectations(request.project.folder, outcome.results):
            echo_progress(line)
    return DONE if outcome.succeeded and _covers_enough(request, coverage_min) else FAILED


def _check_modes(given: Sequence[str], junit_xml: Path | None) -> None:
    """Raises: UsageError for options that cannot be combined."""
    if len(given) > 1:
        raise UsageError(f"{given[0]} and {given[1]} cannot be combined; use only one of them")
    if junit_xml is not None and given not in ([], ["--update"]):
        raise UsageError(f"--junit-xml needs a run of all tests; remove it or {given[0]}")


def _write_xml(outcome: UnitTestOutcome, path: Path) -> None:
    from sqlstream.report.unit_tests_json import results_xml

    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(results_xml(outcome.results, outcome.project), encoding="utf-8")


def _covers_enough(request: UnitTestRequest, least: float | None) -> bool:
    from sqlstream.app.test.coverage import find_coverage

    if least is None or (percent := find_coverage(request).percent) >= least:
        return True
    echo_progress(f"tests cover {percent:.0f} % of the columns, less than the {least:g} % that --coverage-min requires")
    return False


def _cover(found: Coverage, least: float | None, output: str) -> int:
    from sqlstream.report.unit_tests_text import coverage_json, coverage_text

    click.echo(coverage_json(found) if output == "json" else coverage_text(found, terminal_width()))
    return DONE if least is None or found.percent >= least else FAILED


def _record(request: UnitTestRequest, model: str, limit: int, output: str) -> int:
    from sqlstream.app.test.record_case import record_case  # pyspark is loaded here and not before
    from sqlstream.cli.test_output import ResultLines, print_outcome

    outcome = record_case(request, model, limit, echo_progress)
    if output == "text":
        lines = ResultLines(terminal_width())
        for result in outcome.results:
            lines(result, len(outcome.results))
    print_outcome(outcome, output)
    return DONE if outcome.succeeded else FAILED


def _watch(request: UnitTestRequest, output: str) -> int:
    from sqlstream.app.test.watch import Rerun, watch_tests  # pyspark is loaded here and not before
    from sqlstream.cli.test_output import ResultLines
    from sqlstream.report.unit_tests_text import done_line

    if output == "json":
        raise UsageError("--watch prints text only; remove --output")

    lines = ResultLines(terminal_width())

    def show(rerun: Rerun) -> None:
        lines.restart()
        if rerun.findings:
            click.echo(findings_text(rerun.findings))
        changed = f" after {', '.join(rerun.changed)}" if rerun.changed else ""
        click.echo(f"{done_line(rerun.results, rerun.findings)} in {rerun.seconds:.1f} s{changed}")
        click.echo("Waiting for changes; press Ctrl-C to stop.\n")

    watch_tests(request, lines, show)
    return DONE
