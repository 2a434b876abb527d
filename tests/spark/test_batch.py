"""Batch models: each run writes the whole output and archives the previous one."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from sqlstream import FindingsError, ProjectRequest
from sqlstream.app.loading.load import load
from sqlstream.app.versions.switch import promote, roll_back
from sqlstream.spark.queries.batch_write import replace_output
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.local import LocalStorage
from sqlstream.spark.writing.outputs import check_output
from sqlstream.state.runs.events import QueryStarted, Status, TableShown
from sqlstream.state.runs.limits import RunLimits
from tests.spark.conftest import LONGEST_WAIT_SECONDS, ProjectFolder, bare_session, wait_for, wait_until

STATIC = """sources:
  - name: shop
    tables:
      - {name: customers, format: json, path: in/customers, schema: 'id int, name string', mode: batch}
      - {name: orders, format: json, path: in/orders, schema: 'id int, ts timestamp, kind string, amount int'}
"""
REPORT = "{{ config(sink='lake') }} select id, name from {{ source('shop', 'customers') }}"


@pytest.fixture
def shop(orders: ProjectFolder) -> ProjectFolder:
    """A project with a static table of three customers and a stream of orders."""
    customers(orders, "abc")
    orders.write({"sources.yml": STATIC, "models/report.sql": REPORT})
    return orders


def customers(project: ProjectFolder, names: str) -> None:
    """Writes one customer for each letter."""
    project.rows("in/customers/all.json", [{"id": id_, "name": name} for id_, name in enumerate(names)])


def names(folder: Path) -> str:
    """Returns the names in an output, sorted."""
    return "".join(sorted(row["name"] for row in rows(folder)))


def rows(folder: Path) -> list[dict[str, Any]]:
    """Returns the rows of a Parquet folder as any reader sees them."""
    return [row for file in sorted(folder.rglob("*.parquet")) for row in pq.read_table(file).to_pylist()]


@pytest.mark.smoke
def test_each_run_archives_the_previous_output(shop: ProjectFolder) -> None:
    """After three runs the newest rows are at the path, and the archive has the earlier outputs in order."""
    for text in ("abc", "ab", "xyz"):
        customers(shop, text)
        result = shop.result(available_now=False)
        assert (result.status, result.kind, result.rows_out, result.checkpoint) == (
            Status.SUCCESS,
            "batch",
            len(text),
            None,
        )

    store = shop.root / "store"
    assert names(store / "report") == "xyz"
    assert [names(store / "_archive" / "report" / number) for number in ("1", "2")] == ["abc", "ab"]
    assert (store / "report" / "_SUCCESS").exists()
    assert not list((store / "_writing" / "report").iterdir())
    assert (store / "queries/report/v1/ledger.json").exists()


def test_batches_allow_sql_that_streams_do_not(shop: ProjectFolder) -> None:
    """ORDER BY, windows, DISTINCT aggregates, LIMIT and ranks are allowed when all inputs are static."""
    shop.write(
        {
            "models/report.sql": "{{ config(sink='lake') }} select count(n) over () as c, r from (select name "
            "as n, row_number() over (order by name desc) as r from {{ source('shop', 'customers') }}) order by r "
            "limit 2 offset 1",
            "models/counts.sql": "{{ config(sink='lake', partition_by=['c']) }} select count(distinct name) as c, "
            "max(id) as m from {{ source('shop', 'customers') }}",
        }
    )

    assert [result.status for result in shop.run().results] == [Status.SUCCESS, Status.SUCCESS]
    assert [row["r"] for row in rows(shop.root / "store/report")] == [2, 3]
    assert (shop.root / "store/counts/c=3").is_dir()


@pytest.mark.slow
@pytest.mark.parametrize("sink", ["csv", "json", "orc", "text", "xml", "noop", "console", "memory"])
def test_every_sink_accepts_a_batch(shop: ProjectFolder, sink: str) -> None:
    """Every sink accepts a batch: files are replaced, and sinks that keep nothing get all rows on each run."""
    path = "" if sink in ("noop", "console", "memory") else ", path: '{{ model.name }}'"
    option = ", options: {rowTag: row}" if sink == "xml" else ""
    shop.write({"sinks.yml": f"sinks: [{{name: lake, format: {sink}{path}{option}}}]\n"})
    shop.write({"models/report.sql": REPORT.replace("id, name", "name")})

    for _ in range(2):
        result = shop.result(available_now=False)
        assert (result.status, result.rows_out) == (Status.SUCCESS, 3)
    shown = [event for event in shop.events if isinstance(event, TableShown)]
    assert [table.count for table in shown] == ([3] if sink == "memory" else [])
    if path:
        read = "".join(file.read_text(errors="ignore") for file in (shop.root / "store/report").glob("part-*"))
        assert all(letter in read for letter in "abc")
        assert (shop.root / "store/_archive/report/1").is_dir()


@pytest.mark.smoke
def test_a_killed_write_keeps_the_previous_output(shop: ProjectFolder) -> None:
    """After kill -9 in the middle of a write the old output is intact, and the next run replaces it completely."""
    endless = "{{ config(sink='lake') }} select id, 'z' as name from range({{ var('rows', 3) }})"
    customers(shop, "abc")
    shop.result()
    shop.write({"models/report.sql": endless})
    process = shop.command("run", "--vars", "{rows: 1000000000000}")
    wait_for(process, "START batch report")
    writing = shop.root / "store/_writing/report"
    wait_until(process, lambda: any(writing.glob("*/_temporary/**/*.parquet")))
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()

    assert names(shop.root / "store/report") == "abc"
    assert not (shop.root / "store/_archive").exists()

    result = shop.result()
    assert (result.status, result.rows_out) == (Status.SUCCESS, 3)
    assert names(shop.root / "store/report") == "zzz"
    assert names(shop.root / "store/_archive/report/1") == "abc"


@pytest.mark.slow
def test_a_killed_parallel_version_is_not_promoted(shop: ProjectFolder) -> None:
    """A parallel version is promoted only after a write has ended: neither after kill -9 nor after a later change."""
    endless = "{{ config(sink='lake') }} select id, 'z' as name from range({{ var('rows', 3) }})"
    request = ProjectRequest(shop.root, env=dict(os.environ))
    customers(shop, "abc")
    shop.result()
    shop.write({"models/report.sql": endless})
    process = shop.command("run", "--parallel", "report", "--vars", "{rows: 1000000000000}")
    wait_until(process, lambda: any(shop.root.glob("store/_writing/*/*/_temporary/**/*.parquet")))
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()

    with pytest.raises(FindingsError) as caught:
        promote(request, "report")
    (finding,) = caught.value.findings
    assert (finding.code, finding.message) == (
        "version-empty",
        "version 2 of `report` has not written its whole output",
    )

    assert shop.result(parallel=("report",)).rows_out == 3
    assert promote(request, "report").version == 2
    assert roll_back(request, "report").version == 1
    shop.write({"models/report.sql": endless.replace("'z'", "raise_error('broken')")})
    assert shop.result(parallel=("report",)).status is Status.ERROR
    with pytest.raises(FindingsError):
        promote(request, "report")


@pytest.mark.slow
def test_ctrl_c_twice_ends_a_write(shop: ProjectFolder) -> None:
    """A second Ctrl-C stops a write: its files stay aside, the earlier output is unchanged, and no query has failed."""
    shop.result()
    shop.write({"models/report.sql": "{{ config(sink='lake') }} select id, 'z' as name from range(1000000000000)"})
    process = shop.command("run")
    wait_for(process, "START batch report")
    wait_until(process, lambda: any(shop.root.glob("store/_writing/report/*/_temporary/**/*.parquet")))
    process.send_signal(signal.SIGINT)
    wait_for(process, "stopping, because a stop was requested")
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)

    assert "1 of 1 STOPPED batch report" in printed
    assert "INTERRUPTED" in printed
    assert process.returncode == 0
    assert names(shop.root / "store/report") == "abc"


def test_a_failed_write_is_reported_and_changes_nothing(shop: ProjectFolder) -> None:
    """When one write fails, the other models are written and the exit code reports the failure."""
    shop.result()
    shop.write(
        {
            "models/report.sql": "{{ config(sink='lake', retries=0) }} "
            "select id, assert_true(id < 0) as name from {{ source('shop', 'customers') }}",
            "models/good.sql": REPORT,
        }
    )

    good, report = shop.run().results

    assert (good.status, report.status, report.rows_out) == (Status.SUCCESS, Status.ERROR, 0)
    assert report.finding is not None
    assert report.finding.code == "query-failed"
    assert names(shop.root / "store/report") == "abc"


@pytest.mark.slow
def test_threads_limit_batches_but_not_streams(shop: ProjectFolder) -> None:
    """With one thread, batch models run one after the other; a stream without an end takes no thread."""
    shop.write({f"models/{name}.sql": REPORT for name in ("b", "c")})
    shop.write({"models/a.sql": "{{ config(sink='lake') }} select id from {{ source('shop', 'orders') }}"})

    outcome = shop.run(available_now=False, limits=RunLimits(threads=1, until_idle_seconds=3.0))

    assert [result.kind for result in outcome.results] == ["stream", "batch", "batch", "batch"]
    assert [result.status for result in outcome.results] == [Status.STOPPED, *[Status.SUCCESS] * 3]
    assert [event.kind for event in shop.events if isinstance(event, QueryStarted)].count("batch") == 3


def test_a_stream_and_a_batch_never_share_an_output(shop: ProjectFolder) -> None:
    """A model that changes between stream and batch is refused until it starts over beside the old output."""
    stream = "{{ config(sink='lake') }} select id, kind as name from {{ source('shop', 'orders') }}"
    for texts in ((REPORT, stream), (stream, REPORT)):
        name = "first" if texts[0] == REPORT else "second"
        (shop.root / "models/report.sql").unlink(missing_ok=True)
        shop.write({f"models/{name}.sql": texts[0]})
        shop.result(name)
        shop.write({f"models/{name}.sql": texts[1]})
        with pytest.raises(FindingsError) as caught:
            shop.run(name)
        assert [finding.code for finding in caught.value.findings] == ["sink-change"]
        result = shop.result(name, full_refresh=True)
        assert (result.status, Path(result.output or "").name) == (Status.SUCCESS, name)
        assert is_stream(shop, name) == (texts[1] == stream)
        assert is_stream(shop, f"{name}.v1") == (texts[0] == stream)


def is_stream(folder: ProjectFolder, name: str) -> bool:
    """Returns whether a stream has written an output."""
    assert list((folder.root / "store" / name).glob("*.parquet"))
    return (folder.root / "store" / name / "_spark_metadata").exists()


def test_an_undeclared_stream_is_refused(shop: ProjectFolder) -> None:
    """A stream that only Spark detects is refused: no rule has checked the query, and it would run as a batch."""
    compiled = load(ProjectRequest(shop.root)).compiled
    model = compiled.models["model.shop.report"]
    assert model.output is not None
    session = bare_session("local[1]")
    try:
        with pytest.raises(FindingsError) as caught:
            check_output(model, model.output, session.readStream.format("rate").load(), Secrets({}))
    finally:
        session.stop()
    assert [finding.code for finding in caught.value.findings] == ["undeclared-stream"]


def test_without_an_exchange_the_earlier_output_is_in_the_archive_before_the_new_one_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is killed between the two moves leaves it where the documentation says."""
    monkeypatch.setattr("sqlstream.spark.storage.local._exchange", lambda *_: errno.ENOSYS)
    for name in ("new", "out"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    move = LocalStorage.move

    def killed(storage: LocalStorage, source: str, destination: str) -> None:
        move(storage, source, destination)
        raise InterruptedError

    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "move", killed)
        with pytest.raises(InterruptedError):
            replace_output(LocalStorage(), f"{tmp_path}/new", f"{tmp_path}/out")
    assert (tmp_path / "_archive/out/1/file").read_text() == "out"
    assert replace_output(LocalStorage(), f"{tmp_path}/new", f"{tmp_path}/out") is None
    assert (tmp_path / "out/file").read_text() == "new"


def test_outputs_are_moved_and_never_overwritten(tmp_path: Path) -> None:
    """Archive numbers continue after the first entries are lost, and a move never overwrites an existing folder."""
    for name in ("new", "out", "_archive/out/7"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").write_text(name)

    assert replace_output(LocalStorage(), f"{tmp_path}/new", f"{tmp_path}/out") == f"{tmp_path}/_archive/out/8"
    assert (tmp_path / "out/file").read_text() == "new"
    assert (tmp_path / "_archive/out/8/file").read_text() == "out"
    with pytest.raises(FileExistsError):
        LocalStorage().move(f"{tmp_path}/out", f"{tmp_path}/_archive/out/7")
