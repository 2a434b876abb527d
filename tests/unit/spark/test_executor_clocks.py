"""What a reading of an executor's clock shows, between the driver's times before and after it."""

from __future__ import annotations

import pytest

from sqlstream.app.debug import _clocks
from sqlstream.spark.queries.executors import ClockReading


@pytest.mark.parametrize(("read", "ahead"), [(100.0, 0.0), (100.4, 0.0), (103.5, 3.0), (98.0, -2.0)])
def test_a_clock_is_wrong_only_outside_of_the_round_trip(read: float, ahead: float) -> None:
    """A time between question and answer proves nothing; one outside of them proves at least the distance."""
    assert ClockReading("b", "1", read, asked=100.0, answered=100.5).ahead == pytest.approx(ahead)


def test_the_worst_clock_is_named() -> None:
    """The check fails from a second on, and names the host and the direction; below, it says what is certain."""
    good = ClockReading("a", "1", 100.1, 100.0, 100.2)
    slow = ClockReading("b", "2", 96.0, 100.0, 100.2)

    assert _clocks([good]).ok
    assert "less than 0.2 s" in _clocks([good]).found
    assert not _clocks([good, slow]).ok
    assert "`b` is at least 4.0 s behind" in _clocks([good, slow]).found
