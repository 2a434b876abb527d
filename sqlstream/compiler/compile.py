"""The stages of compilation, from a `Project` to a `CompiledProject`; all findings of a stage come together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

from sqlstream.compiler.assembled import Assembled, assemble_models
from sqlstream.compiler.cache.memory import Memory
from sqlstream.compiler.cache.rendering import CachedRenderer
from sqlstream.compiler.compiled import CompiledProject, CompileResult
from sqlstream.compiler.configured import configure_models, quiet
from sqlstream.compiler.flow.analyse import Analysis, analyse_models
from sqlstream.compiler.graph import closure_of
from sqlstream.compiler.judged import is_judged
from sqlstream.compiler.linked import LinkedProject, link_models
from sqlstream.compiler.outputs import resolve_unused
from sqlstream.compiler.render.values import RenderOptions
from sqlstream.compiler.rules import check_columns, check_models, check_use
from sqlstream.compiler.rules.streams.modes import streaming_rules
from sqlstream.compiler.spark_parser import SparkParser
from sqlstream.compiler.unread import SUSPECT, suspect_models, unread_findings
from sqlstream.compiler.work_ahead import WorkAhead
from sqlstream.errors import Finding
from sqlstream.project.values import Project

Lower = Callable[[Sequence[Finding]], Sequence[Finding]]


def compile_project(
    project: Project,
    options: RenderOptions,
    memory: Memory | None = None,
    ahead: WorkAhead | None = None,
    parser: SparkParser | None = None,
    lower: Lower = tuple,
) -> CompileResult:
    """Returns the compiled project, or every finding of the first stage that has errors.

    The stages reuse what `memory` knows from an earlier compilation, and note their results there. `ahead` does parts
    of a stage before it begins. `parser` decides about SQL that the compiler cannot read. `lower` returns the findings
    with the severities that the project allows; the result has the original ones.
    """
    memory = memory or Memory()
    renderer = CachedRenderer(project, options, memory)
    if ahead is not None:
        ahead.render(renderer)
    configured, findings = configure_models(project, renderer)
    if _has_errors(findings):
        return CompileResult(None, tuple(findings))
    linked, problems = link_models(project, configured, options.env)
    findings += problems
    if linked is None:
        return CompileResult(None, tuple(findings))
    if ahead is not None:
        ahead.analyse(linked)
    assembled = assemble_models(linked, options, renderer, memory)
    result = _check(linked, assembled, options, findings, memory, parser, lower)
    renderer.remember_places()
    return result


def _check(
    linked: LinkedProject,
    assembled: Assembled,
    options: RenderOptions,
    findings: list[Finding],
    memory: Memory,
    parser: SparkParser | None,
    lower: Lower,
) -> CompileResult:
    """The last stage: the operators of each query, and the rules on them; `findings` are those so far."""
    project, places = linked.project, assembled.places
    used = {model.output.sink for model in assembled.models.values() if model.output is not None}
    unused, problems = resolve_unused(project, options, used, memory)
    # a watermark that could not be placed would be missed again in every query over the model
    left_out = closure_of(linked.graph.children, assembled.broken)
    followed = {node: model for node, model in assembled.models.items() if node not in left_out}
    analyses = analyse_models(project, followed, memory)
    follows_rules = is_judged(project.target)
    columns = {node: analysis.columns for node, analysis in analyses.items()} if follows_rules else {}
    compiled = CompiledProject(project, linked.graph, assembled.models, quiet(options), columns, unused)
    findings += [*assembled.findings, *problems, *check_models(compiled)]
    if follows_rules:
        findings += streaming_rules(compiled, analyses, memory, places)
        findings += check_columns(compiled)
    faulty = _faulty(analyses) if follows_rules else frozenset()
    suspects = suspect_models(assembled.models, assembled.broken)
    unread = unread_findings(compiled, analyses, faulty, suspects, parser, memory, places)
    replaced = {each for node in suspects & unread.keys() for each in assembled.broken[node] if each.code in SUSPECT}
    findings = [*(finding for finding in findings if finding not in replaced), *chain(*unread.values())]
    if _has_errors(findings) and _has_errors(lower(findings)):
        return CompileResult(None, tuple(findings), compiled)
    complete = follows_rules and not assembled.broken
    return CompileResult(compiled, (*findings, *check_use(compiled)), compiled, complete)


def _faulty(analyses: dict[str, Analysis]) -> frozenset[str]:
    """The models whose own text is wrong."""
    return frozenset(node for node, analysis in analyses.items() if analysis.problems)


def _has_errors(findings: Sequence[Finding]) -> bool:
    return any(finding.is_error for finding in findings)
