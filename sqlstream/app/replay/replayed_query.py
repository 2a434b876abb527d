"""The query of a ledger on Spark: with the SQL that ran, the settings that ran, and the streams of its parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from pyspark.sql import DataFrame

from sqlstream.app.loading.load import Loaded
from sqlstream.app.replay.batch_entries import changed_project
from sqlstream.app.replay.parts import Part, parts_of
from sqlstream.app.replay.taps import Tap, TappedBuilder, find_tap
from sqlstream.app.stored.stored_outputs import StoredOutputs
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.graph import model_id, view_of
from sqlstream.errors import FindingsError
from sqlstream.project.values import SourceTable
from sqlstream.project.wording import quoted_list
from sqlstream.spark.jvm.plans import is_stateful, processors
from sqlstream.spark.jvm.session import SparkRuntime, child_session
from sqlstream.spark.jvm.state_store import PROVIDER, ROCKSDB
from sqlstream.spark.queries.prepare import frozen_settings
from sqlstream.spark.reading.inputs import NodeReader
from sqlstream.spark.reading.plain_rows import columns_of, first_rows
from sqlstream.spark.reading.python_code import register_functions
from sqlstream.spark.reading.sources import Readers
from sqlstream.spark.secrets import Secrets
from sqlstream.state.identity import identity_of
from sqlstream.state.ledger import FUNCTION, SINK, Ledger, QueryIdentity
from sqlstream.state.readers import respelled, source_uses
from sqlstream.state.shown_rows import ShownRows
from sqlstream.state.spark_settings import SOURCE_EVOLUTION


class PastQuery:
    """The query of `present` as the ledger has it, for a batch that `has_ended`. Another batch has the SQL of the
    project, with which the next run repeats it. Streams are analyzed when they are first needed.

    Raises: FindingsError, if the project does not have the query that ran, or Spark refuses it.
    """

    def __init__(
        self,
        loaded: Loaded,
        present: CompiledModel,
        ledger: Ledger,
        runtime: SparkRuntime,
        secrets: Secrets,
        *,
        has_ended: bool = True,
    ) -> None:
        resolved = StoredOutputs(loaded, runtime.session, secrets, {}).resolve([present.unique_id])
        self.query = as_it_ran(resolved, present, ledger, has_ended=has_ended)
        self.ledger, self.has_ended = ledger, has_ended
        settings = {**ledger.identity.settings, **frozen_settings(present, runtime, ledger)}
        session = child_session(runtime, settings)
        register_functions(session, resolved.project.functions)
        self._readers = Readers(session, secrets, resolved.project.root, counts=False)
        missing = [
            found for table in resolved.tables_of(present.unique_id) for found in self._readers.missing_secrets(table)
        ]
        if missing:
            raise FindingsError(missing)
        self._names_sources = settings.get(SOURCE_EVOLUTION) == "true"

    @property
    def model(self) -> CompiledModel:
        """The model with the SQL that ran."""
        return self.query.model

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The streaming sources and views of the query."""
        return parts_of(self.query.compiled, self.model)

    def frame(self, part: Part) -> DataFrame:
        """Returns the stream of a source or view. Raises: FindingsError."""
        if part.view is not None:
            return self._builder(0).build(part.view, part.path)
        if part.table is None:
            raise ValueError(f"{part.unique_id} is neither a source nor a view")
        name = next(use.name for use in self.ledger.identity.sources if use.via == part.via)
        reader = NodeReader(self.query.compiled, self._readers)
        return reader.open_source(part.table, name if self._names_sources else None)

    def model_frame(self, taps: tuple[Tap, ...] = (), limit: int = 0) -> DataFrame:
        """Returns the stream of the model with taps, each of which collects `limit` rows. Raises: FindingsError."""
        builder = replace(self._builder(limit), taps={tap.view: tap for tap in taps})
        frame = builder.build(self.model)
        if any(processor.in_rocksdb for processor in processors(frame)):
            self._readers.session.conf.set(PROVIDER, ROCKSDB)  # transformWithState needs it
        return frame

    def static_rows(self, node_id: str, limit: int) -> ShownRows:
        """Returns the present rows of a static table or seed. Raises: FindingsError, Spark's errors."""
        reader = NodeReader(self.query.compiled, self._readers)
        table = reader.table(node_id)
        frame = reader.open_seed(node_id) if table is None else reader.open_source(table, None)
        return ShownRows(view_of(node_id), node_id, columns_of(frame), first_rows(frame, limit), limit)

    @cached_property
    def is_stateful(self) -> bool:
        """Whether the query keeps state."""
        return is_stateful(self.model_frame())

    @cached_property
    def behind_state(self) -> tuple[Part, ...]:
        """The views whose rows depend on state."""
        return tuple(part for part in self.parts if part.view is not None and is_stateful(self.frame(part)))

    def tap(self, part: Part) -> Tap:
        """Returns the tap of a view behind state. Raises: FindingsError, Spark's errors."""
        if part.view is None:
            raise ValueError(f"{part.unique_id} is not a view")
        return find_tap(self._builder(1), self.model, part.view, self.frame(part))

    def _builder(self, limit: int) -> TappedBuilder:
        reader = NodeReader(self.query.compiled, self._readers)
        return TappedBuilder(reader, self.ledger.identity.sources, self._names_sources, {}, limit)


_EXACT = {"failondataloss": "true"}
"""Options of sources during a replay: data that no longer exists is an error."""

_WITHOUT_SIDE_EFFECT = frozenset({"cleansource", "sourcearchivedir"})
"""Options of sources that would move or delete files that were read."""


@dataclass(frozen=True)
class QueryAsItRan:
    """A compiled project in which `model` is the query of a ledger. `changed` are the models whose SQL differs from the
    files of the project.
    """

    compiled: CompiledProject
    model: CompiledModel
    changed: tuple[str, ...]


def as_it_ran(
    compiled: CompiledProject, model: CompiledModel, ledger: Ledger, *, has_ended: bool = True
) -> QueryAsItRan:
    """Returns the query of `ledger`, the one of the present `model`; for a batch that has not ended, with the present
    SQL. Raises: FindingsError if the project does not have everything that ran.
    """
    uses = source_uses(compiled, model, ledger)
    now = identity_of(compiled, model, uses, None, stateful=False, settings={})
    then = respelled(ledger.identity, now)
    changes = list(_changes(compiled, now, then))
    if changes:
        raise FindingsError([changed_project(model.name, changes, model.file.location)])
    # a fingerprint ignores comments, white space and letter case
    changed = tuple(name for name, sql in then.models.items() if sql != now.models[name] and _differs(name, now, then))
    models = dict(compiled.models)
    for name in changed if has_ended else ():
        node = model_id(compiled.project.name, name)
        models[node] = replace(models[node], sql=then.models[name])
    sources = tuple(map(_read_again, compiled.project.sources))
    stored = {node: _read_again(table) for node, table in compiled.stored.items()}
    found = replace(compiled, models=models, project=replace(compiled.project, sources=sources), stored=stored)
    return QueryAsItRan(found, found.models[model.unique_id], changed)


def _read_again(table: SourceTable) -> SourceTable:
    if table.mode != "stream":
        return table
    kept = {name: value for name, value in table.options.items() if name.lower() not in _WITHOUT_SIDE_EFFECT}
    given = {name: value for name, value in kept.items() if name.lower() not in _EXACT}
    exact = {"failOnDataLoss": "true"} if table.format in ("kafka", "delta") else {}
    return table.model_copy(update={"options": {**given, **exact}})


def _differs(name: str, now: QueryIdentity, then: QueryIdentity) -> bool:
    return now.fingerprints.get(name) != then.fingerprints.get(name)


def _changes(compiled: CompiledProject, now: QueryIdentity, then: QueryIdentity) -> Iterator[str]:
    """Yields what the project lacks of the query that ran, beside its SQL."""
    others = [name for name in then.models if name not in now.models] or [
        name for name in now.models if name not in then.models
    ]
    if others:
        yield f"the query has other models: {quoted_list(others)}"
        return
    present, past = now.code or {}, then.code or {}
    # a replay does not call the sink
    known = {name for name in past if name in present and not name.startswith(f"{SINK} ")}
    python = [name for name in sorted(known) if present[name] != past[name]]
    if then.code is None:
        python = [name for name in then.models if _is_python(compiled, name) and _differs(name, now, then)]
    if python:
        yield f"the Python of {quoted_list(python)} has changed"
    digests = {function.reference: function.digest for function in compiled.project.functions}
    called = {name: digest for name, digest in then.fingerprints.items() if name not in then.models}
    compared = {each.reference for each in compiled.project.functions if f"{FUNCTION} {each.name}" in known}
    functions = [name for name, digest in called.items() if name not in compared and digests.get(name) != digest]
    if functions:
        yield f"functions have changed: {quoted_list(functions)}"
    if {use.via: use.table for use in now.sources} != {use.via: use.table for use in then.sources}:
        yield "the query reads other sources"
    elif {use.via: use.watermark for use in now.sources} != {use.via: use.watermark for use in then.sources}:
        yield "the watermark of a source has changed"
    yield from _changes_of_rows(now, then)
    for what, before, after in (
        ("the format or the options", then.contents, now.contents),
        ("the columns", then.schemas, now.schemas),
    ):
        names = _changed_keys(before, after)
        if names:
            yield f"{what} of {quoted_list(names)} have changed"


def _changes_of_rows(now: QueryIdentity, then: QueryIdentity) -> Iterator[str]:
    """Yields what sqlstream does otherwise with the rows of a model's SQL."""
    if dict(now.deduplicated) != dict(then.deduplicated):
        yield "deduplicate has changed"
    if dict(now.kept) != dict(then.kept):
        yield "the data tests drop other rows"


def _is_python(compiled: CompiledProject, name: str) -> bool:
    model = compiled.models.get(model_id(compiled.project.name, name))
    return model is not None and model.file.is_python


def _changed_keys(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Returns the keys of both with other values. Ledgers of an early sqlstream have none."""
    return [name for name, value in before.items() if name in after and after[name] != value]
