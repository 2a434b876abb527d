"""Why a query may not start on the checkpoint that it has: the findings, and the ways out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlstream.errors import Finding
from sqlstream.location import Location, Place
from sqlstream.project.wording import quoted_list
from sqlstream.state.changes import Change, sources_text
from sqlstream.state.ledger import QueryIdentity, SourceUse
from sqlstream.state.output_columns import ColumnChange

PlaceOf = Callable[[str | None, int | None], Place]
"""The place of an offset in the compiled SQL of a model of the query, by its name; without an offset that of the model,
and without a name that of the query's own model."""


@dataclass(frozen=True)
class StateChange:
    """A stateful query that is not the one that made its checkpoint. `place` is where the first change is;
    `is_only_problem` says that the query may start once the change is accepted.
    """

    model: str
    changes: tuple[Change, ...]
    ledger_path: str
    place: Place
    is_only_problem: bool = True


@dataclass(frozen=True)
class StartRefusal:
    """Why a query may not start: `findings`, and `state_change`, which may concern other queries too."""

    findings: tuple[Finding, ...] = ()
    state_change: StateChange | None = None


def refresh_command(*models: str) -> str:
    """Returns the command that starts queries over."""
    return f"`sqlstream run --full-refresh --select {' '.join(models)}`"


def refresh_text(*models: str) -> str:
    """Returns what starting queries over does, as one of the ways out."""
    kept = "checkpoint and output" if len(models) == 1 else "checkpoints and outputs"
    return f"{refresh_command(*models)} restarts from scratch and keeps the old {kept}"


def refusal_findings(refusals: Sequence[StartRefusal]) -> list[Finding]:
    """Returns the findings of several queries: those that the same changes upstream refuse have one together."""
    findings: list[Finding] = []
    changed = [refusal.state_change for refusal in refusals if refusal.state_change is not None]
    for refusal in refusals:
        own = refusal.state_change
        if own is not None:
            same = [other for other in changed if other.changes == own.changes]
            if same[0] is own:
                findings.append(_state_change(same))
        findings += refusal.findings
    return findings


def _state_change(same: Sequence[StateChange]) -> Finding:
    """The finding of queries that the same changes refuse."""
    first, models = same[0], [change.model for change in same]
    fix = f"undo the change; or {refresh_text(*models)}"
    if all(change.is_only_problem for change in same):
        accept = f"`--accept-state-change {' '.join(models)}`"
        fix += f"; or, if the state still has the same meaning, add {accept} to continue with it"
    differences = [_difference(change, alone=len(first.changes) == 1) for change in first.changes]
    return Finding(
        "state-change",
        _message(first, models),
        f"{'; '.join(differences)}; Spark could mix old and new meanings in the existing state",
        fix,
        first.place.location,
        calls=first.place.calls,
    )


def _message(first: StateChange, models: Sequence[str]) -> str:
    names = quoted_list(models)
    queries = f"the stateful query {names}" if len(models) == 1 else f"{len(models)} stateful queries ({names})"
    change = first.changes[0]
    if len(first.changes) > 1:
        return f"{queries} changed in {len(first.changes)} ways since the checkpoint was written"
    if change.model is not None and change.model not in models:
        return f"{change.text}, which {queries} {'reads' if len(models) == 1 else 'read'}"
    if change.model is not None:
        return f"{change.text} since its checkpoint was written, and {names} is stateful"
    return f"{change.text} since the checkpoint of {queries} was written"


def _difference(change: Change, *, alone: bool) -> str:
    if change.difference is None:
        return change.text
    return change.difference if alone else f"in `{change.model}`, {change.difference}"


def other_kind(identity: QueryIdentity, ledger_path: str, place: Place) -> Finding:
    """Returns the refusal of a stream's output as a batch model's, or the other way round.

    Beside its files a stream keeps a log that names them with their whole paths: readers take only what that names, so
    files that a batch wrote before are not seen, and files that are moved are not found.
    """
    was, now = ("a batch model", "a stream") if not identity.batch else ("a stream", "a batch model")
    return _finding(
        "sink-change",
        f"`{identity.model}` is now {now}, but was {was} in its last run",
        f"according to {ledger_path}; readers could not read an output that both have written",
        refresh_text(identity.model),
        place,
    )


def other_sink(identity: QueryIdentity, ledger_path: str, before: str, after: str, place: Place) -> Finding:
    """Returns the refusal of an output whose log lacks the batches so far.

    Spark does not find them when it compacts the log, after at most ten batches: the query then fails for good, and
    nobody can read the output (tried on 4.3; the guide forbids it under "Recovery Semantics after Changes in a
    Streaming Query").
    """
    return _finding(
        "sink-change",
        f"the earlier batches of `{identity.model}` went to another sink",
        f"the sink changed from {before} to {after} since {ledger_path} was written; Spark cannot continue in a "
        "folder without the first batches",
        f"{refresh_text(identity.model)}; or restore the old format and path of the sink",
        place,
    )


def other_columns(
    identity: QueryIdentity, ledger_path: str, change: ColumnChange, place: Place, *, accepted: bool
) -> Finding:
    """Returns the refusal of columns that the sink cannot hold beside those that are there. `accepted` is whether the
    user has accepted a change of state, which is of no use here.
    """
    vain = "; `--accept-state-change` accepts changed state, but not changed columns" if accepted else ""
    return _finding(
        "output-columns",
        f"the output of `{identity.model}` cannot hold its new columns: {change.text}",
        f"readers combine these rows with the existing ones, whose columns are in {ledger_path}{vain}",
        f"{change.undo}; or {refresh_text(identity.model)}",
        place,
    )


def unfit_table(model: str, table: str, problem: ColumnChange, place: Place) -> Finding:
    """Returns the refusal of columns that the table of a sink does not have, or has with another type."""
    return _finding(
        "output-columns",
        f"the table {table} cannot hold the columns of `{model}`: {problem.text}",
        "Spark writes the files of a table with the columns of the query, but reads them with the columns of the table",
        f"{problem.undo}; or {refresh_text(model)}",
        place,
    )


def other_order(identity: QueryIdentity, ledger_path: str, old: QueryIdentity, place: Place) -> Finding:
    """Returns the refusal of other sources on a checkpoint that knows them by their order alone."""
    return _finding(
        "source-change",
        f"the checkpoint of `{identity.model}` belongs to other sources, or to the same ones in another order",
        f"the sources changed from {sources_text(old, paths=True)} to {sources_text(identity, paths=True)} "
        f"since {ledger_path} was written; a checkpoint from Spark before 4.3 identifies sources only by their "
        "order",
        f"{refresh_text(identity.model)}; or restore the old order of the sources",
        place,
    )


def other_place(
    identity: QueryIdentity, ledger_path: str, before: SourceUse, after: SourceUse, place: Place
) -> Finding:
    """Returns the refusal of a source that has moved to where Spark does not find the files of the last batch."""
    return _finding(
        "source-change",
        f"the checkpoint of `{identity.model}` has read `{after.table}` from another path",
        f"its path changed from {before.path} to {after.path} since {ledger_path} was written; Spark looks for "
        "the files of the last batch, but they are not there",
        f"{refresh_text(identity.model)}; or use a pattern that matches both paths, for example {{old,new}}",
        place,
    )


def unsure_readers(
    identity: QueryIdentity, ledger_path: str, old: QueryIdentity, tables: Sequence[str], place: Place
) -> Finding:
    """Returns the refusal of references of which nobody can tell which one goes on where another one stopped."""
    names = quoted_list(tables)
    return _finding(
        "state-change",
        f"`{identity.model}` reads {names} through different references than the query of its checkpoint",
        f"the sources changed from {_readers(old)} to {_readers(identity)} since {ledger_path} was written; "
        "sqlstream cannot match the old references to the new ones, so rows could be read twice or not at all",
        f"use a separate model for each reference; or {refresh_text(identity.model)}; or add "
        f"`--accept-state-change {identity.model}` to continue, and read renamed inputs from the start",
        place,
    )


def _readers(identity: QueryIdentity) -> str:
    return ", ".join(f"{use.name} ({use.via})" for use in identity.sources) or "none"


def without_ledger(identity: QueryIdentity, ledger_path: str, problem: str, place: Place) -> Finding:
    """Returns the refusal of a checkpoint of which nobody can tell what made it."""
    return _finding(
        "ledger-unreadable",
        f"`{identity.model}` has a checkpoint whose ledger {problem}",
        f"without {ledger_path}, sqlstream cannot check that the checkpoint fits this query",
        f"restore the ledger from a backup; or {refresh_text(identity.model)}; or, if the query has not "
        f"changed, add `--accept-state-change {identity.model}` to continue with the checkpoint",
        place,
    )


def used_output(model: str, output: str, location: Location) -> Finding:
    """Returns the refusal of an output that has batches of another checkpoint: Spark's file sink would take the new
    batches of the same numbers for ones that it has written, and skip them (FileStreamSink of Spark 4.3).
    """
    return Finding(
        "output-not-empty",
        f"the output of `{model}` contains batches of another checkpoint",
        f"{output}/_spark_metadata lists them; a new checkpoint starts at batch 0, and Spark would silently "
        "skip every batch number that is listed",
        "restore the checkpoint that wrote them; or move the folder; or use another path for the sink",
        location,
    )


def _finding(code: str, message: str, why: str, fix: str, place: Place) -> Finding:
    return Finding(code, message, why, fix, place.location, calls=place.calls)
