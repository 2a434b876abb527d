"""Prepares the words of a command line for click."""

from __future__ import annotations

from collections.abc import Sequence

SELECTOR_FLAGS = frozenset(
    {"-s", "--select", "--exclude", "-m", "--models", "--accept-state-change", "--migrate", "--parallel"}
)


def join_selectors(arguments: Sequence[str]) -> list[str]:
    """Returns the arguments with the words after a selector flag joined by spaces.

    This makes dbt's `--select a b` and `--select=a b` work without quotes: no command with selectors has positional
    arguments.
    """
    joined: list[str] = []
    selecting = False
    for argument in arguments:
        is_word = not argument.startswith("-")
        if selecting and is_word and joined[-1] not in SELECTOR_FLAGS:
            joined[-1] = f"{joined[-1]} {argument}"
        else:
            joined.append(argument)
        selecting = selecting if is_word else argument.split("=", 1)[0] in SELECTOR_FLAGS
    return joined
