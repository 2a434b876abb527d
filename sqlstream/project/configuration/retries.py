"""How often a failed query restarts, and after how long."""

from __future__ import annotations

from dataclasses import dataclass, fields

from sqlstream.project.configuration.trigger import interval_seconds, invalid, parse_interval
from sqlstream.project.wording import given, quoted

OUTLASTS = 15
"""The restarts of a query that never ends after lost connections, unless its model sets `retries`: with the default
delays five to ten minutes, in which a server can restart.
"""


@dataclass(frozen=True)
class Retries:
    """A failed query restarts up to `attempts` times, after `first_delay`, and then after twice as long each time, up
    to `longest_delay`.

    After `window` without a failure, the count starts again from zero. All but `attempts` are Spark intervals.
    """

    attempts: int = 3
    first_delay: str = "1 second"
    longest_delay: str = "1 minute"
    window: str = "10 minutes"

    def __str__(self) -> str:
        """Returns the number of attempts in short, as a user writes it."""
        return str(self.attempts)

    def delay_after(self, failures: int, chance: float) -> float:
        """Returns the seconds to wait after the `failures`-th failure in a row (from 1). `chance`, from 0 to 1, spreads
        queries that failed together over the second half of the delay.
        """
        longest = interval_seconds(self.longest_delay)
        whole = min(interval_seconds(self.first_delay) * 2.0 ** min(failures - 1, 64), longest)
        return whole * (1 + chance) / 2

    def resets_count_after(self, seconds: float) -> bool:
        """Returns whether a query that ran for `seconds` before it failed starts to count from zero."""
        return seconds >= interval_seconds(self.window)


KEYS = tuple(field.name for field in fields(Retries))


def parse_retries(value: object) -> Retries:
    """Returns the retries in YAML or config(): a number of attempts, or a mapping. Raises: PydanticCustomError with an
    example.
    """
    if isinstance(value, Retries):
        return value
    if isinstance(value, dict):
        return _parse_mapping(value)
    return Retries(attempts=_parse_attempts(value))


def _parse_mapping(value: dict[object, object]) -> Retries:
    unknown = next((key for key in value if key not in KEYS), None)
    if unknown is not None:
        raise invalid(f"has no key {quoted(str(unknown))}", f"its keys are {', '.join(map(quoted, KEYS))}")
    attempts = _parse_attempts(value["attempts"]) if "attempts" in value else Retries.attempts
    intervals = {str(key): parse_interval(item) for key, item in value.items() if key != "attempts"}
    retries = Retries(attempts, **intervals)
    if interval_seconds(retries.first_delay) > interval_seconds(retries.longest_delay):
        raise invalid(
            f"starts with a delay of {retries.first_delay}, which is longer than the longest one, "
            f"{retries.longest_delay}",
            "also set `longest_delay`, for example {first_delay: 10 seconds, longest_delay: 5 minutes}",
        )
    return retries


def _parse_attempts(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise invalid(
        f"cannot be {given(value)}", "set a number, for example `3`, or {attempts: 3, first_delay: 10 seconds}"
    )
