"""`sqlstream build`."""

from __future__ import annotations

import click

from sqlstream.app.request import RunRequest
from sqlstream.app.systems import require_spark_system
from sqlstream.cli.options import project_options, selection_options, type_options
from sqlstream.cli.run_options import start_options


@click.command("build")
@project_options
@selection_options
@type_options
@start_options
def build(request: RunRequest, log_format: str, output: str) -> int:
    """Run the unit tests of the selected models, and then their queries in the order of the graph: batch models, and
    streams with the trigger available_now or once.

    If a unit test does not pass, the query of its model and all queries downstream are skipped. Queries that never end
    do not run; with --available-now, all streams end.
    """
    from sqlstream.app.run.build import build_models
    from sqlstream.cli.run_output import RunPrinter

    require_spark_system("build")
    printer = RunPrinter("build", log_format, output, request.debug)
    return printer(lambda notify: build_models(request, notify))
