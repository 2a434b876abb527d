"""The alerts of a run, from its configuration, and the observer that raises and resolves them."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from queue import Empty, SimpleQueue
from uuid import uuid4

from sqlstream.app.alerts.alerts_sink import SinkSender, Write
from sqlstream.app.alerts.alerts_store import ALERTS_FILE, AlertStore, EarlierAlerts, alerts_text, read_earlier
from sqlstream.app.alerts.delivery import Change, Delivery, Outbox, OutboxTexts, Sender
from sqlstream.app.alerts.evaluation import AlertBook, OpenAlert, QueryRules
from sqlstream.app.alerts.payloads import RunNames
from sqlstream.app.alerts.webhook import CommandSender, WebhookSender
from sqlstream.app.loading.load import Loaded
from sqlstream.app.loading.logs import LOGS_FOLDER
from sqlstream.app.loading.selected_queries import is_quarantine
from sqlstream.app.observe.observers import Observed, Snapshot
from sqlstream.app.observe.stored_journal import StoredJournal
from sqlstream.app.session.start_driver import SUBMITTED
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.graph import source_id
from sqlstream.errors import Finding, FindingsError
from sqlstream.project.configuration.alerts import AlertKind, AlertRule, Channel
from sqlstream.project.configuration.target import Target
from sqlstream.project.declarations.on_corrupt import quarantine_name
from sqlstream.spark.secrets import Secrets
from sqlstream.state.runs.events import AlertChanged, QueriesSelected
from sqlstream.state.runs.tracked_run import LiveStatus
from sqlstream.state.sources.lag import MeasuredLag

IN_USE = "query-in-use"

FINISH_SECONDS = 10.0
"""How long the end of a run waits for the last deliveries."""


class AlertObserver:
    """Passes each change of the alerts in `book` to `put`. `lags` returns the lags of models."""

    name = "the alerts"

    def __init__(
        self, book: AlertBook, put: Callable[[Change], None], lags: Callable[[], Mapping[str, MeasuredLag]]
    ) -> None:
        self._book, self._put, self._lags = book, put, lags
        self._earlier: SimpleQueue[Sequence[OpenAlert]] = SimpleQueue()
        self._refusal: str | None = None

    def adopt(self, earlier: Sequence[OpenAlert]) -> None:
        """Continues open alerts of earlier runs. Any thread can call it; they are known before the next event."""
        self._earlier.put(earlier)

    def observe(self, seen: Observed) -> None:
        """Raises or resolves alerts after an event."""
        self._adopt_all(seen.at)
        if isinstance(seen.event, QueriesSelected):
            self._put_all(self._book.begin(), seen.at)
        elif seen.query is not None and not isinstance(seen.event, AlertChanged):
            self._put_all(self._book.observe(seen.query.query.model, seen.event, seen.at), seen.at)

    def tick(self, now: Snapshot) -> None:
        """Raises or resolves alerts after some time. If that fails for one query, raises the error after the others."""
        self._adopt_all(now.at)
        lags, bugs = self._lags(), list[Exception]()
        for model in self._book.models:
            try:
                self._put_all(self._book.tick(model, now.at, lags.get(model)), now.at)
            except Exception as bug:  # a bug in the alerts of one query must not hide those of the others
                bugs.append(bug)
        if bugs:
            raise bugs[0]

    def refuse(self, findings: Iterable[Finding]) -> None:
        """The run ends because of `findings`. Call it before `close`, which raises the alerts. A run that is refused
        because another one has its queries is no failure of these queries.
        """
        self._refusal = next((finding.message for finding in findings if finding.code != IN_USE), None)

    def close(self, last: Snapshot) -> None:
        """Raises `failed` for the queries that did not start, if the run was refused."""
        self._adopt_all(last.at)
        if self._refusal is not None:
            queries = last.run.queries
            waiting = [model for model, query in queries.items() if query.status is LiveStatus.PENDING]
            self._put_all(self._book.refuse(waiting, self._refusal, last.at), last.at)

    def _adopt_all(self, at: datetime) -> None:
        with suppress(Empty):
            while True:
                self._put_all(self._book.adopt(self._earlier.get_nowait()), at)

    def _put_all(self, changes: Iterable[AlertChanged], at: datetime) -> None:
        for change in changes:
            self._put(Change(change, self._book.open.get((change.model, AlertKind(change.alert))), at))


@dataclass
class RunAlerts:
    """The alerts of a run: the observer that raises them, what keeps and delivers them, and the names of the queries
    that it answers for and of all queries of the project. A submitted run has the `journal` that stores them, and the
    `earlier` alerts in the storage.
    """

    observer: AlertObserver
    outbox: Outbox
    deliveries: tuple[Delivery, ...]
    sink: SinkSender | None
    store: AlertStore
    queries: frozenset[str]
    all_queries: frozenset[str]
    journal: StoredJournal | None = None
    earlier: EarlierAlerts = field(default_factory=EarlierAlerts)

    def continue_from(self, journal: StoredJournal) -> None:
        """Continues the alerts that earlier submitted runs have left open in the storage of `journal`. Raises: OSError;
        Spark's errors.
        """
        earlier = read_earlier(journal.notes())
        alerts = [alert for alert in earlier.alerts if is_of_run(alert, self.queries, self.all_queries)]
        self.store.adopt(alerts)
        self.observer.adopt(alerts)
        self.journal, self.earlier = journal, earlier
        self.queries |= {alert.model for alert in alerts}

    def keep(self) -> None:
        """Keeps the open alerts in the storage from now on, if `continue_from` was called."""
        if self.journal is None:
            return
        if self.earlier.queries or self.store.open_alerts():
            self._store()
        self.outbox.call_after_changes(self._store)

    def _store(self) -> None:
        if self.journal is not None:
            text = alerts_text(self.queries, self.store.open_alerts())
            self.journal.keep(text, self.earlier.replaced_by(self.queries))

    def refuse(self, findings: Sequence[Finding]) -> None:
        """The run ends because of `findings`. If another run has its queries, that one keeps their alerts."""
        if not any(finding.code == IN_USE for finding in findings):
            self.keep()
        self.observer.refuse(findings)

    @contextmanager
    def writing(self, write: Write, drain: Callable[[], object]) -> Iterator[None]:
        """Writes alerts to their sink during the body, and the last ones after it. `drain` waits until all events were
        observed.
        """
        if self.sink is None:
            yield
            return
        self.sink.attach(write)
        for delivery in self.deliveries:
            delivery.wake()
        try:
            yield
        finally:
            # in the order in which an alert gets to the sink: observed, in the file, sent
            drain()
            self.outbox.join(FINISH_SECONDS)
            for delivery in self.deliveries:
                if delivery.sender is self.sink:
                    delivery.flush(FINISH_SECONDS)
            self.sink.detach()


@contextmanager
def alerting(
    loaded: Loaded,
    queries: Mapping[str, QueryRules],
    env: Mapping[str, str],
    emit: Callable[[AlertChanged], None],
    report: Callable[[str], None],
    lags: Callable[[], Mapping[str, MeasuredLag]],
) -> Iterator[RunAlerts | None]:
    """Delivers alerts of `queries` by their rules during the body, and the last ones after it; None without any rule,
    channel or alert of an earlier run. Enter it before the observers start, and leave it after they have ended. `emit`
    gets each change and `report` sentences for the user, in any thread. `lags` returns the lags of the
    queries.

    Raises: FindingsError for a secret that is not set.
    """
    compiled = loaded.compiled
    alerts = compiled.project.target.alerts
    is_configured = bool(alerts.notify) or any(query.rules for query in queries.values())
    # the storage may have open alerts of earlier submitted runs
    if not is_configured and SUBMITTED not in env and not (compiled.project.root / LOGS_FOLDER / ALERTS_FILE).exists():
        yield None
        return
    secrets = Secrets(env)
    check_secrets(compiled.project.target, alerts.notify, secrets)
    store = AlertStore(compiled.project.root / LOGS_FOLDER, compiled.project.target.name)
    if store.set_aside is not None:
        report(f"logs/{store.set_aside}")
    if store.problem is not None:
        report(f"logs/alerts.sqlite cannot be used ({store.problem}); alerts do not outlive this run")
    senders = {each.name: make_sender(each, compiled, env, secrets) for each in alerts.notify}
    deliveries = tuple(Delivery(name, sender, store, report) for name, sender in senders.items())
    target = compiled.project.target
    names = RunNames(compiled.project.name, target.name, loaded.invocation.id, target.ui_url)
    outbox = Outbox(store, deliveries, OutboxTexts(names, secrets.redact, emit, report))
    all_queries = frozenset(model.name for model in compiled.models.values() if model.output is not None)
    known = [alert for alert in store.open_alerts() if is_of_run(alert, queries, all_queries)]
    book = AlertBook(queries, known, target.alerts.repeat_seconds, lambda: uuid4().hex)
    observer = AlertObserver(book, outbox.put, lags)
    outbox.start()
    for delivery in deliveries:
        delivery.start()
    sink = next((sender for sender in senders.values() if isinstance(sender, SinkSender)), None)
    try:
        yield RunAlerts(observer, outbox, deliveries, sink, store, frozenset(queries), all_queries)
    finally:
        _finish(outbox, deliveries, store, report)


def is_of_run(alert: OpenAlert, queries: Collection[str], all_queries: Collection[str]) -> bool:
    """Returns whether a run of `queries` continues an open alert: one of its queries, or of a model that is no query of
    the project any more.
    """
    return alert.model in queries or alert.model not in all_queries


def query_rules(compiled: CompiledProject, models: Iterable[CompiledModel]) -> dict[str, QueryRules]:
    """Returns the rules of each query by model: those of the project, and those of the model in their place.

    Quarantined records of a source count once, for its quarantine, however many queries read the source. Of several
    limits for them, the lowest applies. Rows that data tests quarantine count for their model.
    """
    project = compiled.project
    corrupt = {
        source_id(project.name, table.corrupt_of): quarantine_name(table)
        for table in project.sources
        if table.corrupt_of is not None
    }
    found, guarded = {}, dict[str, list[AlertRule]]()
    for model in models:
        own = {} if model.config.alerts is None else model.config.alerts.by_kind
        rules = {kind: rule for kind, rule in {**project.target.alerts.by_kind, **own}.items() if rule.is_on}
        if not model.streaming:
            rules = {kind: rule for kind, rule in rules.items() if kind is AlertKind.FAILED}
        if is_quarantine(model):
            rules.pop(AlertKind.NO_ROWS_FOR, None)  # its rows are what is wrong
        upstream = compiled.upstream(model.unique_id)
        rule = rules.pop(AlertKind.QUARANTINED_OVER, None)
        for node, name in corrupt.items():
            if rule is not None and (node in upstream or name == model.name):
                guarded.setdefault(name, []).append(rule)
        if rule is not None and model.quarantine_tests:
            rules[AlertKind.QUARANTINED_OVER] = rule
        found[model.name] = QueryRules(rules, model.config.trigger.period_seconds, is_quarantine(model))
    for name in guarded.keys() & found.keys():
        # of equal limits, the one that counts for the longest time is reached first
        lowest = min(guarded[name], key=lambda rule: (rule.limit, -rule.per_seconds))
        found[name] = replace(found[name], rules={**found[name].rules, AlertKind.QUARANTINED_OVER: lowest})
    return found


def check_secrets(target: Target, channels: Iterable[Channel], secrets: Secrets) -> None:
    """Raises: FindingsError for the secrets of `channels` that are not set."""
    missing: list[Finding] = []
    for channel in channels:
        missing += secrets.missing(channel.secret_options, target.location_of(f"alerts.notify.{channel.name}"))
    if missing:
        raise FindingsError(missing)


def make_sender(channel: Channel, compiled: CompiledProject, env: Mapping[str, str], secrets: Secrets) -> Sender:
    """Returns what sends messages to a channel."""
    if channel.webhook is not None:
        return WebhookSender(channel, secrets)
    if channel.command:
        return CommandSender(channel.command, compiled.project.root, env, channel.timeout_seconds, secrets)
    return SinkSender(secrets)


def _finish(outbox: Outbox, deliveries: Sequence[Delivery], store: AlertStore, report: Callable[[str], None]) -> None:
    until = time.monotonic() + FINISH_SECONDS
    outbox.end(FINISH_SECONDS)
    for delivery in deliveries:
        delivery.stop()
    for delivery in deliveries:
        delivery.join(max(until - time.monotonic(), 0.0))
    for delivery in deliveries:
        _report_left(delivery.name, store, report)
    store.close()


def _report_left(name: str, store: AlertStore, report: Callable[[str], None]) -> None:
    with suppress(sqlite3.Error):
        left, dropped = store.count(name), store.dropped.get(name, 0)
        if left:
            it = "it" if left == 1 else "them"
            then = f"the next run sends {it}" if store.problem is None else f"nothing keeps {it} for the next run"
            report(f"{_alerts(left)} not delivered to {name}; {then}")
        if dropped:
            report(f"{_alerts(dropped)} to {name} dropped, because too many were waiting")


def _alerts(count: int) -> str:
    return "1 alert was" if count == 1 else f"{count:,} alerts were"
