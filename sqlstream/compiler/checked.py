"""The last stage: the rules on models and queries, and the models that sqlglot cannot parse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlstream.compiler.assembled import Assembled
from sqlstream.compiler.cache.memory import Memory
from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.configured import quiet
from sqlstream.compiler.flow.analyse import Analysis
from sqlstream.compiler.metrics.model import alerts_model, metrics_model, own_columns
from sqlstream.compiler.outputs import resolve_unused, stored_tables
from sqlstream.compiler.render.values import RenderOptions
from sqlstream.compiler.rules import check_columns, check_models
from sqlstream.compiler.rules.streams.modes import streaming_rules
from sqlstream.compiler.rules.streams.unfit_alerts import unfit_alerts
from sqlstream.compiler.spark_versions import SparkParser, rules_apply, rules_off
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
    metrics, wrong = metrics_model(project, options)
    alerts, wrong_alerts = alerts_model(project, options)
    writers = [*assembled.models.values(), *filter(None, (metrics, alerts))]
    used = {output.sink for model in writers for output in model.outputs}
    unused, problems = resolve_unused(project, options, used, memory)
    predictable = rules_apply(project.target)
    columns = {node: analysis.columns for node, analysis in analyses.items()} if predictable else {}
    stored = stored_tables(project.name, assembled.models, columns)
    compiled = CompiledProject(
        project, graph, assembled.models, quiet(options), columns, unused, stored, metrics, alerts
    )
    written = _with_own_rows(compiled)
    findings = [*assembled.findings, *problems, *wrong, *wrong_alerts, *check_models(written)]
    off = rules_off(project.target)
    findings += [] if off is None else [off]
    if predictable:
        findings += streaming_rules(compiled, analyses, memory, assembled)
        findings += check_columns(written)
        findings += unfit_alerts(compiled, analyses)
    unread, replaced = unread_findings(compiled, analyses, assembled.broken, parser, memory, assembled)
    return compiled, [*(finding for finding in findings if finding not in replaced), *unread]


def _with_own_rows(compiled: CompiledProject) -> CompiledProject:
    """Returns the project with the rows of metrics and alerts as models, for the rules on sinks."""
    if not compiled.own_rows:
        return compiled
    models = {model.unique_id: model for model in compiled.own_rows}
    columns = {node: own_columns(model) for node, model in models.items()}
    return replace(compiled, models={**compiled.models, **models}, columns={**compiled.columns, **columns})
