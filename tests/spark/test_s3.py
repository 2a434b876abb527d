"""A project whose storage is on S3: a real client, and a server on loopback (`tests/services/s3.py`)."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from sqlstream.app.loading.load import Invocation
from sqlstream.app.observe.stored_journal import StoredJournal, stored_logs
from sqlstream.spark.jvm.class_archive import cache_folder
from sqlstream.spark.jvm.gateway import JVM_ERRORS, causes_of
from sqlstream.spark.storage.lease import lease_files
from sqlstream.spark.storage.query_locks import LEASE_PERIOD
from sqlstream.spark.storage.storage import storage_for
from sqlstream.state.runs.events import WarningEmitted
from tests.services.cut import cut
from tests.services.s3 import BUCKET, PASSWORD, S3, start_s3proxy
from tests.spark.conftest import (
    LONGEST_WAIT_SECONDS,
    ProjectFolder,
    bare_session,
    listed_files,
    order_rows,
    wait_for,
    wait_until,
)
from tests.support.short_matrix import misjudged_edits

KILLS = int(os.environ.get("SQLSTREAM_KILLS", "2"))
EVERY = "{{ config(sink='lake') }} select id from {{ source('shop', 'orders') }}"
HOURLY = (
    "{{ config(sink='lake') }} select /*+ WATERMARK(ts, '1 minute') */ window.start as hour, count(*) as orders "
    "from {{ source('shop', 'orders') }} group by window(ts, '1 hour')"
)


@pytest.fixture
def shop(orders: ProjectFolder, s3: S3, monkeypatch: pytest.MonkeyPatch) -> ProjectFolder:
    """A project with two files of orders, whose storage is a folder of the bucket."""
    monkeypatch.setenv("SQLSTREAM_SECRET_S3", PASSWORD)
    set_target(orders, s3)
    return orders


def set_target(shop: ProjectFolder, s3: S3, **settings: str) -> None:
    """Writes project.yml with these settings for S3, besides those of the server."""
    hadoop = {f"spark.hadoop.fs.s3a.{name.replace('__', '.')}": value for name, value in settings.items()}
    target = {
        "master": "local[2]",
        "storage": f"s3a://{BUCKET}/{folder_of(shop)}",
        "spark": {**s3.settings(), LEASE_PERIOD: "1", **hadoop},
    }
    shop.write({"project.yml": f"name: shop\nversion: 1.0.0\ntargets: {json.dumps({'local': target})}\n"})


def with_password(s3: S3) -> Mapping[str, str]:
    """Returns the settings of Spark for the server, with the password itself."""
    return {**s3.settings(), "spark.hadoop.fs.s3a.secret.key": PASSWORD}


def folder_of(shop: ProjectFolder) -> str:
    """Returns the folder of a project's storage in the bucket."""
    return shop.root.name


def rows_in(s3: S3, output: str) -> list[dict[str, Any]]:
    """Returns the rows that the log of a file sink lists, as Spark reads them. `output` is below the bucket."""
    folder, files = f"{BUCKET}/{output}/_spark_metadata", s3.files
    logs = {name: files.open_input_stream(f"{folder}/{name}").read().decode() for name in s3.names(folder[8:])}
    return [
        row
        for path in listed_files(logs)
        for row in pq.read_table(path.removeprefix("s3a://"), filesystem=files).to_pylist()
    ]


def ids_in(s3: S3, output: str) -> list[int]:
    """Returns the sorted ids of an output."""
    return sorted(row["id"] for row in rows_in(s3, output))


def expected_ids(files: int) -> list[int]:
    """Returns the ids in the first `files` files of orders."""
    return [row["id"] for number in range(files) for row in order_rows(number)]


@pytest.mark.smoke
def test_queries_resume_with_each_row_once(shop: ProjectFolder, s3: S3) -> None:
    """Files and closed windows are exact after a second run. Checkpoints and logs are written without renames."""
    shop.write({"models/every.sql": EVERY, "models/hourly.sql": HOURLY})
    assert shop.run().succeeded
    shop.rows("in/orders/2.json", order_rows(2), modified=2)
    assert shop.run().succeeded

    storage = folder_of(shop)
    assert ids_in(s3, f"{storage}/every") == expected_ids(3)
    assert [row["orders"] for row in rows_in(s3, f"{storage}/hourly")] == [5, 5]
    written = [path for method, path in s3.requests() if method == "PUT" and storage in path]
    assert [path for path in written if path.endswith(".tmp")] == []
    assert [event for event in shop.events if isinstance(event, WarningEmitted)] == []
    assert not any(".sqlstream-" in name for name in s3.names(storage))


def test_plan_and_status_need_no_spark(shop: ProjectFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """They read the ledgers and checkpoints with the target's settings and secrets."""
    shop.write({"models/every.sql": EVERY, "models/hourly.sql": HOURLY})
    shop.run()
    shop.write({"models/every.sql": EVERY.replace("select id", "select id, kind")})
    project = (shop.root / "project.yml").read_text()
    shop.write({"project.yml": project.replace(folder_of(shop), f"{folder_of(shop)}//")})  # the same folder

    planned, status = shop.invoke("plan"), shop.invoke("status")

    assert planned.code == 0
    assert "resume: every (v1, 2 batches)" in planned.out
    assert "unchanged: hourly" in planned.out
    assert "(without Spark)" in planned.out
    assert "batch 1 committed" in status.out
    assert "0 files" in status.out
    monkeypatch.delenv("SQLSTREAM_SECRET_S3")
    refused = shop.invoke("plan")
    assert refused.code == 1
    assert ": `SQLSTREAM_SECRET_S3` is not set\n" in refused.err  # why Spark has to read it
    assert "[missing-env-var]" in refused.err


def test_a_store_that_does_not_answer_is_a_finding(shop: ProjectFolder, s3: S3) -> None:
    """No query counts as new because its ledger cannot be read."""
    shop.write({"models/every.sql": EVERY})
    set_target(shop, s3, endpoint="http://127.0.0.1:9")

    planned, status = shop.invoke("plan"), shop.invoke("status")

    assert (planned.code, planned.out) == (1, "")
    assert "project.yml:3:11: [storage-unusable] the storage `s3a://" in planned.err
    assert "every: When listing objects" in status.out


@pytest.mark.slow
def test_a_stalled_run_is_taken_over(shop: ProjectFolder, s3: S3) -> None:
    """An active run keeps its query. A suspended one is taken over, and then writes nothing and ends with code 1."""
    shop.write({"models/every.sql": EVERY.replace("sink='lake'", "sink='lake', trigger='100 milliseconds'")})
    shop.take_over_a_stalled_run()

    assert ids_in(s3, f"{folder_of(shop)}/every") == expected_ids(3)


@pytest.mark.slow
def test_killed_runs_leave_each_row_once(shop: ProjectFolder, s3: S3) -> None:
    """After `kill -9` of Python and of the JVM, files and closed windows are exact."""
    files = KILLS * 6
    shop.write({"models/every.sql": EVERY, "models/hourly.sql": HOURLY})
    for number in range(files):
        rows = [{**row, "ts": f"2024-01-{1 + number // 24:02}T{number % 24:02}:00:00Z"} for row in order_rows(number)]
        shop.rows(f"in/orders/{number}.json", rows, modified=number)
    shop.run_through_kills(KILLS, 7, 4)

    assert shop.run().succeeded

    storage = folder_of(shop)
    assert ids_in(s3, f"{storage}/every") == expected_ids(files)
    assert [row["orders"] for row in rows_in(s3, f"{storage}/hourly")] == [5] * (files - 2)  # the last two are open


@pytest.mark.slow
def test_edits_are_judged_as_with_a_folder(shop: ProjectFolder, s3: S3) -> None:
    """`run` resumes changed queries on S3 exactly where their results agree with a run from the start."""
    settings = ", ".join(f"{name}: {json.dumps(value)}" for name, value in s3.settings().items())

    assert misjudged_edits(shop.root / "edits", f"s3a://{BUCKET}/edits", settings) == []


def test_a_store_without_conditional_writes_is_named(shop: ProjectFolder, s3: S3) -> None:
    """A run warns that a second one can start, once, and writes its checkpoint with renames, as Spark does."""
    set_target(shop, s3, create__conditional__enabled="false")
    shop.write({"models/every.sql": EVERY, "models/hourly.sql": HOURLY})

    process = shop.command("run", "--available-now")  # a JVM keeps the client with its settings
    printed, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)

    assert (process.returncode, printed.count("[weak-lock]")) == (0, 1), printed
    assert ids_in(s3, f"{folder_of(shop)}/every") == expected_ids(2)


@pytest.mark.slow
def test_a_store_that_ignores_conditions_is_named(
    shop: ProjectFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S3Proxy, which imitates S3: runs warn and are exact, also after `kill -9`; a second run is refused."""
    # S3Proxy would store the checksums of newer clients in the files
    monkeypatch.setenv("AWS_REQUEST_CHECKSUM_CALCULATION", "when_required")
    s3 = start_s3proxy(tmp_path)
    try:
        set_target(shop, s3)
        shop.write({"models/every.sql": EVERY, "models/hourly.sql": HOURLY})
        shop.run_through_kills(KILLS, 7, 1)
        process = shop.command("run", "--available-now")
        printed, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)
        assert (process.returncode, printed.count("[weak-lock]")) == (0, 1), printed
        assert ids_in(s3, f"{folder_of(shop)}/every") == expected_ids(2)
        assert "unchanged: every, hourly" in shop.invoke("plan").out
    finally:
        s3.stop()


@pytest.mark.slow
def test_broken_connections_to_the_store(shop: ProjectFolder, s3: S3) -> None:
    """While all connections to the store break again and again, a run goes on, and each row is there once."""
    with cut(s3.process.port) as middle:
        set_target(shop, replace(s3, url=f"http://127.0.0.1:{middle.port}"))
        shop.write({"models/every.sql": EVERY.replace("sink='lake'", "sink='lake', trigger='100 milliseconds'")})
        process = shop.command("run", "--log-format", "json")
        wait_for(process, '"event": "batch"')
        for number in range(KILLS):
            shop.rows(f"in/orders/{2 + number}.json", order_rows(2 + number), modified=2 + number)
            wait_until(process, middle.break_all)
            wait_for(process, '"event": "batch"')
        process.send_signal(signal.SIGTERM)
        printed, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)

    assert process.returncode == 0, printed
    set_target(shop, s3)
    assert shop.run().succeeded
    assert ids_in(s3, f"{folder_of(shop)}/every") == expected_ids(2 + KILLS)


def test_status_reads_the_journal_of_a_submitted_run(shop: ProjectFolder, s3: S3) -> None:
    """A journal that a driver writes to the bucket, line by line, is one file there, which `status` reads without Spark."""
    shop.write({"models/every.sql": EVERY})
    shop.run()
    lines = (shop.root / "logs/events.jsonl").read_text().splitlines()
    session = bare_session("local[1]", **{name.replace(".", "__"): value for name, value in with_password(s3).items()})
    try:
        journal = StoredJournal(Invocation(), pytest.fail)
        folder = stored_logs(f"s3a://{BUCKET}/{folder_of(shop)}")
        journal.start(lambda: lease_files(*storage_for(folder, session)))
        for line in lines:
            journal.add(line)
        journal.close()
    finally:
        session.stop()
    for name in ("logs", "target"):
        shutil.rmtree(shop.root / name)

    status = shop.invoke("status")

    assert (status.code, status.err) == (0, "")
    assert re.search(r"^every +success +1 ", status.out, re.MULTILINE), status.out
    assert len([name for name in s3.names(folder_of(shop)) if name.startswith("_logs/")]) == 1


def test_versions_are_promoted_and_rolled_back(shop: ProjectFolder, s3: S3) -> None:
    """A version runs in parallel, is promoted and rolled back; a full refresh starts another one; past batches can be
    replayed, and the state be shown.
    """
    shop.write({"models/every.sql": EVERY, "models/hourly.sql": HOURLY})
    shop.run()
    shop.write({"models/every.sql": EVERY.replace("select id", "select id, 2 as two")})
    shop.run("every", parallel=("every",))

    commands = [
        ("promote", "every"),
        ("rollback", "every"),
        ("replay", "every", "--batch", "1"),
        ("state", "show", "hourly"),
        ("state", "files", "every"),
        ("state", "repair", "every"),
        ("run", "--available-now", "--select", "every", "--full-refresh"),
        ("maintain", "--dry-run"),
    ]
    codes = {command: shop.invoke(*command).code for command in commands}

    assert codes == dict.fromkeys(commands, 0)
    found = shop.invoke("path", "every")
    assert found.out == f"s3a://{BUCKET}/{folder_of(shop)}/every.v3\n", found.err
    storage = folder_of(shop)
    assert ids_in(s3, f"{storage}/every") == ids_in(s3, f"{storage}/every.v3") == expected_ids(2)


@pytest.mark.smoke
def test_only_one_writer_creates_a_file(shop: ProjectFolder, s3: S3) -> None:
    """Of two writers of a file, the second fails and leaves the first one's. A cancelled file does not exist, and a file
    that may be replaced is replaced.
    """
    shop.write({"models/every.sql": EVERY})
    shop.run()  # the JVM now has the jars
    session = bare_session("local[1]", **{name.replace(".", "__"): value for name, value in with_password(s3).items()})
    try:
        jvm: Any = session._jvm
        path = jvm.org.apache.hadoop.fs.Path(f"s3a://{BUCKET}/{folder_of(shop)}/files/1")
        files = jvm.sqlstream.ObjectStoreFiles(path.getParent(), session._jsc.hadoopConfiguration())

        def begin(text: str, *, replaces: bool = False) -> Any:
            stream = files.createAtomic(path, replaces)
            stream.write(bytearray(text.encode()))
            return stream

        cancelled, first, second = begin("cancelled"), begin("first"), begin("second")
        cancelled.cancel()
        cancelled.close()
        assert not files.exists(path)
        first.close()
        with pytest.raises(JVM_ERRORS) as refused:
            second.close()
        second.cancel()
        assert causes_of(refused.value)[0].kind == "org.apache.hadoop.fs.FileAlreadyExistsException"
        assert text_in(s3, shop) == "first"
        begin("third", replaces=True).close()
        assert text_in(s3, shop) == "third"
    finally:
        session.stop()


def text_in(s3: S3, shop: ProjectFolder) -> str:
    """Returns the text of the file that `test_only_one_writer_creates_a_file` writes."""
    return str(s3.files.open_input_stream(f"{BUCKET}/{folder_of(shop)}/files/1").read().decode())


def test_a_missing_class_is_a_finding(shop: ProjectFolder, s3: S3) -> None:
    """If the target's own jars lack a class of the client, the run names it and says what to fix."""
    shop.write({"models/every.sql": EVERY})
    shop.run()
    cache = cache_folder(os.environ)
    assert cache is not None
    client = next(iter(cache.glob("jars/org/apache/hadoop/hadoop-aws/*/*.jar")))
    project = json.loads((shop.root / "project.yml").read_text().splitlines()[2].removeprefix("targets: "))
    project["local"]["spark"]["spark.jars"] = str(client)
    shop.write({"project.yml": f"name: shop\nversion: 1.0.0\ntargets: {json.dumps(project)}\n"})

    process = shop.command("run", "--available-now")
    printed, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)

    assert process.returncode == 1
    assert "project.yml:3:11: [spark-start] Spark failed to start for target `local`" in printed
    assert "software/amazon/awssdk" in printed
    assert "bug in sqlstream" not in printed
