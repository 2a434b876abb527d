"""Plans a query without Spark: what the compiler knows, compared with its ledger."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlstream.app.loading.load import Loaded
from sqlstream.app.planning.details import describe
from sqlstream.app.planning.local_files import files_of
from sqlstream.app.planning.sql_judge import sql_judge
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.emission.query import keeps_state
from sqlstream.project.files.paths import plain_path
from sqlstream.project.types.cursor import TypeSyntaxError
from sqlstream.project.types.parser import parse_type
from sqlstream.project.types.types import Field, Primitive, type_name
from sqlstream.state.checkpoints import read_checkpoint
from sqlstream.state.identity import identity_of
from sqlstream.state.layout import query_root
from sqlstream.state.ledger import ANSI, LEGACY_SETTINGS, RESULT_SETTINGS, OutputColumn, QueryIdentity
from sqlstream.state.plan import CheckpointState, StartOptions, plan_query
from sqlstream.state.readers import source_uses
from sqlstream.state.restarts import unrestartable
from sqlstream.state.verdicts import QueryVerdict, Verdict

_ZONE = "spark.sql.session.timeZone"

_DEFAULTS = {ANSI: "true", _ZONE: "UTC"}
"""The settings of a session for which the target sets nothing. Others keep the values of the ledger."""


def plan_without_spark(loaded: Loaded, storage: str, model: CompiledModel) -> QueryVerdict:
    """Returns the verdict on the query of `model`, whose checkpoint is in the local folder `storage`."""
    compiled = loaded.compiled
    root = query_root(storage, model.query_id, model.config.checkpoint)
    if not plain_path("/", root).startswith("/"):
        reason = f"its checkpoint is in {root}, which only Spark can read: add --check"
        return QueryVerdict(model.name, Verdict.UNDECIDED, reason)
    try:
        state = read_checkpoint(files_of, root)
    except OSError as error:
        return QueryVerdict(model.name, Verdict.UNDECIDED, f"its storage cannot be read: {error}")
    identity = identity_without_spark(compiled, model, state)
    plan = plan_query(
        identity,
        state,
        StartOptions(),
        restartable=unrestartable(compiled, model) is None,
        place_of=lambda name, offset: compiled.locate_in(name or model.name, offset),
        judge_by_sql=sql_judge(compiled, model),
    )
    return describe(compiled, model, identity, state, plan, has_spark=False)


def identity_without_spark(compiled: CompiledProject, model: CompiledModel, state: CheckpointState) -> QueryIdentity:
    """Returns the identity as far as the compiler knows it. What only Spark knows is as in the ledger."""
    ledger = state.ledger if state.is_used else None
    uses = source_uses(compiled, model, ledger)
    old = ledger.identity if ledger is not None else None
    columns = _columns(compiled.known_columns(model.unique_id), old)
    settings = dict(_settings(compiled, old))
    found = identity_of(compiled, model, uses, columns, stateful=bool(old and old.stateful), settings=settings)
    if old is None or found.fingerprints == old.fingerprints:
        return found
    return replace(found, stateful=keeps_state(compiled, model))


def _columns(found: tuple[Field, ...] | None, old: QueryIdentity | None) -> tuple[OutputColumn, ...] | None:
    """Returns the columns of the query. Types that only Spark knows exactly are as in the ledger."""
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
    given = {name: str(value) for name, value in compiled.project.target.spark.items()}
    for name, value in (old.settings if old else {}).items():
        if name in (*RESULT_SETTINGS, _ZONE) or name.startswith(LEGACY_SETTINGS):
            yield name, given.get(name, _DEFAULTS.get(name, value))
        else:
            yield name, value
