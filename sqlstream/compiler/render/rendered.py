"""Inputs and results of rendering, as frozen values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from typing import Literal

from sqlstream.compiler.digest import digest
from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.configuration.config import ConfigPatch
from sqlstream.project.configuration.target import Target
from sqlstream.project.values import ModelFile, ModelVersions

LONGEST_VALUE = 100
"""The most characters of a variable's value that messages and ledgers quote."""


@dataclass(frozen=True)
class Reference:
    """One call of ref() (`parts` is the name) or source() (`parts` are the source and its table).

    `location` is the location of the call. If the call is in a macro, `calls` are the locations that led to it, the
    model's first.
    """

    kind: Literal["ref", "source"]
    parts: tuple[str, ...]
    location: Location
    calls: tuple[Location, ...] = ()


@dataclass(frozen=True)
class TemplateReads:
    """The names, variables, environment variables and secrets that a template used, in alphabetical order. They include
    names that do not exist.
    """

    names: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()


def merge_reads(reads: Iterable[TemplateReads]) -> TemplateReads:
    """Returns everything that any of `reads` contains."""
    columns = zip(*((item.names, item.variables, item.environment, item.secrets) for item in reads), strict=True)
    return TemplateReads(*(tuple(sorted(set(chain(*column)))) for column in columns))


@dataclass(frozen=True)
class MacroIndex:
    """The facts about the macro files without their macros: the file of each macro by name, and the reads of each file
    while it was loaded, by path. `stateful` are the files with values that their macros can change.
    """

    files: Mapping[str, str]
    reads: Mapping[str, TemplateReads]
    stateful: frozenset[str] = frozenset()
    logged: tuple[tuple[str, bool], ...] = ()


@dataclass(frozen=True)
class RenderedModel:
    """A model's SQL, and the effects of its template.

    `references` has one entry per call, in the order of the calls. `config` has the values from config(); the last call
    wins. `findings` are the warnings of exceptions.warn(). `macros_used` are names of macros/ in the order of first
    use. `reads` covers the template and the macros that it called. `logged` has the arguments of log() in order. Line
    ends in `sql` are single newlines.
    """

    file: ModelFile
    sql: str
    references: tuple[Reference, ...]
    config: ConfigPatch
    findings: tuple[Finding, ...] = ()
    macros_used: tuple[str, ...] = ()
    reads: TemplateReads = TemplateReads()
    logged: tuple[tuple[str, bool], ...] = ()


@dataclass(frozen=True)
class RenderOptions:
    """The inputs of a compilation besides the project. `run_started_at` is in UTC with its zone set. `log(message,
    info)` gets the messages that templates log; `info` shows them to the user at once. `macros` has values that calls
    of some macros return instead of their own. `spark` is the version of Spark, empty for the newest tested one.
    `versions` are those of models. `environment_read` gets the name of each environment variable that a template reads
    with these options, also if it is a secret or not set.
    """

    variables: Mapping[str, object]
    env: Mapping[str, str]
    target: Target
    project_name: str
    run_started_at: datetime
    invocation_id: str
    log: Callable[[str, bool], None]
    macros: Mapping[str, object] = field(default_factory=dict)
    spark: str = ""
    versions: Mapping[str, ModelVersions] = field(default_factory=dict)
    environment_read: set[str] = field(default_factory=set, repr=False, compare=False)


@dataclass(frozen=True)
class TemplateInputs:
    """The variables that a model's template and macros read, with their values as JSON, and the environment variables
    with digests of theirs. Unset ones are left out.
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


class NoVersionError(ValueError):
    """A model does not have a version. `why` says which ones it has."""

    def __init__(self, message: str, why: str) -> None:
        super().__init__(message)
        self.why = why


def find_version(versions: Mapping[str, ModelVersions], name: str, v: object) -> str:
    """Returns the name of the model that `ref(name, v=v)` reads; without `v` the latest version of a model that has
    versions. Raises: NoVersionError.
    """
    known = versions.get(name)
    if known is None and v is None:
        return name
    if known is None:
        raise NoVersionError(f"`{name}` has no versions", "`versions:` in the properties of a model declare them")
    found = known.latest if v is None else known.files.get(str(v))
    if found is None:
        which = "file for its latest version" if v is None else f"version {v}"
        raise NoVersionError(f"`{name}` has no {which}", f"its versions are {', '.join(known.files)}")
    return found


def inputs_of(reads: TemplateReads, options: RenderOptions) -> TemplateInputs:
    """Returns the values of a template's `reads`."""
    variables = {name: _shown(options.variables[name]) for name in reads.variables if name in options.variables}
    environment = {name: digest(options.env[name]) for name in reads.environment if name in options.env}
    return TemplateInputs(variables, environment)


def _shown(value: object) -> str:
    """A variable's value as JSON, or the digest of a long one."""
    text = json.dumps(value, default=str, sort_keys=True)
    return text if len(text) <= LONGEST_VALUE else digest(text)
