"""The time of the newest data of sources that only Spark can read: one session, which starts when it is needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

from sqlstream.app.loading.load import Loaded
from sqlstream.app.session.session import spark_session
from sqlstream.app.session.signals import StopSignals
from sqlstream.app.source.freshness_result import NEVER
from sqlstream.errors import FindingsError
from sqlstream.project.configuration.freshness import Freshness
from sqlstream.project.unknown_freshness import unknown
from sqlstream.project.values import SourceTable
from sqlstream.spark.reading.inputs import NodeReader
from sqlstream.spark.reading.newest import NewestData
from sqlstream.spark.reading.sources import Readers
from sqlstream.spark.secrets import Secrets

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class SparkClock:
    """Finds the newest data of the sources with the ids `nodes` in one session. `notify` gets progress messages."""

    def __init__(
        self,
        loaded: Loaded,
        nodes: Sequence[str],
        env: Mapping[str, str],
        notify: Callable[[str], None],
        signals: StopSignals,
    ) -> None:
        self._loaded, self._nodes, self._notify, self._signals = loaded, nodes, notify, signals
        self._secrets = Secrets(env)
        self._running = ExitStack()
        self._newest: NewestData | None = None
        self._failure: FindingsError | None = None

    def newest(self, table: SourceTable, freshness: Freshness) -> datetime:
        """Returns the time of the newest data of `table`, `NEVER` without data.

        Raises: FindingsError; the same one for each table if Spark cannot start.
        """
        micros = self._started().micros(table, freshness)
        if micros is None:
            return NEVER
        try:
            return _EPOCH + timedelta(microseconds=micros)
        except OverflowError as error:
            why = "the time of its newest data is beyond the year 9999"
            raise FindingsError([unknown(table, why, "correct it, or exclude it with `filter`")]) from error

    def close(self) -> None:
        """Stops Spark if it runs."""
        self._running.close()

    def _started(self) -> NewestData:
        if self._failure is not None:
            raise self._failure
        if self._newest is None:
            try:
                self._newest = self._start()
            except FindingsError as error:
                self._failure = error
                raise
        return self._newest

    def _start(self) -> NewestData:
        loaded = self._loaded
        starting = spark_session(
            loaded, self._secrets, self._signals, self._nodes, notify=self._notify, notice="Starting Spark"
        )
        readers = Readers(self._running.enter_context(starting).session, self._secrets, loaded.compiled.project.root)
        return NewestData(NodeReader(loaded.compiled, readers))
