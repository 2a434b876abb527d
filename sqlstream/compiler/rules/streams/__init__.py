"""Rules on streaming queries, one file per kind of operator."""

from __future__ import annotations

from collections.abc import Collection

from sqlstream.compiler.rules.query import Query, QueryRule
from sqlstream.compiler.rules.rule import QueryProblem, rules_of
from sqlstream.compiler.rules.streams import aggregations, event_times, joins, operators, state, triggers, watermarks
from sqlstream.errors import Severity

QUERY_RULES: tuple[QueryRule, ...] = rules_of(watermarks, event_times, operators, joins, aggregations, triggers)
"""The rules on streaming queries that Spark refuses or runs wrongly: Spark 4.3's `UnsupportedOperationChecker`, at the
locations of the models' own SQL. Each reports nothing if not all operators are known.
"""

STATE_RULES: tuple[QueryRule, ...] = rules_of(state)
"""The rules on streaming queries that are correct otherwise."""


def check_query(query: Query, faulty: Collection[str]) -> tuple[QueryProblem, ...]:
    """Returns the problems of a streaming query; `faulty` are the models with errors in their own text."""
    problems = tuple(problem for rule in QUERY_RULES for problem in rule(query))
    is_wrong = any(problem.severity is Severity.ERROR for problem in problems)
    if is_wrong or any(node.where.model in faulty for node in query.nodes):
        return problems
    return (*problems, *(problem for rule in STATE_RULES for problem in rule(query)))


def endless_state(query: Query) -> tuple[QueryProblem, ...]:
    """Returns where the state of a streaming query never shrinks (`unbounded-state`)."""
    found = (problem for rule in STATE_RULES if state.ENDLESS in rule.codes for problem in rule(query))
    return tuple(found)


__all__ = ["check_query", "endless_state"]
