"""The last stage: the rules on models and queries, and the models that sqlglot cannot parse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from sqlstream.compiler.assembled import Assembled
from sqlstream.compiler.compiled import CompiledProject, Places, place_in
from sqlstream.compiler.configured import quiet
from sqlstream.compiler.flow.analysis import Analysis
from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.graph import seed_id
from sqlstream.compiler.outputs import resolve_unused, stored_tables
from sqlstream.compiler.own_rows import (
    alerts_model,
    late_row_models,
    metrics_model,
    own_columns,
    quarantine_columns,
    quarantine_models,
)
from sqlstream.compiler.render.rendered import RenderOptions
from sqlstream.compiler.rules import check_columns, check_models
from sqlstream.compiler.rules.alerts import unfit_alerts
from sqlstream.compiler.rules.rule import QueryProblem
from sqlstream.compiler.spark_versions import SparkParser, rules_apply, rules_off
from sqlstream.compiler.sql.edits import Where
from sqlstream.compiler.sql.tokens import tokenize
from sqlstream.compiler.unread import unread_findings
from sqlstream.errors import Finding
from sqlstream.project.wording import quoted_list

REPEATED = "repeated-state"
"""The code of findings about queries that keep the same state, which become one."""


def check_project(
    assembled: Assembled,
    analyses: Mapping[str, Analysis],
    options: RenderOptions,
    parser: SparkParser | None,
) -> tuple[CompiledProject, list[Finding]]:
    """Returns the compiled project, and the findings of its models, sinks and queries."""
    project, graph = assembled.linked.project, assembled.linked.graph
    metrics, wrong = metrics_model(project, options)
    alerts, wrong_alerts = alerts_model(project, options)
    quarantines, wrong_quarantines = quarantine_models(project, options, assembled.models)
    late_rows, wrong_late_rows = late_row_models(project, options, assembled.models)
    beside = [*quarantines.values(), *late_rows.values()]
    writers = [*assembled.models.values(), *filter(None, (metrics, alerts)), *beside]
    used = {output.sink for model in writers for output in model.outputs}
    unused, problems = resolve_unused(project, options, used)
    predictable = rules_apply(project.target)
    columns = {node: analysis.columns for node, analysis in analyses.items()} if predictable else {}
    stored = stored_tables(project.name, assembled.models, columns)
    compiled = CompiledProject(
        project,
        graph,
        assembled.models,
        quiet(options),
        columns,
        unused,
        stored,
        metrics,
        alerts,
        quarantines,
        late_rows,
    )
    written = _with_own_rows(compiled)
    misplaced = dict.fromkeys([*wrong, *wrong_alerts, *wrong_quarantines, *wrong_late_rows])  # two may have one sink
    findings = [*assembled.findings, *problems, *misplaced, *check_models(written)]
    off = rules_off(project.target)
    findings += [] if off is None else [off]
    if predictable:
        findings += _check_queries(compiled, analyses, assembled)
        findings += check_columns(written)
        findings += unfit_alerts(compiled, analyses)
    unread, replaced = unread_findings(compiled, analyses, parser, assembled)
    return compiled, [*(finding for finding in findings if finding not in replaced), *unread]


def _with_own_rows(compiled: CompiledProject) -> CompiledProject:
    """Returns the project with the rows of metrics, alerts and quarantines as models, for the rules on sinks."""
    beside = (*compiled.quarantines.values(), *compiled.late_rows.values())
    if not compiled.own_rows and not beside:
        return compiled
    models = {model.unique_id: model for model in (*compiled.own_rows, *beside)}
    columns: dict[str, tuple[Column, ...] | None] = {rows.unique_id: own_columns(rows) for rows in compiled.own_rows}
    columns |= {
        rows.unique_id: quarantine_columns(compiled.columns.get(node)) for node, rows in compiled.quarantines.items()
    }
    return replace(compiled, models={**compiled.models, **models}, columns={**compiled.columns, **columns})


def _check_queries(compiled: CompiledProject, analyses: Mapping[str, Analysis], assembled: Assembled) -> list[Finding]:
    """Returns the errors in the names of all models, and in the operators of each query; each location once.

    `analyses` are the analyses of the models to check, by unique id.
    """
    found = [
        problem.at(
            assembled.locate(unique_id, problem.offset),
            [_origin(compiled, assembled, unique_id, where) for where in problem.origins],
        )
        for unique_id, analysis in analyses.items()
        for problem in analysis.problems
    ]
    of_queries: dict[Finding, list[str]] = {}
    problems = tuple(_problems_of_queries(compiled, analyses, assembled))
    copies = Counter(problem.where for problem in problems if problem.code == REPEATED)
    for problem in problems:
        if problem.code == REPEATED and copies[problem.where] == 1:
            continue  # locating it would render the model again
        lines = [_line_of_select(compiled, assembled, where) for where in problem.origins]
        finding = problem.at(place_in(compiled, assembled, problem.where, problem.key), lines)
        # The message names one query, and the rest is the same for all of them.
        of_queries.setdefault(replace(finding, message=""), []).append(finding.message)
    found += [_of_all(finding, messages) for finding, messages in of_queries.items()]
    return list(dict.fromkeys(found))


def _of_all(finding: Finding, messages: list[str]) -> Finding:
    """Returns one finding for all queries that have it at the same location, in a model that they share."""
    if finding.code == REPEATED:
        queries = list(dict.fromkeys(messages))
        message = f"{len(queries)} queries keep the state of this operator: {quoted_list(queries)}"
        return replace(finding, message=message)
    others = len(set(messages)) - 1
    more = "one more query" if others == 1 else f"{others} more queries"
    also = f"; {more} {'has' if others == 1 else 'have'} the same problem" if others else ""
    return replace(finding, message=f"{messages[0]}{also}")


def _origin(compiled: CompiledProject, places: Places, model: str, origin: Where) -> str:
    """Returns where the columns of a relation come from: a line, or the file of another model or a seed."""
    if origin.model == model:
        place = places.locate(model, origin.offset).location
        return f"{place.path}:{place.line}"
    if origin.model in compiled.models:
        return compiled.models[origin.model].file.path
    if origin.model in compiled.tables:
        location = compiled.tables[origin.model].location
        return f"{location.path}:{location.line}"
    project = compiled.project
    return next(seed.path for seed in project.seeds if seed_id(project.name, seed.name) == origin.model)


def _line_of_select(compiled: CompiledProject, places: Places, where: Where) -> str:
    """Returns the line of the SELECT whose list is at `where`."""
    tokens = tokenize(compiled.models[where.model].sql)
    starts = [token.start for token in tokens if token.key == "SELECT" and token.start <= where.offset]
    place = places.locate(where.model, max(starts, default=where.offset)).location
    return f"{place.path}:{place.line}"


def _problems_of_queries(
    compiled: CompiledProject, analyses: Mapping[str, Analysis], assembled: Assembled
) -> Iterator[QueryProblem]:
    """Yields the problems of all queries, from the cache if nothing has changed."""
    faulty = frozenset(unique_id for unique_id, analysis in analyses.items() if analysis.problems)
    for unique_id, analysis in analyses.items():
        model, cached = compiled.models[unique_id], assembled.cached[unique_id]
        if model.output is not None and model.streaming:
            if cached.results.problems is None:
                from sqlstream.compiler.rules.query import Query  # with the operators, which the cache does without
                from sqlstream.compiler.rules.streams import check_query

                cached.note(problems=check_query(Query(compiled, model, analysis.node), faulty))
            yield from cached.results.problems or ()
