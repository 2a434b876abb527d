"""How many corrupt records the readers of static tables drop."""

from __future__ import annotations

import time
from collections.abc import Iterable
from uuid import uuid4

from pyspark.sql import Observation

from sqlstream.state.runs.progress import DROPPED_STATIC

NOTED_SECONDS = 1.0
"""How long Spark may take after a write to note what was observed in it. It never does where it has taken the reader
out of the plan (`where false`).
"""
LOOK_SECONDS = 0.01


def new_count() -> Observation:
    """Returns the count of one reader; a stream that reads the table reports it with each batch, by its name."""
    return Observation(DROPPED_STATIC + uuid4().hex)


def counted(observations: Iterable[Observation]) -> dict[str, dict[str, int]]:
    """Returns what was counted in the write that has just ended, in the form of a stream's progress."""
    until = time.monotonic() + NOTED_SECONDS
    known = [observation for observation in observations if _is_known(observation, until)]
    return {str(observation._name): observation.get for observation in known}  # noqa: SLF001


def _is_known(observation: Observation, until: float) -> bool:
    java = observation._jo  # noqa: SLF001 - `get` would wait for ever
    while java is not None and not java.future().isCompleted():
        if time.monotonic() >= until:
            return False
        time.sleep(LOOK_SECONDS)
    return java is not None
