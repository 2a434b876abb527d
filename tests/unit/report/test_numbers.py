"""Numbers in text output."""

from __future__ import annotations

import pytest

from sqlstream.numbers import count_text, plural, seconds_text


@pytest.mark.parametrize(("count", "text"), [(0, "0"), (999, "999"), (1234567, "1,234,567"), (None, "-")])
def test_an_unknown_number_is_a_dash(count: int | None, text: str) -> None:
    """An unknown number is a dash, and large numbers have thousands separators."""
    assert count_text(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.00 s"),
        (0.844, "0.84 s"),
        (9.994, "9.99 s"),
        (9.996, "10.0 s"),
        (12.34, "12.3 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min 00 s"),
        (125.4, "2 min 05 s"),
        (3599.6, "1 h 00 min"),
        (11279, "3 h 07 min"),
        (180000, "50 h 00 min"),
    ],
)
def test_a_duration_has_about_three_digits(seconds: float, text: str) -> None:
    """A duration has about three digits, and rounding never gives 60 seconds."""
    assert seconds_text(seconds) == text


@pytest.mark.parametrize(
    ("count", "words", "text"),
    [
        (1, ("model",), "1 model"),
        (0, ("model",), "0 models"),
        (1200, ("model",), "1,200 models"),
        (1, ("batch", "batches"), "1 batch"),
        (2, ("batch", "batches"), "2 batches"),
        (None, ("row",), "- rows"),
    ],
)
def test_one_is_singular(count: int | None, words: tuple[str, ...], text: str) -> None:
    """A number of one uses the singular; a word can have an irregular plural."""
    assert plural(count, *words) == text
