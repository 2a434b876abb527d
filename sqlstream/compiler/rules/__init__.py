"""Rules on compiled models, one pure function each, one file per theme."""

from __future__ import annotations

from collections.abc import Collection

from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.rules import alerts, batch, formats, options, sources, stored, unused
from sqlstream.compiler.rules.declared_columns import declared_columns
from sqlstream.compiler.rules.query import Query, QueryProblem, QueryRule
from sqlstream.compiler.rules.rule import ProjectRule, rules_of
from sqlstream.compiler.rules.sinks import columns, kafka, kinds, outputs, tables
from sqlstream.compiler.rules.streams import aggregations, joins, operators, state, triggers, watermarks
from sqlstream.errors import Finding, Severity

RULES: tuple[ProjectRule, ...] = rules_of(formats, sources, options, outputs, kinds, tables, batch, stored, alerts)
"""The rules on outputs, sources and targets, in the order of their findings."""

COLUMN_RULES: tuple[ProjectRule, ...] = (*rules_of(columns, kafka), declared_columns)
"""The rules on the columns of models."""

QUERY_RULES: tuple[QueryRule, ...] = rules_of(watermarks, operators, joins, aggregations, triggers)
"""The rules on streaming queries that Spark refuses or runs wrongly: Spark 4.3's `UnsupportedOperationChecker`, at the
locations of the models' own SQL. Each reports nothing if the operators are not known for certain.
"""

STATE_RULES: tuple[QueryRule, ...] = rules_of(state)
"""The rules on streaming queries that are correct otherwise."""

USE_RULES: tuple[ProjectRule, ...] = rules_of(unused)
"""The rules on unused declarations."""


def check_models(compiled: CompiledProject) -> list[Finding]:
    """Returns the findings of the rules on outputs, sources and targets."""
    return [finding for rule in RULES for finding in rule(compiled)]


def check_columns(compiled: CompiledProject) -> list[Finding]:
    """Returns the findings of the rules on columns."""
    return [finding for rule in COLUMN_RULES for finding in rule(compiled)]


def check_query(query: Query, faulty: Collection[str]) -> tuple[QueryProblem, ...]:
    """Returns the problems of a streaming query; `faulty` are the models with errors in their own text."""
    problems = tuple(problem for rule in QUERY_RULES for problem in rule(query))
    is_wrong = any(problem.severity is Severity.ERROR for problem in problems)
    if is_wrong or any(node.where.model in faulty for node in query.nodes):
        return problems
    return (*problems, *(problem for rule in STATE_RULES for problem in rule(query)))


def check_use(compiled: CompiledProject) -> list[Finding]:
    """Returns unused declarations. Use it only for projects without errors, which may be why nothing uses them."""
    return [finding for rule in USE_RULES for finding in rule(compiled)]


__all__ = ["check_columns", "check_models", "check_query", "check_use"]
