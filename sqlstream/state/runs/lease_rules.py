"""The lease of a query, on storage without file locks: which run has it, and when another run can take it.

A lease is a folder of small files that are created once and never change. The names begin with a token, a number that
only grows: `7.json` names the run that has taken token 7, `7.beat.12` is its twelfth heartbeat, and `7.released` gives
the query back. Creating `8.json` takes the query over. Only one run can create it, and the highest token counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from enum import StrEnum

PERIOD_SECONDS = 10.0
"""The time between two heartbeats."""

PERIODS_TO_LIVE = 4
"""A run that could not write a heartbeat for so many periods stops its query."""

PERIODS_TO_EXPIRE = 6
"""A run that waits takes the query over after so many periods without a heartbeat. The difference to `PERIODS_TO_LIVE`
is the time to stop. Both sides count with their own clocks, from a moment that is later for the run that waits.
"""

_NAME = re.compile(r"([1-9][0-9]*)\.(?:json|released|beat\.[1-9][0-9]*)")


@dataclass(frozen=True)
class Holder:
    """The run that has taken a token, and how others recognize it.

    `id` is unique. `name` is for messages. `machine` differs between machines, boots and containers, and is empty if it
    is unknown. `processes` are those that can write: their numbers and starts. `period` is the time between two
    heartbeats, in seconds.
    """

    id: str
    name: str
    machine: str = ""
    processes: tuple[tuple[int, str], ...] = ()
    period: float = PERIOD_SECONDS

    @property
    def text(self) -> str:
        """The content of the file that takes a token."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"

    def is_dead(self, machine: str, start_of: Callable[[int], str | None]) -> bool:
        """Returns whether all processes of the run have ended. Only processes on the same `machine` can be judged.

        `start_of` returns the start of a process, None if it does not exist.
        """
        is_here = bool(machine) and machine == self.machine and bool(self.processes)
        return is_here and all(start_of(pid) != start for pid, start in self.processes)


def read_holder(text: str | None) -> Holder | None:
    """Returns the holder in the text of a file, None if the text is missing, incomplete or from another program."""
    try:
        found = json.loads(text or "")
        processes = tuple((int(pid), str(start)) for pid, start in found["processes"])
        return Holder(
            str(found["id"]), str(found["name"]), str(found["machine"]), processes, max(0.0, float(found["period"]))
        )
    except (ValueError, KeyError, TypeError):
        return None


def holder_name(token: int) -> str:
    """Returns the file that takes `token`."""
    return f"{token}.json"


def beat_name(token: int, number: int) -> str:
    """Returns the file of a heartbeat; `number` counts from 1."""
    return f"{token}.beat.{number}"


def released_name(token: int) -> str:
    """Returns the file that gives the query back."""
    return f"{token}.released"


def newest_token(names: Collection[str]) -> int:
    """Returns the highest token that a run has taken, 0 if there is none."""
    return max((token_of(name) or 0 for name in names if name.endswith(".json")), default=0)


def lease_holder(names: Collection[str], read: Callable[[str], str | None]) -> str | None:
    """Returns the name of the run that took the newest token and has not given it back, None if there is none. Whether
    it is still alive shows only if one looks again. `read` returns the text of a file.
    """
    token = newest_token(names)
    if token == 0 or released_name(token) in names:
        return None
    holder = read_holder(read(holder_name(token)))
    return None if holder is None else holder.name


def holder_text(holder: str) -> str:
    """Returns the name of a run as part of a sentence: the time since when it runs is in parentheses."""
    name, comma, since = holder.partition(", since ")
    return f"{name} (since {since})" if comma else holder


def token_of(name: str) -> int | None:
    """Returns the token of a file, None for a file that is not part of a lease."""
    match = _NAME.fullmatch(name)
    return int(match.group(1)) if match else None


class Availability(StrEnum):
    """Whether another run can take a token."""

    FREE = "no run has it, or its run is dead"
    HELD = "a run has it"
    UNKNOWN = "look again later"


class Observer:
    """Judges from repeated looks whether a run is alive: it is while its files change.

    Nothing compares the clocks of two machines. Times are those of a monotonic clock of the observer, in seconds.
    """

    def __init__(self, machine: str, start_of: Callable[[int], str | None]) -> None:
        self._machine, self._start_of = machine, start_of
        self._seen: frozenset[str] | None = None
        self._since = 0.0

    def judge(self, names: Collection[str], holder: Holder | None, now: float) -> Availability:
        """Returns whether the newest token in `names` is free. Its run is `holder` if that is known."""
        token = newest_token(names)
        if token == 0 or released_name(token) in names:
            return Availability.FREE
        if holder is not None and holder.is_dead(self._machine, self._start_of):
            return Availability.FREE
        seen = frozenset(name for name in names if token_of(name) == token)
        if self._seen is not None and seen != self._seen:
            return Availability.HELD
        if self._seen is None:
            self._seen, self._since = seen, now
        period = PERIOD_SECONDS if holder is None else holder.period
        return Availability.FREE if now - self._since > PERIODS_TO_EXPIRE * period else Availability.UNKNOWN
