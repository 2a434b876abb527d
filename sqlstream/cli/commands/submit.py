"""`sqlstream submit`."""

from __future__ import annotations

import json
from dataclasses import replace

import click

from sqlstream.app.request import RunRequest
from sqlstream.app.systems import require_spark_system
from sqlstream.cli.options import project_options, selection_options, shard_option
from sqlstream.cli.output import DONE, FAILED, echo_progress, echo_warnings, refusals_printed
from sqlstream.cli.run_options import bound_options, start_options

SPARK_APPLICATION, SPARK_CONNECT = "spark-application", "spark-connect"


@click.command("submit")
@project_options
@selection_options
@shard_option
@start_options
@bound_options
@click.option(
    "--manifest",
    type=click.Choice([SPARK_APPLICATION, SPARK_CONNECT]),
    envvar="SQLSTREAM_MANIFEST",
    show_envvar=True,
    help="Start nothing, and print manifests for Kubeflow's Spark operator: of the run, or of a Spark Connect server.",
)
def submit(request: RunRequest, log_format: str, output: str, standby: bool, manifest: str | None) -> int:
    """Start the same run with its driver in the cluster (Spark's cluster mode), on YARN or Kubernetes.

    Compiles the project, packs it with sqlstream in one archive, starts it with spark-submit, and waits for its end.
    The events of the run go to the storage of the target, where status and ui find them on any machine.
    """
    from sqlstream.app.submit.manifests import spark_application, spark_connect
    from sqlstream.app.submit.submit import prepare
    from sqlstream.app.submit.submit import submit as start

    require_spark_system("submit")
    request = replace(request, standby=standby)
    with refusals_printed(output, request.debug):
        found = prepare(request, echo_progress, with_sqlstream=manifest is None, log_format=log_format)
        echo_warnings(found.warnings)
        if manifest is not None:
            click.echo((spark_application if manifest == SPARK_APPLICATION else spark_connect)(found), nl=False)
            return DONE
        size, files = len(found.archive.content) / 1e6, len(found.archive.files)
        echo_progress(f"Packed {files} files of {found.name}, and sqlstream: {found.archive.name} ({size:.1f} MB)")
        succeeded = start(found, request.project.env, echo_progress)
    if output == "json":
        shown = {"command": "submit", "archive": found.archive.name, "files": found.archive.files}
        click.echo(json.dumps({**shown, "succeeded": succeeded}))
    return DONE if succeeded else FAILED
