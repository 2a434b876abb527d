"""The part of a run that needs Spark: prepares all queries, writes their ledgers, and starts and supervises them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame, Window
from pyspark.sql.functions import desc, monotonically_increasing_id, row_number

from sqlstream.app.loading.load import Loaded
from sqlstream.app.observe.stored_journal import stored_logs
from sqlstream.app.plan.ledgers import LedgerUpdater, write_before_start
from sqlstream.app.plan.ready import CheckContext, CheckedQuery, check_all
from sqlstream.app.request import RunRequest
from sqlstream.app.run.followers import RunFollowers
from sqlstream.app.run.own_rows import ALERT_ROWS, METRICS_ROWS, write_own_rows
from sqlstream.app.run.runner import Runner, RunOrders
from sqlstream.app.run.standby import Standby
from sqlstream.app.session.session import spark_session
from sqlstream.app.session.signals import StopSignals
from sqlstream.app.session.target_storage import storage_base, storage_location
from sqlstream.app.show.live_tables import serving
from sqlstream.app.state.repartition import check_migrations, migrate
from sqlstream.app.stored.local_sources import empty_source_lines, is_small
from sqlstream.app.versions.publisher import Publisher
from sqlstream.compiler.allowances import lowered
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import Finding, FindingsError
from sqlstream.project.declarations.on_corrupt import declared_sources
from sqlstream.spark.jvm.connect import NOTICE as CONNECT_NOTICE
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.jvm.internals import call_internal
from sqlstream.spark.jvm.java import NO_UTF8, NO_UTF8_FIX, java_locale
from sqlstream.spark.jvm.plans import PLAN
from sqlstream.spark.jvm.session import FINITE_RUN_JVM, LONG_RUN_JVM, SHORT_LIVED_JVM, SparkRuntime
from sqlstream.spark.queries.prepare import PreparedQuery
from sqlstream.spark.queries.start import query_name
from sqlstream.spark.reading.plain_rows import all_rows, columns_of, first_rows
from sqlstream.spark.reading.sources import quoted
from sqlstream.spark.reading.static_stream import key_columns
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.lease import lease_files
from sqlstream.spark.storage.query_locks import QueryLocks, weak_lock
from sqlstream.spark.storage.storage import server_has, storage_for, storage_problems
from sqlstream.state.layout import archives_path
from sqlstream.state.plan import Action
from sqlstream.state.runs.events import Notice, QueryResult, RunEvent, RunStarting, TableShown, WarningEmitted
from sqlstream.state.shown_rows import ShownRows
from sqlstream.state.verdicts import resume_reason
from sqlstream.version import __version__

MEMORY = "memory"
"""The format of memory sinks."""


def run_queries(
    loaded: Loaded,
    models: Sequence[CompiledModel],
    request: RunRequest,
    notify: Callable[[RunEvent], None],
    signals: StopSignals,
    followers: RunFollowers,
) -> tuple[QueryResult, ...]:
    """Runs `models` in one Spark session and returns their results.

    Raises: FindingsError and StopRequestedError, both before any query starts.
    """

    def report(text: str) -> None:
        notify(Notice(text))

    secrets, ids = Secrets(request.project.env), [model.unique_id for model in (*models, *loaded.compiled.own_rows)]
    starting = spark_session(
        loaded,
        secrets,
        signals,
        ids,
        notify=report,
        purpose=_purpose(loaded, models),
        console_to_stderr=request.console_to_stderr,
        over_connect=True,
    )
    # the locks are released after Spark stops: until then queries may write
    with QueryLocks(secrets, report) as locks, starting as runtime:
        folder, session = stored_logs(storage_base(loaded)), runtime.session
        followers.write_journal(lambda: lease_files(*storage_for(folder, session)))
        locks.connect = runtime.connect
        notify(_found(loaded, runtime))
        if runtime.connect is None and java_locale() is None:
            notify(Notice(f"{NO_UTF8}; {NO_UTF8_FIX}"))
        if runtime.connect is not None:
            notify(Notice(CONNECT_NOTICE))
        if runtime.cluster is not None:
            runtime.cluster.follow(report, signals.check)
            runtime.cluster.wait_for_executor()
        checks = CheckContext(loaded, request, runtime, secrets, locks)
        if request.standby:
            ready = Standby(checks, models, signals, notify).take_over()
            followers.continue_alerts(report)
        else:
            followers.continue_alerts(report)
            ready = check_all(checks, models, signals)
            check_migrations(ready, checks)
        return _run_ready(checks, ready, notify, signals, followers)


def _purpose(loaded: Loaded, models: Sequence[CompiledModel]) -> str:
    """Returns the purpose of the JVM, which decides its options."""
    if is_small(loaded.compiled, models):
        return SHORT_LIVED_JVM
    return FINITE_RUN_JVM if all(model.ends for model in models) else LONG_RUN_JVM


def _run_ready(
    checks: CheckContext,
    ready: Sequence[CheckedQuery],
    notify: Callable[[RunEvent], None],
    signals: StopSignals,
    followers: RunFollowers,
) -> tuple[QueryResult, ...]:
    cluster = checks.runtime.cluster
    if cluster is not None and cluster.choice is not None:
        notify(Notice(cluster.choice.why))
    for line in empty_source_lines(checks.loaded.compiled, [item.query.model for item in ready]):
        notify(Notice(line))
    warnings = [warning for item in ready for warning in item.warnings]
    for warning in lowered(checks.loaded.compiled.project, warnings) if warnings else ():
        notify(WarningEmitted(warning))
    for item in ready:
        _notify_unusual(item, checks.request.parallel, notify)
    signals.check()
    # the run begins to write: first it locks the versions that do not exist yet
    _for_each(ready, checks, CheckedQuery.lock)
    followers.keep_alerts()
    if checks.runtime.connect is not None:
        _for_each(ready, checks, _check_shared)
    for warning in lowered(checks.loaded.compiled.project, _weak_locks(ready, checks)):
        notify(WarningEmitted(warning))
    ready = migrate(ready, checks, notify)
    ledgers = LedgerUpdater(ready, checks, notify)
    publisher = Publisher(ready, checks, ledgers)
    _for_each(ready, checks, publisher.before_start)
    _for_each(ready, checks, write_before_start)
    orders = RunOrders(ready, checks)
    limits, threads = checks.request.limits, checks.loaded.compiled.project.target.threads
    runner = Runner(checks.secrets, publisher, replace(limits, threads=limits.threads or threads), orders)
    compiled = checks.loaded.compiled
    write = partial(write_own_rows, checks.loaded, runtime=checks.runtime, secrets=checks.secrets)
    metrics = followers.writing_metrics(write(compiled.metrics, METRICS_ROWS))
    alerts = followers.writing_alerts(write(compiled.alerts, ALERT_ROWS))
    in_memory = [item.query.model.name for item in ready if item.query.output.format == MEMORY]
    tables = {name: lambda limit, name=name: live_table(orders.query(name), limit) for name in in_memory}
    live_tables = serving(checks.loaded.compiled.project.root, checks.loaded.invocation.id, tables)
    # from here on, a signal stops each query after its batch; until here, it ended the run between two steps
    with signals.forwarded_to(runner.request_stop), live_tables, metrics, alerts:
        for _ in runner.run():
            followers.heartbeat.beat()
            publisher.check_waiting()
        results = tuple(map(publisher.with_plain_name, runner.results))
    followers.heartbeat.end()
    ledgers.finish(results)
    _show_memory(orders, results, checks.request.limit, notify)
    return results


def _weak_locks(ready: Sequence[CheckedQuery], checks: CheckContext) -> list[Finding]:
    """Returns a warning for each place whose storage cannot reliably lock a query. Raises: FindingsError."""
    found = []
    for item in ready:
        location = storage_location(checks.loaded, item.query.model)
        with storage_problems(item.root, location, checks.secrets):
            found.append(weak_lock(item.storage, item.root, checks.loaded.compiled.project.target.name, location))
    return list(dict.fromkeys(each for each in found if each is not None))


def _check_shared(item: CheckedQuery, checks: CheckContext) -> None:
    """Raises: FindingsError if the Spark Connect server does not have the folder of the query's versions."""
    if not server_has(item.root, checks.runtime.session):
        target = checks.loaded.compiled.project.target
        raise FindingsError(
            [
                Finding(
                    "storage-unusable",
                    f"the Spark Connect server of target `{target.name}` does not have {item.root}",
                    "this run has written a file there that the server cannot read: it has another disk",
                    "set storage: to a folder that this machine and the server share, such as a network file system",
                    storage_location(checks.loaded, item.query.model),
                )
            ]
        )


def _for_each(
    ready: Sequence[CheckedQuery], checks: CheckContext, step: Callable[[CheckedQuery, CheckContext], None]
) -> None:
    """Calls `step` for every query. Raises: FindingsError with the findings of all queries."""
    findings = [finding for item in ready for finding in _problems_of(item, checks, step)]
    if findings:
        raise FindingsError(findings)


def _problems_of(
    item: CheckedQuery, checks: CheckContext, step: Callable[[CheckedQuery, CheckContext], None]
) -> Sequence[Finding]:
    try:
        with storage_problems(item.root, storage_location(checks.loaded, item.query.model), checks.secrets):
            step(item, checks)
    except FindingsError as error:
        return error.findings
    return ()


def _found(loaded: Loaded, runtime: SparkRuntime) -> RunStarting:
    project, models = loaded.compiled.project, loaded.compiled.models
    return RunStarting(
        models=len(models),
        sources=len(declared_sources(project.sources)),
        sinks=len(project.sinks),
        seeds=len(project.seeds),
        exposures=len(project.exposures),
        sqlstream_version=__version__,
        spark_version=runtime.version,
    )


def _notify_unusual(ready: CheckedQuery, parallel: Sequence[str], notify: Callable[[RunEvent], None]) -> None:
    """Prints a notice if a query does not simply start or resume."""
    model, plan = ready.query.model, ready.plan
    if plan.action is Action.FRESH_EACH_RUN:
        why = ready.query.unrestartable
        notify(Notice(f"{model.name}: starts with a new checkpoint in every run, because {why}"))
    if plan.action is Action.REFRESH:
        old = f"keeps version {ready.state.version} of its checkpoint and output"
        notify(Notice(f"{model.name}: restarts as version {plan.version}; {old}"))
    if model.name in parallel and not ready.is_parallel:
        what = "its current version is the same query" if ready.state.version else "it has no version yet"
        notify(Notice(f"{model.name}: runs as usual, without --parallel, because {what}"))
    if ready.is_parallel:
        how = f"runs version {plan.version} in parallel with the current one, until `sqlstream promote {model.name}`"
        notify(Notice(f"{model.name}: {how}"))
    if plan.action is Action.RESET:
        notify(
            Notice(
                f"{model.name}: starts from the beginning, because its last run ended before it committed a "
                f"batch; the old files are in {archives_path(ready.root, plan.version)}"
            )
        )
    if plan.changes:
        how = "continues with its existing state, as accepted, although" if plan.accepted else "resumes;"
        safe = not plan.accepted and plan.judgement.keeps_state
        why = f"; {resume_reason(plan.judgement)}" if safe else ""
        notify(Notice(f"{model.name}: {how} {'; '.join(plan.changes)}{why}"))
    for text in plan.reads:
        notify(Notice(f"{model.name}: {text}"))
    if plan.new_columns:
        notify(Notice(f"{model.name}: writes different columns from now on: {'; '.join(plan.new_columns)}"))


def _show_memory(
    orders: RunOrders, results: Sequence[QueryResult], limit: int | None, notify: Callable[[RunEvent], None]
) -> None:
    for result in results:
        query = orders.query(result.model)
        table = memory_table(query, limit) if query.output.format == MEMORY and result.batches else None
        if table is not None:
            notify(table)


def memory_table(query: PreparedQuery, limit: int | None) -> TableShown | None:
    """Returns the first `limit` rows (None: all) of the table of `query`, with its number of rows; None if Spark does
    not have the table, or no longer.

    Spark's table has the rows of all batches. This returns only the newest row of each key, if the key is known.
    """
    try:
        table = _newest_rows(query.frame.sparkSession.table(query_name(query)), _keys(query))
        rows = all_rows(table) if limit is None else first_rows(table, limit)
        count = len(rows) if limit is None else table.count()
    except SPARK_ERRORS:
        return None  # an error here must not lose the results of the run
    return TableShown(query.model.name, tuple(table.columns), rows, count)


def live_table(query: PreparedQuery, limit: int) -> tuple[ShownRows, int] | None:
    """Returns the first `limit` rows of the table of `query` in the form of `show`, and its number of rows; None if
    Spark does not have the table.
    """
    table = memory_table(query, limit)
    if table is None:
        return None
    model = query.model
    return ShownRows(model.name, model.unique_id, columns_of(query.frame), table.rows, limit), table.count


def _keys(query: PreparedQuery) -> tuple[str, ...]:
    """Returns the columns that identify a row of a stream: `unique_key`, or in update mode those that its aggregation
    groups by. Returns none if they are unknown, and in complete mode.
    """
    config = query.model.config
    if not query.model.streaming or config.output_mode == "complete":
        return ()
    if config.unique_key or config.output_mode == "append":
        return config.unique_key
    return call_internal(query.frame.sparkSession, PLAN, lambda: key_columns(query.frame), tuple)


def _newest_rows(table: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Returns the last row of `table` for each key, in the order of the table; all rows without keys."""
    if not keys:
        return table
    order = "_sqlstream_order"  # the rows of the table are in the order of the batches
    numbered = table.withColumn(order, monotonically_increasing_id())
    last = Window.partitionBy(*map(quoted, keys)).orderBy(desc(order))
    newest = numbered.withColumn("_sqlstream_row", row_number().over(last)).where("_sqlstream_row = 1")
    return newest.sort(order).select(*map(quoted, table.columns))
