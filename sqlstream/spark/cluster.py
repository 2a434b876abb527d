"""How many cores Spark has, and the number of shuffle partitions that follows from it on a cluster."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import SparkSession

PARTITIONS = "spark.sql.shuffle.partitions"

PARTITIONS_PER_CORE = 2
"""So that an uneven share of the keys does not leave a core idle, and each batch still writes few files of state."""
MOST_PARTITIONS = 200
"""Spark's own default. More is a decision about the size of the state, and not about the cores."""

REGISTRATION_SECONDS = 60.0
"""How long executors may take to register: twice what Spark itself waits for them (maxRegisteredResourcesWaitingTime),
since a number that is wrong once stays in the checkpoint.
"""
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
    executors = session.sparkContext._jsc.sc().statusStore().executorList(True)  # noqa: SLF001
    return sum(int(executors.apply(index).totalCores()) for index in range(executors.size()))


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
        self._session = session
        self._lock = threading.Lock()
        self._choice: PartitionChoice | None = None

    @property
    def choice(self) -> PartitionChoice | None:
        """What has been chosen; None while nobody has asked, or where a setting gives the number."""
        return self._choice

    def partitions(self) -> int | None:
        """Returns the number of partitions, None where Spark's own setting applies."""
        with self._lock:
            if self._choice is None and not self._is_set:
                self._choice = choose_partitions(self._setting, lambda: cores_of(self._session))
            return self._choice.partitions if self._choice else None

    @cached_property
    def _is_set(self) -> bool:
        """Whether the target, or a spark-defaults.conf, gives the number."""
        return bool(self._setting(PARTITIONS))

    def _setting(self, name: str) -> str:
        return self._session.sparkContext.getConf().get(name, "") or ""


def choose_partitions(
    setting: Callable[[str], str],
    look: Callable[[], int],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> PartitionChoice:
    """Returns the choice for a cluster whose settings are `setting(name)`, and whose cores so far are `look()`."""
    if setting(DYNAMIC).lower() == "true":
        most, each = setting(MOST_EXECUTORS), setting(CORES_PER_EXECUTOR)
        if not (most.isdigit() and each.isdigit()):
            unknown = f"executors come and go, and {MOST_EXECUTORS} and {CORES_PER_EXECUTOR} do not say how many cores"
            return _own(unknown)
        return _chosen(int(most) * int(each), "that the cluster may grow to")
    cores = _awaited_cores(_expected(setting), look, clock, sleep)
    if cores == 0:
        return _own(f"no executor has registered within {REGISTRATION_SECONDS:.0f} s")
    return _chosen(cores, "of the cluster")


def _expected(setting: Callable[[str], str]) -> int | None:
    """The cores that the settings promise, None where the cluster decides."""
    most, executors, each = (setting(name) for name in (MOST_CORES, EXECUTORS, CORES_PER_EXECUTOR))
    if executors.isdigit() and each.isdigit():
        return int(executors) * int(each)
    return int(most) if most.isdigit() else None


def _awaited_cores(
    expected: int | None, look: Callable[[], int], clock: Callable[[], float], sleep: Callable[[float], None]
) -> int:
    """The cores once all that are expected have registered, or no more come."""
    began = changed = clock()
    cores = look()
    while (now := clock()) - began < REGISTRATION_SECONDS:
        if expected is not None and cores >= expected:
            break
        if expected is None and cores and now - changed >= SETTLED_SECONDS:
            break
        sleep(LOOK_SECONDS)
        seen = look()
        if seen != cores:
            cores, changed = seen, clock()
    return cores


def _chosen(cores: int, whose: str) -> PartitionChoice:
    partitions = min(PARTITIONS_PER_CORE * cores, MOST_PARTITIONS)
    how = "twice the" if partitions == PARTITIONS_PER_CORE * cores else "the most that is chosen for"
    return PartitionChoice(
        partitions,
        f"new checkpoints get {partitions} shuffle partitions, {how} {cores} cores {whose}, and keep that number; "
        f"to choose another, set {PARTITIONS} in the target",
    )


def _own(why: str) -> PartitionChoice:
    return PartitionChoice(
        None,
        f"new checkpoints get Spark's {MOST_PARTITIONS} shuffle partitions and keep them, because {why}; "
        f"small batches with state are faster with about twice the number of cores: set {PARTITIONS} in the target",
    )
