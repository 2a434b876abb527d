"""The settings of a cluster: the default of the shuffle partitions from its cores, and how long lost executors count."""

from __future__ import annotations

import pytest

from sqlstream.location import Location
from sqlstream.project.configuration.target import Target
from sqlstream.spark.jvm.cluster import (
    FIRST_EXECUTOR_SECONDS,
    OTHER_EXECUTORS_SECONDS,
    PartitionChoice,
    Registrations,
    choose_partitions,
)
from sqlstream.spark.jvm.session import FAILURES_COUNT_FOR, spark_settings


class Clock(Registrations):
    """A clock that advances only during `sleep`, and the cores that have registered at each time."""

    def __init__(self, *registered: tuple[float, int]) -> None:
        self.time = 0.0
        self.looks = 0
        self.told: list[tuple[float, str]] = []
        self.notify = lambda text: self.told.append((round(self.time), text))
        self._registered = registered

    def now(self) -> float:
        """Returns the time so far."""
        return self.time

    def sleep(self, seconds: float) -> None:
        """Advances the time."""
        self.time += seconds

    def where(self) -> str:
        """Returns nothing to add to a notice."""
        return ""

    def cores(self) -> int:
        """Returns the cores so far."""
        self.looks += 1
        return max((cores for since, cores in self._registered if since <= self.time), default=0)


def choose(clock: Clock, **settings: str) -> PartitionChoice:
    """Returns the choice for settings whose names have `_` instead of `.`."""
    known = {name.replace("_", "."): value for name, value in settings.items()}
    return choose_partitions(lambda name: known.get(name, ""), clock)


def test_executors_that_register_later_are_counted() -> None:
    """The wait ends two seconds after the last executor, before the time limit."""
    clock = Clock((1, 4), (2.5, 8))

    assert choose(clock).partitions == 16
    assert clock.time < 5


@pytest.mark.parametrize(
    "settings", [{"spark_cores_max": "6"}, {"spark_executor_instances": "3", "spark_executor_cores": "2"}]
)
def test_it_waits_for_the_requested_executors(settings: dict[str, str]) -> None:
    """On YARN and Kubernetes they can register seconds apart; the wait ends with the last one."""
    clock = Clock((1, 2), (4, 4), (9, 6))

    assert choose(clock, **settings).partitions == 12
    assert 9 <= clock.time < 9.5


@pytest.mark.parametrize("master", ["yarn", "k8s://https://example.com:6443"])
def test_it_waits_for_sparks_default_of_two_executors(master: str) -> None:
    """Without settings, YARN and Kubernetes start two executors with a core each, one after the other."""
    clock = Clock((1, 1), (9, 2))

    assert choose(clock, spark_master=master).partitions == 4
    assert 9 <= clock.time < 9.5


def test_the_wait_for_missing_executors_is_limited() -> None:
    """If some executors never register, the number follows from the registered cores."""
    clock = Clock((1, 2))

    assert choose(clock, spark_cores_max="64").partitions == 4
    assert clock.time >= OTHER_EXECUTORS_SECONDS


def test_a_long_wait_for_an_executor_is_reported_once() -> None:
    """The wait for the first executor can take minutes, with one notice."""
    clock = Clock((200, 3))

    assert choose(clock).partitions == 6
    assert clock.told == [(15, "waiting for the cluster: no executor has registered yet")]


def test_a_wait_that_has_failed_is_not_repeated() -> None:
    """The number of partitions follows at once, if no executor has registered before."""
    clock = Clock()
    clock.patience = 0

    assert choose(clock).partitions is None
    assert clock.time == 0


def test_a_short_wait_is_not_reported() -> None:
    """A cluster whose executors register at once causes no notice."""
    clock = Clock((5, 3))

    assert choose(clock).partitions == 6
    assert clock.told == []


def test_without_an_executor_sparks_default_applies() -> None:
    """Without an executor, Spark's default applies, and the notice names the setting."""
    clock = Clock()
    choice = choose(clock)

    assert choice.partitions is None
    assert "no executor has registered within 10 minutes" in choice.why
    assert clock.time >= FIRST_EXECUTOR_SECONDS


def test_a_large_cluster_gets_at_most_sparks_default() -> None:
    """Each partition costs files in each batch."""
    choice = choose(Clock((0, 500)))

    assert choice.partitions == 200
    assert "200 shuffle partitions, the maximum for 500 cores of the cluster" in choice.why


def dynamic(**settings: str) -> dict[str, str]:
    """Returns settings of a cluster with dynamic allocation."""
    return {"spark_dynamicAllocation_enabled": "true", **settings}


@pytest.mark.parametrize(
    ("settings", "partitions"),
    [
        (dynamic(spark_dynamicAllocation_maxExecutors="10", spark_executor_cores="4"), 80),
        (dynamic(spark_dynamicAllocation_maxExecutors="10"), None),
        (dynamic(), None),
    ],
)
def test_dynamic_allocation_uses_the_maximum_size(settings: dict[str, str], partitions: int | None) -> None:
    """With dynamic allocation, the maximum size counts, not the executors of the first seconds."""
    clock = Clock((0, 2))

    assert choose(clock, **settings).partitions == partitions
    assert (clock.time, clock.looks) == (0.0, 0)


@pytest.mark.parametrize(
    ("master", "given", "found"),
    [
        ("yarn", {}, "1h"),
        ("local[2]", {}, None),
        ("yarn", {FAILURES_COUNT_FOR: "5m"}, "5m"),
        ("yarn", {"spark.yarn.executor.failuresValidityInterval": "5m"}, None),
    ],
)
def test_lost_executors_count_for_an_hour(master: str, given: dict[str, str], found: str | None) -> None:
    """Otherwise an application that runs for months ends. A setting of the target takes precedence, by each name."""
    target = Target(name="t", master=master, storage="hdfs:///s", spark=given, location=Location("project.yml"))

    assert spark_settings(target, "a", "w").get(FAILURES_COUNT_FOR) == found
