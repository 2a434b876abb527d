"""Keeps the plain names of outputs in step with the queries of a run."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from pyspark.sql import SparkSession

from sqlstream.app.plan.ready import CheckContext, CheckedQuery
from sqlstream.app.request import CAUGHT_UP, FIRST_BATCH
from sqlstream.app.session.target_storage import storage_base
from sqlstream.app.status.lags import ProgressReader
from sqlstream.app.status.lags_with_spark import Brokers
from sqlstream.app.versions.publications import QueryNames
from sqlstream.errors import FindingsError
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.publication.publication import Publication
from sqlstream.spark.storage.query_locks import versions_lock
from sqlstream.state.checkpoints import read_versions_file
from sqlstream.state.plan import Action
from sqlstream.state.query_versions import Versions
from sqlstream.state.runs.events import Notice, QueryResult, RunEvent, Status
from sqlstream.state.runs.progress import BatchProgress
from sqlstream.state.sources.lag import Pace, amount_of

LAG_SECONDS = 1.0
"""How often to look whether a version has caught up; less often if the look takes long."""

logger = logging.getLogger("sqlstream.publishing")


class Publisher:
    """Passes the events of a run on, and shows readers each batch before its event.

    After a full refresh, readers see the new version once it has committed a batch, or with `--switch-when caught-up`
    once it has read what its sources have.
    """

    def __init__(self, ready: Sequence[CheckedQuery], checks: CheckContext, notify: Callable[[RunEvent], None]) -> None:
        self._checks, self._notify = checks, notify
        self._names = {item.query.model.name: plain_names(item, checks) for item in ready}
        self._outputs = {
            item.query.model.name: (item, self._names[item.query.model.name].publications(item.query.identity))
            for item in ready
        }
        self._waiting = {item.query.model.name for item in ready if _starts_current(item)}
        self._catching_up: set[str] = set()
        self._pace = Pace(LAG_SECONDS)
        self._reported: set[str] = set()

    def before_start(self, item: CheckedQuery, checks: CheckContext) -> None:
        """Completes a switch that was interrupted, and shows batches that were committed before a run was killed.

        Raises: FindingsError if another command is changing which version is current; OSError, Spark's errors.
        """
        model, names = item.query.model.name, self._names[item.query.model.name]
        parts = read_versions_file(checks.storage_of, item.root)
        behind = [] if _starts_current(item) else names.behind(parts)  # a full refresh may replace what is broken
        if self._waits(item, parts):
            self._catching_up.add(model)
            self._waiting.discard(model)
            text = f"readers see the version before until version {item.plan.version} has caught up"
            self._notify(Notice(f"{model}: {text}"))
        elif any(each.name in (parts.published or ()) for each in behind):
            self._follow(model)
        elif parts.published is not None and not item.is_parallel and (behind or not names.has_rows(parts)):
            self._waiting.add(model)  # a full refresh was interrupted
            self._try_to_follow(model)
        self._keep_up(model)

    def _waits(self, item: CheckedQuery, parts: Versions) -> bool:
        """Returns whether readers see a version that has started over only when it has caught up."""
        wanted, is_current = self._checks.request.switch_when, not item.is_parallel
        if _starts_current(item):
            return wanted == CAUGHT_UP
        return is_current and parts.is_waiting and wanted != FIRST_BATCH

    def check_waiting(self) -> None:
        """Shows readers the versions that have caught up. Called in each turn of the supervision; looks every few
        seconds.
        """
        if not self._catching_up or not self._pace.begin():
            return
        for model in sorted(self._catching_up):
            try:
                if self._has_caught_up(model):
                    self._show_caught_up(model)
            except (OSError, FindingsError, *SPARK_ERRORS):
                continue  # the next look tries again
            except Exception:  # it must not end the queries of the run
                logger.exception("whether %s has caught up is unknown", model)
                self._catching_up.discard(model)
        self._pace.end()

    def _has_caught_up(self, model: str) -> bool:
        """Returns whether the sources have nothing left, or, for those of which only Spark knows it, whether the query
        waits for data. Raises: OSError, Spark's errors.
        """
        item, _ = self._outputs[model]
        checks = self._checks
        brokers = Brokers(checks.loaded, checks.runtime, checks.secrets)
        reader = ProgressReader(checks.loaded, storage_base(checks.loaded), checks.storage_of, brokers.lag)
        progress = reader.version(item.query.model, item.plan.version)
        if progress.position.batch is None:
            return False
        lags = [source.lag for source in progress.sources]
        if any(lag is not None and amount_of(lag) for lag in lags):
            return False
        return None not in lags or _is_waiting(item.query.frame.sparkSession)

    def _show_caught_up(self, model: str) -> None:
        self._catching_up.discard(model)
        self._waiting.add(model)
        self._notify(Notice(f"{model}: has caught up"))
        self._try_to_follow(model)

    def __call__(self, event: RunEvent) -> None:
        """Handles one event."""
        if isinstance(event, BatchProgress) and event.model in self._outputs:
            self._show(event.model)
        if isinstance(event, QueryResult):
            try:
                if event.status is Status.SUCCESS and event.model in self._catching_up:
                    self._show_caught_up(event.model)  # it has ended by itself
                self._show(event.model)
                event = self.with_plain_name(event)
            except Exception:  # everyone must learn that the query has ended
                logger.exception("the plain name of %s failed", event.model)
        self._notify(event)

    def with_plain_name(self, result: QueryResult) -> QueryResult:
        """Returns the result with the path or table where readers find the output."""
        item, outputs = self._outputs[result.model]
        written = item.output(self._checks)
        first = item.query.identity.sink_path
        with suppress(OSError, FindingsError, *SPARK_ERRORS):
            for each in outputs:
                if each.name == first and result.output == written and self._is_shown(item, each):
                    return replace(result, output=each.path)
        return result

    def _is_shown(self, item: CheckedQuery, publication: Publication) -> bool:
        parts = read_versions_file(self._checks.storage_of, item.root)
        return publication.name in (parts.published or ()) and publication.is_shown(item.plan.version)

    def _show(self, model: str) -> None:
        if model in self._waiting:
            with suppress(OSError, *SPARK_ERRORS):  # the next batch tries again
                self._try_to_follow(model)
        try:
            self._keep_up(model)
        except (OSError, *SPARK_ERRORS) as error:
            reason = self._checks.secrets.redact(str(error))
            self._report(model, f"readers do not see its last batches yet: {reason}")

    def _try_to_follow(self, model: str) -> None:
        try:
            if self._follow(model):
                self._waiting.discard(model)
        except FindingsError as error:
            self._report(model, f"readers still see the version before: {error.findings[0].why}")

    def _follow(self, model: str) -> bool:
        """Makes the plain names of a query show its current version. Returns whether they do, or cannot."""
        names = self._names[model]
        place = names.model.file.location
        with versions_lock(names.storage, names.root, model, place, self._checks.secrets):
            parts = read_versions_file(names.storage_of, names.root)
            if not names.has_rows(parts):
                return False
            parts, problems = names.switch(replace(parts, is_waiting=False))
            for problem in problems:
                self._report(model, problem)
            return bool(problems) or not names.behind(parts)

    def _keep_up(self, model: str) -> None:
        item, outputs = self._outputs[model]
        for each in outputs:
            each.keep_up(item.plan.version)

    def _report(self, model: str, text: str) -> None:
        if model not in self._reported:
            self._reported.add(model)
            self._notify(Notice(f"{model}: {text}"))


def _is_waiting(session: SparkSession) -> bool:
    """Returns whether the query of a session has found no data at its last trigger."""
    statuses = [query.status for query in session.streams.active]
    return bool(statuses) and not any(each["isDataAvailable"] or each["isTriggerActive"] for each in statuses)


def _starts_current(item: CheckedQuery) -> bool:
    """Returns whether the run starts a version that becomes the current one."""
    return item.plan.action is Action.REFRESH and not item.is_parallel


def plain_names(item: CheckedQuery, checks: CheckContext) -> QueryNames:
    """Returns the plain names of the outputs of a checked query."""
    return QueryNames(
        checks.loaded,
        item.query.model,
        item.storage,
        item.root,
        checks.storage_of,
        checks.secrets,
        lambda: checks.runtime.session,
        checks.locks.holds,
    )
