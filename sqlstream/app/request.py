"""What a caller asks for, as frozen values."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sqlstream.compiler.spark_versions import installed_spark
from sqlstream.state.runs.limits import NO_LIMITS, RunLimits


def silent(line: str) -> None:
    """Says nothing of what takes time."""
    del line


@dataclass(frozen=True)
class ProjectRequest:
    """Which project, for which target. `folder` is the project's folder or one below it; `variables` beat those of
    project.yml; `env` is the environment that env_var() reads, this process's own unless another is given;
    `target_named_by` is where the name `target` comes from, for the message when there is no such target. With
    `partial_parse` what earlier commands have compiled is used again where nothing has changed. `macros` gives what
    calls of some macros are to give, whatever these say. `notify` hears what takes time. `spark_version`
    gives the version of Spark that is installed.
    """

    folder: Path
    target: str | None = None
    variables: Mapping[str, object] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    target_named_by: str = "the request"
    partial_parse: bool = True
    macros: Mapping[str, object] = field(default_factory=dict)
    notify: Callable[[str], None] = field(default=silent, repr=False, compare=False)
    spark_version: Callable[[], str] = field(default=installed_spark, repr=False, compare=False)


@dataclass(frozen=True)
class Selection:
    """Selectors as dbt writes them; empty `select` means every node.

    `selector` names one of selectors.yml, which stands for `select` and `exclude`; where all three are empty, the
    default of selectors.yml holds. `resource_types` (empty: all) and `excluded_types` choose among what is selected.
    `state` is a saved manifest.json or its folder, with which `state:` compares.
    """

    select: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    resource_types: tuple[str, ...] = ()
    excluded_types: tuple[str, ...] = ()
    selector: str | None = None
    state: Path | None = None


EVERYTHING = Selection()
"""Every node of the project."""


MEMORY_ROWS = 20
"""Rows shown of a memory sink's table at the end of a run, as Spark's own show() does."""


@dataclass(frozen=True)
class RunRequest:
    """A run: what to start, and when to stop by itself.

    With `full_refresh` all of the queries start over; `accept_state_change` are selectors of those that may go on with
    their state although they have changed. With `console_to_stderr` console sinks leave stdout to the caller. `limit`
    is how many rows of a memory sink's table are reported at the end, None for all.
    """

    project: ProjectRequest
    selection: Selection = EVERYTHING
    available_now: bool = False
    limits: RunLimits = NO_LIMITS
    accept_state_change: tuple[str, ...] = ()
    full_refresh: bool = False
    debug: bool = False
    console_to_stderr: bool = False
    limit: int | None = MEMORY_ROWS


@dataclass(frozen=True)
class UnitTestRequest:
    """Which unit tests to run; with `fail_fast` none is begun after one that did not pass, with `equivalence` each
    stream is also compared with its batch, with `explains` a test that passes also says why no rows came out.
    """

    project: ProjectRequest
    selection: Selection = EVERYTHING
    fail_fast: bool = False
    equivalence: bool = False
    explains: bool = False
