"""What Spark refuses in a streaming query: `UnsupportedOperationChecker` of Spark 4.3, on the model's own lines.

Each rule is a function of one query. Where a tree holds what is not known, a rule is silent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.flow.analyse import Analysis
from sqlstream.compiler.flow.nodes import Where
from sqlstream.compiler.node_ids import source_id
from sqlstream.compiler.rules import streaming_aggregations, streaming_joins, streaming_operators, streaming_watermarks
from sqlstream.compiler.rules.query import Query, QueryProblem
from sqlstream.errors import Finding
from sqlstream.location import Place

QUERY_RULES: tuple[Callable[[Query], Iterator[QueryProblem]], ...] = (
    *streaming_watermarks.RULES,
    *streaming_operators.RULES,
    *streaming_joins.RULES,
    *streaming_aggregations.RULES,
)
"""Every rule on a query, in the order of its findings."""


def streaming_rules(compiled: CompiledProject, analyses: Mapping[str, Analysis]) -> list[Finding]:
    """Returns what is wrong with names in any model, and with the operators of each query; each place once.

    `analyses` are those of all models by unique id.
    """
    found: list[Finding] = []
    for unique_id, analysis in analyses.items():
        found += [problem.at(compiled.locate(unique_id, problem.offset)) for problem in analysis.problems]
    for model in compiled.models.values():
        if model.output is not None and model.streaming:
            found += _query_findings(compiled, model, analyses)
    return list(dict.fromkeys(found))


def _query_findings(
    compiled: CompiledProject, model: CompiledModel, analyses: Mapping[str, Analysis]
) -> Iterator[Finding]:
    names = {unique_id: other.name for unique_id, other in compiled.models.items()}
    query = Query(model.name, analyses[model.unique_id].node, model.config.output_mode, names)
    for rule in QUERY_RULES:
        for problem in rule(query):
            yield problem.at(_place(compiled, problem.where, problem.key))


def _place(compiled: CompiledProject, where: Where, key: str) -> Place:
    if where.model in compiled.models:
        return compiled.locate(where.model, where.offset)
    name = compiled.project.name
    table = next(table for table in compiled.project.sources if source_id(name, table) == where.model)
    return Place(table.places.get(key, table.location))
