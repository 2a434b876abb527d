"""The stages of a compilation, from a `Project` to a `CompiledProject`. Each stage reports all of its findings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlstream.compiler.analysed import analyse_models
from sqlstream.compiler.assembled import assemble_models
from sqlstream.compiler.cache.memory import Memory
from sqlstream.compiler.cache.rendering import CachedRenderer
from sqlstream.compiler.checked import check_project
from sqlstream.compiler.compiled import CompileResult
from sqlstream.compiler.configured import configure_models
from sqlstream.compiler.linked import link_models
from sqlstream.compiler.render.values import RenderOptions
from sqlstream.compiler.rules import check_use
from sqlstream.compiler.spark_versions import SparkParser, rules_apply
from sqlstream.errors import Finding
from sqlstream.project.values import Project

Lower = Callable[[Sequence[Finding]], Sequence[Finding]]


def compile_project(
    project: Project,
    options: RenderOptions,
    memory: Memory | None = None,
    parser: SparkParser | None = None,
    lower: Lower = tuple,
) -> CompileResult:
    """Returns the compiled project, or all findings of the first stage with errors.

    The stages reuse and extend `memory`. `parser` checks SQL that sqlglot cannot parse. `lower` applies the severities
    that the project sets. It decides only whether there are errors: the result has the original findings.
    """
    memory = memory or Memory()
    renderer = CachedRenderer(project, options, memory)
    configured, findings = configure_models(project, renderer)
    if _has_errors(findings):
        return CompileResult(None, tuple(findings))
    linked, problems = link_models(project, configured, options.env)
    findings += problems
    if linked is None:
        return CompileResult(None, tuple(findings))
    assembled = assemble_models(linked, options, renderer, memory)
    analyses = analyse_models(project, assembled.unbroken, memory)
    compiled, problems = check_project(assembled, analyses, options, memory, parser)
    renderer.remember_places()
    findings += problems
    # `lower` reads the comments in all files, so it is asked only about errors.
    if _has_errors(findings) and _has_errors(lower(findings)):
        return CompileResult(None, tuple(findings), compiled)
    complete = rules_apply(project.target) and not assembled.broken
    return CompileResult(compiled, (*findings, *check_use(compiled)), compiled, complete)


def _has_errors(findings: Sequence[Finding]) -> bool:
    return any(finding.is_error for finding in findings)
