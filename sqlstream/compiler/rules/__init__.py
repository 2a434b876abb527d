"""Rules on compiled models, one pure function each, one file per theme. `streams` has those on streaming queries, which
the cache knows the results of.
"""

from __future__ import annotations

from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.rules import alerts, batch, contracts, formats, options, sources, stored, unused
from sqlstream.compiler.rules.rule import ProjectRule, rules_of
from sqlstream.compiler.rules.sinks import columns, kafka, kinds, outputs, tables
from sqlstream.errors import Finding

RULES: tuple[ProjectRule, ...] = rules_of(formats, sources, options, outputs, kinds, tables, batch, stored, alerts)
"""The rules on outputs, sources and targets, in the order of their findings."""

COLUMN_RULES: tuple[ProjectRule, ...] = rules_of(columns, kafka, contracts)
"""The rules on the columns of models."""

USE_RULES: tuple[ProjectRule, ...] = rules_of(unused)
"""The rules on unused declarations."""


def check_models(compiled: CompiledProject) -> list[Finding]:
    """Returns the findings of the rules on outputs, sources and targets."""
    return [finding for rule in RULES for finding in rule(compiled)]


def check_columns(compiled: CompiledProject) -> list[Finding]:
    """Returns the findings of the rules on columns."""
    return [finding for rule in COLUMN_RULES for finding in rule(compiled)]


def check_use(compiled: CompiledProject) -> list[Finding]:
    """Returns unused declarations. Use it only for projects without errors, which may be why nothing uses them."""
    return [finding for rule in USE_RULES for finding in rule(compiled)]


__all__ = ["check_columns", "check_models", "check_use"]
