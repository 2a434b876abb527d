"""The outputs of models that other queries read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StoredOutput:
    """The output of the model `model` as a table. `exists`: it is known to exist. Without that, it reads no rows."""

    model: str
    exists: bool = False
