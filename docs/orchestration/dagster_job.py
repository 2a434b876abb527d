"""A Dagster job with an asset for each model of a sqlstream project, which one `sqlstream build` writes."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import dagster as dg

PROJECT = Path(os.environ.get("SHOP_PROJECT", "/srv/shop"))
SQLSTREAM = os.environ.get("SHOP_SQLSTREAM", "/opt/sqlstream/bin/sqlstream")
TARGET = os.environ.get("SHOP_TARGET", "prod")

COMPILE = ("compile", "--target", TARGET, "--quiet", "--output", "json")
BUILD = ("build", "--target", TARGET, "--available-now", "--output", "json")
RETRY = ("retry", "--output", "json")

FAILED = 1
"""The exit code for a failed node or an error in the project. 2 means that the command itself is wrong."""


def sqlstream(*arguments: str) -> dict:
    """Runs a command in the project. Its lines go to stderr; returns the JSON object on its stdout."""
    command = [SQLSTREAM, *arguments]
    done = subprocess.run(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode > FAILED:
        raise dg.Failure(f"sqlstream ended with code {done.returncode}", allow_retries=False)
    return json.loads(done.stdout)


def specs() -> Iterator[dg.AssetSpec]:
    """Yields an asset for each model with a sink, from target/manifest.json."""
    sqlstream(*COMPILE)  # writes the manifest, and needs no Java
    nodes = json.loads((PROJECT / "target" / "manifest.json").read_text(encoding="utf-8"))["nodes"]
    written = {unique_id for unique_id, node in nodes.items() if node.get("output")}

    def upstream(unique_id: str) -> Iterator[str]:
        """Yields the nearest models with a sink above a node, through views."""
        for parent in nodes[unique_id].get("depends_on", ()):
            if parent in written:
                yield nodes[parent]["name"]
            elif parent in nodes:
                yield from upstream(parent)

    for unique_id in written:
        node = nodes[unique_id]
        deps = sorted(set(upstream(unique_id)))
        yield dg.AssetSpec(node["name"], deps=deps, description=node["description"], skippable=True)


@dg.multi_asset(specs=list(specs()), retry_policy=dg.RetryPolicy(max_retries=2, delay=60), name="build")
def build(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult]:
    """Builds the project. After a failure, the next attempt runs only what failed or was skipped."""
    outcome = sqlstream(*(RETRY if context.retry_number else BUILD))
    for node in outcome["results"]:
        if node["status"] == "success":
            metadata = {"rows_out": node["rows_out"], "seconds": node["duration_seconds"], "output": node["output"]}
            known = {key: value for key, value in metadata.items() if value is not None}
            yield dg.MaterializeResult(node["model"], metadata=known)
        elif node["status"] in ("error", "failed"):
            context.log.error(f"{node['unique_id']}: {node.get('error') or node.get('findings')}")
    if not outcome["succeeded"]:
        raise dg.Failure("sqlstream build failed", metadata={"findings": dg.MetadataValue.json(outcome["findings"])})


shop_streams = dg.define_asset_job("shop_streams", selection=[build])

every_15_minutes = dg.ScheduleDefinition(job=shop_streams, cron_schedule="*/15 * * * *")

defs = dg.Definitions(assets=[build], jobs=[shop_streams], schedules=[every_15_minutes])
