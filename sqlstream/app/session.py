"""The Spark session of a loaded project, and where its target stores."""

from __future__ import annotations

import logging

from sqlstream.app.loading import Loaded
from sqlstream.errors import Finding, FindingsError
from sqlstream.project.paths import join
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.session import SparkLaunch, SparkRuntime, start_spark

spark_logger = logging.getLogger("sqlstream.spark")


def check_target(loaded: Loaded) -> None:
    """Raises: FindingsError where this version cannot start queries on the target."""
    target = loaded.compiled.project.target
    if target.remote is None:
        return
    problem = Finding(
        "unsupported-target",
        f"target `{target.name}` runs over Spark Connect, which this version cannot start queries on",
        f"remote: {target.remote} gives no access to what a run needs of Spark's own process",
        "give the target a master: such as local[*] or spark://host:7077",
        target.location,
    )
    raise FindingsError([problem])


def storage_base(loaded: Loaded) -> str:
    """Returns the target's storage as an absolute path or URI."""
    project = loaded.compiled.project
    return join(str(project.root), project.target.storage)


def start_session(loaded: Loaded, secrets: Secrets, *, console_to_stderr: bool = False) -> SparkRuntime:
    """Returns a started Spark for the project's target; console sinks print where `console_to_stderr` says.

    Raises: FindingsError.
    """
    project = loaded.compiled.project
    missing = secrets.missing(project.target.spark, project.target.location)
    if missing:
        raise FindingsError(missing)
    warehouse = join(storage_base(loaded), "warehouse")
    launch = SparkLaunch(f"sqlstream {project.name}", warehouse, spark_logger.info, console_to_stderr)
    return start_spark(project.target, secrets, launch)
