"""sqlstream: a folder of SQL models compiles and runs as streams on Spark.

The names below are the public API; everything else may change. `compile` and `ls` need no Java and load no pyspark.
"""

from __future__ import annotations

from sqlstream.app.compile import compile_models
from sqlstream.app.request import ProjectRequest, RunRequest
from sqlstream.app.run import run_models
from sqlstream.errors import Finding, FindingsError, Severity, SqlstreamError, UsageError
from sqlstream.location import Location
from sqlstream.version import __version__

__all__ = [
    "Finding",
    "FindingsError",
    "Location",
    "ProjectRequest",
    "RunRequest",
    "Severity",
    "SqlstreamError",
    "UsageError",
    "__version__",
    "compile_models",
    "run_models",
]
