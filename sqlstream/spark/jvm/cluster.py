"""How many cores Spark has, and the number of shuffle partitions that follows from it on a cluster."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import SparkSession

from sqlstream.spark.jvm.internals import use

PARTITIONS = "spark.sql.shuffle.partitions"

PARTITIONS_PER_CORE = 2
"""So that an uneven share of the keys does not leave a core idle, and each batch still writes few files of state."""
MOST_PARTITIONS = 200
"""Spark's own default. More is a decision about the size of the state, and not about the cores."""

FIRST_EXECUTOR_SECONDS = 600.0
"""How long the first executor may take to register. Until then no batch could run either, and a number that is wrong
once stays in the checkpoint; on Kubernetes an image may have to be pulled first.
"""
OTHER_EXECUTORS_SECONDS = 60.0
"""How long the others may take after it: twice what Spark itself waits for them (maxRegisteredResourcesWaitingTime)."""
NOTICE_SECONDS = 15.0
"""After which it is said that the run waits for an executor: Spark's log says so as often."""
SETTLED_SECONDS = 2.0
"""A standalone master starts all executors of an application together: none comes long after the last."""
LOOK_SECONDS = 0.05

DYNAMIC = "spark.dynamicAllocation.enabled"
MOST_EXECUTORS = "spark.dynamicAllocation.maxExecutors"
EXECUTORS = "spark.executor.instances"
CORES_PER_EXECUTOR = "spark.executor.cores"
MOST_CORES = "spark.cores.max"


def cores_of(session: SparkSession) -> int:
    """Returns the cores of all registered executors, or of the driver on a local master."""
    context = session.sparkContext

    def of_executors() -> int:
        executors = context._jsc.sc().statusStore().executorList(True)  # noqa: SLF001
        return sum(int(executors.apply(index).totalCores()) for index in range(executors.size()))

    return use(session, "list of executors", of_executors, lambda: context.defaultParallelism)


@dataclass(frozen=True)
class PartitionChoice:
    """The number of shuffle partitions for a new checkpoint, None for Spark's own, and a sentence that says why."""

    partitions: int | None
    why: str


class ClusterDefault:
    """The shuffle partitions that a new checkpoint gets on a cluster where no setting gives a number.

    The cluster is looked at when the first query asks, which waits until its executors have registered.
    """

    def __init__(self, session: SparkSession) -> None:
        self._registrations = Registrations(session)
        self._session = session
        self._lock = threading.Lock()
        self._choice: PartitionChoice | None = None

    @property
    def choice(self) -> PartitionChoice | None:
        """What has been chosen; None while nobody has asked, or where a setting gives the number."""
        return self._choice

    def follow(self, notify: Callable[[str], None], check: Callable[[], None]) -> None:
        """From now on a long wait is told, and ends with what `check` raises."""
        self._registrations.notify, self._registrations.check = notify, check

    def partitions(self) -> int | None:
        """Returns the number of partitions, None where Spark's own setting applies."""
        with self._lock:
            if self._choice is None and not self._is_set:
                self._choice = choose_partitions(self._setting, self._registrations)
            return self._choice.partitions if self._choice else None

    @cached_property
    def _is_set(self) -> bool:
        """Whether the target, or a spark-defaults.conf, gives the number."""
        return bool(self._setting(PARTITIONS))

    def _setting(self, name: str) -> str:
        # getConf() of the context also has what an earlier session in this process was started with
        return self._session.conf.get(name, None) or ""


class Registrations:
    """The executors of `session` as they register. Whoever waits long for one says so with `notify`, and ends with what
    `check` raises.
    """

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self.notify: Callable[[str], None] = lambda _: None
        self.check: Callable[[], None] = lambda: None

    def cores(self) -> int:
        """Returns the cores so far."""
        return cores_of(self._session)

    def now(self) -> float:
        """Returns the time in seconds."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Lets time pass. Raises: what `check` raises."""
        time.sleep(seconds)
        self.check()


def choose_partitions(setting: Callable[[str], str], registrations: Registrations) -> PartitionChoice:
    """Returns the choice for a cluster whose settings are `setting(name)`."""
    if setting(DYNAMIC).lower() == "true":
        most, each = setting(MOST_EXECUTORS), setting(CORES_PER_EXECUTOR)
        if not (most.isdigit() and each.isdigit()):
            unknown = (
                f"the number of executors varies, and {MOST_EXECUTORS} and {CORES_PER_EXECUTOR} do not limit "
                "the number of cores"
            )
            return _own(unknown)
        return _chosen(int(most) * int(each), "that the cluster may grow to")
    if not _has_executor(registrations):
        return _own(f"no executor has registered within {FIRST_EXECUTOR_SECONDS / 60:.0f} minutes")
    return _chosen(_settled_cores(_expected(setting), registrations), "of the cluster")


def _expected(setting: Callable[[str], str]) -> int | None:
    """The cores that the settings promise, None where the cluster decides."""
    most, executors, each = (setting(name) for name in (MOST_CORES, EXECUTORS, CORES_PER_EXECUTOR))
    if executors.isdigit() and each.isdigit():
        return int(executors) * int(each)
    return int(most) if most.isdigit() else None


def _has_executor(registrations: Registrations) -> bool:
    """Whether an executor has registered, which is waited for."""
    began = registrations.now()
    told = False
    while not registrations.cores():
        waited = registrations.now() - began
        if waited >= FIRST_EXECUTOR_SECONDS:
            return False
        if waited >= NOTICE_SECONDS and not told:
            registrations.notify("waiting for the cluster: no executor has registered yet")
            told = True
        registrations.sleep(LOOK_SECONDS)
    return True


def _settled_cores(expected: int | None, registrations: Registrations) -> int:
    """The cores once all that are expected have registered, or no more come."""
    began = changed = registrations.now()
    cores = registrations.cores()
    while (now := registrations.now()) - began < OTHER_EXECUTORS_SECONDS:
        if expected is not None and cores >= expected:
            break
        if expected is None and now - changed >= SETTLED_SECONDS:
            break
        registrations.sleep(LOOK_SECONDS)
        seen = registrations.cores()
        if seen != cores:
            cores, changed = seen, registrations.now()
    return cores


def _chosen(cores: int, whose: str) -> PartitionChoice:
    partitions = min(PARTITIONS_PER_CORE * cores, MOST_PARTITIONS)
    how = "twice the" if partitions == PARTITIONS_PER_CORE * cores else "the maximum for"
    return PartitionChoice(
        partitions,
        f"new checkpoints get {partitions} shuffle partitions, {how} {cores} cores {whose}, and keep that "
        f"number; to change it, set {PARTITIONS} in the target",
    )


def _own(why: str) -> PartitionChoice:
    return PartitionChoice(
        None,
        f"new checkpoints get Spark's {MOST_PARTITIONS} shuffle partitions and keep them, because {why}; small "
        f"stateful batches are faster with about twice the number of cores: set {PARTITIONS} in the target",
    )
