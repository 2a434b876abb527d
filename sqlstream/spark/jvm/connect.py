"""The sessions of a target with `remote`: Spark runs in a Spark Connect server, and this process has no JVM.

What sqlstream otherwise asks the JVM (`gateway.py`) cannot be asked there. `internals.py` then uses Spark's public API.
"""

from __future__ import annotations

import json
import math
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast
from urllib.parse import urlsplit
from uuid import uuid4

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress

DEFAULT_PORT = 15002
"""The port of a Spark Connect server whose address has none (`spark.connect.grpc.binding.port`)."""

CONNECT_SECONDS = 10.0
"""Time for the server to accept a connection. Spark's client would try for ten minutes."""

ALIVE_SECONDS = 600.0
"""The interval of requests in every session. A server ends a session, and its queries, without requests for an hour
(`spark.connect.session.manager.defaultSessionTimeout`).
"""

LOSSES = (
    "a stop ends a query after its batch; if the next one has begun, it is interrupted and runs again in the next run",
    "some errors of sinks and of types, which sqlstream finds before any query starts, appear when a query starts",
    "changes of queries with state are judged by their SQL, without Spark's plans: more of them are refused",
    "after a restart, the watermark of a join or union waits for new rows of each input",
    "static tables of files keep the files that they have when a query starts",
    "a file whose path looks like a pattern, such as a[1].json, ends the query that reads it",
    "brokers are not asked: a topic that was deleted and created again is not noticed, and lags are those of batches",
    "the core time and the cost of queries are unknown; `pool` has no effect",
)
"""What differs over Spark Connect from a target with a master, as sentences without a period."""

NOTICE = (
    "over Spark Connect, some checks come later and a stop may repeat a batch; `sqlstream debug` lists what differs"
)
"""What each run over Spark Connect says once."""

PATIENCE_SECONDS = 60.0
"""How long the requests of a command try again while the server cannot be reached. PySpark's client would let each of
them try for ten minutes.
"""

PATIENCE = "spark.sqlstream.connect.patience"
"""The setting of a target that changes `PATIENCE_SECONDS`."""

NEW_OUTAGE_SECONDS = 45.0
"""The time without a failed request after which another one begins a new outage. A request takes up to 20 s to fail."""

CONNECT_MODE = "SPARK_CONNECT_MODE_ENABLED"
"""The variable that makes the functions of `pyspark.sql.functions` build columns for Spark Connect."""


class Outage:
    """How long the server has not been reached, for all sessions of a command, which wait for `patience` seconds."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._began = self._last = -math.inf
        self.is_over = False

    def goes_on(self) -> bool:
        """Returns whether a request that has failed is worth another try; False for all once it has lasted too long, or
        if `is_over`.
        """
        now = time.monotonic()
        if now - self._last > NEW_OUTAGE_SECONDS:
            self._began = now
        self._last = now
        return not self.is_over and now - self._began < self._patience


class ConnectSessions:
    """The sessions of one command on a Spark Connect server: `root`, and a clone of it for each query. They are kept
    alive until `close`, which ends them with all queries in them.

    `url` is the address with its parameters, among which can be a token; `server` is only host and port. `released`:
    the server has confirmed that it has ended all sessions.
    """

    def __init__(self, url: str, patience: float = PATIENCE_SECONDS) -> None:
        """Connects to the server. Raises: OSError if it does not answer; Spark's errors."""
        host, port = address_of(url)
        self.url, self.server = url, f"{host}:{port}"
        with socket.create_connection((host, port), CONNECT_SECONDS):
            pass
        self._outage = Outage(patience)
        self.released = False
        self.root = _session(url, self._outage)
        self._sessions = [self.root]
        self._spare_clients: list[Any] = []  # open ones would ask the server something when Python ends
        self._is_closed = threading.Event()
        threading.Thread(target=self._keep_alive, name="spark-connect", daemon=True).start()

    @property
    def session_ids(self) -> frozenset[str]:
        """The ids of all sessions so far."""
        return frozenset(map(session_id_of, self._sessions))

    def clone(self) -> SparkSession:
        """Returns a new session with the settings, functions and files of `root`. Raises: Spark's errors."""
        client: Any = self.root.client
        session_id = str(uuid4())
        # without `cloneSession`, because sessions of databricks-connect then lack fields (18.0 to 19.3)
        self._spare_clients.append(client.clone(session_id))
        session = self._session_with(session_id)
        self._sessions.append(session)
        return session

    def end_queries_of(self, session_id: str) -> bool:
        """Ends the queries of an earlier session on this server, and the session. Returns whether it had any. Raises:
        Spark's errors.
        """
        try:
            earlier = self._session_with(session_id)
            left = earlier.streams.active
            _end(earlier)
        except PySparkException as error:
            if not _has_ended(error):
                raise
            return False
        return bool(left)

    def close(self) -> None:
        """Ends all sessions, unless the server cannot be reached."""
        self._is_closed.set()
        self._outage.is_over = True
        ended = [_try_end(session) for session in reversed(self._sessions)]
        for client in self._spare_clients:
            client.close()
        self.released = all(ended)

    def _session_with(self, session_id: str) -> SparkSession:
        """Returns a session with the id that it has on the server."""
        separator = "" if ";" in self.url else "/"
        return _session(f"{self.url.rstrip('/')}{separator};session_id={session_id}", self._outage)

    def _keep_alive(self) -> None:
        while not self._is_closed.wait(ALIVE_SECONDS):
            for session in tuple(self._sessions):
                with suppress(PySparkException):  # the next use of the session reports that it has ended
                    session.conf.get("spark.app.name", None)


def address_of(url: str) -> tuple[str, int]:
    """Returns host and port of the address of a Spark Connect server, such as `sc://host:15002/;use_ssl=true`.

    Raises: ValueError for another text.
    """
    parts = urlsplit(url.partition(";")[0])
    if parts.scheme != "sc" or not parts.hostname:
        raise ValueError("it is not an address such as sc://host:15002")
    return parts.hostname, parts.port or DEFAULT_PORT


def session_id_of(session: SparkSession) -> str:
    """Returns the id of a session on a Spark Connect server."""
    return str(session.session_id)  # type: ignore[attr-defined]


_GONE = ("INVALID_HANDLE.SESSION", "SESSION_CLOSED", "NO_ACTIVE_SESSION")
"""The starts of conditions with which a server, or its client, says that a session has ended, or is unknown since a
restart of the server.
"""


def is_server_gone(error: BaseException) -> bool:
    """Returns whether `error` means that the server has ended the session, or has not been reached for so long that the
    client has given up.
    """
    if not isinstance(error, PySparkException):
        return False
    status = getattr(getattr(error, "_grpc_status_code", None), "name", "")
    is_silent = type(error).__name__ == "RetriesExceeded" or status == "UNAVAILABLE"
    return is_silent or _has_ended(error)


def _has_ended(error: PySparkException) -> bool:
    """Returns whether `error` means that the server has ended the session, or does not know it since a restart."""
    return str(error.getCondition() or "").startswith(_GONE)


def _session(url: str, outage: Outage) -> SparkSession:
    # PySpark has this module only with the packages of its extra `connect`
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    session: Any = ConnectSession.builder.remote(url).create()
    _try_again(session, outage)
    return cast("SparkSession", session)  # it has the same methods


def _try_again(session: Any, outage: Outage) -> None:
    """Makes the requests of `session` try again as long as the outage goes on."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    class Patience(DefaultPolicy):
        def can_retry(self, error: BaseException) -> bool:
            return super().can_retry(error) and outage.goes_on()

    session.client.set_retry_policies([Patience(max_retries=None, backoff_multiplier=2.0, max_backoff=5_000)])


def _try_end(session: SparkSession) -> bool:
    """Ends a session and its queries, and returns whether the server has confirmed it."""
    try:
        _end(session)
    except PySparkException:
        return False
    return True


def _end(session: SparkSession) -> None:
    """Ends a session and its queries. Raises: Spark's errors, if the server does not confirm it."""
    client: Any = session.client
    try:
        # the server ends a session also if it cannot stop a query of it
        for query in session.streams.active:
            query.stop()
        client.release_session()  # stop() only logs an error
    except PySparkException as error:
        if not _has_ended(error):
            raise
    finally:
        session.stop()


def with_kept_plan(frame: DataFrame) -> DataFrame:
    """Returns `frame` with the plan that Spark makes of it now. A server analyzes a text of SQL again for each use,
    also after the views that it reads have changed; the plan of a view stays. Raises: AnalysisException.
    """
    name = f"sqlstream_{uuid4().hex}"
    frame.createTempView(name)
    kept = frame.sparkSession.table(name)
    return frame.localCheckpoint(eager=False) if _has_static_watermark(kept) else kept


def _has_static_watermark(view: DataFrame) -> bool:
    """Returns whether the server cannot plan a view because of a watermark of static rows. It removes that from a text
    of SQL, but not from a view (Spark 4.3).
    """
    try:
        if not view.isStreaming:
            view._explain_string()  # type: ignore[operator]  # noqa: SLF001 - the only method that plans without a job
    except PySparkException as error:
        if "No plan for EventTimeWatermark" not in str(error):
            raise
        return True
    return False


def progress_json(progress: StreamingQueryProgress) -> str:
    """Returns the progress of a batch as the JVM writes it: the client has another form of observed metrics."""
    found: dict[str, Any] = json.loads(progress.json)
    observed = found.get("observedMetrics") or {}
    for name, row in observed.items():
        if isinstance(row, dict) and {"values", "schema"} == row.keys():
            names = (field["name"] for field in row["schema"]["fields"])
            observed[name] = dict(zip(names, row["values"], strict=True))
    return json.dumps(found)


def refused_settings(session: SparkSession, settings: Mapping[str, str]) -> dict[str, str]:
    """Sets `settings` in `session`, and returns why Spark refuses some of them, by their names: those of the server,
    which only its start can set. Raises: Spark's other errors.
    """
    refused = {}
    for name, value in settings.items():
        try:
            session.conf.set(name, value)
        except PySparkException as error:
            if not str(error.getCondition() or "").startswith("CANNOT_MODIFY_"):
                raise
            refused[name] = str(error.getCondition())
    return refused


def core_count(session: SparkSession) -> int:
    """Returns the number of cores of the server's Spark, which is the number of partitions of a range."""
    from pyspark.sql.functions import spark_partition_id

    return session.range(1_000_000).select(spark_partition_id()).distinct().count()


def has_format(session: SparkSession, name: str) -> bool:
    """Returns whether the server has a data source of this name. Raises: Spark's other errors."""
    try:
        session.read.format(name).load().schema  # noqa: B018 - asks the server
    except PySparkException as error:  # nearly always: the source misses its options
        # Spark has a message for Kafka alone, without this condition
        return error.getCondition() != "DATA_SOURCE_NOT_FOUND" and "Failed to find data source" not in str(error)
    return True


def has_delta_sql(session: SparkSession) -> bool:
    """Returns whether the server's Spark has the extension of Delta Lake, in whose SQL rows are merged. That of
    Databricks has it without a setting.
    """
    try:
        session.sql("VACUUM delta.`/none/of/sqlstream` DRY RUN").collect()  # Spark itself has no such statement
    except PySparkException as error:
        return error.getCondition() != "PARSE_SYNTAX_ERROR"
    return True


def has_driver(session: SparkSession, driver: str) -> bool:
    """Returns whether the server has the class of a JDBC driver."""
    try:
        # Spark loads the class first, which then does not accept the URL
        session.read.format("jdbc").options(driver=driver, url="jdbc:none:", dbtable="none").load().schema  # noqa: B018
    except PySparkException as error:
        return "ClassNotFoundException" not in str(error)
    return True
