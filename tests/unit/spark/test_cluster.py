"""The number of shuffle partitions that follows from the cores of a cluster."""

from __future__ import annotations

import pytest

from sqlstream.spark.jvm.cluster import (
    FIRST_EXECUTOR_SECONDS,
    OTHER_EXECUTORS_SECONDS,
    PartitionChoice,
    Registrations,
    choose_partitions,
)


class Clock(Registrations):
    """A clock that only goes on while somebody sleeps, and the cores that have registered at each time."""

    def __init__(self, *registered: tuple[float, int]) -> None:
        self.time = 0.0
        self.looks = 0
        self.told: list[tuple[float, str]] = []
        self.notify = lambda text: self.told.append((round(self.time), text))
        self._registered = registered

    def now(self) -> float:
        """The time so far."""
        return self.time

    def sleep(self, seconds: float) -> None:
        """Lets time pass."""
        self.time += seconds

    def cores(self) -> int:
        """The cores so far."""
        self.looks += 1
        return max((cores for since, cores in self._registered if since <= self.time), default=0)


def choose(clock: Clock, **settings: str) -> PartitionChoice:
    """The choice under settings whose names are written with `_` for `.`."""
    known = {name.replace("_", "."): value for name, value in settings.items()}
    return choose_partitions(lambda name: known.get(name, ""), clock)


def test_executors_that_register_one_after_the_other_are_all_counted() -> None:
    """It waits until none has come for two seconds, and not until the longest time is over."""
    clock = Clock((1, 4), (2.5, 8))

    assert choose(clock).partitions == 16
    assert clock.time < 5


@pytest.mark.parametrize(
    "settings", [{"spark_cores_max": "6"}, {"spark_executor_instances": "3", "spark_executor_cores": "2"}]
)
def test_what_the_settings_promise_is_waited_for(settings: dict[str, str]) -> None:
    """Executors of YARN and Kubernetes may come seconds apart; with the last of them the wait is over."""
    clock = Clock((1, 2), (4, 4), (9, 6))

    assert choose(clock, **settings).partitions == 12
    assert 9 <= clock.time < 9.5


def test_a_cluster_that_cannot_give_all_is_not_waited_for_longer_than_spark_does() -> None:
    """The number then follows from what is there."""
    clock = Clock((1, 2))

    assert choose(clock, spark_cores_max="64").partitions == 4
    assert clock.time >= OTHER_EXECUTORS_SECONDS


def test_an_executor_may_take_minutes_which_is_said_once() -> None:
    """No batch could run before it either, and a number that is wrong once would stay in the checkpoint."""
    clock = Clock((200, 3))

    assert choose(clock).partitions == 6
    assert clock.told == [(15, "waiting for the cluster: no executor has registered yet")]


def test_executors_that_come_at_once_are_not_told_of() -> None:
    """A run says nothing of a cluster that starts as clusters do."""
    clock = Clock((5, 3))

    assert choose(clock).partitions == 6
    assert clock.told == []


def test_without_an_executor_sparks_own_number_is_kept() -> None:
    """The checkpoint keeps its number, so none is made up; the sentence says what to set."""
    clock = Clock()
    choice = choose(clock)

    assert choice.partitions is None
    assert "no executor has registered within 10 minutes" in choice.why
    assert clock.time >= FIRST_EXECUTOR_SECONDS


def test_a_large_cluster_gets_no_more_than_spark_itself_would_take() -> None:
    """Each partition costs files in each batch."""
    choice = choose(Clock((0, 500)))

    assert choice.partitions == 200
    assert "200 shuffle partitions, the maximum for 500 cores of the cluster" in choice.why


def dynamic(**settings: str) -> dict[str, str]:
    """Settings of a cluster whose executors come and go."""
    return {"spark_dynamicAllocation_enabled": "true", **settings}


@pytest.mark.parametrize(
    ("settings", "partitions"),
    [
        (dynamic(spark_dynamicAllocation_maxExecutors="10", spark_executor_cores="4"), 80),
        (dynamic(spark_dynamicAllocation_maxExecutors="10"), None),
        (dynamic(), None),
    ],
)
def test_with_dynamic_allocation_the_size_that_it_may_reach_counts(
    settings: dict[str, str], partitions: int | None
) -> None:
    """The executors of the first seconds say nothing about a stream that runs for months."""
    clock = Clock((0, 2))

    assert choose(clock, **settings).partitions == partitions
    assert (clock.time, clock.looks) == (0.0, 0)
