"""Exposures as values: dashboards, applications and other uses of the project's outputs, as in dbt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from sqlstream.location import Location


@dataclass(frozen=True)
class ExposureInput:
    """One item of `depends_on`: a call of ref() or source() with its names, and its location."""

    kind: Literal["ref", "source"]
    parts: tuple[str, ...]
    location: Location


@dataclass(frozen=True)
class Exposure:
    """A declared use of the project's outputs. `owner` has the keys of YAML. `folders` are the folders of its file
    below models/ (or the other folder of its file). `written` is its configuration with Jinja unrendered.
    """

    name: str
    type: str
    owner: Mapping[str, object]
    inputs: tuple[ExposureInput, ...]
    location: Location
    label: str | None = None
    maturity: str | None = None
    url: str | None = None
    description: str = ""
    tags: tuple[str, ...] = ()
    meta: Mapping[str, object] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    written: Mapping[str, object] = field(default_factory=dict)

    @property
    def config(self) -> dict[str, object]:
        """The configuration of an exposure that is part of the project."""
        return {"enabled": True, "tags": list(self.tags), "meta": dict(self.meta)}
