"""The verdict is right over bursts, catch-ups, idle sources and few batches."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from sqlstream.history.verdict import RunningFacts, TimedBatch, excess, growth, verdict_of

NOW = 10_000.0


def ran(lags: Sequence[float], unit: str = "records", span: float = 30.0) -> list[TimedBatch]:
    """Returns batches of 5 seconds with these lags, the last one of which has just ended."""
    began = NOW - span * len(lags)
    return [TimedBatch(began + span * number, 5.0, 100, {unit: int(lag)}) for number, lag in enumerate(lags)]


def noisy(of: Callable[[int], float], count: int = 120, noise: float = 50.0, seed: int = 1) -> list[float]:
    """Returns values with noise, none of which is negative."""
    chance = random.Random(seed)
    return [max(of(number) + chance.uniform(-noise, noise), 0.0) for number in range(count)]


KEEPS_UP = {
    "always 0": [0.0] * 50,
    "noise": noisy(lambda _: 60),
    "a steady backlog": noisy(lambda _: 10_000, noise=800),
    "a burst that ends": [0.0] * 40 + [1000.0 * number for number in range(8)] + [0.0] * 3,
    "a burst that is worked off": [0.0] * 40
    + [1000.0 * number for number in range(8)]
    + [7000.0 - 500 * number for number in range(9)],
    "a burst of a few batches": [0.0] * 40 + [1000.0, 2000.0, 3000.0],
    "bursts again and again": ([0.0] * 10 + [500.0 * number for number in range(9)]) * 6,
    "the catch-up after a start": [1_000_000.0 - 20_000 * number for number in range(45)],
    "a catch-up, then noise": [1_000_000.0 - 20_000 * number for number in range(50)] + noisy(lambda _: 60),
    "bulk loads": [90_000.0 - 1_000 * (number % 90) for number in range(180)],
    "a step": [0.0] * 40 + noisy(lambda _: 5_000, 60),
}

FALLS_BEHIND = {
    "from the start": [300.0 * number for number in range(30)],
    "with noise": noisy(lambda number: 300 * number, noise=500),
    "slowly with noise": noisy(lambda number: 5_000 + 5 * number, 200),
    "for the last 12 batches": [0.0] * 100 + [300.0 * number for number in range(12)],
    "after a catch-up": [1_000_000.0 - 50_000 * number for number in range(20)] + [300.0 * each for each in range(40)],
    "longer than earlier bursts": ([0.0] * 10 + [500.0] * 5) * 3 + [300.0 * number for number in range(30)],
}


@pytest.mark.parametrize("lags", KEEPS_UP.values(), ids=KEEPS_UP)
def test_a_lag_that_does_not_grow_keeps_up(lags: Sequence[float]) -> None:
    """Bursts, catch-ups, noise and a steady backlog are not falling behind."""
    assert verdict_of(ran(lags), RunningFacts(NOW)).kind == "keeps_up"


@pytest.mark.parametrize("lags", FALLS_BEHIND.values(), ids=FALLS_BEHIND)
@pytest.mark.parametrize("unit", ["records", "bytes", "versions"])
def test_a_lag_that_grows_falls_behind(lags: Sequence[float], unit: str) -> None:
    """A lag that grows falls behind, whether from the start, after a catch-up, or lately."""
    found = verdict_of(ran(lags, unit), RunningFacts(NOW))
    assert (found.kind, found.unit) == ("falls_behind", unit)


def test_the_rate_is_that_of_the_lag() -> None:
    """A lag that grows by 300 records in 30 seconds falls behind by 10 records per second."""
    assert verdict_of(ran(FALLS_BEHIND["from the start"]), RunningFacts(NOW)).rate == pytest.approx(10.0)
    assert growth([(float(number), 1e9 + 5.0 * number) for number in range(50)]) == pytest.approx(5.0)


def test_units_are_not_compared() -> None:
    """The lags of files and of Kafka count separately: one that grows is enough."""
    batches = [
        TimedBatch(
            30.0 * number, 5.0, 100, {"records": 1_000_000 - 10_000 * number, "bytes": 2_000 * number, "files": number}
        )
        for number in range(40)
    ]
    found = verdict_of(batches, RunningFacts(NOW))
    assert (found.kind, found.unit) == ("falls_behind", "bytes")
    assert found.rate == pytest.approx(2_000 / 30)


@pytest.mark.parametrize("count", [0, 1, 9])
def test_few_batches_say_nothing(count: int) -> None:
    """With fewer than ten batches the verdict is not known, whether the lag grows or is unknown."""
    for batches in (ran([1000.0 * number for number in range(count)]), without_lag([100] * count)):
        assert verdict_of(batches, RunningFacts(NOW)).kind == "unknown"


def without_lag(
    rows: Sequence[int], per_second: float = 100.0, pause: float = 0.0, start: float = 1.0
) -> list[TimedBatch]:
    """Returns batches that take their time, each `pause` seconds after the one before."""
    found, at = [], start
    for count in rows:
        found.append(TimedBatch(at, max(count / per_second, 0.1), count, {}))
        at = found[-1].end + pause
    return found


def test_batches_that_grow_without_a_pause_fall_behind() -> None:
    """Without a limit a batch reads what has arrived during the one before. Kafka's lag is always 0 then."""
    rows = [int(100 * 1.2**number) for number in range(20)]
    batches = without_lag(rows)
    found = verdict_of(batches, RunningFacts(NOW))
    assert (found.kind, found.unit) == ("falls_behind", "rows")
    assert found.rate == pytest.approx(20.0, rel=0.1)
    kafka = [TimedBatch(each.at, each.seconds, each.rows, {"records": 0}) for each in batches]
    assert verdict_of(kafka, RunningFacts(NOW)) == found


@pytest.mark.parametrize(
    "batches",
    [
        without_lag([10_000, *[100] * 30]),
        without_lag([int(100 * 1.2**number) for number in range(20)], pause=30.0),
        without_lag([100 + number for number in range(100)]),
        without_lag([*[100] * 30, 4_000, 500, 100, 100]),
        without_lag([*[100] * 30, 4_000]),
        without_lag([100 if number % 9 else 5_000 for number in range(90)]),
    ],
    ids=["catch-up", "pauses", "slow growth", "a burst", "a burst at the end", "bursts"],
)
def test_without_a_lag_and_a_limit_batches_that_do_not_grow_keep_up(batches: list[TimedBatch]) -> None:
    """If a batch reads all that there is, only batches that grow without a pause fall behind."""
    assert excess(batches) is None
    assert verdict_of(batches, RunningFacts(NOW)).kind == "keeps_up"


def test_a_limit_without_a_lag_hides_what_is_left() -> None:
    """A batch that reads at most so many files does not show how many are left."""
    assert verdict_of(without_lag([100] * 30), RunningFacts(NOW, is_limited=True)).kind == "unknown"
    assert verdict_of(ran([0] * 30), RunningFacts(NOW, is_limited=True)).kind == "keeps_up"


def test_a_limit_per_batch_makes_batches_say_nothing() -> None:
    """Batches that grow without a pause are no sign with a limit: they may be the catch-up that it allows."""
    grows = without_lag([int(100 * 1.2**number) for number in range(20)])
    assert verdict_of(grows, RunningFacts(NOW)).kind == "falls_behind"
    assert verdict_of(grows, RunningFacts(NOW, is_limited=True)).kind == "unknown"


def test_a_query_that_ends_by_itself_has_no_verdict() -> None:
    """`available_now` and `once` read what there is, however much that was."""
    batches = ran(FALLS_BEHIND["from the start"])
    assert verdict_of(batches, RunningFacts(NOW, ends=True)).kind == "ends"
    assert verdict_of(batches, RunningFacts(NOW, has_batches=False)).kind == "unknown"


def test_an_idle_source() -> None:
    """A query that has read everything keeps up, with few batches and none lately. One without rows is not known."""
    few = ran([500.0, 0.0])
    assert verdict_of(few, RunningFacts(NOW + 7_200, lag={"files": 0, "bytes": 0})).kind == "keeps_up"
    assert verdict_of(few, RunningFacts(NOW, lag={"files": 1, "bytes": 10})).kind == "unknown"
    assert verdict_of([], RunningFacts(NOW, lag={"files": 0, "bytes": 0})).kind == "unknown"
    assert verdict_of([TimedBatch(at, 0.1, 0, {}) for at in range(60)], RunningFacts(NOW)).kind == "unknown"


def test_a_batch_that_does_not_end() -> None:
    """While a batch takes much longer than usual, earlier ones say nothing about now."""
    batches = ran([0.0] * 50)
    assert verdict_of(batches, RunningFacts(NOW + 3_600, open_since=NOW)).kind == "unknown"
    assert verdict_of(batches, RunningFacts(NOW + 40, open_since=NOW)).kind == "keeps_up"
    assert verdict_of(batches, RunningFacts(NOW + 3_600, open_since=NOW, is_running=False)).kind == "keeps_up"


def test_an_ended_run_is_past() -> None:
    """The verdict about a run that has ended is not about now."""
    assert not verdict_of(ran([0.0] * 20), RunningFacts(NOW, is_running=False)).is_now
    assert not verdict_of(ran(FALLS_BEHIND["from the start"]), RunningFacts(NOW, is_running=False)).is_now
