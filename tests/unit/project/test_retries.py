"""How often a failed query restarts, as configured in YAML."""

from __future__ import annotations

import pytest
from pydantic_core import PydanticCustomError

from sqlstream.project.configuration.trigger import Retries, parse_retries


def test_a_number_or_a_mapping() -> None:
    """Retries are a number or a mapping, whose missing keys have defaults."""
    assert parse_retries(5) == Retries(5, "1 second", "1 minute", "10 minutes")
    assert parse_retries({}) == Retries()
    given = parse_retries({"attempts": 0, "first_delay": "2  Seconds", "longest_delay": "1 hour", "window": "1 day"})
    assert given == Retries(0, "2 seconds", "1 hour", "1 day")


@pytest.mark.parametrize(
    ("value", "problem", "fix"),
    [
        (-1, "cannot be the number -1", "set a number, for example `3`"),
        (True, "cannot be true", "set a number"),
        ("many", "cannot be `many`", "set a number"),
        ({"attempts": "3"}, "cannot be `3`", "set a number"),
        ({"tries": 3}, "has no key `tries`", "its keys are `attempts`, `first_delay`, `longest_delay`, `window`"),
        ({"first_delay": "soon"}, "cannot be `soon`", "use a number and a full unit name"),
        (
            {"first_delay": "5 minutes"},
            "a delay of 5 minutes, which is longer than the longest one, 1 minute",
            "also set",
        ),
    ],
)
def test_anything_else_is_refused_with_an_example(value: object, problem: str, fix: str) -> None:
    """Any other value is refused with an example, in a message that starts with the key's name."""
    with pytest.raises(PydanticCustomError) as caught:
        parse_retries(value)

    assert caught.value.context is not None
    assert problem in caught.value.context["problem"]
    assert fix in caught.value.context["fix"]


def test_delays_double_up_to_the_maximum() -> None:
    """Delays double up to the maximum, and random jitter reduces each by up to half."""
    retries = Retries(9, "1 second", "10 seconds")
    assert [retries.delay_after(failures, 1.0) for failures in (1, 2, 3, 4, 5, 1000)] == [1, 2, 4, 8, 10, 10]
    assert [retries.delay_after(failures, 0.0) for failures in (1, 2, 5)] == [0.5, 1, 5]


def test_a_long_run_resets_the_count() -> None:
    """A query that ran for at least the window starts counting attempts from zero."""
    retries = Retries(window="1 minute 30 seconds")
    assert [retries.resets_count_after(seconds) for seconds in (89.0, 90.0)] == [False, True]
