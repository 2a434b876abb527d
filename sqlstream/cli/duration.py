"""The type of options that take a time."""

from __future__ import annotations

import re

import click

SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
LONGEST_SECONDS = 100 * 365 * SECONDS["d"]
"""A hundred years: a longer time is a mistake, and threads cannot wait for it."""


class Duration(click.ParamType[float]):
    """`90`, `90s`, `5m`, `2h` or `1d`, or an interval as in YAML, such as `90 seconds`, as seconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Returns the seconds; fails as click does."""
        if isinstance(value, float):
            return value
        seconds = _seconds(str(value).strip())
        if not 0 < seconds < LONGEST_SECONDS:
            self.fail(f"{str(value)!r} is not a duration greater than zero, such as 60s, 5m or 2h", param, ctx)
        return seconds


def _seconds(text: str) -> float:
    """Returns the length of a duration, 0 if it is none."""
    from pydantic_core import PydanticCustomError

    from sqlstream.project.configuration.trigger import interval_seconds, parse_interval

    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", text)
    if match:
        return float(match.group(1)) * SECONDS[match.group(2) or "s"]
    try:
        return interval_seconds(parse_interval(text))
    except PydanticCustomError:
        return 0.0
