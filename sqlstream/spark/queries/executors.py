"""Asks the executors of a cluster what runs need of them: whether they reach the driver and see the storage, their
clocks and their Python.

Over Connect: not asked.
"""

from __future__ import annotations

import posixpath
import time
import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NoAnswerError
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from pyspark.sql import SparkSession
from pyspark.sql.functions import expr

from sqlstream.project.files.paths import escaped, join
from sqlstream.spark.jvm.errors import read_error
from sqlstream.spark.jvm.gateway import SPARK_ERRORS, set_job_group
from sqlstream.spark.jvm.internals import cancel_jobs
from sqlstream.spark.storage.storage import storage_for

T = TypeVar("T")

ANSWER_SECONDS = 60.0
"""How long the executors can take to answer a question. Those of a busy machine load Spark's classes for 20 seconds."""

CLOCK_ROUNDS = 10
"""How often the clocks are asked at most. The first rounds take seconds, and the shortest one counts."""

CERTAIN_SECONDS = 0.5
"""Readings that are this certain need no further round."""

_HOST = "reflect('org.apache.spark.util.Utils', 'localHostName')"
_PROCESS = "reflect('java.lang.ProcessHandle', 'current')"
_MILLISECONDS = "reflect('java.lang.System', 'currentTimeMillis')"
"""Functions of Java, because an executor may have no Python. Spark does not know their results before the job runs."""


class ExecutorsError(Exception):
    """Executors do not answer, or not as they should; the text is the reason."""


@dataclass(frozen=True)
class ClockReading:
    """The clock of an executor on `host`, read between `asked` and `answered` by the driver's clock. `process` is the
    executor's process. All times are seconds since 1970.
    """

    host: str
    process: str
    read: float
    asked: float
    answered: float

    @property
    def ahead(self) -> float:
        """The least number of seconds by which the clock is ahead of the driver's; below 0 if it is behind."""
        return max(self.read - self.answered, 0.0) + min(self.read - self.asked, 0.0)

    @property
    def uncertainty(self) -> float:
        """The seconds by which the clock can be wrong at most without this reading showing it."""
        return self.answered - self.asked


@dataclass(frozen=True)
class ExecutorPython:
    """The Python of an executor on `host`: its version, and that of its pyarrow (empty without one)."""

    host: str
    version: str
    pyarrow: str


def read_clocks(session: SparkSession, cores: int) -> list[ClockReading]:
    """Returns a reading of each executor. `cores` are those of the cluster. Raises: ExecutorsError."""
    best: dict[tuple[str, str], ClockReading] = {}
    for _ in range(CLOCK_ROUNDS):
        for reading in within_time(session, lambda: _read_once(session, cores)):
            executor = (reading.host, reading.process)
            best[executor] = min(best.get(executor, reading), reading, key=lambda each: each.uncertainty)
        if all(reading.uncertainty < CERTAIN_SECONDS for reading in best.values()):
            break
    return sorted(best.values(), key=lambda each: (each.host, each.process))


def _read_once(session: SparkSession, cores: int) -> list[ClockReading]:
    asked = time.time()
    # a core runs one task at a time, so each executor gets one
    tasks = session.range(0, cores, 1, cores).select(expr(_HOST), expr(_PROCESS), expr(_MILLISECONDS))
    rows = tasks.collect()
    answered = time.time()
    return [ClockReading(host, process, int(clock) / 1000, asked, answered) for host, process, clock in rows]


def read_pythons(session: SparkSession, cores: int) -> list[ExecutorPython]:
    """Returns the Python of each host. Raises: ExecutorsError, also if its version does not fit the driver's."""

    def ask(_: Iterable[int]) -> list[tuple[str, str, str]]:
        # a function inside a function: Spark sends its code, so executors do not need sqlstream
        import platform
        from importlib.metadata import PackageNotFoundError, version

        try:
            pyarrow = version("pyarrow")
        except PackageNotFoundError:
            pyarrow = ""
        return [(platform.node(), platform.python_version(), pyarrow)]

    tasks = session.sparkContext.parallelize(range(cores), cores)
    answers = within_time(session, tasks.mapPartitions(ask).collect)
    return [ExecutorPython(*answer) for answer in sorted(set(answers))]


def sees_storage(session: SparkSession, folder: str, cores: int) -> bool:
    """Returns whether each executor reads what the driver has written to `folder`, the target's storage: writes small
    files there, which it removes again. Raises: ExecutorsError.
    """
    storage, path = storage_for(folder, session)
    probe = join(path, f".sqlstream-debug-{uuid.uuid4().hex}")
    texts = [f"{probe} {number}" for number in range(cores)]
    try:
        for number, text in enumerate(texts):
            storage.write_text(join(probe, f"{number}.txt"), text)
        # Spark makes each of them a task: it counts every file as 4 MB
        found = within_time(
            session, lambda: session.read.text(escaped(join(folder, posixpath.basename(probe)))).collect()
        )
    except (OSError, *SPARK_ERRORS) as error:
        raise ExecutorsError(_reason(error)) from error
    finally:
        with suppress(OSError, *SPARK_ERRORS):
            storage.remove(probe)
    return sorted(row[0] for row in found) == sorted(texts)


def within_time(session: SparkSession, job: Callable[[], T]) -> T:
    """Returns the result of `job`. Ends it if executors do not answer in time. Raises: ExecutorsError."""
    group = f"sqlstream-{uuid.uuid4().hex}"

    def run() -> T:
        set_job_group(session, group, "sqlstream debug")
        return job()

    thread = ThreadPoolExecutor(1, "executors")
    try:
        return thread.submit(run).result(ANSWER_SECONDS)
    except NoAnswerError as error:
        cancel_jobs(session, group)
        raise ExecutorsError(f"no answer within {ANSWER_SECONDS:.0f} s") from error
    except SPARK_ERRORS as error:
        raise ExecutorsError(_reason(error)) from error
    finally:
        thread.shutdown(wait=False)  # the driver may hang without a job, such as in a listing of files


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, OSError) else read_error(error).message


def driver_address(session: SparkSession) -> str:
    """Returns the host and port at which executors call the driver."""
    conf = session.sparkContext.getConf()
    return f"{conf.get('spark.driver.host')}:{conf.get('spark.driver.port')}"
