"""The data of the page, from the history of runs, run_results.json, the project, and what runs have stored."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from sqlstream.app.compile.lineage import trace_compiled
from sqlstream.app.loading.logs import LOGS_FOLDER
from sqlstream.app.observe.record import journal_files
from sqlstream.app.observe.stored_journal import copied_journals
from sqlstream.app.request import ProjectRequest
from sqlstream.app.session.target_storage import readable_storage
from sqlstream.app.status.lags import progress_without_spark
from sqlstream.app.status.status import copy_logs, read_results, target_of_results
from sqlstream.app.status.status_text import recorded_finding_text
from sqlstream.app.ui.charts import charts_of
from sqlstream.app.ui.docs_page import DocsPages, search_entries
from sqlstream.app.ui.live_runs import LiveQuery
from sqlstream.app.ui.node_pages import node_page, query_page
from sqlstream.app.ui.overview import Differences, Overviews
from sqlstream.app.ui.project_view import ProjectView, SeenProject
from sqlstream.app.ui.sample import Sample, sample_of
from sqlstream.compiler.manifest.manifest import output_columns
from sqlstream.errors import FindingsError, UsageError
from sqlstream.history.database import files_set_aside
from sqlstream.history.reads import Page, batch_rows, events_of, failures_beside, first_batch_ms, lacks_batches
from sqlstream.history.store import History
from sqlstream.project.wording import nearest
from sqlstream.report.findings import finding_text, sort_findings
from sqlstream.state.runs.events import Status
from sqlstream.state.runs.tracked_run import LiveStatus
from sqlstream.state.sources.lag import LagByUnit, Pace, source_lags
from sqlstream.version import __version__
from sqlstream.web.server.protocol import Json, Span, UnknownQueryError

UPDATE_SECONDS = 1.0
"""How often the journal is read while somebody looks at the page."""

IDLE_UPDATE_SECONDS = 5.0
"""How often it is read otherwise, so that no file is rotated away unread."""

VIEWED_SECONDS = 15.0
"""How long after a request somebody still looks."""

MAX_TARGETS = 4
"""The most targets whose compiled projects stay in memory."""

SHOWN_RUNS = 50

logger = logging.getLogger("sqlstream.ui")

INTERVAL_SECONDS = 20.0
"""How often checkpoints are read."""


class ProjectData:
    """Implements `UiData` for the project of `request`. `start` begins to read the journal in the background. `history`
    is one that another part of this process closes, None if this object opens one.

    Raises: UsageError if there is no project in the folder.
    """

    def __init__(self, request: ProjectRequest, history: History | None = None) -> None:
        self._request = request
        self._views: OrderedDict[str | None, ProjectView] = OrderedDict()
        self._views_lock = threading.Lock()
        root = self._view(request.target).root
        logs, self._root = root / LOGS_FOLDER, root
        self._journal = [*copied_journals(root), *journal_files(logs)]
        self._copied_at = float("-inf")
        self._own_history = None
        if history is None:
            history = History(logs, self._journal, None, lambda run: target_of_results(read_results(root), run))
            self._own_history = history
        self.history = history
        self._lock = threading.Lock()
        self._overviews = Overviews(lambda target: self._seen(target).shape)
        self._checkpoints = Checkpoints()
        self._docs = DocsPages()
        self._viewed_at = float("-inf")
        self._problem: str | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="page data", daemon=True)

    def start(self) -> None:
        """Reads the journal once, and from then on in the background."""
        self._update()
        self._thread.start()

    def close(self) -> None:
        """Ends the background thread, and closes the history that it has opened."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join(5.0)
        if self._own_history is not None:
            self._own_history.close()

    def _work(self) -> None:
        while not self._ended.wait(UPDATE_SECONDS if self._is_viewed else IDLE_UPDATE_SECONDS):
            self._update()
            if self._is_viewed:
                self._read_checkpoints()

    @property
    def _is_viewed(self) -> bool:
        return time.monotonic() < self._viewed_at + VIEWED_SECONDS

    def _update(self) -> None:
        """Reads what is new. A history that cannot be written now is no reason to end."""
        if self._own_history is not None and time.monotonic() > self._copied_at + IDLE_UPDATE_SECONDS:
            self._copy_logs()
            self._copied_at = time.monotonic()
        try:
            self.history.ingest()
            with self.history.reading() as connection, self._lock:
                self._overviews.update(connection)
            self._problem = None
        except (OSError, sqlite3.Error) as error:
            self._problem = f"{self.history.path.name} cannot be written now ({error}); the page shows what it has"
            logger.exception("the journal was not read")

    def _copy_logs(self) -> None:
        """Copies the journals of submitted runs, so that the history reads them."""
        signs: dict[str, float] = {}
        for target in [*self._views] if self._is_viewed or not self._thread.is_alive() else []:
            with suppress(OSError, FindingsError, UsageError):
                seen = self._seen(target)
                storage = None if seen.loaded is None else readable_storage(seen.loaded)
                if storage is not None and seen.target is not None:
                    signs |= copy_logs(storage)
        self._overviews.live.signs = signs  # without those of a storage that cannot be read now
        self._journal[:] = [*copied_journals(self._root), *journal_files(self._root / LOGS_FOLDER)]

    def _read_checkpoints(self) -> None:
        for target in list(self._views):
            with suppress(OSError, FindingsError, UsageError):
                seen, live = self._seen(target), self._overviews.live.of_target(self._name(target))
                for model, lags, open_batch in self._checkpoints.read(seen, live):
                    with self._lock:
                        live[model].lags, live[model].open_batch = lags, open_batch
                        self._overviews.renew(self._name(target), model)

    def _view(self, target: str | None) -> ProjectView:
        """Returns the project for a target; keeps those of the last few."""
        with self._views_lock:
            view = self._views.get(target)
            if view is None:
                view = self._views[target] = ProjectView(replace(self._request, target=target))
            self._views.move_to_end(target)
            while len(self._views) > MAX_TARGETS:
                self._views.popitem(last=False)
            return view

    def _seen(self, target: str | None) -> SeenProject:
        return self._view(target).seen()

    def _name(self, target: str | None) -> str | None:
        """Returns the name of a target: that of the request, of the newest run, or the project's default for None.

        Raises: UnknownQueryError if there is no such target.
        """
        if target is not None:
            self._check_target(target)
            return target
        if self._request.target is not None:
            return self._request.target
        newest = next((run.target for run in self._overviews.live.runs_of(None) if run.target), None)
        return newest or self._seen(None).target

    def _check_target(self, target: str) -> None:
        known = {run.target for run in self._overviews.live.runs_of(None)}
        known |= {name for name, _ in list(self._overviews.live.queries)} | {self._request.target}
        declared = self._seen(self._request.target).targets
        if declared and target not in known and target not in declared:  # a project with errors declares none
            names = sorted(name for name in {*known, *declared} if name)
            raise UnknownQueryError(f"there is no target `{target}`", "target", targets=names)

    def project(self, target: str | None) -> Json:
        """Returns the project, its targets and its runs."""
        self._viewed_at = time.monotonic()
        name = self._name(target)
        seen = self._seen(name)
        with self.history.reading() as connection:
            since, is_cut = first_batch_ms(connection, name or ""), lacks_batches(connection, name or "")
        live = self._overviews.live
        with self._lock:
            ran = {run.target for run in live.runs_of(None) if run.target}
            runs = self._runs(name)
        return {
            "project": seen.name,
            "sqlstream_version": __version__,
            "target": name,
            "targets": sorted({*seen.targets, *ran}),
            "targets_with_runs": sorted(ran),
            # without a default, each command names its target
            "default_target": seen.default_target if self._request.target is None else None,
            "compiles": seen.loaded is not None,
            "served_by": "ui" if self._own_history is not None else "run",
            "runs": runs,
            "problems": self._problems(seen, runs),
            "has_history_since": since,
            "lacks_earlier_batches": is_cut,
            "set_aside": [path.name for path in files_set_aside(self.history.path)],
        }

    def _problems(self, seen: SeenProject, runs: list[dict[str, Any]]) -> list[str]:
        errors = [finding_text(each) for each in sort_findings(seen.findings) if each.is_error]
        refused = refusal_of_results(read_results(self._root), runs[0]["id"]) if runs and not errors else None
        return [text for text in (self._problem, seen.problem, *self.history.problems, *errors, refused) if text]

    def _runs(self, target: str | None) -> list[dict[str, Any]]:
        live = self._overviews.live
        return [
            {
                "id": run.invocation_id,
                "target": run.target,
                "life": str(live.lives.get(run.number, "")) or None,
                "began_at": run.began_at,
                "heard_at": run.heard_at,
                "succeeded": run.succeeded,
                "pid": run.pid,
                "sqlstream_version": run.sqlstream_version,
                "spark_version": run.spark_version,
            }
            for run in live.runs_of(target)[:SHOWN_RUNS]
        ]

    def overview(self, target: str | None) -> Json:
        """Returns the graph and all queries as they are now."""
        self._viewed_at = time.monotonic()
        name = self._name(target)
        self._seen(name)  # compiles without the lock
        with self._lock:
            return {**self._overviews.as_json(name), "target": name, "runs": self._runs(name)}

    def follow(self, target: str | None) -> _Follower:
        """Returns a follower of the overview."""
        return _Follower(self, self._name(target))

    def new_batches(self, target: str | None, model: str, after_ms: int) -> list[dict[str, Any]]:
        """Returns the batches of a query that began after a time (ms since 1970), the oldest first."""
        number = self._numbers(target, [model])
        with self.history.reading() as connection:
            found = batch_rows(connection, number[0], Page(after_ms + 1)) if number else []
        return found[::-1]

    def _numbers(self, target: str | None, models: Iterable[str]) -> list[int]:
        """Returns the numbers of those of the queries of `models` that the history has."""
        queries, name = self._overviews.live.queries, self._name(target) or ""
        return [queries[name, model].number for model in models if (name, model) in queries]

    def query(self, target: str | None, model: str) -> Json:
        """Returns everything about one query that is not a time series."""
        self._viewed_at = time.monotonic()
        name = self._name(target)
        seen = self._seen(name)
        shape = seen.shape.queries.get(model)
        with self._lock:
            now = self._overviews.of(name).queries.get(model)
        if shape is not None:
            return {**query_page(seen, self._view(name).request, shape), "target": name, "now": now}
        unknown = self._unknown_query(name, model)
        with self._lock:
            now = self._overviews.removed(name, model)
        if now is None:
            raise unknown
        missing = {"is_removed": seen.loaded is not None, "similar": unknown.similar}
        return {"model": model, "problems": [], **missing, "target": name, "now": now}

    def _unknown_query(self, target: str | None, model: str) -> UnknownQueryError:
        """Returns the error about a query that does not exist, with similar ones and the targets that have it."""
        shapes, queries = self._seen(target).shape.queries, self._overviews.live.queries
        similar = nearest(model, (name for name in shapes if name != model), count=5, likeness=0.5)
        targets = sorted(name for name, found in list(queries) if found == model and name != (target or ""))
        return UnknownQueryError(f"there is no query `{model}`", "query", model, targets, similar)

    def node(self, target: str | None, unique_id: str) -> Json:
        """Returns everything about one node of the graph that does not change with each batch."""
        self._viewed_at = time.monotonic()
        seen = self._seen(self._name(target))
        node = next((each for each in seen.shape.nodes if each.unique_id == unique_id), None)
        if node is None:
            raise UnknownQueryError(f"the project has no node `{unique_id}`")
        return node_page(seen, node)

    def series(self, target: str | None, model: str, span: Span) -> Json:
        """Returns time series of a query, when it did not run, and whether it keeps up."""
        self._number(target, model)
        name = self._name(target)
        seen = self._seen(name)
        shape = seen.shape.queries.get(model)
        guards = self._numbers(target, shape.quarantines) if shape else []
        live = self._overviews.live.queries.get((name or "", model))
        with self.history.reading() as connection:
            return charts_of(connection, seen, model, live, guards, span)

    def _number(self, target: str | None, model: str) -> int:
        """Returns the number of a query in the history, 0 if it has not run. Raises: UnknownQueryError."""
        name = self._name(target)
        live = self._overviews.live.queries.get((name or "", model))
        if live is None and model not in self._seen(name).shape.queries:
            raise self._unknown_query(name, model)
        return live.number if live is not None else 0

    def batches(self, target: str | None, model: str, span: Span) -> Json:
        """Returns batches of a query, the newest or the slowest first."""
        number = self._number(target, model)
        page = Page(span.from_ms, span.to_ms, span.order == "slowest", span.limit, span.before)
        with self.history.reading() as connection:
            rows = batch_rows(connection, number, page)
            failures = [] if page.slowest else failures_beside(connection, number, page, rows)
        return {"batches": rows, "failures": failures}

    def events(self, target: str | None, model: str, span: Span) -> Json:
        """Returns what happened to a query, the newest first."""
        number = self._number(target, model)
        with self.history.reading() as connection:
            return {"events": list(events_of(connection, number, span.from_ms, span.to_ms, span.limit))}

    def sample(self, target: str | None, model: str, limit: int) -> Json:
        """Returns rows of the output of a query."""
        name = self._name(target)
        seen = self._seen(name)
        shape = seen.shape.queries.get(model)
        if shape is None:
            raise self._unknown_query(name, model)
        if seen.loaded is None:
            return Sample(note="the project does not compile").as_json()
        live = self._overviews.live.queries.get((name or "", model))
        path = live.entry.get("output") if live is not None else None
        return sample_of(seen.loaded.compiled.models[shape.unique_id], path, limit).as_json()

    def docs(self, target: str | None) -> str:
        """Returns the page of the documentation site."""
        view = self._view(self._name(target))
        return self._docs.page(view.seen(), view.request)

    def search(self, target: str | None) -> Json:
        """Returns what the search finds."""
        return {"entries": list(search_entries(self._seen(self._name(target))))}

    def lineage(self, target: str | None, column: str) -> Json:
        """Returns the columns from which `model.column` comes."""
        loaded = self._seen(self._name(target)).loaded
        if loaded is None:
            raise UnknownQueryError("the project does not compile")
        try:
            found = trace_compiled(loaded, column)
        except UsageError as error:
            raise UnknownQueryError(str(error)) from error
        return {"model": found.model, "columns": output_columns(found.columns)}


class _Follower:
    """Follows the overview of one target."""

    def __init__(self, data: ProjectData, target: str | None) -> None:
        self._data, self._target = data, target
        self._differences = Differences()

    def changes(self) -> Mapping[str, Any] | None:
        """Returns what has changed since the last call, None if nothing has."""
        return self._differences.since_last(self._data.overview(self._target))


class Checkpoints:
    """Reads the checkpoints of running queries from time to time."""

    def __init__(self) -> None:
        self._paces: dict[str | None, Pace] = {}

    def read(
        self, seen: SeenProject, live: Mapping[str, LiveQuery]
    ) -> Iterator[tuple[str, Mapping[str, LagByUnit], tuple[int, float | None] | None]]:
        """Yields each running query with the lags of its sources, and with the batch that has begun and its time in
        seconds since 1970, if it is time to read them again.
        """
        pace = self._paces.setdefault(seen.target, Pace(INTERVAL_SECONDS))
        storage = None if seen.loaded is None else readable_storage(seen.loaded)
        if seen.loaded is None or storage is None or not pace.begin():
            return
        models = [
            model
            for model in seen.loaded.compiled.models.values()
            if model.streaming
            and model.name in live
            and live[model.name].is_running
            # on S3 each look costs money
            and storage.local_path(storage.root_of(model)) is not None
        ]
        for model in models:
            (progress,) = progress_without_spark(storage, [model])
            running = [each for each in progress.versions if each.position.version == live[model.name].version]
            if not running:
                yield model.name, {}, None
                continue
            position = running[0].position
            open_batch = None if position.open_batch is None else (position.open_batch, position.open_since)
            yield model.name, source_lags(running[0]), open_batch
        pace.end()


_NOT_STARTED = {LiveStatus.PENDING, Status.SKIPPED}


def refusal_of_results(results: Mapping[str, Any], invocation: str) -> str | None:
    """Returns why the run with this id was refused before any query started, None if it was not, or if another run has
    written run_results.json since.
    """
    states = {str(entry.get("status")) for entry in results.get("results", ())}
    is_refused = results.get("status") == "error" and states <= _NOT_STARTED and results.get("findings")
    if not is_refused or results.get("metadata", {}).get("invocation_id") != invocation:
        return None
    errors = [each for each in results["findings"] if each.get("severity") == "error"]
    return "\n".join(["the last run was refused before any query started:", *map(recorded_finding_text, errors)])
