"""The number of cores that Spark has, and the default of the shuffle partitions on a cluster."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import SparkSession

from sqlstream.spark.jvm.connect import core_count
from sqlstream.spark.jvm.gateway import is_connect, seq_items
from sqlstream.spark.jvm.internals import call_internal
from sqlstream.spark.jvm.kubernetes import K8S, pods_command

PARTITIONS = "spark.sql.shuffle.partitions"

PARTITIONS_PER_CORE = 2
"""Keeps all cores busy even with skewed keys, while each batch writes few state files."""
MAX_PARTITIONS = 200
"""Spark's own default. Whether more are useful depends on the size of the state, not on the cores."""

FIRST_EXECUTOR_SECONDS = 600.0
"""Time for the first executor to register. No batch can run before, and a checkpoint keeps a wrong number. Kubernetes
can have to pull an image first.
"""
OTHER_EXECUTORS_SECONDS = 60.0
"""Time for the other executors after the first: twice Spark's own limit (maxRegisteredResourcesWaitingTime)."""
NOTICE_SECONDS = 15.0
"""Time until a notice that the run waits for an executor: the interval of the same warning in Spark's log."""
SETTLED_SECONDS = 2.0
"""Time without a new executor after which the cluster counts as complete: a standalone master starts all executors of
an application together.
"""
POLL_SECONDS = 0.05

DYNAMIC_ALLOCATION = "spark.dynamicAllocation.enabled"
MAX_EXECUTORS = "spark.dynamicAllocation.maxExecutors"
EXECUTORS = "spark.executor.instances"
CORES_PER_EXECUTOR = "spark.executor.cores"
MAX_CORES = "spark.cores.max"

DEFAULT_EXECUTORS, DEFAULT_CORES_PER_EXECUTOR = "2", "1"
"""Spark's defaults on YARN and Kubernetes. On a standalone cluster, the master decides."""


def cores_of(session: SparkSession) -> int:
    """Returns the number of cores of all registered executors, or of the driver on a local master."""
    return sum(cores_by_executor(session))


def cores_by_executor(session: SparkSession) -> list[int]:
    """Returns the number of cores of each registered executor, or of the driver on a local master. Over Connect: one
    number, that of the partitions into which Spark divides a range.
    """
    if is_connect(session):
        return [core_count(session)]
    context = session.sparkContext

    def of_executors() -> list[int]:
        executors = context._jsc.sc().statusStore().executorList(True)  # noqa: SLF001
        cores = (int(executor.totalCores()) for executor in seq_items(executors))
        return [number for number in cores if number]  # the driver of a cluster has none

    return call_internal(session, "list of executors", of_executors, lambda: [context.defaultParallelism])


def parallelism(session: SparkSession) -> int:
    """Returns the number of tasks that Spark starts for work that can be divided. Over Connect: as `cores_of`."""
    return core_count(session) if is_connect(session) else session.sparkContext.defaultParallelism


@dataclass(frozen=True)
class PartitionChoice:
    """The number of shuffle partitions for a new checkpoint (None: Spark's default), and the reason as a sentence."""

    partitions: int | None
    why: str


class ClusterDefault:
    """The number of shuffle partitions for new checkpoints on a cluster if no setting gives it.

    The first call of `partitions` waits until the executors have registered; the choice then stays.
    """

    def __init__(self, session: SparkSession) -> None:
        self._registrations = Registrations(session)
        self._session = session
        self._lock = threading.Lock()
        self._choice: PartitionChoice | None = None

    @property
    def choice(self) -> PartitionChoice | None:
        """The choice; None before the first call of `partitions`, or if a setting gives the number."""
        return self._choice

    def follow(self, notify: Callable[[str], None], check: Callable[[], None]) -> None:
        """Reports long waits to `notify` from now on, and calls `check` during them, which can raise to end them."""
        self._registrations.notify, self._registrations.check = notify, check

    def wait_for_executor(self) -> None:
        """Waits for the first executor, without which no job runs. With dynamic allocation, a job requests it. Over
        Connect: does not wait. Raises: what `check` of `follow` raises.
        """
        if is_connect(self._session) or _is_dynamic(self._setting):
            return
        with self._lock:
            if not _wait_for_executor(self._registrations):
                self._registrations.patience = 0.0

    def partitions(self) -> int | None:
        """Returns the number of partitions, None if Spark's own setting applies."""
        with self._lock:
            if self._choice is None and not self._is_set:
                self._choice = choose_partitions(self._setting, self._registrations)
            return self._choice.partitions if self._choice else None

    @cached_property
    def _is_set(self) -> bool:
        """Whether the target or a spark-defaults.conf gives the number."""
        return bool(self._setting(PARTITIONS))

    def _setting(self, name: str) -> str:
        # the context's getConf() also contains settings of an earlier session in this process
        return self._session.conf.get(name, None) or ""


class Registrations:
    """The executors of `session` as they register. `notify` gets notices of long waits; `check` can raise to stop.
    `patience` is how long to wait for the first one, in seconds.
    """

    patience = FIRST_EXECUTOR_SECONDS

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self.notify: Callable[[str], None] = lambda _: None
        self.check: Callable[[], None] = lambda: None

    def where(self) -> str:
        """Returns how to find out why no executor registers, empty if this depends on the cluster."""
        return _where(lambda name: self._session.conf.get(name, None) or "")

    def cores(self) -> int:
        """Returns the number of cores registered so far."""
        return cores_of(self._session)

    def now(self) -> float:
        """Returns the time in seconds."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Waits. Raises: what `check` raises."""
        time.sleep(seconds)
        self.check()


def wait_for_cores(session: SparkSession, seconds: float) -> int:
    """Returns the number of cores of all executors, as a run counts them; 0 if none registers within `seconds`."""
    registrations = Registrations(session)
    registrations.patience = seconds
    if not _wait_for_executor(registrations):
        return 0
    return _wait_for_cores(_expected_cores(lambda name: session.conf.get(name, None) or ""), registrations)


def choose_partitions(setting: Callable[[str], str], registrations: Registrations) -> PartitionChoice:
    """Returns the choice for a cluster whose settings are `setting(name)`."""
    if _is_dynamic(setting):
        return _choose_for_dynamic_allocation(setting(MAX_EXECUTORS), setting(CORES_PER_EXECUTOR))
    if not _wait_for_executor(registrations):
        return _spark_default(f"no executor has registered within {FIRST_EXECUTOR_SECONDS / 60:.0f} minutes")
    return _by_cores(_wait_for_cores(_expected_cores(setting), registrations), "of the cluster")


def _choose_for_dynamic_allocation(executors: str, cores_per_executor: str) -> PartitionChoice:
    if executors.isdigit() and cores_per_executor.isdigit():
        return _by_cores(int(executors) * int(cores_per_executor), "that the cluster may grow to")
    return _spark_default(
        f"the number of executors varies, and {MAX_EXECUTORS} and {CORES_PER_EXECUTOR} do not limit the number of cores"
    )


def _expected_cores(setting: Callable[[str], str]) -> int | None:
    """Returns the number of cores that the settings request, None if the cluster decides."""
    most, executors, each = (setting(name) for name in (MAX_CORES, EXECUTORS, CORES_PER_EXECUTOR))
    if setting("spark.master").startswith(("yarn", K8S)):
        # they start executors one by one, so the first one is not all
        executors, each = executors or DEFAULT_EXECUTORS, each or DEFAULT_CORES_PER_EXECUTOR
    if executors.isdigit() and each.isdigit():
        return int(executors) * int(each)
    return int(most) if most.isdigit() else None


def _is_dynamic(setting: Callable[[str], str]) -> bool:
    return setting(DYNAMIC_ALLOCATION).lower() == "true"


def _where(setting: Callable[[str], str]) -> str:
    return f"; see {pods_command(setting)}" if setting("spark.master").startswith(K8S) else ""


def _wait_for_executor(registrations: Registrations) -> bool:
    """Waits for the first executor, and returns whether it has registered in time."""
    began = registrations.now()
    is_reported = False
    while not registrations.cores():
        waited = registrations.now() - began
        if waited >= registrations.patience:
            return False
        if waited >= NOTICE_SECONDS and not is_reported:
            registrations.notify(f"waiting for the cluster: no executor has registered yet{registrations.where()}")
            is_reported = True
        registrations.sleep(POLL_SECONDS)
    return True


def _wait_for_cores(expected: int | None, registrations: Registrations) -> int:
    """Returns the number of cores as soon as all expected ones have registered, or no more arrive."""
    began = changed = registrations.now()
    cores = registrations.cores()
    while (now := registrations.now()) - began < OTHER_EXECUTORS_SECONDS:
        is_complete = now - changed >= SETTLED_SECONDS if expected is None else cores >= expected
        if is_complete:
            break
        registrations.sleep(POLL_SECONDS)
        seen = registrations.cores()
        if seen != cores:
            cores, changed = seen, registrations.now()
    return cores


def _by_cores(cores: int, whose: str) -> PartitionChoice:
    partitions = min(PARTITIONS_PER_CORE * cores, MAX_PARTITIONS)
    how = "twice the" if partitions == PARTITIONS_PER_CORE * cores else "the maximum for"
    return PartitionChoice(
        partitions,
        f"new checkpoints get {partitions} shuffle partitions, {how} {cores} cores {whose}, and keep that "
        f"number; to change it, set {PARTITIONS} in the target",
    )


def _spark_default(why: str) -> PartitionChoice:
    return PartitionChoice(
        None,
        f"new checkpoints get Spark's {MAX_PARTITIONS} shuffle partitions and keep them, because {why}; small "
        f"stateful batches are faster with about twice the number of cores: set {PARTITIONS} in the target",
    )
