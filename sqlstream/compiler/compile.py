"""The stages of a compilation, from a `Project` to a `CompiledProject`. Each stage reports all of its findings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlstream.compiler.analysed import analyse_models
from sqlstream.compiler.assembled import assemble_models
from sqlstream.compiler.cache import Memory
from sqlstream.compiler.checked import check_project
from sqlstream.compiler.compiled import CompileResult
from sqlstream.compiler.configured import configure_models
from sqlstream.compiler.generic_tests import render_generic_tests
from sqlstream.compiler.linked import link_models
from sqlstream.compiler.render.rendered import RenderOptions
from sqlstream.compiler.rendering import CachedRenderer
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
    renderer = CachedRenderer(project, options, memory or Memory())
    result = _compile(project, options, renderer, parser, lower)
    renderer.save()
    return result


def _compile(
    project: Project, options: RenderOptions, renderer: CachedRenderer, parser: SparkParser | None, lower: Lower
) -> CompileResult:
    project, wrong = (project, []) if renderer.macro_findings else render_generic_tests(project, renderer)
    configured, findings = configure_models(project, renderer)
    findings += wrong
    if _has_errors(findings):
        return CompileResult(None, tuple(findings))
    linked, problems = link_models(project, configured, options.env)
    findings += problems
    if linked is None:
        return CompileResult(None, tuple(findings))
    assembled = assemble_models(linked, options, renderer)
    analyses = analyse_models(project, assembled.unbroken, assembled.cached)
    compiled, problems = check_project(assembled, analyses, options, parser)
    findings += problems
    # `lower` reads the comments in all files, so it is asked only about errors.
    if _has_errors(findings) and _has_errors(lower(findings)):
        return CompileResult(None, tuple(findings), compiled)
    complete = rules_apply(project.target) and not assembled.broken
    return CompileResult(compiled, (*findings, *check_use(compiled)), compiled, complete)


def _has_errors(findings: Sequence[Finding]) -> bool:
    return any(finding.is_error for finding in findings)
