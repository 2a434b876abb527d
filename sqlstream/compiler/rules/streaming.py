"""What Spark refuses in a streaming query: `UnsupportedOperationChecker` of Spark 4.3, on the model's own lines.

Each rule is a function of one query. Where a tree holds what is not known, a rule is silent.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from sqlstream.compiler.cache.digest import declared, digest
from sqlstream.compiler.cache.memory import Memory
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.flow.analyse import Analysis
from sqlstream.compiler.flow.nodes import Where
from sqlstream.compiler.node_ids import source_id
from sqlstream.compiler.rules import (
    streaming_aggregations,
    streaming_joins,
    streaming_laterals,
    streaming_operators,
    streaming_state,
    streaming_watermarks,
)
from sqlstream.compiler.rules.query import Query, QueryProblem
from sqlstream.compiler.rules.rule import Rule
from sqlstream.errors import Finding, Severity
from sqlstream.location import Place

QUERY_RULES: tuple[Rule[Query, QueryProblem], ...] = (
    *streaming_watermarks.RULES,
    *streaming_operators.RULES,
    *streaming_joins.RULES,
    *streaming_laterals.RULES,
    *streaming_aggregations.RULES,
)
"""The rules on a query that Spark would refuse or run wrongly, in the order of their findings."""

STATE_RULES = streaming_state.RULES
"""The rules on the state of a query that is right otherwise."""


def streaming_rules(
    compiled: CompiledProject, analyses: Mapping[str, Analysis], memory: Memory | None = None
) -> list[Finding]:
    """Returns what is wrong with names in any model, and with the operators of each query; each place once.

    `analyses` are those of all models by unique id.
    """
    memory = memory or Memory()
    names = {unique_id: model.name for unique_id, model in compiled.models.items()}
    target = digest(declared(compiled.project.target))
    found: list[Finding] = []
    for unique_id, analysis in analyses.items():
        if not analysis.is_read and not analysis.problems:
            found.append(_not_followed(compiled.models[unique_id]))
        found += [problem.at(compiled.locate(unique_id, problem.offset)) for problem in analysis.problems]
    for model in compiled.models.values():
        if model.output is not None and model.streaming:
            analysis = analyses[model.unique_id]
            key = digest(analysis.key, target, model.config.plain(), declared(model.output))
            problems = memory.remember("query", model.file.path, key, partial(_query_problems, model, analysis, names))
            found += [problem.at(place_in(compiled, problem.where, problem.key)) for problem in problems]
    return list(dict.fromkeys(found))


def _not_followed(model: CompiledModel) -> Finding:
    return Finding(
        "not-followed",
        f"the rules on streams cannot follow `{model.name}`",
        "sqlstream does not read a form of its SQL that Spark may read all the same, and says nothing about it",
        "`sqlstream compile --check` asks Spark",
        model.file.location,
        Severity.INFO,
    )


def _query_problems(model: CompiledModel, analysis: Analysis, names: Mapping[str, str]) -> tuple[QueryProblem, ...]:
    query = Query(model.name, analysis.node, model.config.output_mode, names)
    problems = tuple(problem for rule in QUERY_RULES for problem in rule(query))
    return problems or tuple(problem for rule in STATE_RULES for problem in rule(query))


def place_in(compiled: CompiledProject, where: Where, key: str) -> Place:
    """Returns the place of an operator: in a model, or at the `key` of the source that it belongs to."""
    if where.model in compiled.models:
        return compiled.locate(where.model, where.offset)
    name = compiled.project.name
    table = next(table for table in compiled.project.sources if source_id(name, table) == where.model)
    return Place(table.places.get(key, table.location))
