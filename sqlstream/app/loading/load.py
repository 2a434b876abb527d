"""The pure part that every command shares: files to a compiled project."""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from sqlstream.app.loading.compile_cache import CompileCache
from sqlstream.app.loading.kept_yaml import KeptYaml
from sqlstream.app.loading.logs import TEMPLATE_LOGGER, open_log
from sqlstream.app.loading.processes import processes
from sqlstream.app.loading.reading_ahead import reading_ahead
from sqlstream.app.loading.spark_parser import InstalledParser
from sqlstream.app.request import ProjectRequest
from sqlstream.compiler.allowances import lower_findings
from sqlstream.compiler.cache.memory import Memory
from sqlstream.compiler.compile import compile_project
from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.configured import template_findings
from sqlstream.compiler.render.values import RenderOptions
from sqlstream.compiler.render.yaml import make_yaml_renderer
from sqlstream.compiler.work_ahead import WorkAhead
from sqlstream.errors import Finding, FindingsError, Severity
from sqlstream.project.files.files import ARTIFACTS_FOLDER, find_project_root
from sqlstream.project.loading import LoadResult, load_project
from sqlstream.project.values import ModelFile, Project
from sqlstream.project.yaml import parse_yaml

logger = logging.getLogger(TEMPLATE_LOGGER)

UNREADABLE = frozenset({"no-query", "sql-syntax"})
"""Codes of errors for which Spark could not even read a model's SQL."""


@dataclass(frozen=True)
class Invocation:
    """One call of one command: its id and the time it began (UTC)."""

    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))


@dataclass(frozen=True)
class Loaded:
    """A compiled project, the warnings and infos found on the way, and the call that compiled it."""

    compiled: CompiledProject
    findings: tuple[Finding, ...]
    invocation: Invocation

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that every command shows; infos are for `compile` alone."""
        return tuple(finding for finding in self.findings if finding.severity is Severity.WARNING)

    @property
    def target_folder(self) -> Path:
        """Where artifacts are written."""
        return self.compiled.project.root / ARTIFACTS_FOLDER


@dataclass(frozen=True)
class LoadOutcome:
    """What compiling gave, errors or not: `findings` are all of them.

    `loaded` is the project as it would run if the errors of the rules were wrong, None where there is no SQL to run.
    """

    loaded: Loaded | None
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that refuse the project."""
        return tuple(finding for finding in self.findings if finding.is_error)

    def readable(self) -> Loaded:
        """Returns `loaded`, also where rules refuse a model.

        Raises: FindingsError with all findings where there is no SQL to run, or a model's cannot be read: no command
        works with such a project, as none of dbt's does with one that does not parse.
        """
        if self.loaded is None or any(error.code in UNREADABLE for error in self.errors):
            raise FindingsError(self.findings)
        return self.loaded


def load(request: ProjectRequest, invocation: Invocation | None = None) -> Loaded:
    """Returns the compiled project. Raises: FindingsError with every finding of the first stage that has errors."""
    attempted = try_load(request, invocation)
    if attempted.loaded is None or attempted.errors:
        raise FindingsError(attempted.findings)
    return attempted.loaded


def load_for_reading(request: ProjectRequest) -> Loaded:
    """Returns the compiled project for what starts nothing, also where rules refuse it: `compile` tells of that.

    Raises: FindingsError where there is no SQL to look at.
    """
    attempted = try_load(request)
    if attempted.loaded is None:
        raise FindingsError(attempted.findings)
    return attempted.loaded


def try_load(
    request: ProjectRequest, invocation: Invocation | None = None, inline: ModelFile | None = None
) -> LoadOutcome:
    """Returns the project compiled, also where rules refuse it, and the findings of the first stage that has errors.

    `inline` is one more model, which no file holds, or takes the place of the one of its name. Raises: FindingsError
    where there is no project.
    """
    root = find_project_root(request.folder)
    open_log(root, request.env)
    invocation = invocation or Invocation()
    workers = processes()
    cache = CompileCache(root.resolve() / ARTIFACTS_FOLDER) if request.partial_parse else None
    memory = Memory(cache.entries if cache else None)
    yaml = KeptYaml(memory)
    with reading_ahead(root, workers):
        loaded = load_project(
            root,
            make_render=make_yaml_renderer(request.env),
            target=request.target,
            cli_vars=request.variables,
            target_named_by=request.target_named_by,
            parse=yaml.parse if cache else parse_yaml,
        )
    if loaded.project is None:
        return LoadOutcome(None, (*loaded.findings, *_in_templates(loaded, request, invocation)))
    project = loaded.project
    if inline is not None:
        others = (model for model in project.models if model.name != inline.name)
        project = replace(project, models=(*others, inline))
    options = _render_options(project, request, invocation)
    parser = InstalledParser(project.target, request.env, request.notify)
    ahead = WorkAhead(project, options, memory, workers) if workers else None
    lower = partial(lower_findings, project, spark=options.spark)
    result = compile_project(project, options, memory, ahead, parser, partial(lower, complete=False))
    if cache and inline is None:  # what is asked once is not remembered
        cache.save(memory, {"", *(model.path for model in project.models), *yaml.paths})
    findings = lower((*loaded.findings, *result.findings), complete=result.complete)
    if result.attempted is None:
        return LoadOutcome(None, findings)
    no_errors = tuple(finding for finding in findings if not finding.is_error)
    return LoadOutcome(Loaded(result.attempted, no_errors, invocation), findings)


def _in_templates(loaded: LoadResult, request: ProjectRequest, invocation: Invocation) -> tuple[Finding, ...]:
    """What is wrong in the models of a project whose YAML is wrong, so that both are reported together."""
    if loaded.partial is None:
        return ()
    options = _render_options(loaded.partial, request, invocation)
    found = template_findings(loaded.partial, options, knows_variables=loaded.knows_variables)
    return tuple(finding for finding in found if finding not in loaded.findings)


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
    )


def _log(message: str, info: bool) -> None:
    logger.log(logging.INFO if info else logging.DEBUG, message)
