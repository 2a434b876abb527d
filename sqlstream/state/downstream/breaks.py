"""What a changed query breaks downstream, as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class BreakKind(StrEnum):
    """What breaks."""

    MODEL = "model"
    SINK = "sink"
    EXPOSURE = "exposure"


@dataclass(frozen=True)
class Break:
    """A model, sink or exposure downstream of a changed query: its name, and why it may break. `owner` is the name or
    the email address of the owner of an exposure.
    """

    kind: BreakKind
    name: str
    reason: str
    owner: str | None = None
