"""The query of a ledger on Spark: its session with the settings that ran, and the streams of its parts."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from pyspark.sql import DataFrame

from sqlstream.app.loading.load import Loaded
from sqlstream.app.replaying.as_it_ran import as_it_ran
from sqlstream.app.replaying.parts import Part, parts_of
from sqlstream.app.running.stored_outputs import StoredOutputs
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.compiler.node_ids import view_of
from sqlstream.errors import FindingsError
from sqlstream.spark.jvm.session import PROVIDER, ROCKSDB, SparkRuntime, child_session
from sqlstream.spark.reading.inputs import NodeReader
from sqlstream.spark.reading.python_code import register_functions
from sqlstream.spark.reading.rows import columns_of, first_rows
from sqlstream.spark.reading.sources import Readers
from sqlstream.spark.replaying.taps import Tap, TappedBuilder, find_tap
from sqlstream.spark.running.plans import is_stateful, processors
from sqlstream.spark.running.prepare import frozen_settings
from sqlstream.spark.secrets import Secrets
from sqlstream.state.ledger import Ledger
from sqlstream.state.results.rows import ShownRows
from sqlstream.state.settings import SOURCE_EVOLUTION


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
        self._readers = Readers(session, secrets, resolved.project.root, counts_dropped=False)
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
            self._readers.session.conf.set(PROVIDER, ROCKSDB)
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
