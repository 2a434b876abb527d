"""The identity of a query as far as the compiler knows it, without Spark."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.emission.query import keeps_state
from sqlstream.project.types.cursor import TypeSyntaxError
from sqlstream.project.types.parser import parse_type
from sqlstream.project.types.types import Field, Primitive, type_name
from sqlstream.state.identity import identity_of
from sqlstream.state.ledger import OutputColumn, QueryIdentity
from sqlstream.state.plan import CheckpointState
from sqlstream.state.readers import source_uses
from sqlstream.state.settings import ANSI, RESULT_DEFAULTS, TIME_ZONE

_DEFAULTS = {**RESULT_DEFAULTS, TIME_ZONE: "UTC"}
"""The settings of a session for which the target sets nothing. Others keep the values of the ledger."""

ANSI_VARIABLE = "SPARK_ANSI_SQL_MODE"
"""The variable of the environment that turns off the mode of ANSI by default, the only one of Spark for results."""


def identity_without_spark(compiled: CompiledProject, model: CompiledModel, state: CheckpointState) -> QueryIdentity:
    """Returns the identity as far as the compiler knows it. What only Spark knows is as in the ledger."""
    ledger = state.ledger if state.is_used or not model.streaming else None  # a batch model has no checkpoint
    uses = source_uses(compiled, model, ledger)
    old = ledger.identity if ledger is not None else None
    columns = columns_without_spark(compiled, model, old)
    settings = dict(_settings(compiled, old))
    found = identity_of(compiled, model, uses, columns, stateful=bool(old and old.stateful), settings=settings)
    if old is not None and found.declared is not None:
        defaults = old.defaults.items()
        declared = {name: value for name, value in found.declared.items() if (name, value) not in defaults}
        found = replace(found, declared=declared, defaults=old.defaults)
    if old is None or (found.fingerprints == old.fingerprints and found.deduplicated == old.deduplicated):
        return found
    return replace(found, stateful=keeps_state(compiled, model))


def columns_without_spark(
    compiled: CompiledProject, model: CompiledModel, old: QueryIdentity | None
) -> tuple[OutputColumn, ...] | None:
    """Returns the columns of the query. Types that only Spark knows exactly are those of the ledger (`old`)."""
    found = compiled.known_columns(model.unique_id)
    before = {column.name.lower(): column for column in (old.columns or ())} if old else {}
    if found is None:
        return old.columns if old else None
    columns = []
    for column in found:
        known = before.get(column.name.lower())
        if known is not None and (not isinstance(column.type, Primitive) or _is_same(known.type, column)):
            columns.append(OutputColumn(column.name, known.type))
        else:
            columns.append(OutputColumn(column.name, type_name(column.type)))
    return tuple(columns)


def _is_same(known: str, column: Field) -> bool:
    try:
        type_ = parse_type(known)
    except TypeSyntaxError:
        return True
    return not isinstance(type_, Primitive) or type_name(type_) == type_name(column.type)


def _settings(compiled: CompiledProject, old: QueryIdentity | None) -> Iterator[tuple[str, str]]:
    given = dict(old.inherited or {}) if old else {}  # what only Spark knows is as in the ledger
    given |= {name: str(value) for name, value in compiled.project.target.spark.items()}
    defaults = {**_DEFAULTS, **({ANSI: "false"} if os.environ.get(ANSI_VARIABLE) == "false" else {})}
    for name, value in (old.settings if old else {}).items():
        if name in defaults:
            yield name, given.get(name, defaults[name])
        else:
            yield name, value
