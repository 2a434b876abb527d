"""What rendering takes and gives, as frozen values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.values import ConfigPatch, ModelFile, Target


@dataclass(frozen=True)
class Reference:
    """One call of ref() (`parts` is the name) or source() (`parts` are the source and its table).

    `location` is the call's own place; where that lies in a macro, `calls` are the places that led to it, the model's
    first.
    """

    kind: Literal["ref", "source"]
    parts: tuple[str, ...]
    location: Location
    calls: tuple[Location, ...] = ()


@dataclass(frozen=True)
class RenderedModel:
    """A model's SQL, and what its template said while it was rendered.

    `references` has one entry per call, in the order of the calls; `config` holds what config() set, the last call of
    a key winning; `findings` are the warnings of exceptions.warn(); `macros_used` are names of macros/ in the order of
    first use. Line ends in `sql` are single newlines.
    """

    file: ModelFile
    sql: str
    references: tuple[Reference, ...]
    config: ConfigPatch
    findings: tuple[Finding, ...] = ()
    macros_used: tuple[str, ...] = ()


@dataclass(frozen=True)
class RenderOptions:
    """What templates may know of the world. `run_started_at` is in UTC with its zone set; `log(message, info)` takes
    what a template logs, `info` saying whether the user is to see it at once.
    """

    variables: Mapping[str, object]
    env: Mapping[str, str]
    target: Target
    project_name: str
    run_started_at: datetime
    invocation_id: str
    log: Callable[[str, bool], None]
