"""Spark's settings for unit tests: the SQL settings of the target, and otherwise the fastest ones for a few rows."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructType

from sqlstream.compiler.spark_versions import TESTED, is_later
from sqlstream.errors import Finding, FindingsError
from sqlstream.project.configuration.target import Target
from sqlstream.spark.jvm.cluster import PARTITIONS
from sqlstream.spark.jvm.gateway import JVM_ERRORS
from sqlstream.spark.jvm.internals import is_missing
from sqlstream.spark.jvm.state_store import PROVIDER, ROCKSDB
from sqlstream.spark.reading.memory_streams import (
    Clock,
    MemoryInput,
    MemoryOutput,
    batches_paused,
    start_in_memory,
    stop_idle_query,
)
from sqlstream.spark.storage.storage import CHECKPOINT_FILES, PLAIN_FILES
from sqlstream.testing.stream import checkpoint_folder

_MEANING = ("spark.sql.", "spark.default.parallelism")
"""Prefixes of the target's settings that may change the result of a query."""

QUICK = {
    "spark.default.parallelism": "1",
    "spark.log.level": "ERROR",
    "spark.python.sql.dataFrameDebugging.enabled": "false",  # some 15 calls of py4j for each Column function
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.streaming.numRecentProgressUpdates": "10000",
    "spark.sql.streaming.pollingDelay": "1ms",
    "spark.sql.ui.explainMode": "simple",  # the text of each plan takes time
    PARTITIONS: "1",
    CHECKPOINT_FILES: PLAIN_FILES,
}
"""A few rows need only one partition and no generated code. All progress updates of a case are kept until its end."""

IN_MEMORY = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
"""Spark's default state store provider."""

PROBE = StructType().add("id", LongType())


def target_of_tests(target: Target) -> Target:
    """Returns `target` for unit tests: on this machine, without packages and storage, and with its SQL settings."""
    settings = {
        name: value
        for name, value in target.spark.items()
        if isinstance(value, str) and name.startswith(_MEANING) and name not in (PARTITIONS, PROVIDER)
    }
    return target.model_copy(
        update={
            "master": "local[*]",
            "remote": None,
            "packages": (),
            "storage": "",
            "spark": {**QUICK, **settings},
        }
    )


def session_settings(target: Target) -> Mapping[str, str]:
    """Returns the settings of each case's session."""
    return {name: str(value) for name, value in target_of_tests(target).spark.items() if name.startswith("spark.sql.")}


def state_provider(target: Target) -> str:
    """Returns the state store provider of `target`."""
    provider = target.spark.get(PROVIDER)
    return provider if isinstance(provider, str) else (IN_MEMORY if target.is_local else ROCKSDB)


_BARE_FILES = {"fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem", "fs.file.impl.disable.cache": "true"}
"""A file system without checksum files. RocksDB needs Hadoop's default one, which copies its files."""


def state_settings(provider: str) -> Mapping[str, str]:
    """Returns the settings of a case with this state store provider."""
    return {PROVIDER: provider, **(_BARE_FILES if provider == IN_MEMORY else {})}


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
