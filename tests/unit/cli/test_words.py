"""Selectors without quotes, as in dbt."""

from __future__ import annotations

import pytest

from sqlstream.cli.main import join_selectors


@pytest.mark.parametrize(
    ("given", "joined"),
    [
        ("ls", ["ls"]),
        ("ls --select a", ["ls", "--select", "a"]),
        ("ls --select a b +c", ["ls", "--select", "a b +c"]),
        ("ls -s a b", ["ls", "-s", "a b"]),
        ("ls --select=a b", ["ls", "--select=a b"]),
        ("ls --select a --select b c", ["ls", "--select", "a", "--select", "b c"]),
        ("ls -s a b --exclude c d", ["ls", "-s", "a b", "--exclude", "c d"]),
        ("ls --exclude=c d -s a", ["ls", "--exclude=c d", "-s", "a"]),
        ("run --select a b --for 60s", ["run", "--select", "a b", "--for", "60s"]),
        ("run --available-now --select a b", ["run", "--available-now", "--select", "a b"]),
        ("run --select a b -t prod extra", ["run", "--select", "a b", "-t", "prod", "extra"]),
        ("run --target=prod extra", ["run", "--target=prod", "extra"]),
        ("run -s a b --parallel a b", ["run", "-s", "a b", "--parallel", "a b"]),
        ("run --accept-state-change a b --migrate c d", ["run", "--accept-state-change", "a b", "--migrate", "c d"]),
        ("ls --select", ["ls", "--select"]),
        ("ls --select --exclude a", ["ls", "--select", "--exclude", "a"]),
    ],
)
def test_words_after_a_selector_flag_are_its_value(given: str, joined: list[str]) -> None:
    """All words up to the next flag belong to a selector flag; words after other flags stay separate."""
    assert join_selectors(given.split()) == joined


def test_words_can_follow_a_quoted_list() -> None:
    """More words can follow a quoted list: the shell passes `--select 'a b' c` as two words."""
    assert join_selectors(["ls", "--select", "a b", "tag:x,c"]) == ["ls", "--select", "a b tag:x,c"]


def test_no_arguments_stay_no_arguments() -> None:
    """No arguments stay no arguments, so that the bare command shows its help."""
    assert join_selectors([]) == []
