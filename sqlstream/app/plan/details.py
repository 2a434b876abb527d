"""The details of a verdict: the differences in SQL, columns and settings, and what else is concerned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf

from sqlstream.app.loading.load import Loaded
from sqlstream.app.plan.read_so_far import static_files
from sqlstream.app.stored.local_sources import files_at
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.numbers import bytes_text, plural
from sqlstream.project.files.paths import plain_path
from sqlstream.project.formats.formats import format_of
from sqlstream.state.changed_columns import ColumnDifference, contract_breaks, identity_differences
from sqlstream.state.changes import Change, describe_changes
from sqlstream.state.checkpoints import CheckpointState, FilesOf
from sqlstream.state.ledger import Ledger, QueryIdentity
from sqlstream.state.output_columns import column_changes, layout_changes
from sqlstream.state.plan import QueryPlan
from sqlstream.state.readers import source_uses
from sqlstream.state.refusals import StartRefusal, refusal_findings
from sqlstream.state.repartitions import PARTITIONS, has_rocksdb, target_partitions
from sqlstream.state.sources.source_files import FileChoice
from sqlstream.state.spark_settings import FROZEN_SETTINGS
from sqlstream.state.verdicts import QueryVerdict, Verdict, verdict_of

_KEEPS_STATE = (Verdict.UNCHANGED, Verdict.RESUME, Verdict.UNDECIDED)
_STARTS_OVER = (Verdict.NEW, Verdict.REFUSE, Verdict.REBUILD, Verdict.UNKNOWN)


def describe(
    compiled: CompiledProject,
    model: CompiledModel,
    identity: QueryIdentity,
    state: CheckpointState,
    plan: QueryPlan | StartRefusal,
    *,
    has_spark: bool,
    is_parallel: bool = False,
) -> QueryVerdict:
    """Returns the verdict on a planned query, with all that a reader of the plan wants to know. `is_parallel`: it runs
    in parallel with its current version.
    """
    old = state.ledger.identity if state.ledger is not None else None
    differences = identity_differences(old, identity)
    verdict, reason = verdict_of(plan, identity, old, has_spark=has_spark)
    if is_parallel and isinstance(plan, QueryPlan):
        begins = "starts" if verdict is Verdict.NEW else "continues"
        reason = f"version {plan.version} {begins} in parallel with the current version"
    changes = describe_changes(old, identity) if old is not None and verdict is not Verdict.UNCHANGED else ()
    refusals = [plan] if isinstance(plan, StartRefusal) and verdict is not Verdict.UNDECIDED else []
    if verdict is Verdict.NEW:
        changes = ()
    return QueryVerdict(
        model.name,
        verdict,
        reason,
        state.version,
        state.last_commit + 1,
        tuple(refusal_findings(refusals)),
        changes,
        tuple(_columns(old, identity, differences)) if old is not None else (),
        tuple(_frozen(compiled, model.name, old)) if old is not None and state.is_used else (),
        tuple(_sql(old, identity, changes)) if old is not None else (),
        tuple(_reads_again(compiled, model)) if verdict in _STARTS_OVER else (),
        tuple(_shared(compiled, model, changes)),
        differences,
        is_parallel=is_parallel,
        contract_breaks=contract_breaks(old, identity),
        reads=(*plan.reads, *(_changed_files(compiled, model, state.ledger) if verdict in _KEEPS_STATE else ())),
    )


def _changed_files(compiled: CompiledProject, model: CompiledModel, ledger: Ledger | None) -> Iterator[str]:
    """Yields the static tables whose files are not those with which the version of a query with state began."""
    if ledger is None or not ledger.identity.stateful or not ledger.static_files:
        return
    now = static_files(compiled, model)
    for name, before in ledger.static_files.items():
        if name in now and now[name] != before:
            then, there = (f"{plural(each.files, 'file')}, {bytes_text(each.bytes)}" for each in (before, now[name]))
            since = f"since version {ledger.version} began ({then}; now {there})"
            yield f"the files of the static table `{name}` have changed {since}; what is in the state stays as it is"


def _columns(old: QueryIdentity, new: QueryIdentity, differences: Sequence[ColumnDifference]) -> Iterator[str]:
    """Yields what each sink makes of the changed columns, and the differences about which its format says nothing."""
    before = {} if new.batch else {each.sink_path: each for each in old.by_sink}  # a batch replaces all rows
    pairs = [(before[each.sink_path], each) for each in new.by_sink if each.sink_path in before]
    changes = [change for was, now in pairs for change in (*column_changes(was, now), *layout_changes(was, now))]
    yield from dict.fromkeys(change.text for change in changes)
    covered = {name.lower() for change in changes for name in change.covers}
    yield from (each.text for each in differences if each.name.lower() not in covered)


def _frozen(compiled: CompiledProject, name: str, old: QueryIdentity) -> Iterator[str]:
    settings = compiled.project.target.spark
    can_move = target_partitions(settings, old) is not None and has_rocksdb(old.settings)
    for setting in FROZEN_SETTINGS:
        given, kept = settings.get(setting), old.settings.get(setting)
        if given is None or kept is None or str(given) == kept:
            continue
        way = f"`sqlstream run --migrate {name}` changes it to {given}"
        if setting != PARTITIONS or not can_move:
            way = f"{given} would apply only after a full refresh"
        yield f"{setting} stays {kept}, as in the checkpoint; {way}"


def _sql(old: QueryIdentity, new: QueryIdentity, changes: tuple[Change, ...]) -> Iterator[tuple[str, str, str]]:
    for name in dict.fromkeys(change.model for change in changes if change.model):
        before = old.models.get(old.model if name == new.model else name)
        after = new.models.get(name)
        if before is not None and after is not None and before != after:
            yield name, before, after


def _reads_again(compiled: CompiledProject, model: CompiledModel) -> Iterator[str]:
    """Yields each source that the query reads from the start, and how much that is, if it can be counted."""
    tables = {table.full_name: table for table in compiled.tables_of(model.unique_id)}
    for use in source_uses(compiled, model):
        table = tables[use.table]
        path = plain_path(str(compiled.project.root), table.path) if table.path else ""
        choice = FileChoice(is_recursive=format_of(table.format).is_table)
        found = files_at(path, choice, compiled.project.root) if path.startswith("/") else None
        if found is None:
            yield f"{use.table} from its start"
            continue
        yield f"{use.table}: {plural(len(found), 'file')}, {bytes_text(sum(file.size for file in found))}"


def _shared(
    compiled: CompiledProject, model: CompiledModel, changes: tuple[Change, ...]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yields each changed view and the other queries that read it."""
    changed = dict.fromkeys(change.model for change in changes if change.model and change.model != model.name)
    by_name = {each.name: each for each in compiled.models.values()} if changed else {}
    for name in changed:
        if name in by_name:
            view = by_name[name].unique_id  # a reader of a stored output does not compute what is upstream of it
            queries = (each for node, each in compiled.models.items() if view in compiled.upstream(node))
            others = sorted(each.name for each in queries if each.output is not None and each.name != model.name)
            if others:
                yield name, tuple(others)


def removed_queries(loaded: Loaded, files_of: FilesOf, storage: str) -> tuple[QueryVerdict, ...]:
    """Returns the queries that have a checkpoint in `storage` and no model in the project."""
    files, folder = files_of(f"{storage}/queries")
    known = {model.query_id for model in loaded.compiled.models.values()}
    return tuple(
        QueryVerdict(name, Verdict.REMOVED, "no model has this name; its checkpoint and output stay")
        for name in files.names(folder)
        if name not in known and not name.startswith(".")
    )


def with_previous_names(
    compiled: CompiledProject, queries: Sequence[QueryVerdict], removed: Sequence[QueryVerdict]
) -> tuple[QueryVerdict, ...]:
    """Returns the verdicts on `queries`. That on the first version of a model that had no versions before says how it
    continues the query of this model, which is one of `removed`.
    """
    former = {query.model for query in removed}
    first: dict[str, CompiledModel] = {}
    for model in sorted(compiled.models.values(), key=_version_order):
        version = model.file.version
        if version is not None and version.name in former and model.output is not None:
            first.setdefault(version.name, model)
    advice = {model.name: _continued(name, model) for name, model in first.items()}
    return tuple(
        replace(query, reason=f"{query.reason}; {advice[query.model]}")
        if query.verdict is Verdict.NEW and query.model in advice
        else query
        for query in queries
    )


def _version_order(model: CompiledModel) -> tuple[float, str]:
    text = model.file.version.v if model.file.version is not None else ""
    return (float(text), "") if text.replace(".", "", 1).isdecimal() else (inf, text)


def _continued(name: str, model: CompiledModel) -> str:
    v = model.file.version.v if model.file.version is not None else ""
    return f"with `config: {{previous_name: {name}}}`, version {v} continues the query `{name}` and keeps its output"
