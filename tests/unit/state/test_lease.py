"""When a run can take over the lease of another one."""

from __future__ import annotations

import pytest

from sqlstream.state.runs.lease_rules import (
    PERIOD_SECONDS,
    PERIODS_TO_EXPIRE,
    Availability,
    Holder,
    Observer,
    beat_name,
    holder_name,
    newest_token,
    read_holder,
    released_name,
    token_of,
)

HERE = "this machine"
HOLDER = Holder("a1", "process 7 on etl-1", "another machine", ((7, "start 7"), (8, "start 8")), period=2.0)


def observer(**running: str) -> Observer:
    """Returns an observer on `HERE`, where the processes `p<number>` are running."""
    return Observer(HERE, lambda pid: running.get(f"p{pid}"))


def names(token: int, *beats: int) -> set[str]:
    """Returns the files of a lease."""
    return {holder_name(token), *(beat_name(token, beat) for beat in beats)}


def test_a_query_without_a_lease_is_free() -> None:
    """Nobody has a query without files, or with files of other programs."""
    assert observer().judge([], None, 0.0) is Availability.FREE
    assert observer().judge([".7.json.crc", "notes.txt"], None, 0.0) is Availability.FREE


def test_a_released_query_is_free() -> None:
    """A query that was given back is free at once; the release of an earlier token does not count."""
    assert observer().judge({*names(7, 3), released_name(7)}, HOLDER, 0.0) is Availability.FREE
    assert observer().judge({*names(7, 3), released_name(6)}, HOLDER, 0.0) is Availability.UNKNOWN


@pytest.mark.parametrize("later", [names(7, 4), names(7, 3, 4), names(8)])
def test_a_run_that_changes_its_files_is_alive(later: set[str]) -> None:
    """A new heartbeat, or another run that has taken the query, is a sign of life."""
    looks = observer()
    assert looks.judge(names(7, 3), HOLDER, 100.0) is Availability.UNKNOWN
    assert looks.judge(later, HOLDER, 100.1) is Availability.HELD


@pytest.mark.parametrize(("holder", "period"), [(HOLDER, HOLDER.period), (None, PERIOD_SECONDS)])
def test_a_silent_run_is_taken_over(holder: Holder | None, period: float) -> None:
    """A run is taken over when its files have not changed for six of its periods, by the clock of the observer.

    If the text of its file is incomplete, the usual period counts.
    """
    looks, end = observer(), 100.0 + PERIODS_TO_EXPIRE * period
    assert looks.judge(names(7, 3), holder, 100.0) is Availability.UNKNOWN
    assert looks.judge(names(7, 3), holder, end) is Availability.UNKNOWN
    assert looks.judge(names(7, 3), holder, end + 0.1) is Availability.FREE


@pytest.mark.parametrize(
    ("machine", "running", "verdict"),
    [
        (HERE, {}, Availability.FREE),
        (HERE, {"p7": "start of a later process", "p8": "start of a later process"}, Availability.FREE),
        (HERE, {"p7": "start 7"}, Availability.UNKNOWN),
        (HERE, {"p8": "start 8"}, Availability.UNKNOWN),
        ("another machine", {}, Availability.UNKNOWN),
        ("", {}, Availability.UNKNOWN),
    ],
)
def test_a_dead_run_on_this_machine_is_taken_over_at_once(
    machine: str, running: dict[str, str], verdict: Availability
) -> None:
    """A run is dead when its Python and its JVM have ended, which only the same machine can tell."""
    holder = Holder("a1", "process 7", machine, ((7, "start 7"), (8, "start 8")))
    assert observer(**running).judge(names(7, 3), holder, 0.0) is verdict


def test_a_holder_is_read_back() -> None:
    """The file of a holder contains all that others need."""
    assert read_holder(HOLDER.text) == HOLDER


@pytest.mark.parametrize("text", [None, "", "{", "[]", "null", '{"id": "a1"}', HOLDER.text.replace("7", '"seven"')])
def test_an_incomplete_holder_is_unknown(text: str | None) -> None:
    """A file that a killed run did not finish names nobody."""
    assert read_holder(text) is None


def test_the_newest_token_counts() -> None:
    """Tokens are numbers, and only the file that takes a token counts."""
    assert newest_token(["9.json", "10.json", "11.beat.1", "12.released", "013.json"]) == 10
    assert [token_of(name) for name in ("10.beat.2", "3.released", "3.beat", ".3.json.crc")] == [10, 3, None, None]
