"""Which ranges can be recomputed: what is checked before Spark starts, and again once Spark has analyzed the query."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from sqlstream.app.backfill.backfill import BackfillRequest
from sqlstream.app.loading.load import Loaded
from sqlstream.app.plan.compiled_identity import identity_without_spark
from sqlstream.app.replay.batch_entries import gone_files
from sqlstream.app.session.target_storage import readable_storage
from sqlstream.app.stored.stream_readers import streams_of
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import FindingsError
from sqlstream.project.formats.formats import format_of
from sqlstream.project.wording import quoted, quoted_list
from sqlstream.spark.storage.local import local_path
from sqlstream.state.backfills import beside, cannot_backfill
from sqlstream.state.batch_logs import FILES
from sqlstream.state.checkpoints import read_checkpoint
from sqlstream.state.ledger import OutputColumn, QueryIdentity
from sqlstream.state.replacements import ColumnRange, NotReplaceableError, column_range, time_column
from sqlstream.state.sources.positions import read_position


def not_recomputable(model: CompiledModel, why: str, fix: str) -> FindingsError:
    """Returns the error that a range of a model cannot be recomputed."""
    return FindingsError([cannot_backfill(model.name, why, fix, model.file.location, recomputes=True)])


def check_without_spark(loaded: Loaded, model: CompiledModel, request: BackfillRequest) -> frozenset[str]:
    """Checks what is known before Spark starts: the sink, and in storage that can be read the columns of the query and
    the files that it has read. Returns the URIs of the files that exist. Raises: FindingsError.
    """
    _check_outputs(loaded, model)
    storage = readable_storage(loaded)
    existing: set[str] = set()
    if storage is None:
        return frozenset()
    root = storage.root_of(model)
    try:
        state = read_checkpoint(storage.of, root)
        if state.last_commit < 0:
            raise not_recomputable(model, *never_committed(model.name))
        identity = identity_without_spark(loaded.compiled, model, state)
        check_output_mode(model, identity)
        if identity.columns is not None:
            range_of(model, identity.columns, request)
        for source in read_position(storage.of, root, state.version).sources:
            if source.form == FILES:
                local = {uri: path for uri in source.read or {} if (path := local_path(uri)) is not None}
                existing.update(uri for uri, path in local.items() if path.exists())
                check_gone(model, [uri for uri in local if uri not in existing])
    except OSError:
        pass  # the query is checked again as a run checks it, which reports what is damaged
    return frozenset(existing)


def never_committed(name: str) -> tuple[str, str]:
    """Returns why no batch can be added to a query that has not run yet, and the fix."""
    run = f"`sqlstream run --available-now --select {name}`"
    why = "it has not committed a batch yet, so there is no stream to which a batch can be added"
    return why, f"run it first: {run}; its starting offsets decide what it reads"


def _check_outputs(loaded: Loaded, model: CompiledModel) -> None:
    """Checks what is declared of the sinks. Raises: FindingsError."""
    refused, (use, *others) = partial(not_recomputable, model), model.outputs
    if others:
        why = f"its query writes to several sinks, {quoted_list([each.sink for each in model.outputs])}"
        raise refused(f"{why}, which cannot change in one step", beside(model.name))
    facts = format_of(use.format)
    if not (facts.writes_files or facts.is_table or facts.is_database):
        why = f"its sink {quoted(use.sink)} has the format {use.format}, in which rows cannot be replaced"
        raise refused(why, beside(model.name))
    if facts.writes_files and any(name.lower() == "retention" for name in use.options):
        raise refused("its sink has the option `retention`, which counts the age of each file", beside(model.name))
    readers = streams_of(loaded, model, use, use.path if use.table is None else use.table)
    if readers:
        verb = "reads" if len(readers) == 1 else "read"
        why = f"{quoted_list(readers)} {verb} its output as a stream, and would get the rows twice or fail"
        raise refused(why, f"build it and its readers again: `sqlstream run --full-refresh --select {model.name}+`")


def check_output_mode(model: CompiledModel, identity: QueryIdentity) -> None:
    """Checks that a query with state writes each row once. Raises: FindingsError."""
    if identity.stateful and model.config.output_mode != "append":
        why = f"it keeps state in {model.config.output_mode} mode, and writes a group again when it changes"
        raise not_recomputable(model, why, beside(model.name))


def range_of(model: CompiledModel, columns: Sequence[OutputColumn], request: BackfillRequest) -> ColumnRange:
    """Returns the rows to replace, of a query with these columns. Raises: FindingsError."""
    if request.since is None or request.until is None:
        raise not_recomputable(model, "the range has no limits", "give --from and --to")
    use = model.outputs[0]
    is_files = format_of(use.format).writes_files
    try:
        column = time_column(columns, use.partition_by, request.by, whole_partitions=is_files)
        return column_range(column, request.since, request.until)
    except NotReplaceableError as error:
        raise not_recomputable(model, str(error), error.fix) from error


def check_gone(model: CompiledModel, gone: Iterable[str]) -> None:
    """Raises: FindingsError if files that the stream has read, by their URIs, are `gone`."""
    if found := list(gone):
        fix = "leave the rows of the range as they are"
        raise FindingsError([gone_files(quoted(model.name), found, fix, model.file.location)])
