"""The part that every command shares: from the project's files to a compiled project, without Spark."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from sqlstream.app.loading.compile_cache import CompileCache
from sqlstream.app.loading.logs import TEMPLATE_LOGGER, open_log
from sqlstream.app.loading.spark_parser import InstalledParser
from sqlstream.app.request import ProjectRequest
from sqlstream.compiler.allowances import lower_findings
from sqlstream.compiler.cache import Memory
from sqlstream.compiler.compile import compile_project
from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.configured import template_findings
from sqlstream.compiler.render.rendered import RenderOptions
from sqlstream.compiler.render.yaml import make_yaml_renderer
from sqlstream.compiler.rendering import MACROS
from sqlstream.errors import Finding, FindingsError, Severity
from sqlstream.project.files.files import ARTIFACTS_FOLDER, find_project_root
from sqlstream.project.loading import LoadResult, load_project
from sqlstream.project.values import ModelFile, Project

logger = logging.getLogger(TEMPLATE_LOGGER)

UNREADABLE = frozenset({"no-query", "sql-syntax"})
"""Codes of errors in SQL that Spark could not even parse."""


@dataclass(frozen=True)
class Invocation:
    """One call of one command: its id and its start time (UTC)."""

    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))


@dataclass(frozen=True)
class Loaded:
    """A compiled project, its warnings and infos, and the call that compiled it."""

    compiled: CompiledProject
    findings: tuple[Finding, ...]
    invocation: Invocation

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that every command shows. Only `compile` shows infos."""
        return tuple(finding for finding in self.findings if finding.severity is Severity.WARNING)

    @property
    def target_folder(self) -> Path:
        """The folder for artifacts."""
        return self.compiled.project.root / ARTIFACTS_FOLDER


@dataclass(frozen=True)
class LoadAttempt:
    """The result of compiling a project that may have errors, with all its `findings`.

    `loaded` is the project as it would run without the errors of the rules. It is None if there is no SQL to run.
    """

    loaded: Loaded | None
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that keep the project from running."""
        return tuple(finding for finding in self.findings if finding.is_error)

    def compiled(self) -> Loaded:
        """Returns `loaded`, even if rules refuse a model. Raises: FindingsError if there is no SQL to run."""
        if self.loaded is None:
            raise FindingsError(self.findings)
        return self.loaded

    def readable(self) -> Loaded:
        """Returns `loaded`, even if rules refuse a model.

        Raises: FindingsError with all findings if there is no SQL to run, or the SQL of a model cannot be parsed. No
        command works with such a project, just as no dbt command works with a project that does not parse.
        """
        if any(error.code in UNREADABLE for error in self.errors):
            raise FindingsError(self.findings)
        return self.compiled()


def load(request: ProjectRequest) -> Loaded:
    """Returns the compiled project. Raises: FindingsError with every finding of the first stage that has errors."""
    attempt = try_load(request)
    if attempt.errors:
        raise FindingsError(attempt.findings)
    return attempt.compiled()


def load_for_reading(request: ProjectRequest) -> Loaded:
    """Returns the compiled project for commands that start no query, even if rules refuse it.

    Raises: FindingsError if there is no SQL to read.
    """
    return try_load(request).compiled()


def try_load(
    request: ProjectRequest, invocation: Invocation | None = None, inline: ModelFile | None = None
) -> LoadAttempt:
    """Returns the compiled project, even if rules refuse it, and the findings of the first stage that has errors.

    `inline` is a model without a file, and replaces one of the same name. Raises: FindingsError without a project.
    """
    root = find_project_root(request.folder)
    open_log(root, request.env)
    invocation = invocation or Invocation()
    cache = CompileCache(root.resolve() / ARTIFACTS_FOLDER) if request.partial_parse else None
    memory = Memory(cache.entries if cache else None)
    environment_read: set[str] = set()
    read = load_project(
        root,
        make_render=make_yaml_renderer(request.env, environment_read),
        target=request.target,
        cli_vars=request.variables,
        target_named_by=request.target_named_by,
    )
    if read.project is None:
        return _refused(read, request, invocation)
    project = _with_model(read.project, inline)
    options = replace(_render_options(project, request, invocation), environment_read=environment_read)
    attempt = _compile(project, read.findings, request, options, invocation, memory)
    if cache and not inline:  # inline models run only once
        made = attempt.loaded.compiled.models.values() if attempt.loaded is not None else ()  # also of further sinks
        names = (*(model.path for model in project.models), *(model.file.path for model in made))
        cache.save(memory, {MACROS, *names})
    return attempt


def _compile(
    project: Project,
    findings: Sequence[Finding],
    request: ProjectRequest,
    options: RenderOptions,
    invocation: Invocation,
    memory: Memory,
) -> LoadAttempt:
    """Returns the compiled project, with the `findings` of its files and those of the compiler."""
    parser = InstalledParser(project.target, request.env, request.notify, starts_java=request.starts_java)
    lower = partial(lower_findings, project, spark=options.spark)
    result = compile_project(project, options, memory, parser, partial(lower, complete=False))
    every = lower((*findings, *result.findings), complete=result.complete)
    if result.attempted is None:
        return LoadAttempt(None, every)
    no_errors = tuple(finding for finding in every if not finding.is_error)
    return LoadAttempt(Loaded(result.attempted, no_errors, invocation), every)


def _with_model(project: Project, added: ModelFile | None) -> Project:
    if added is None:
        return project
    others = (model for model in project.models if model.name != added.name)
    return replace(project, models=(*others, added))


def _refused(read: LoadResult, request: ProjectRequest, invocation: Invocation) -> LoadAttempt:
    """Returns the findings of a project with invalid YAML, together with those of its templates."""
    if read.partial is None:
        return LoadAttempt(None, tuple(read.findings))
    options = _render_options(read.partial, request, invocation)
    found = template_findings(read.partial, options, knows_variables=read.knows_variables)
    return LoadAttempt(None, (*read.findings, *(finding for finding in found if finding not in read.findings)))


def _render_options(project: Project, request: ProjectRequest, invocation: Invocation) -> RenderOptions:
    return RenderOptions(
        variables=project.vars,
        env=request.env,
        target=project.target,
        project_name=project.name,
        run_started_at=invocation.started_at,
        invocation_id=invocation.id,
        log=_log,
        macros=request.macros,
        spark=request.spark_version(),
        versions=project.versions,
    )


def _log(message: str, info: bool) -> None:
    logger.log(logging.INFO if info else logging.DEBUG, message)
