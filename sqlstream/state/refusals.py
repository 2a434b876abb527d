"""Why a query cannot start on its checkpoint: the findings and their fixes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlstream.errors import Finding
from sqlstream.location import Location, Place
from sqlstream.project.databases.jdbc_options import last_part
from sqlstream.project.databases.statements import BatchRecord
from sqlstream.project.formats.formats import format_of
from sqlstream.project.wording import quoted_list
from sqlstream.state.changes import Change, sources_text
from sqlstream.state.judgement import UNSAFE, Judgement
from sqlstream.state.layout import beside_table
from sqlstream.state.ledger import InputIds, QueryIdentity
from sqlstream.state.output_columns import ColumnChange
from sqlstream.state.signature.compare import NO_OPERATORS, OPERATORS, StateDifference
from sqlstream.state.sinks import UNSTORED

PlaceOf = Callable[[str | None, int | None], Place]
"""Returns the location of an offset in the compiled SQL of a model; without an offset, the location of the model, and
without a name, that of the query's terminal model.
"""


@dataclass(frozen=True)
class StateChange:
    """A stateful query that differs from the one that created its checkpoint. `place` is the location of the first
    change. `is_only_problem`: the query can start once the change is accepted. `judgement` says what is wrong with the
    state. `can_run_parallel`: a new version can run in parallel with the current one.
    `parallel_version` is its number if the query runs in parallel with it already.
    """

    model: str
    changes: tuple[Change, ...]
    ledger_path: str
    place: Place
    is_only_problem: bool = True
    judgement: Judgement = UNSAFE
    can_run_parallel: bool = False
    parallel_version: int | None = None


@dataclass(frozen=True)
class ReplacedInput:
    """A topic or table `name` of the source `table` that has another id than before."""

    table: str
    name: str
    before: str
    after: str

    @property
    def text(self) -> str:
        """The change, in words."""
        return f"`{self.name}`, which source `{self.table}` reads, was deleted and created again"


def replaced_inputs(before: InputIds, after: InputIds) -> list[ReplacedInput]:
    """Returns the inputs whose ids differ. What has no known id before or after is not compared."""
    return [
        ReplacedInput(table, name, number, now)
        for table, ids in before.items()
        for name, number in ids.items()
        if (now := after.get(table, {}).get(name, number)) != number
    ]


@dataclass(frozen=True)
class StartRefusal:
    """Why a query cannot start: `findings`, and `state_change`, which may concern other queries too. `reads` says what
    the query would read again or never.
    """

    findings: tuple[Finding, ...] = ()
    state_change: StateChange | None = None
    reads: tuple[str, ...] = ()


def refresh_command(*models: str) -> str:
    """Returns the command that starts queries from scratch."""
    return f"`sqlstream run --full-refresh --select {' '.join(models)}`"


def parallel_command(*models: str) -> str:
    """Returns the command that runs new versions of queries in parallel with their current ones."""
    names = " ".join(models)
    return f"`sqlstream run --select {names} --parallel {names}`"


def refresh_text(*models: str) -> str:
    """Returns the fix to start queries from scratch."""
    kept = "checkpoint and output" if len(models) == 1 else "checkpoints and outputs"
    return f"{refresh_command(*models)} restarts from scratch and keeps the old {kept}"


def new_version_text(model: str, *, can_run_parallel: bool) -> str:
    """Returns the fixes to start a query from scratch, or in parallel with its current version if it can run there."""
    if not can_run_parallel:
        return refresh_text(model)
    return f"{refresh_text(model)}; or {parallel_command(model)} runs the new version in parallel with the old one"


def refusal_findings(refusals: Sequence[StartRefusal]) -> list[Finding]:
    """Returns the findings of several queries. Queries that are refused for the same upstream changes share one."""
    findings: list[Finding] = []
    changed = [refusal.state_change for refusal in refusals if refusal.state_change is not None]
    for refusal in refusals:
        change = refusal.state_change
        same = [other for other in changed if change is not None and _is_alike(other, change)]
        if same and same[0] is change:
            findings.append(_state_change(same))
        findings += refusal.findings
    return findings


def _is_alike(one: StateChange, other: StateChange) -> bool:
    """Returns whether two queries are refused for the same changes, and with the same effect on their states."""
    return (one.changes, one.judgement) == (other.changes, other.judgement)


def _state_change(same: Sequence[StateChange]) -> Finding:
    """Returns the finding of queries that are refused for the same changes."""
    first, models = same[0], [change.model for change in same]
    fix = f"undo the change; or {refresh_text(*models)}"
    if first.parallel_version is not None:
        another = f"starts another version instead of {first.parallel_version}"
        fix = f"undo the change; or add `--full-refresh`, which {another}"
    elif all(change.can_run_parallel for change in same):
        fix += f"; or {parallel_command(*models)} runs the new version in parallel with the old one"
    if all(change.is_only_problem and not _spark_refuses(change.judgement) for change in same):
        accept = f"`--accept-state-change {' '.join(models)}`"
        fix += f"; or, if the state still has the same meaning, add {accept} to continue with it"
    differences = [_difference(change, alone=len(first.changes) == 1) for change in first.changes]
    return Finding(
        "state-change",
        _message(first, models),
        f"{'; '.join(differences)}; {_consequence(first)}",
        fix,
        first.place.location,
        calls=first.place.calls,
    )


def _spark_refuses(judgement: Judgement) -> bool:
    """Returns whether accepting the change would not help, because Spark itself does not find the state it needs."""
    return any(each.part == OPERATORS and each.before != NO_OPERATORS for each in judgement.differences)


def difference_text(difference: StateDifference, changes: Sequence[Change]) -> str:
    """Returns a difference in words. It quotes the changed SQL where Spark's form of it is far from the user's."""
    sql = next((change.difference for change in changes if change.difference is not None), None)
    if difference.is_readable or (sql is None and not difference.has_inner_forms):
        return str(difference)
    return f"{difference.part} changed" if sql is None else f"{difference.part} changed: {sql}"


def _consequence(change: StateChange) -> str:
    """Returns what a change does to the state, in words."""
    judgement = change.judgement
    if judgement.differences:
        has_sql = any(each.difference is not None for each in change.changes)  # then the message quotes it
        texts = (
            str(each) if each.is_readable or not (has_sql or each.has_inner_forms) else f"{each.part} changed"
            for each in judgement.differences
        )
        effects = (each.effect for each in judgement.differences)
        pairs = dict.fromkeys(zip(texts, effects, strict=True))  # both inputs of a join can differ alike
        return "; ".join(f"{text}: {effect}" for text, effect in pairs)
    why = f" ({judgement.unknown})" if judgement.unknown else ""
    return f"Spark could mix old and new meanings in the existing state{why}"


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


def kind_changed(identity: QueryIdentity, ledger_path: str, place: Place) -> Finding:
    """Returns the refusal of a stream that writes to the output of a batch model, or the reverse.

    A stream keeps a log beside its files with their absolute paths. Readers use only this log, so they do not see files
    that a batch wrote before, and do not find files that are moved. To a table a stream would add all rows again.
    """
    was, now = ("a batch model", "a stream") if not identity.batch else ("a stream", "a batch model")
    problem = "readers could not read an output that both have written"
    if not identity.batch and not format_of(identity.sink_format).writes_files:
        problem = "the stream would add its rows to those of the batch model"
    return _finding(
        "sink-change",
        f"`{identity.model}` is now {now}, but was {was} in its last run",
        f"according to {ledger_path}; {problem}",
        refresh_text(identity.model),
        place,
    )


def sink_changed(identity: QueryIdentity, ledger_path: str, before: str, after: str, place: Place) -> Finding:
    """Returns the refusal of an output that lacks the earlier batches.

    With files, Spark does not find them when it compacts the log, after at most ten batches. The query then always
    fails, and the output is unreadable (tested on 4.3; the guide forbids it under "Recovery Semantics after Changes in
    a Streaming Query").
    """
    consequence = "the new output would lack the rows of the earlier batches"
    if before.split()[0] in UNSTORED:
        consequence += f", which {before} did not store"
    elif after.split()[0] in UNSTORED:
        consequence = f"{after} stores nothing, so {before} would never get the rows of the next batches"
    return _finding(
        "sink-change",
        f"the earlier batches of `{identity.model}` went to another sink",
        f"the sink changed from {before} to {after} since {ledger_path} was written; {consequence}",
        f"{refresh_text(identity.model)}; or restore the old sink",
        place,
    )


def fan_out_changed(identity: QueryIdentity, ledger_path: str, sink: str, change: str, place: Place) -> Finding:
    """Returns the refusal of a sink whose output would lack the rows of the earlier batches, or have them twice."""
    return _finding(
        "sink-change",
        f"`{identity.model}` has other sinks or another fan_out than in its last run",
        f"for sink `{sink}`, {change} ({ledger_path} records the last run); its output would lack the rows of the "
        "earlier batches, or have them twice",
        f"restore the old sinks and fan_out of the model; or name a new sink, and {refresh_text(identity.model)}",
        place,
    )


def columns_changed(
    identity: QueryIdentity,
    ledger_path: str,
    change: ColumnChange,
    place: Place,
    *,
    accepted: bool,
    can_run_parallel: bool,
) -> Finding:
    """Returns the refusal of columns that the sink cannot store beside the existing ones. `accepted`: the user has
    accepted a state change, which does not help here. `can_run_parallel`: a new version can run in
    parallel with the current one.
    """
    note = "; `--accept-state-change` accepts changed state, but not changed columns" if accepted else ""
    message = f"the output of `{identity.model}` cannot hold its new columns: {change.text}"
    why = f"readers combine these rows with the existing ones, whose columns are in {ledger_path}"
    if change.is_key:
        message = f"the output of `{identity.model}` has rows with another key: {change.text}"
        why = f"the query would add rows again instead of replacing the existing ones ({ledger_path} has their key)"
    if change.is_layout:
        message = f"the output of `{identity.model}` has files with other options: {change.text}"
        why = (
            f"readers read all files of the folder in the same way ({ledger_path} has the options of the earlier ones)"
        )
    return _finding(
        "output-columns",
        message,
        f"{why}{note}",
        f"{change.undo}; or {new_version_text(identity.model, can_run_parallel=can_run_parallel)}",
        place,
    )


def unfit_format_table(
    model: str, table: str, problem: ColumnChange, place: Place, *, can_run_parallel: bool
) -> Finding:
    """Returns the refusal of columns that a table of Delta Lake or Iceberg cannot hold."""
    return _finding(
        "output-columns",
        f"the table {table} cannot hold the columns of `{model}`: {problem.text}",
        "the table has its own columns, to which a run adds only the new columns of a changed model",
        f"{problem.undo}; or {new_version_text(model, can_run_parallel=can_run_parallel)}",
        place,
    )


def unfit_table(model: str, table: str, problem: ColumnChange, place: Place, *, can_run_parallel: bool) -> Finding:
    """Returns the refusal of columns that the sink's table does not have, or has with another type."""
    return _finding(
        "output-columns",
        f"the table {table} cannot hold the columns of `{model}`: {problem.text}",
        "Spark writes the files of a table with the columns of the query, but reads them with the columns of the table",
        f"{problem.undo}; or {new_version_text(model, can_run_parallel=can_run_parallel)}",
        place,
    )


def sources_reordered(identity: QueryIdentity, ledger_path: str, old: QueryIdentity, place: Place) -> Finding:
    """Returns the refusal of different sources on a checkpoint that identifies them only by their order."""
    return _finding(
        "source-change",
        f"the checkpoint of `{identity.model}` belongs to other sources, or to the same ones in another order",
        f"the sources changed from {sources_text(old, paths=True)} to {sources_text(identity, paths=True)} "
        f"since {ledger_path} was written; a checkpoint from Spark before 4.3 identifies sources only by their "
        "order",
        f"{refresh_text(identity.model)}; or restore the old order of the sources",
        place,
    )


def input_replaced(model: str, replaced: ReplacedInput, ledger_path: str, place: Place) -> Finding:
    """Returns the refusal of a topic or table that was deleted and created again. Spark continues at the old offsets,
    so it skips the first records of a new topic without an error, and fails for a table.
    """
    return _finding(
        "source-replaced",
        f"{replaced.text}, and the checkpoint of `{model}` has read the old one",
        f"its id was {replaced.before} when {ledger_path} was written, and is now {replaced.after}; the query would "
        "continue at the position of the old one, and skip everything before it or fail",
        f"{refresh_text(model)}; or, to continue at that position of the new one, add `--accept-state-change {model}`",
        place,
    )


def reading_switched(identity: QueryIdentity, ledger_path: str, model: str, place: Place) -> Finding:
    """Returns the refusal of a query that has computed a model so far, and would now read its stored output from the
    beginning, or the reverse.
    """
    is_stored = any(use.stored and use.table == model for use in identity.sources)
    before, now = ("computed", "reads its stored output") if is_stored else ("read as a stored output", "computes it")
    return _finding(
        "source-change",
        f"`{identity.model}` has {before} `{model}` so far, and now {now}",
        f"it would begin with the first row, and write rows again that it has written since {ledger_path} was written",
        f"{refresh_text(identity.model)}; or change `materialized` of `{model}` back; or, if it should read all rows "
        f"again, add `--accept-state-change {identity.model}`",
        place,
    )


def unsure_readers(
    identity: QueryIdentity, ledger_path: str, old: QueryIdentity, tables: Sequence[str], place: Place
) -> Finding:
    """Returns the refusal of references for which it is unknown which one continues where an earlier one stopped."""
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


def ledger_missing(identity: QueryIdentity, ledger_path: str, problem: str, place: Place) -> Finding:
    """Returns the refusal of a checkpoint whose origin is unknown."""
    return _finding(
        "ledger-unreadable",
        f"`{identity.model}` has a checkpoint whose ledger {problem}",
        f"without {ledger_path}, sqlstream cannot check that the checkpoint fits this query",
        f"restore the ledger from a backup; or {refresh_text(identity.model)}; or, if the query has not "
        f"changed, add `--accept-state-change {identity.model}` to continue with the checkpoint",
        place,
    )


def output_in_use(model: str, output: str, location: Location) -> Finding:
    """Returns the refusal of an output with batches of another checkpoint. Spark's file sink would skip new batches
    with the same numbers (FileStreamSink of Spark 4.3).
    """
    return Finding(
        "output-not-empty",
        f"the output of `{model}` contains batches of another checkpoint",
        f"{output}/_spark_metadata lists them; a new checkpoint starts at batch 0, and Spark would silently "
        "skip every batch number that is listed",
        "restore the checkpoint that wrote them; or move the folder; or use another path for the sink",
        location,
    )


def table_in_use(
    model: str, table: str, record: BatchRecord, query_ids: Sequence[str], writer: str, last: int, location: Location
) -> Finding:
    """Returns the refusal of a database's table with batches of the queries `query_ids`, of which the newest is that of
    the model `writer`, with the batch `last`.
    """
    title, new_name = record.dialect.title, last_part(beside_table(table, "before"))
    batches = f"batches 0 to {last}" if last else "batch 0"
    return Finding(
        "output-not-empty",
        f"the output of `{model}` contains batches of another checkpoint",
        f"{table} has rows, and {record.table} lists {batches} of another checkpoint of `{writer}`; a new checkpoint "
        "starts at batch 0, and would write their rows again",
        "restore the checkpoint that wrote them: `checkpoint` as it was, or `previous_name` after a rename, which also "
        f"allows `--full-refresh`; or run in {title}: ALTER TABLE {table} RENAME TO {new_name}; or use another table "
        f"for the sink; or, if the table should keep its rows and get all rows again, run {record.forget(query_ids)}",
        location,
    )


def streamed_table_in_use(model: str, table: str, query_ids: Sequence[str], location: Location) -> Finding:
    """Returns the refusal of a table of Delta Lake or Iceberg with rows and batches of the queries `query_ids`."""
    return Finding(
        "output-not-empty",
        f"the output of `{model}` contains batches of another checkpoint",
        f"{table} has rows, and its commits name the streaming {'query' if len(query_ids) == 1 else 'queries'} "
        f"{', '.join(query_ids)}; a new checkpoint starts at batch 0, and would write their rows again",
        "restore the checkpoint that wrote them: `checkpoint` as it was, or `previous_name` after a rename, which also "
        "allows `--full-refresh`; or use another table for the sink; or, if the table should keep its rows and get "
        f"all rows of `{model}`, add `--accept-state-change {model}`",
        location,
    )


def _finding(code: str, message: str, why: str, fix: str, place: Place) -> Finding:
    return Finding(code, message, why, fix, place.location, calls=place.calls)
