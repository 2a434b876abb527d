"""Whether a query may start on the checkpoint it has: the comparison of the project with the ledger."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlstream.compiler.rules.outputs import FILE_FORMATS
from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.paths import is_absolute, plain_path
from sqlstream.state.changes import describe_changes, sources_text
from sqlstream.state.ledger import EVOLUTION, Ledger, QueryIdentity, SourceUse
from sqlstream.state.readers import unsure_tables

_PATTERN = re.compile(r"[][{}*?]")
"""What makes a path a pattern to Hadoop."""


class Action(StrEnum):
    """What `run` does with a query's checkpoint."""

    START = "start"
    RESUME = "resume"
    REFRESH = "refresh"
    FRESH_EACH_RUN = "fresh each run"
    WRITE = "write"


@dataclass(frozen=True)
class CheckpointState:
    """What lies in storage for a query: the newest `version` (0: none), its ledger, and whether a batch has begun.

    `ledger` is None when there is none; `unreadable` then says why where there is a file all the same.
    """

    version: int
    ledger: Ledger | None
    has_batches: bool
    ledger_path: str
    unreadable: str | None = None


@dataclass(frozen=True)
class QueryPlan:
    """How a query starts: on which version, whether the ledger is written anew, what changed since, and whether it
    resumes only because the user accepted that.
    """

    action: Action
    version: int
    writes_ledger: bool
    changes: tuple[str, ...] = ()
    accepted: bool = False


@dataclass(frozen=True)
class Wishes:
    """What the command line asks for one query."""

    accept_state_change: bool = False
    full_refresh: bool = False


def plan_query(
    identity: QueryIdentity, state: CheckpointState, wishes: Wishes, *, restartable: bool, location: Location
) -> QueryPlan | Finding:
    """Returns how the query starts, or the finding that refuses it. `location` is the model's."""
    if wishes.full_refresh and state.version:
        return QueryPlan(Action.REFRESH, state.version + 1, writes_ledger=True)
    if identity.batch:
        return _write(identity, state, location)
    if not restartable:
        return QueryPlan(Action.FRESH_EACH_RUN, state.version + 1, writes_ledger=True)
    if not state.has_batches:
        was_batch = state.ledger is not None and state.ledger.identity.batch
        if was_batch and identity.sink_format in FILE_FORMATS:
            return _other_kind(identity, state, location)
        return QueryPlan(Action.START, max(state.version, 1), writes_ledger=True)
    if state.ledger is None:
        return _without_ledger(identity, state, wishes, location)
    return _resume(identity, state, state.ledger.identity, wishes, location)


def _write(identity: QueryIdentity, state: CheckpointState, location: Location) -> QueryPlan | Finding:
    """The plan of a batch model: whatever it wrote before is whole, so any change of it is safe."""
    if state.has_batches:
        return _other_kind(identity, state, location)
    changed = state.ledger is None or state.ledger.identity != identity
    return QueryPlan(Action.WRITE, max(state.version, 1), writes_ledger=changed)


def _other_kind(identity: QueryIdentity, state: CheckpointState, location: Location) -> Finding:
    """The refusal of a stream's output as a batch model's, or the other way round.

    Beside its files a stream keeps a log that names them with their whole paths: readers take only what that names, so
    files that a batch wrote before are not seen, and files that are moved are not found.
    """
    was, now = ("a batch model", "a stream") if not identity.batch else ("a stream", "a batch model")
    return Finding(
        "sink-change",
        f"`{identity.model}` is {now}, and has been {was} so far",
        f"{state.ledger_path} says so; an output that both have written to could not be read rightly",
        f"`--full-refresh {identity.model}` starts over beside the old output, and leaves that as it is",
        location,
    )


def _resume(
    identity: QueryIdentity, state: CheckpointState, old: QueryIdentity, wishes: Wishes, location: Location
) -> QueryPlan | Finding:
    """The plan on a checkpoint that the query `old` has used."""
    other_sink = _sink(old) != _sink(identity)
    if other_sink and identity.sink_format in FILE_FORMATS:
        return _other_files(identity, state, old, location)
    moved = _moved_source(old, identity)
    if moved is not None:
        return _other_place(identity, state, *moved, location)
    if old.settings.get(EVOLUTION) != "true" and _in_order(old) != _in_order(identity):
        return _other_order(identity, state, old, location)
    changes = describe_changes(old, identity)
    unsure = unsure_tables(old.sources, identity.sources)
    if unsure and not wishes.accept_state_change:
        return _unsure_readers(identity, state, old, unsure, location)
    risky = bool(unsure) or (bool(changes) and (identity.stateful or old.stateful))
    if risky and not wishes.accept_state_change:
        return _refusal(
            "state-change",
            f"`{identity.model}` keeps state, and is not the query that made its checkpoint: {'; '.join(changes)}",
            f"Spark would mix the old and the new meaning; {state.ledger_path} says what made the checkpoint",
            identity,
            location,
        )
    return QueryPlan(Action.RESUME, state.version, writes_ledger=old != identity, changes=changes, accepted=risky)


def _sink(identity: QueryIdentity) -> tuple[str, str | None]:
    path = identity.sink_path
    return identity.sink_format, None if path is None else plain_path("/", path)


def _other_files(identity: QueryIdentity, state: CheckpointState, old: QueryIdentity, location: Location) -> Finding:
    """The refusal of an output whose log lacks the batches so far.

    Spark does not find them when it compacts the log, after at most ten batches: the query then fails for good, and
    nobody can read the output (tried on 4.3; the guide forbids it under "Recovery Semantics after Changes in a
    Streaming Query").
    """
    before, after = (f"{fmt} `{path}`" if path else fmt for fmt, path in (_sink(old), _sink(identity)))
    return Finding(
        "sink-change",
        f"`{identity.model}` has a checkpoint whose batches so far went to another sink",
        f"the sink changed from {before} to {after} since {state.ledger_path} was written; Spark cannot go on in a "
        "folder that lacks the first batches",
        f"`--full-refresh {identity.model}` starts over and leaves the old checkpoint and output as they are; or give "
        "the sink its old format and path again",
        location,
    )


def _moved_source(old: QueryIdentity, new: QueryIdentity) -> tuple[SourceUse, SourceUse] | None:
    """The first source, before and after, of which Spark cannot go on reading where it is now.

    On a restart Spark looks up the files of the last batch again, which must lie below the path, unless that is a
    pattern (FileStreamSource gives each batch the path as its `basePath`; tried on 4.3: "Wrong basePath").
    """
    before = {use.name: use for use in old.sources}
    for use in new.sources:
        known = before.get(use.name)
        if known is not None and _has_moved(known.path, use.path):
            return known, use
    return None


def _in_order(identity: QueryIdentity) -> tuple[tuple[str, str | None], ...]:
    return tuple((use.table, use.path) for use in identity.sources)


def _other_order(identity: QueryIdentity, state: CheckpointState, old: QueryIdentity, location: Location) -> Finding:
    """The refusal of other sources on a checkpoint that knows them by their order alone."""
    return Finding(
        "source-change",
        f"`{identity.model}` has a checkpoint that read other sources, or the same in another order",
        f"the sources changed from {sources_text(old, paths=True)} to {sources_text(identity, paths=True)} since "
        f"{state.ledger_path} was written; a checkpoint made by Spark before 4.3 knows them by their order alone",
        f"`--full-refresh {identity.model}` starts over and leaves the old checkpoint and output as they are; or read "
        "the sources in the order they had",
        location,
    )


def _unsure_readers(
    identity: QueryIdentity, state: CheckpointState, old: QueryIdentity, tables: Sequence[str], location: Location
) -> Finding:
    names = ", ".join(f"`{table}`" for table in tables)
    return Finding(
        "state-change",
        f"`{identity.model}` reads {names} through other references than the query that made its checkpoint",
        f"the sources changed from {_readers(old)} to {_readers(identity)} since {state.ledger_path} was written; "
        "nobody can tell which of them goes on where another one stopped, so rows could be read twice or not at all",
        f"give each reference a model of its own, which tells them apart; `--full-refresh {identity.model}` starts "
        f"over; `--accept-state-change {identity.model}` goes on, and reads what has a new name from the start",
        location,
    )


def _readers(identity: QueryIdentity) -> str:
    return ", ".join(f"{use.name} ({use.via})" for use in identity.sources) or "none"


def _has_moved(before: str | None, after: str | None) -> bool:
    """Whether files that were found under `before` are not found under `after`. Early ledgers have relative paths."""
    if before is None or after is None or not is_absolute(before) or _PATTERN.search(after):
        return False
    return not f"{plain_path('/', before)}/".startswith(f"{plain_path('/', after).rstrip('/')}/")


def _other_place(
    identity: QueryIdentity, state: CheckpointState, before: SourceUse, after: SourceUse, location: Location
) -> Finding:
    return Finding(
        "source-change",
        f"`{identity.model}` has a checkpoint that read `{after.table}` from another place",
        f"its path changed from {before.path} to {after.path} since {state.ledger_path} was written; Spark looks up "
        "the files of the last batch again, and does not find them there",
        f"`--full-refresh {identity.model}` starts over and leaves the old checkpoint and output as they are; or use a "
        f"pattern that fits both places, for example {{old,new}}",
        location,
    )


def _without_ledger(
    identity: QueryIdentity, state: CheckpointState, wishes: Wishes, location: Location
) -> QueryPlan | Finding:
    problem = f"cannot be read: {state.unreadable}" if state.unreadable else "is missing"
    if wishes.accept_state_change:
        change = f"its ledger {problem}"
        return QueryPlan(Action.RESUME, state.version, writes_ledger=True, changes=(change,), accepted=True)
    return _refusal(
        "ledger-unreadable",
        f"`{identity.model}` has a checkpoint whose ledger {problem}",
        f"without {state.ledger_path} nobody can tell whether the checkpoint fits this query",
        identity,
        location,
    )


def _refusal(code: str, message: str, why: str, identity: QueryIdentity, location: Location) -> Finding:
    fix = (
        f"`--full-refresh {identity.model}` starts over and leaves the old checkpoint and output as they are; "
        f"`--accept-state-change {identity.model}` resumes on the old state as it is"
    )
    return Finding(code, message, why, fix, location)
