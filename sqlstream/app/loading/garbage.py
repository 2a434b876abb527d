"""How often Python looks for garbage: seldom while a project is compiled, as ever while queries run."""

from __future__ import annotations

import gc

PYTHONS_OWN = gc.get_threshold()

OBJECTS_BETWEEN_COLLECTIONS = 10_000_000
"""Compiling makes millions of objects, most of which stay, and little garbage, some hundred bytes each: at Python's own
700, looking for it takes a tenth of its time.
"""


def collect_seldom() -> None:
    """For what ends soon."""
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS, 20, 20)


def collect_as_ever() -> None:
    """For what goes on for days. What a program has set for itself stays."""
    if gc.get_threshold()[0] == OBJECTS_BETWEEN_COLLECTIONS:
        gc.set_threshold(*PYTHONS_OWN)
