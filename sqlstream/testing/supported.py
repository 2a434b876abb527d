"""Checks that the installed Spark has the internals that unit tests need. There is no public API for them."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructType

from sqlstream.compiler.spark_versions import TESTED, is_later
from sqlstream.errors import Finding, FindingsError
from sqlstream.spark.jvm.gateway import JVM_ERRORS
from sqlstream.spark.jvm.internals import is_missing
from sqlstream.spark.reading.memory_streams import (
    Clock,
    MemoryInput,
    MemoryOutput,
    batches_paused,
    start_in_memory,
    stop_idle_query,
)
from sqlstream.testing.stream import checkpoint_folder

PROBE = StructType().add("id", LongType())


def check_supported(session: SparkSession, version: str) -> None:
    """Runs an empty in-memory query on a Spark later than the tested versions, whose internals may have changed.

    Raises: FindingsError with one finding for all unit tests if they have.
    """
    if not is_later(version):
        return
    try:
        _run_empty_query(session)
    except (AttributeError, TypeError, *JVM_ERRORS) as error:
        if not is_missing(error):
            raise
        raise FindingsError([_unsupported(version, error)]) from error


def _run_empty_query(session: SparkSession) -> None:
    with checkpoint_folder() as folder:
        stream = MemoryInput(session, PROBE)
        query = start_in_memory(stream.frame, "append", folder, MemoryOutput(session).sink, Clock(session, 0))
        with batches_paused(query):
            pass
        stop_idle_query(query)


def _unsupported(version: str, error: Exception) -> Finding:
    return Finding(
        "untested-spark",
        f"unit tests cannot run on Spark {version}",
        f"they use parts of Spark that this version has moved or changed: {str(error).strip().splitlines()[0]}",
        f"install a tested version ({TESTED[0]} to {TESTED[-1]}), or look for a newer sqlstream",
    )
