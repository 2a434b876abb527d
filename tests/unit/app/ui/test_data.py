"""The data of the page: without Spark, of projects with errors, and at a cost that does not grow."""

from __future__ import annotations

import gc
import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
import tracemalloc
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from benchmarks.make_history import History, LiveRun, make_history, name_of
from sqlstream import ProjectRequest
from sqlstream.app.test.case_results import TEST_RESULTS
from sqlstream.app.ui.data import ProjectData
from sqlstream.app.ui.run_page import HistoryKeeper
from sqlstream.app.ui.sample import sample_of
from sqlstream.cli.main import main
from sqlstream.spark.storage.processes import process_start
from sqlstream.times import utc_text
from sqlstream.web.server.protocol import Span, UnknownQueryError
from tests.services.ui_page import page_of

QUERIES = 10


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of ten queries with a history and a run of this process."""
    history = History(QUERIES, 500, 1, time.time())
    make_history(tmp_path, history)
    LiveRun(tmp_path, history).begin()
    return tmp_path


def test_the_page_never_loads_spark(project: Path) -> None:
    """Each address answers in a process that has loaded neither pyspark nor py4j."""
    code = f"""
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tests.services.ui_page import page_of
from sqlstream import ProjectRequest
with page_of(ProjectRequest(Path({str(project)!r}))) as page:
    for path in ("project", "overview", *("query/orders_000" + end for end in ("", "/series", "/batches", "/events", "/sample"))):
        page.get("/api/" + path)
    page.get("/api/lineage?column=orders_000.amount")
print([name for name in sys.modules if name.split(".")[0] in ("pyspark", "py4j")])
"""
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])}
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    assert found.stdout == "[]\n"


def test_a_project_with_errors_shows_its_runs(project: Path) -> None:
    """The problem is shown, and the graph is that of the last compilation."""
    with pytest.raises(SystemExit):
        main(["compile", "--project-dir", str(project), "--quiet"])
    (project / "models/orders/orders_000.sql").write_text("{{ config(sink='nowhere') }} select 1 {{ broken")
    with page_of(ProjectRequest(project)) as page:
        found = page.get("/api/project")
        assert any("orders_000.sql" in problem for problem in found["problems"])
        assert found["runs"][0]["life"] == "running"
        overview = page.get("/api/overview")
        assert len(overview["queries"]) == QUERIES + 1
        assert overview["queries"][name_of(1)]["status"] == "running"
        query = page.get(f"/api/query/{name_of(1)}")
        assert query["problems"]
        assert query["compiled_sql"]
        assert page.get("/api/node/model.observed.orders_clean")["raw_sql"]
        assert "does not compile" in page.get("/api/node/source.observed.orders.events")["problem"]


def test_a_project_without_a_manifest_shows_its_queries(project: Path) -> None:
    """A project that never compiled still shows what has run."""
    (project / "project.yml").write_text("name: [")
    with page_of(ProjectRequest(project)) as page:
        overview = page.get("/api/overview?target=local")
        assert (overview["nodes"], len(overview["queries"])) == ([], QUERIES)
        assert page.get(f"/api/query/{name_of(1)}?target=local")["now"]["status"] == "running"


def test_an_ended_run(tmp_path: Path) -> None:
    """After the run, its queries are no longer running."""
    history = History(QUERIES, 100, 1, time.time())
    make_history(tmp_path, history)
    run = LiveRun(tmp_path, history)
    run.begin()
    run.end()
    with page_of(ProjectRequest(tmp_path)) as page:
        assert page.get("/api/overview")["queries"][name_of(1)]["status"] == "interrupted"


def test_the_last_result_of_each_unit_test(project: Path) -> None:
    """A test shows its last result, or null before it has run."""
    (project / "tests/models").mkdir(parents=True)
    case = "given: [{input: ref('orders_clean'), rows: []}], expect: {rows: []}"
    tests = "".join(f"  - {{name: {name}, model: orders_005, {case}}}\n" for name in ("ran", "waits"))
    (project / "tests/models/tests.yml").write_text(f"version: 2\nunit_tests:\n{tests}")
    result = {
        "model": "orders_005",
        "status": "failed",
        "at": "2024-01-01T00:00:00.000Z",
        "seconds": 1.5,
        "message": "x",
    }
    (project / "target").mkdir(exist_ok=True)
    (project / "target" / TEST_RESULTS).write_text(json.dumps({"results": {"orders_005.ran": result}}))
    with page_of(ProjectRequest(project)) as page:
        tests_of = page.get("/api/query/orders_005")["tests"]
    assert [(test["name"], test["status"]) for test in tests_of] == [("ran", "failed"), ("waits", None)]


def test_updates_keep_memory_flat(project: Path) -> None:
    """Thousands of batches, overviews and series later, the page keeps as much in memory as before."""
    history = History(QUERIES, 500, 1, time.time())
    run = LiveRun(project, history)
    run.begin()
    data = ProjectData(ProjectRequest(project))
    follower = data.follow("local")

    def update(count: int) -> None:
        for number in range(count):
            run.batch(1 + number % 2)
            if number % 20 == 0:
                data._update()
                follower.changes()
                data.series("local", name_of(1), Span(0, 1 << 53, 100))

    update(400)  # fills the caches and the small charts
    tracemalloc.start()
    update(40)
    gc.collect()  # when the collector runs by itself depends on the tests before this one
    before, _ = tracemalloc.get_traced_memory()
    update(2_000)
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    data.close()
    assert after - before < 300_000  # 2,000 batches are 3 MB of lines


def test_a_run_writes_its_history(tmp_path: Path) -> None:
    """The history has every line when the run has ended, and the thread has ended, too."""
    (tmp_path / "logs").mkdir()
    history = History(QUERIES, 10, 1, time.time())
    told: list[str] = []
    with HistoryKeeper(tmp_path, told.append) as keeper:
        keeper.start()
        run = LiveRun(tmp_path, history)
        run.begin()
        run.batch(1)
    assert told == []
    assert "history" not in {thread.name for thread in threading.enumerate()}
    with sqlite3.connect(tmp_path / "logs/history.sqlite") as connection:
        assert connection.execute("SELECT count(*) FROM batches").fetchone() == (QUERIES + 1,)


def test_a_history_that_cannot_be_written_is_reported_once(tmp_path: Path) -> None:
    """A run goes on without its history."""
    (tmp_path / "logs/history.sqlite").mkdir(parents=True)
    told: list[str] = []
    with HistoryKeeper(tmp_path, told.append) as keeper:
        keeper.start()
        keeper.wake()
    assert len(told) == 1


def test_ui_needs_a_project(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Outside of a project, the command fails at once."""
    with pytest.raises(SystemExit) as ended:
        main(["ui", "--project-dir", str(tmp_path)])
    assert ended.value.code == 1
    assert "project.yml" in capsys.readouterr().err


def test_the_command_ends_by_a_signal(project: Path) -> None:
    """`sqlstream ui` prints its URL, and SIGTERM ends it with exit code 0."""
    command = [sys.executable, "-c", "from sqlstream.cli.main import program; program()", "ui", "--port", "0"]
    process = subprocess.Popen([*command, "--project-dir", str(project)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("The page is at http://127.0.0.1:")
    process.terminate()
    process.communicate()
    assert process.returncode == 0


def test_rows_of_committed_files_only(project: Path, tmp_path: Path) -> None:
    """A sample has rows of files in the log of Spark's sink, the newest first, and columns from folder names."""
    data = ProjectData(ProjectRequest(project))
    loaded = data._seen("local").loaded
    data.close()
    assert loaded is not None
    model = next(model for model in loaded.compiled.models.values() if model.name == "orders_005")
    output = tmp_path / "out"
    log = output / "_spark_metadata"
    log.mkdir(parents=True)
    import pyarrow as pa
    from pyarrow.parquet import write_table

    for number in range(3):
        (output / f"day={number}").mkdir()
        write_table(pa.table({"id": [number, 10 + number]}), output / f"day={number}" / "a.parquet")
    for number in range(2):
        entry = {"path": f"file://{output}/day={number}/a.parquet", "action": "add"}
        (log / str(number)).write_text("v1\n" + json.dumps(entry))
    found = sample_of(model, str(output), 3)
    assert found.columns == ("id", "day")
    assert found.rows == [[1, "1"], [11, "1"], [0, "0"]]
    assert sample_of(model, None, 3).rows is None
    assert sample_of(model, "s3://bucket/out", 3).note == "the output is in s3://bucket/out, which only Spark can read"


def test_a_refused_run_says_why(tmp_path: Path) -> None:
    """If the newest run was refused, its errors are problems of the page, until another run begins."""
    history = History(QUERIES, 100, 1, time.time())
    make_history(tmp_path, history)
    finding = {"code": "state-change", "message": "`a` has changed", "why": "its key", "fix": "undo it"}
    error = {**finding, "severity": "error", "location": {"path": "models/a.sql", "line": 2, "column": 1}}
    results = {
        "metadata": {"invocation_id": "refused", "target": "local"},
        "status": "error",
        "findings": [error],
        "results": [{"model": "a", "status": "pending"}],
    }
    lines = [
        {"event": "run_began", "target": "local", "pid": 1, "process_start": "x"},
        {"event": "run_ended", "succeeded": False},
    ]
    now = datetime.now(UTC)
    text = "".join(
        json.dumps({"time": utc_text(now + timedelta(seconds=second)), "invocation_id": "refused", **line}) + "\n"
        for second, line in enumerate(lines)
    )
    (tmp_path / "logs/events.jsonl").write_text(text)
    (tmp_path / "target").mkdir(exist_ok=True)
    (tmp_path / "target/run_results.json").write_text(json.dumps(results))

    with page_of(ProjectRequest(tmp_path)) as page:
        refused = page.get("/api/project")["problems"]
    LiveRun(tmp_path, history).begin()
    with page_of(ProjectRequest(tmp_path)) as page:
        later = page.get("/api/project")["problems"]

    said = "models/a.sql:2:1: [state-change] `a` has changed\n  why: its key\n  fix: undo it"
    assert refused == [f"the last run was refused before any query started:\n{said}"]
    assert later == []


def test_unknown_names_come_with_those_that_exist(project: Path) -> None:
    """The error about a target names all targets, that about a query the similar ones and the targets that have it."""
    data = ProjectData(ProjectRequest(project))
    data.start()
    try:
        with pytest.raises(UnknownQueryError) as unknown:
            data.project("nope")
        assert (unknown.value.unknown, unknown.value.targets) == ("target", ("local", "prod"))
        (project / f"models/orders/{name_of(0)}.sql").unlink()
        with pytest.raises(UnknownQueryError) as unknown:
            data.query("prod", name_of(0))
        assert (unknown.value.unknown, unknown.value.targets) == ("query", ("local",))
        assert name_of(5) in unknown.value.similar
        removed = data.query("local", name_of(0))
        assert (removed["is_removed"], removed["now"]["status"]) == (True, "running")
        assert name_of(0) not in data.overview("local")["queries"]
    finally:
        data.close()


def test_a_history_that_lacks_batches_is_known(project: Path) -> None:
    """A history with all batches lacks none; one that was deleted lacks those before the journal, but of its target."""
    for is_deleted in (False, True):
        if is_deleted:
            for file in (project / "logs").glob("history.sqlite*"):
                file.unlink()
        with page_of(ProjectRequest(project)) as page:
            found = page.get("/api/project")
            assert found["lacks_earlier_batches"] is is_deleted
            assert found["has_history_since"] is not None
            assert found["set_aside"] == []
            assert page.get("/api/project?target=prod")["has_history_since"] is None


def test_a_run_in_the_storage_is_on_the_page(tmp_path: Path) -> None:
    """A submitted run of another machine, whose journal is only in the storage, is running with its queries, as long as
    it writes; new lines reach a page that is open.
    """
    history = History(QUERIES, 100, 1, time.time())
    make_history(tmp_path, history)
    run = LiveRun(tmp_path, history)
    run.begin()
    journal, folder = tmp_path / "logs/events.jsonl", tmp_path / ".sqlstream/local/_logs"
    folder.mkdir(parents=True)
    elsewhere = journal.read_text().replace(json.dumps(process_start(os.getpid())), '"another machine"')
    identity = json.loads(elsewhere.splitlines()[0])["invocation_id"]
    journal.unlink()
    (folder / f"20260101T000000Z_{identity}_00001_0000001.jsonl").write_text(elsewhere)

    with page_of(ProjectRequest(tmp_path)) as page:
        found = page.get("/api/project")["runs"][0]
        assert (found["id"], found["life"]) == (identity, "running")
        assert page.get("/api/overview")["queries"][name_of(1)]["status"] == "running"
        end = {"time": utc_text(datetime.now(UTC)), "invocation_id": identity, "event": "run_ended", "succeeded": True}
        (folder / f"20260101T000000Z_{identity}_00001_0000002.jsonl").write_text(f"{elsewhere}{json.dumps(end)}\n")
        deadline = time.monotonic() + 120
        while page.get("/api/project")["runs"][0]["life"] == "running":
            assert time.monotonic() < deadline
        assert page.get("/api/project")["runs"][0]["life"] == "ended"
