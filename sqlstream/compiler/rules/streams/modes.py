"""The rules on streaming queries: Spark 4.3's `UnsupportedOperationChecker`, at the locations of the models' own SQL.

Each rule is a function of one query, and reports nothing if the operators are not known for certain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial

from sqlstream.compiler.cache.memory import Memory
from sqlstream.compiler.compiled import CompiledModel, CompiledProject, Places
from sqlstream.compiler.digest import declared, digest
from sqlstream.compiler.flow.analyse import Analysis
from sqlstream.compiler.graph import seed_id
from sqlstream.compiler.rules.query import Query, QueryProblem, QueryRule
from sqlstream.compiler.rules.rule import rules_of
from sqlstream.compiler.rules.streams import aggregations, continuous, joins, operators, real_time, state, watermarks
from sqlstream.compiler.spark_versions import TESTED, minor_version
from sqlstream.compiler.sql.edits import Where
from sqlstream.compiler.sql.tokens import tokenize
from sqlstream.errors import Finding, Severity
from sqlstream.location import Place

QUERY_RULES: tuple[QueryRule, ...] = rules_of(watermarks, operators, joins, aggregations, continuous, real_time)
"""The rules on queries that Spark refuses or runs wrongly, in the order of their findings."""

STATE_RULES: tuple[QueryRule, ...] = rules_of(state)
"""The rules on queries that are correct otherwise."""


def streaming_rules(
    compiled: CompiledProject, analyses: Mapping[str, Analysis], memory: Memory, places: Places
) -> list[Finding]:
    """Returns the errors in the names of all models, and in the operators of each query; each location once.

    `analyses` are the analyses of the models to check, by unique id.
    """
    found = [
        problem.at(
            places.locate(unique_id, problem.offset),
            [_origin(compiled, places, unique_id, where) for where in problem.origins],
        )
        for unique_id, analysis in analyses.items()
        for problem in analysis.problems
    ]
    of_queries: dict[Finding, list[str]] = {}
    problems = tuple(_problems_of_queries(compiled, analyses, memory))
    copies = Counter(problem.where for problem in problems if problem.code == state.REPEATED)
    for problem in problems:
        if problem.code == state.REPEATED and copies[problem.where] == 1:
            continue  # locating it would render the model again
        lines = [_line_of_select(compiled, places, where) for where in problem.origins]
        finding = problem.at(place_in(compiled, places, problem.where, problem.key), lines)
        of_queries.setdefault(replace(finding, message=""), []).append(finding.message)
    found += [_of_all(finding, messages) for finding, messages in of_queries.items()]
    return list(dict.fromkeys(found))


def _of_all(finding: Finding, messages: list[str]) -> Finding:
    """Returns one finding for all queries that have it at the same location, in a model that they share."""
    if finding.code == state.REPEATED:
        return state.repeated_finding(finding, messages)
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
    compiled: CompiledProject, analyses: Mapping[str, Analysis], memory: Memory
) -> Iterator[QueryProblem]:
    """Yields the problems of all queries, from the cache if nothing has changed."""
    version = minor_version(compiled.options.spark or TESTED[-1])
    target_key = digest(declared(compiled.project.target), *version)
    faulty = frozenset(unique_id for unique_id, analysis in analyses.items() if analysis.problems)
    for unique_id, analysis in analyses.items():
        model = compiled.models[unique_id]
        if model.output is not None and model.streaming:
            key = digest(analysis.key, target_key, model.config.plain(), declared(model.output))
            find = partial(_query_problems, compiled, model, analysis, faulty)
            yield from memory.remember("query", model.file.path, key, find)


def _query_problems(
    compiled: CompiledProject, model: CompiledModel, analysis: Analysis, faulty: Collection[str]
) -> tuple[QueryProblem, ...]:
    """Returns the problems of one query; `faulty` are the models with errors in their own text."""
    query = Query(compiled, model, analysis.node)  # decodes the operators
    problems = tuple(problem for rule in QUERY_RULES for problem in rule(query))
    is_wrong = any(problem.severity is Severity.ERROR for problem in problems)
    if is_wrong or any(node.where.model in faulty for node in query.nodes):
        return problems
    return (*problems, *(problem for rule in STATE_RULES for problem in rule(query)))


def place_in(compiled: CompiledProject, places: Places, where: Where, key: str) -> Place:
    """Returns the place of an operator: in a model, or at the `key` of its source."""
    if where.model in compiled.models:
        return places.locate(where.model, where.offset)
    table = compiled.tables[where.model]
    return Place(table.places.get(key, table.location))
