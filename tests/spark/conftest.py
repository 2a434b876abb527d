"""Real projects on disk that real Spark runs: in this process where possible, otherwise as a command."""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyspark
import pytest
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from sqlstream import FindingsError, ProjectRequest, RunRequest, run_models
from sqlstream.app.request import Selection
from sqlstream.app.run.recorded import RunOutcome
from sqlstream.cli.main import main
from sqlstream.compiler.spark_versions import minor_version
from sqlstream.spark.jvm.internals import SETTING
from sqlstream.spark.jvm.launch import launch_jvm
from sqlstream.spark.jvm.session import SHORT_LIVED_JVM
from sqlstream.state.runs.events import QueryResult, RunEvent
from tests.services.connect_server import start_connect
from tests.services.database_server import DatabaseServer, NotInstalledError
from tests.services.hdfs import Hdfs
from tests.services.kafka_broker import KafkaBroker, start_kafka
from tests.services.kafka_topics import Topic, create_topic
from tests.services.mariadb import start_mariadb
from tests.services.postgres import start_postgres
from tests.services.s3 import S3, start_s3
from tests.services.spark_cluster import SparkCluster, spark_cluster
from tests.services.yarn import yarn_cluster

LONGEST_WAIT_SECONDS = 120
"""A run without output for this long counts as stuck. No test depends on a shorter time."""

POLL_SECONDS = 0.02
"""The time between two looks at a file that a process will write."""

os.environ.setdefault("JDK_JAVA_OPTIONS", SHORT_LIVED_JVM)  # the JVMs of these tests live for seconds or minutes

collect_ignore_glob = [] if minor_version(pyspark.__version__) == (4, 1) else ["test_lake_*.py"]
"""Delta Lake and Iceberg have no release for a later Spark: `make smoke41` runs their tests."""

PROJECT = "name: shop\nversion: 1.0.0\ntargets: {local: {master: 'local[2]', storage: store}}\n"
WITHOUT_INTERNALS = PROJECT.replace("storage: store", "storage: store, spark: {spark.sqlstream.internals: 'false'}")
ROOT = Path(__file__).parents[2]
EXTRA_DAY = "2024-03-08"
"""The folder that readers of the README may have created; its files are not part of the repository."""


AN_HOUR_AGO = time.time() - 3600
"""Files are modified at this time (seconds since 1970) and later: one time for all, so that a slow test keeps their order."""


_NOT_ON_CLUSTERS = {
    "test_sqlite.py": "SQLite is a file of one machine, which a target on a cluster refuses",
    "test_quarantine.py": "its sinks are SQLite files",
    "test_results_and_ledger_are_written": "it has the number of partitions of two cores",
    "test_a_rate_source_is_sampled_once": "another number of cores divides the rows differently",
}
LOCAL_ONLY = {
    "standalone": _NOT_ON_CLUSTERS,
    "yarn": _NOT_ON_CLUSTERS,
    "connect": {
        "test_an_error_has_the_line_of_the_model": "a server finds the error after the function has returned",
        "test_one_function_writes_several_batch_models": "rows that nobody has read count as 0 there",
        "test_a_pandas_aggregate_over_a_stream_is_found_before_anything_starts": "only the plan shows it",
        "test_spark_itself_refuses_a_pandas_aggregate_over_a_stream": "it asks the session of this process",
    },
}
"""The files of tests, and tests, that `make cluster`, `make yarn` and `make connect` leave out, each with the reason."""


class CommandProcess(subprocess.Popen[str]):
    """A command that says where it is stuck, and is killed, if it does not end in time."""

    def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[str, str]:  # noqa: A002
        """Returns everything that is printed until the end. Raises: AssertionError after `timeout` seconds."""
        try:
            return super().communicate(input, timeout)
        except subprocess.TimeoutExpired as error:
            stacks = [_stack(pid) for pid in descendants(self.pid)]
            self.send_signal(signal.SIGABRT)  # Python prints the stacks of its threads, see PYTHONFAULTHANDLER
            self.wait()
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            printed, _ = super().communicate()
            raise AssertionError("\n".join([f"no end within {timeout} s; it printed:", printed, *stacks])) from error


def _stack(pid: int) -> str:
    """Returns the name of a process, and its Java threads if it is a JVM."""
    shown = f"process {pid}: {read_proc_file(pid, 'comm').strip()}, {read_proc_file(pid, 'wchan')}"
    jstack = shutil.which("jstack")
    if "java" not in shown or jstack is None:
        return shown
    threads = subprocess.run([jstack, str(pid)], capture_output=True, text=True, check=False).stdout
    spark = [thread for thread in threads.split("\n\n") if "org.apache.spark" in thread]
    return "\n".join([shown, *spark])


@dataclass
class ClusterSuite:
    """The cluster or the server on which `make cluster`, `make yarn` or `make connect` runs the projects of these tests. `spark` is the
    key of a target with its address; if it is empty, the projects stay as they are. `moved_tests` are the tests with a
    project on it.
    """

    spark: str = ""
    moved_tests: set[str] = field(default_factory=set)

    def moved(self, text: str, root: Path) -> str:
        """Returns the text of a project.yml in `root` with its local target elsewhere. Others stay unchanged."""
        if not self.spark or LOCAL_TARGET not in text:
            return text
        self.moved_tests.add(os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0])
        return text.replace(LOCAL_TARGET, f"{self.spark}, storage: '{root}/store'")


SUITE = ClusterSuite()
CLUSTER_SUITE = "SQLSTREAM_TEST_CLUSTER"
"""The variable with which `make cluster`, `make yarn` and `make connect` move the projects of the fixtures."""
LOCAL_TARGET = "master: 'local[2]', storage: store"


@dataclass(frozen=True)
class Invoked:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str


@dataclass
class ProjectFolder:
    """A project on disk, and the events of its runs in this process."""

    root: Path
    events: list[RunEvent] = field(default_factory=list)

    def write(self, files: Mapping[str, str]) -> None:
        """Writes project files by their relative paths."""
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(SUITE.moved(text, self.root) if name == "project.yml" else text)

    def rows(self, name: str, rows: list[dict[str, Any]], modified: int | None = None) -> None:
        """Writes one JSON-lines file with a fixed modification time, so that the order of files is known."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        if modified is not None:
            at = AN_HOUR_AGO + modified
            os.utime(path, (at, at))

    def batches(self, folder: str, batches: Iterable[list[dict[str, Any]]], first: int = 0) -> None:
        """Writes each batch to a file, in this order; the first has the number `first`."""
        for number, batch in enumerate(batches, start=first):
            self.rows(f"{folder}/{number}.json", batch, modified=number)

    def run(
        self,
        *select: str,
        env: Mapping[str, str] | None = None,
        variables: Mapping[str, object] | None = None,
        **overrides: Any,
    ) -> RunOutcome:
        """Runs the selection in this process, with `available_now` unless `overrides` override it."""
        self.events = []
        request = RunRequest(
            project=ProjectRequest(self.root, variables=variables or {}, env={**os.environ, **(env or {})}),
            selection=Selection(tuple(select)),
            **{"available_now": True, **overrides},
        )
        return run_models(request, self.events.append)

    def run_until(self, done: Callable[[list[RunEvent]], bool], *select: str, **overrides: Any) -> RunOutcome:
        """Runs the selection with its own triggers in this process, and stops it once `done` is true for the events."""
        self.events = []
        is_asked = False

        def notify(event: RunEvent) -> None:
            nonlocal is_asked
            self.events.append(event)
            if not is_asked and done(self.events):
                is_asked = True  # a second signal would interrupt the batch
                signal.raise_signal(signal.SIGTERM)

        request = RunRequest(project=ProjectRequest(self.root), selection=Selection(tuple(select)), **overrides)
        return run_models(request, notify)

    def result(self, *select: str, **overrides: Any) -> QueryResult:
        """Runs a selection of one query and returns its result."""
        (result,) = self.run(*select, **overrides).results
        return result

    def command(
        self, *arguments: str, env: Mapping[str, str] | None = None, python: str = sys.executable
    ) -> subprocess.Popen[str]:
        """Starts the command in a new process group."""
        return CommandProcess(
            [python, "-m", "sqlstream", *arguments],
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONFAULTHANDLER": "1", **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run_through_kills(
        self, kills: int, seed: int, batches: int, *select: str, env: Mapping[str, str] | None = None
    ) -> None:
        """Starts the run of a selection again and again, and ends each one by `kill -9` after 1 to `batches` batches, in
        turns that of the JVM and that of Python. There must be more data than the killed runs read.
        """
        chosen = ["--select", *select] if select else []
        order = random.Random(seed)
        for number in range(kills):
            process = self.command("run", "--available-now", "--log-format", "json", *chosen, env=env)
            for _ in range(order.randint(1, batches)):
                wait_for(process, '"event": "batch"')
            os.kill(process.pid if number % 2 else java_below(process.pid), signal.SIGKILL)
            process.communicate()
            assert process.returncode != 0

    def take_over_a_stalled_run(self) -> None:
        """Starts the run of a stream of orders, whose lease has heartbeats of a second, and suspends it. While it is active,
        a second run is refused; then that reads the third file of orders, and the first one ends with code 1.
        """
        process = self.command("run", "--log-format", "json")
        try:
            for _ in range(2):
                wait_for(process, '"event": "batch"')
            with pytest.raises(FindingsError) as refused:
                self.run()
            os.killpg(process.pid, signal.SIGSTOP)
            self.rows("in/orders/2.json", order_rows(2), modified=2)
            assert self.result().rows_out == 5
            os.killpg(process.pid, signal.SIGCONT)
            printed, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        assert [finding.code for finding in refused.value.findings] == ["query-in-use"]
        assert (process.returncode, "query-lock-lost" in printed) == (1, True)

    def invoke(self, *arguments: str) -> Invoked:
        """Runs the command in this process, and so with the Java process of the earlier tests."""
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
            main([*arguments, "--project-dir", str(self.root)])
        return Invoked(int(ended.value.code or 0), out.getvalue(), err.getvalue())

    def wait_for_batch(self, process: subprocess.Popen[str], query: str, number: int) -> None:
        """Waits until a batch has written its offsets, so that it is running or finished."""
        wait_until(process, (self.root / f"store/queries/{query}/v1/checkpoint/offsets/{number}").exists)

    def committed(self, query: str, version: int = 1) -> set[str]:
        """Returns a query's committed batches; its checkpoint must have offsets and commits for the same ones."""
        folder = self.root / "store" / "queries" / query / f"v{version}" / "checkpoint"
        offsets, commits = (
            {name.name for name in (folder / kind).iterdir() if name.name.isdigit()} for kind in ("offsets", "commits")
        )
        assert offsets == commits
        return commits


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests in this folder."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker("spark")
            left_out = LOCAL_ONLY.get(os.environ.get(CLUSTER_SUITE, ""), {})
            why = left_out.get(item.path.name) or left_out.get(item.name.partition("[")[0])
            if why:
                item.add_marker(pytest.mark.skip(reason=f"only on a local master: {why}"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says how many tests had a project on the cluster."""
    if CLUSTER_SUITE in os.environ:
        terminalreporter.write_line(f"{len(SUITE.moved_tests)} tests ran a project on {SUITE.spark}")


@pytest.fixture(scope="session", autouse=True)
def _suite_on_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Moves the projects of all tests to a cluster with two workers or nodes, which can run several projects at a time, or
    to a server of Spark Connect.
    """
    kind = os.environ.get(CLUSTER_SUITE)
    if kind == "connect":
        server = start_connect(tmp_path_factory.mktemp("suite"))
        SUITE.spark = f"remote: '{server.address}'"
        yield
        server.stop()
    elif kind == "standalone":
        os.environ["PYSPARK_PYTHON"] = sys.executable
        with spark_cluster(tmp_path_factory.mktemp("suite"), applications=3) as started:
            SUITE.spark = f"master: '{started.master}'"
            yield
    elif kind == "yarn":
        folder = tmp_path_factory.mktemp("suite")
        with yarn_cluster(folder, memory=6144) as yarn:
            os.environ.update(yarn.with_local_files(folder / "here"), PYSPARK_PYTHON=sys.executable)
            SUITE.spark = "master: yarn"
            yield
    else:
        yield


@pytest.fixture
def folder(tmp_path: Path) -> ProjectFolder:
    """A project with a stream of JSON orders and a Parquet sink, but no models."""
    return shop_project(tmp_path)


def shop_project(root: Path) -> ProjectFolder:
    """Copies the project of the fixture `folder` to another folder."""
    project = ProjectFolder(root)
    project.write(
        {
            "project.yml": PROJECT,
            "sources.yml": "sources:\n  - name: shop\n    tables:\n      - name: orders\n        format: json\n"
            "        path: in/orders\n        schema: id int, ts timestamp, kind string, amount int\n"
            "        options: {maxFilesPerTrigger: 1}\n",
            "sinks.yml": "sinks:\n  - {name: lake, format: parquet, path: '{{ model.name }}'}\n"
            "  - {name: table, format: memory}\n  - {name: nowhere, format: noop}\n",
        }
    )
    return project


@pytest.fixture
def orders(folder: ProjectFolder) -> ProjectFolder:
    """The project of `folder` with two files of five orders each."""
    for number in range(2):
        folder.rows(f"in/orders/{number}.json", order_rows(number), modified=number)
    return folder


def order_rows(number: int, count: int = 5) -> list[dict[str, Any]]:
    """Returns five orders with ids from `10 * number`, one minute apart, of two kinds."""
    return [
        {"id": 10 * number + i, "ts": f"2024-01-01T{number:02}:0{i}:00Z", "kind": "ab"[i % 2], "amount": i}
        for i in range(count)
    ]


@pytest.fixture
def read_parquet() -> Callable[[Path], list[dict[str, Any]]]:
    """Reads a file sink's folder as Spark does: only the files that the sink's log lists."""
    import pyarrow.parquet as pq

    def read(folder: Path) -> list[dict[str, Any]]:
        logs = {log.name: log.read_text() for log in (folder / "_spark_metadata").iterdir() if log.name[0].isdigit()}
        names = [Path(unquote(path.removeprefix("file://"))) for path in listed_files(logs)]
        assert all(name.is_relative_to(folder) for name in names)  # Spark does not read others
        return [row | _partition(name) for name in names for row in pq.read_table(name, partitioning=None).to_pylist()]

    return read


def listed_files(logs: Mapping[str, str]) -> list[str]:
    """Returns the paths of the files that Spark reads of a file sink, from the texts in its log by their names."""
    in_order = sorted(logs, key=lambda name: int(name.partition(".")[0]))
    compacted = [index for index, name in enumerate(in_order) if name.endswith(".compact")]
    current = in_order[max(compacted, default=0) :]
    return [json.loads(line)["path"] for name in current for line in logs[name].splitlines()[1:]]


def rows_on_hdfs(hdfs: Hdfs, folder: str) -> list[dict[str, Any]]:
    """Returns the rows of a file sink with its output in a folder of HDFS, as Spark reads them."""
    import pyarrow.parquet as pq

    log = f"{folder}/_spark_metadata"
    logs = {name: hdfs.read(f"{log}/{name}").decode() for name in hdfs.names(log) if name[0].isdigit()}
    paths = (path.removeprefix(hdfs.uri) for path in listed_files(logs))
    return [row for path in paths for row in pq.read_table(io.BytesIO(hdfs.read(path))).to_pylist()]


def _partition(file: Path) -> dict[str, str]:
    """Returns the partition columns in a file's folder names."""
    pairs = (part.split("=", 1) for part in file.parts if "=" in part)
    return {pair[0]: pair[1] for pair in pairs}


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A running broker for all tests of this process."""
    broker = start_kafka(tmp_path_factory.mktemp("kafka"))
    yield broker
    broker.stop()


@pytest.fixture
def topic(kafka: KafkaBroker, tmp_path: Path) -> Topic:
    """A new topic with two partitions."""
    return create_topic(kafka.servers, tmp_path.name.lower())


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    """A running server of S3 for all tests of this process."""
    server = start_s3(tmp_path_factory.mktemp("s3"))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def cluster_of_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A standalone cluster of two workers with a core each, for all tests of this process."""
    with spark_cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture
def cluster(cluster_of_tests: SparkCluster) -> SparkCluster:
    """A standalone cluster whose two workers both run."""
    cluster_of_tests.start_killed_workers()
    return cluster_of_tests


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[DatabaseServer]:
    """A running PostgreSQL server for all tests of this process."""
    yield from started(start_postgres)


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[DatabaseServer]:
    """A running MariaDB server for all tests of this process."""
    yield from started(start_mariadb)


@pytest.fixture
def postgres(postgres_server: DatabaseServer) -> DatabaseServer:
    """A PostgreSQL server without tables."""
    postgres_server.drop_tables()
    return postgres_server


@pytest.fixture
def mariadb(mariadb_server: DatabaseServer) -> DatabaseServer:
    """A MariaDB server without tables."""
    mariadb_server.drop_tables()
    return mariadb_server


def started(start: Callable[[], DatabaseServer]) -> Iterator[DatabaseServer]:
    """Yields a server and stops it. Skips the test if the server is not installed, unless `.ci/run` requires it."""
    try:
        server = start()
    except NotInstalledError as error:
        if os.environ.get("SQLSTREAM_TEST_SERVERS") == "required":
            raise
        pytest.skip(str(error))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """A bare session for asking Spark. It stops at the end of the module, because runs start their own session."""
    session = bare_session("local[1]")
    yield session
    session.stop()


@contextmanager
def avro_session(root: Path) -> Iterator[SparkSession]:
    """A session in the JVM of a run over Avro, whose class path has Spark's reader. The project is in `root`."""
    folder = shop_project(root)
    table = "{name: rows, format: avro, path: in, schema: id int}"
    folder.write(
        {
            "sources.yml": f"sources: [{{name: made, tables: [{table}]}}]\n",
            "models/all_rows.sql": "{{ config(sink='lake') }} select * from {{ source('made', 'rows') }}",
        }
    )
    (folder.root / "in").mkdir(exist_ok=True)
    folder.run("all_rows")
    session = bare_session("local[1]")
    try:
        yield session
    finally:
        session.stop()


def bare_session(master: str, **more: str) -> SparkSession:
    """Returns a session that sqlstream did not create. `more` are Spark settings with `__` for dots.

    Its JVM is one that a later run of sqlstream in this process can replace, if that needs other jars.
    """
    settings = {
        "spark.master": master,
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "1",
        SETTING: "true",  # the JVM may have been started for a target that turns the internals off
        **{name.replace("__", "."): value for name, value in more.items()},
    }
    if SparkContext._gateway is None:
        conf = SparkConf().setAll([("spark.app.name", "tests"), *settings.items()])
        SparkContext._ensure_initialized(gateway=launch_jvm(conf, lambda _: None))
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def wait_until(process: subprocess.Popen[str], condition: Callable[[], object]) -> None:
    """Waits until `condition` is true for a running process, and leaves it the cores. Fails if the process ends before."""
    until = time.monotonic() + LONGEST_WAIT_SECONDS
    while not condition():
        with pytest.raises(subprocess.TimeoutExpired):  # it still runs
            process.wait(POLL_SECONDS)
        assert time.monotonic() < until


def wait_for(process: subprocess.Popen[str], text: str) -> list[str]:
    """Reads the lines of `process` until one contains `text`; a watchdog kills a stuck process."""
    lines: list[str] = []
    stuck = signal.SIGALRM
    before = signal.signal(stuck, lambda _n, _f: os.killpg(process.pid, signal.SIGKILL))
    signal.alarm(LONGEST_WAIT_SECONDS)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            signal.alarm(LONGEST_WAIT_SECONDS)
            lines.append(line.rstrip("\n"))
            if text in line:
                return lines
    finally:
        signal.alarm(0)
        signal.signal(stuck, before)
    raise AssertionError(f"{text!r} was not among the lines:\n" + "\n".join(lines))


def descendants(pid: int) -> list[int]:
    """Returns a process and its descendants, without those that have ended."""
    found = [pid]
    for task in _entries(f"/proc/{pid}/task"):
        for child in _text(task / "children").split():
            found += descendants(int(child))
    return found


def java_below(pid: int) -> int:
    """Returns the JVM that a process has started; it is listed before its own children."""
    return next(each for each in descendants(pid) if read_proc_file(each, "comm").strip() == "java")


def read_proc_file(pid: int, name: str) -> str:
    """Returns the text of a /proc file of a process, such as `comm`; empty once the process has ended."""
    return _text(Path(f"/proc/{pid}/{name}"))


def sockets(pid: int) -> set[str]:
    """Returns the inodes of a process's sockets; empty once the process has ended."""
    found = set()
    for descriptor in _entries(f"/proc/{pid}/fd"):
        with suppress(OSError):
            found.add(str(descriptor.readlink()))
    return {link.removeprefix("socket:[").removesuffix("]") for link in found if link.startswith("socket:[")}


def _entries(folder: str) -> list[Path]:
    with suppress(OSError):
        return list(Path(folder).iterdir())
    return []


def _text(path: Path) -> str:
    with suppress(OSError):
        return path.read_bytes().decode(errors="replace")
    return ""


@pytest.fixture
def examples(tmp_path: Path) -> ProjectFolder:
    """A copy of the examples and their data; file times follow the order of file names."""
    for name in ("models", "macros", "seeds", "tests/data"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", EXTRA_DAY))
    for name in ("project.yml", "sources.yml", "sinks.yml"):
        shutil.copy(ROOT / name, tmp_path / name)
    for age, path in enumerate(sorted((tmp_path / "tests/data").rglob("*.*"), reverse=True)):
        os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))
    return ProjectFolder(tmp_path)
