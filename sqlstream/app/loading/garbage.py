"""How often Python collects garbage: rarely while a project compiles, at the usual rate while queries run."""

from __future__ import annotations

import gc

DEFAULT_THRESHOLDS = gc.get_threshold()

OBJECTS_BETWEEN_COLLECTIONS = 10_000_000
"""Compiling allocates millions of objects of some hundred bytes, most of which stay. With Python's default of 700,
garbage collection takes a tenth of the time.
"""


def limit_garbage_collection() -> None:
    """Collects garbage rarely. For commands that end soon."""
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS, 20, 20)


def restore_garbage_collection() -> None:
    """Restores Python's default, for commands that run for days. Keeps thresholds that another program has set."""
    if gc.get_threshold()[0] == OBJECTS_BETWEEN_COLLECTIONS:
        gc.set_threshold(*DEFAULT_THRESHOLDS)
