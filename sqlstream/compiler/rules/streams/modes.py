"""What Spark refuses in a streaming query: `UnsupportedOperationChecker` of Spark 4.3, on the model's own lines.

Each rule is a function of one query. Where a tree holds what is not known, a rule is silent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from sqlstream.compiler.cache.digest import declared, digest
from sqlstream.compiler.cache.memory import Memory
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.flow.analyse import Analysis
from sqlstream.compiler.flow.columns import Where
from sqlstream.compiler.node_ids import seed_id
from sqlstream.compiler.places import Places
from sqlstream.compiler.rules.query import Query, QueryProblem, QueryText
from sqlstream.compiler.rules.rule import Rule
from sqlstream.compiler.rules.streams import aggregations as streaming_aggregations
from sqlstream.compiler.rules.streams import continuous, real_time
from sqlstream.compiler.rules.streams import joins as streaming_joins
from sqlstream.compiler.rules.streams import keys as streaming_keys
from sqlstream.compiler.rules.streams import laterals as streaming_laterals
from sqlstream.compiler.rules.streams import operators as streaming_operators
from sqlstream.compiler.rules.streams import state as streaming_state
from sqlstream.compiler.rules.streams import watermarks as streaming_watermarks
from sqlstream.compiler.spark_versions import TESTED, minor_version
from sqlstream.compiler.sql.tokens import tokenize
from sqlstream.errors import Finding, Severity
from sqlstream.location import Place

QUERY_RULES: tuple[Rule[Query, QueryProblem], ...] = (
    *streaming_watermarks.RULES,
    *streaming_operators.RULES,
    *streaming_joins.RULES,
    *streaming_laterals.RULES,
    *streaming_aggregations.RULES,
    *streaming_keys.RULES,
    *continuous.RULES,
    *real_time.RULES,
)
"""The rules on a query that Spark would refuse or run wrongly, in the order of their findings."""

STATE_RULES = (*streaming_state.RULES, streaming_operators.lasting_limits)
"""The rules on a query that is right otherwise: its state, and what ends its output."""


def streaming_rules(
    compiled: CompiledProject, analyses: Mapping[str, Analysis], memory: Memory, places: Places
) -> list[Finding]:
    """Returns what is wrong with names in any model, and with the operators of each query; each place once.

    `analyses` are those of the models to look at, by unique id.
    """
    project = compiled.project
    version = minor_version(compiled.options.spark or TESTED[-1])
    context_key = digest(declared(project.target), *version)
    known = _QueryContext(
        {unique_id: model.name for unique_id, model in compiled.models.items()},
        {node: table.format for node, table in compiled.sources.items()},
        frozenset(unique_id for unique_id, analysis in analyses.items() if analysis.problems),
        version,
    )
    found: list[Finding] = []
    of_queries: dict[Finding, list[str]] = {}
    for unique_id, analysis in analyses.items():
        for problem in analysis.problems:
            origins = [_origin(compiled, places, unique_id, where) for where in problem.origins]
            found.append(problem.at(places.locate(unique_id, problem.offset), origins))
    for unique_id, analysis in analyses.items():
        model = compiled.models[unique_id]
        if model.output is not None and model.streaming:
            key = digest(analysis.key, context_key, model.config.plain(), declared(model.output))
            make = partial(_query_problems, compiled, model, analysis, known)
            problems = memory.remember("query", model.file.path, key, make)
            for wrong in problems:
                lines = [_line_of_select(compiled, places, where) for where in wrong.origins]
                finding = wrong.at(place_in(compiled, places, wrong.where, wrong.key), lines)
                of_queries.setdefault(replace(finding, message=""), []).append(finding.message)
    found += [_of_all(finding, messages) for finding, messages in of_queries.items()]
    return list(dict.fromkeys(found))


def _of_all(finding: Finding, messages: list[str]) -> Finding:
    """One finding for all queries that have it in the same place, in a model that they share."""
    others = len(set(messages)) - 1
    more = "one more query" if others == 1 else f"{others} more queries"
    also = f"; {more} {'has' if others == 1 else 'have'} the same problem" if others else ""
    return replace(finding, message=f"{messages[0]}{also}")


def _origin(compiled: CompiledProject, places: Places, model: str, origin: Where) -> str:
    """Where the columns of a relation come from: a line, or the file of another model or a seed."""
    project = compiled.project
    if origin.model == model:
        place = places.locate(model, origin.offset).location
        return f"{place.path}:{place.line}"
    if origin.model in compiled.models:
        return compiled.models[origin.model].file.path
    declared_at = {
        **{node: f"{table.location.path}:{table.location.line}" for node, table in compiled.sources.items()},
        **{seed_id(project.name, seed.name): seed.path for seed in project.seeds},
    }
    return declared_at[origin.model]


def _line_of_select(compiled: CompiledProject, places: Places, where: Where) -> str:
    """The line of the SELECT whose list is at `where`."""
    tokens = tokenize(compiled.models[where.model].sql)
    starts = [token.start for token in tokens if token.key == "SELECT" and token.start <= where.offset]
    place = places.locate(where.model, max(starts, default=where.offset)).location
    return f"{place.path}:{place.line}"


@dataclass(frozen=True)
class _QueryContext:
    """What all queries share: the names of all models and the formats of all sources, by unique id, the models whose
    own text is wrong, and the minor version of Spark.
    """

    names: Mapping[str, str]
    formats: Mapping[str, str]
    faulty: frozenset[str]
    spark: tuple[int, int]


def _query_problems(
    compiled: CompiledProject, model: CompiledModel, analysis: Analysis, known: _QueryContext
) -> tuple[QueryProblem, ...]:
    query = _query(compiled, model, analysis, known)
    problems = tuple(problem for rule in QUERY_RULES for problem in rule(query))
    is_wrong = any(problem.severity is Severity.ERROR for problem in problems)
    if is_wrong or any(node.where.model in known.faulty for node in query.nodes):
        return problems
    return (*problems, *(problem for rule in STATE_RULES for problem in rule(query)))


def _query(compiled: CompiledProject, model: CompiledModel, analysis: Analysis, known: _QueryContext) -> Query:
    node = analysis.node
    made_of = [name for name in dict.fromkeys(item.where.model for item in node.walk()) if name in compiled.models]
    in_sql = [name for name in made_of if not compiled.models[name].file.is_python]
    texts = (QueryText(name, tokenize(compiled.models[name].sql)) for name in in_sql)
    return Query(
        model.name,
        node,
        model.config.output_mode,
        known.names,
        model.config.trigger.kind,
        model.output.format if model.output else "",
        known.formats,
        tuple(texts) if model.config.trigger.kind in ("continuous", "real_time") else (),
        known.spark,
    )


def place_in(compiled: CompiledProject, places: Places, where: Where, key: str) -> Place:
    """Returns the place of an operator: in a model, or at the `key` of the source that it belongs to."""
    if where.model in compiled.models:
        return places.locate(where.model, where.offset)
    table = compiled.sources[where.model]
    return Place(table.places.get(key, table.location))
