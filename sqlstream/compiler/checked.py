"""The last stage: the rules on models and queries, and the models that sqlglot cannot parse."""

from __future__ import annotations

from collections.abc import Mapping

from sqlstream.compiler.assembled import Assembled
from sqlstream.compiler.cache.memory import Memory
from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.configured import quiet
from sqlstream.compiler.flow.analyse import Analysis
from sqlstream.compiler.outputs import resolve_unused
from sqlstream.compiler.render.values import RenderOptions
from sqlstream.compiler.rules import check_columns, check_models
from sqlstream.compiler.rules.streams.modes import streaming_rules
from sqlstream.compiler.spark_parser import SparkParser
from sqlstream.compiler.spark_versions import rules_apply
from sqlstream.compiler.stored import stored_tables
from sqlstream.compiler.unread import unread_findings
from sqlstream.errors import Finding


def check_project(
    assembled: Assembled,
    analyses: Mapping[str, Analysis],
    options: RenderOptions,
    memory: Memory,
    parser: SparkParser | None,
) -> tuple[CompiledProject, list[Finding]]:
    """Returns the compiled project, and the findings of its models, sinks and queries."""
    project, graph = assembled.linked.project, assembled.linked.graph
    used = {output.sink for model in assembled.models.values() for output in model.outputs}
    unused, problems = resolve_unused(project, options, used, memory)
    predictable = rules_apply(project.target)
    columns = {node: analysis.columns for node, analysis in analyses.items()} if predictable else {}
    stored = stored_tables(project.name, assembled.models, columns)
    compiled = CompiledProject(project, graph, assembled.models, quiet(options), columns, unused, stored)
    findings = [*assembled.findings, *problems, *check_models(compiled)]
    if predictable:
        findings += streaming_rules(compiled, analyses, memory, assembled)
        findings += check_columns(compiled)
    unread, replaced = unread_findings(compiled, analyses, assembled.broken, parser, memory, assembled)
    return compiled, [*(finding for finding in findings if finding not in replaced), *unread]
