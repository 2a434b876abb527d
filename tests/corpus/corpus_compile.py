"""sqlstream's verdict on a case, and the compiled project even if that verdict is a refusal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from sqlstream.compiler.compile import compile_project
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.render.rendered import RenderOptions
from sqlstream.compiler.render.yaml import make_yaml_renderer
from sqlstream.errors import Finding, Severity
from sqlstream.project.loading import load_project
from sqlstream.project.values import Project
from tests.corpus.corpus_cases import Case

ENVIRONMENT: Mapping[str, str] = {}


@dataclass(frozen=True)
class Attempt:
    """The result of compiling a case: the findings about its rows, and the project as it would run without the errors.

    `compiled` is None if there is no SQL to run.
    """

    compiled: CompiledProject | None
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that refuse the case."""
        return tuple(finding for finding in self.findings if finding.is_error)

    def terminal(self, case: Case) -> CompiledModel:
        """Returns the terminal model. Raises: RuntimeError if nothing was compiled."""
        if self.compiled is None:
            raise RuntimeError(f"{case.name}: there is no SQL to run: {'; '.join(item.head for item in self.errors)}")
        return next(model for model in self.compiled.models.values() if model.name == case.name)


def load_corpus_project(root: Path) -> Project:
    """Returns the project of sources, sinks and seeds that all cases share, without models."""
    loaded = load_project(root, make_render=make_yaml_renderer(ENVIRONMENT), target=None, cli_vars={})
    if loaded.project is None:
        raise RuntimeError("\n".join(finding.head for finding in loaded.findings))
    return loaded.project


def compile_case(project: Project, case: Case, spark: str = "") -> Attempt:
    """Returns the result of compiling `case` for a version of Spark, despite errors."""
    options = RenderOptions(
        variables=project.vars,
        env=ENVIRONMENT,
        target=project.target,
        project_name=project.name,
        run_started_at=datetime(2024, 1, 1, tzinfo=UTC),
        invocation_id="corpus",
        log=lambda _message, _info: None,
        spark=spark,
    )
    result = compile_project(replace(project, models=case.models), options)
    # Spark's verdict must not depend on the findings that it is compared with
    findings = tuple(finding for finding in result.findings if _is_about_rows(finding))
    return Attempt(result.attempted, findings)


def _is_about_rows(finding: Finding) -> bool:
    """Whether a finding is about missing or wrong rows. Growing state does not affect rows."""
    return finding.severity is not Severity.INFO and finding.code != "unbounded-state"
