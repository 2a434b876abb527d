"""`--vars`: which values it accepts, and how it refuses others."""

from __future__ import annotations

import pytest

from sqlstream.cli.options import read_variables
from sqlstream.errors import UsageError


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        (None, {}),
        ("", {}),
        (" ", {}),
        ("{}", {}),
        ("{min_fare: 3}", {"min_fare": 3}),
        ("min_fare: 3", {"min_fare": 3}),
        ("{a: [1, null], größe: {b: null}, c-d.e: ''}", {"a": [1, None], "größe": {"b": None}, "c-d.e": ""}),
        ('{"a": "x"}', {"a": "x"}),
        ("{a: null}", {"a": None}),
        ("{a: , b: 1}", {"a": None, "b": 1}),
        ("{zip: 01234, at: 12:30, n: -0, x: 0x1F, f: 1.5}", {"zip": "01234", "at": "12:30", "n": 0, "x": 31, "f": 1.5}),
    ],
)
def test_a_mapping_of_names_to_values_is_accepted(text: str | None, variables: dict[str, object]) -> None:
    """YAML with or without braces and JSON are accepted, with values of any type; an empty text means no variables."""
    assert read_variables(text) == variables


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("min_fare=3", "'{min_fare: 3}'"),
        ("{fare:3}", "'{fare: 3}'"),
        ("fare:3", "'{fare: 3}'"),
        ("day=2024-01-01", "'{day: 2024-01-01}'"),
        ("{a:3, b: 4}", "for example"),
        ("{1: 2}", "for example"),
        ("{a b: 2}", "for example"),
        ("foo", "for example"),
        ("[1]", "for example"),
        ("{a: [}", "for example"),
        ("{a: 1, a: 2}", "for example"),
        ("{{a: 1}}", "for example"),
    ],
)
def test_other_text_is_refused_with_a_correction(text: str, right: str) -> None:
    """Any other text, such as `a:3`, which YAML reads as a key without a value, is refused with the right spelling."""
    with pytest.raises(UsageError) as refused:
        read_variables(text)

    assert f"use {right}" in str(refused.value) or f"use --vars {right}" in str(refused.value)


def test_a_word_that_is_read_as_a_boolean_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    """A word such as NO is a boolean as in YAML files, and the warning says how to write text."""
    assert read_variables("{a: NO, b: 'NO', c: false}") == {"a": False, "b": "NO", "c": False}
    assert "'NO'" in capsys.readouterr().err
