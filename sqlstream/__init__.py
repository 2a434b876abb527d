"""sqlstream: a folder of SQL models compiles and runs as streams on Spark.

The names below are the public API; everything else may change. `compile` and `ls` need no Java and load no pyspark.
Each name is loaded when it is first used, so that a command loads only what it needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlstream.app.compile.compile import compile_models
    from sqlstream.app.request import ProjectRequest, RunRequest
    from sqlstream.app.run.run import run_models
    from sqlstream.errors import Finding, FindingsError, Severity, SqlstreamError, UsageError
    from sqlstream.location import Location
    from sqlstream.spark.writing.micro_batches import MicroBatch
    from sqlstream.version import __version__

__all__ = [
    "Finding",
    "FindingsError",
    "Location",
    "MicroBatch",
    "ProjectRequest",
    "RunRequest",
    "Severity",
    "SqlstreamError",
    "UsageError",
    "__version__",
    "compile_models",
    "run_models",
]

_HOMES = {
    **dict.fromkeys(("Finding", "FindingsError", "Severity", "SqlstreamError", "UsageError"), "sqlstream.errors"),
    **dict.fromkeys(("ProjectRequest", "RunRequest"), "sqlstream.app.request"),
    "Location": "sqlstream.location",
    "MicroBatch": "sqlstream.spark.writing.micro_batches",
    "__version__": "sqlstream.version",
    "compile_models": "sqlstream.app.compile.compile",
    "run_models": "sqlstream.app.run.run",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
