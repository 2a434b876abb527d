"""`sqlstream backfill`: history that a stream has left out reaches its sink once, and the stream goes on."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sqlstream import FindingsError
from sqlstream.app.backfill.backfill import Backfilled, BackfillRequest
from sqlstream.app.backfill.backfill_query import backfill_query
from sqlstream.app.request import ProjectRequest
from sqlstream.cli.main import cli
from tests.services.kafka_topics import Message, Topic
from tests.spark.conftest import ProjectFolder, order_rows

ReadParquet = Callable[[Path], list[dict[str, Any]]]

DAY = 86_400
OLD = -20 * DAY
"""A file this old is never read by a stream that has read a new one (maxFileAge)."""

FLAT = "{{ config(sink='lake') }}\nselect id, kind from {{ source('shop', 'orders') }}"


@pytest.fixture
def shop(folder: ProjectFolder) -> ProjectFolder:
    """A project whose query `flat` has read two new files, and then three old ones have appeared."""
    folder.write({"models/flat.sql": FLAT})
    for number in range(2):
        folder.rows(f"in/orders/{number}.json", order_rows(number), modified=number)
    folder.run("flat")
    add_history(folder)
    return folder


def add_history(folder: ProjectFolder) -> None:
    """Adds three old files, a day apart."""
    for number in range(5, 8):
        folder.rows(f"in/orders/{number}.json", order_rows(number), modified=OLD + number * DAY)


def day(number: int) -> datetime:
    """Returns the time half a day before the old file `number`."""
    return datetime.fromtimestamp(datetime.now(UTC).timestamp() - 3600 + OLD + (number - 0.5) * DAY, UTC)


def backfill(folder: ProjectFolder, model: str = "flat", **options: Any) -> Backfilled:
    """Backfills a model."""
    return backfill_query(BackfillRequest(ProjectRequest(folder.root, env=os.environ), model, **options))


def refusal(folder: ProjectFolder, model: str = "flat", **options: Any) -> str:
    """Returns the code with which a backfill is refused."""
    with pytest.raises(FindingsError) as refused:
        backfill(folder, model, **options)
    (finding,) = refused.value.findings
    return finding.code


def ids(rows: list[dict[str, Any]]) -> list[int]:
    """Returns the ids of rows in order."""
    return sorted(row["id"] for row in rows)


def from_scratch(folder: ProjectFolder, root: Path, read: ReadParquet) -> list[int]:
    """Returns what a new stream over everything writes."""
    shutil.copytree(folder.root, root, ignore=shutil.ignore_patterns("store", "target", "logs"))
    copied = ProjectFolder(root)
    # on a cluster, the storage is an absolute path
    copied.write({"project.yml": (root / "project.yml").read_text().replace(str(folder.root), str(root))})
    assert copied.run("flat").succeeded
    return ids(read(root / "store/flat"))


@pytest.mark.slow
def test_the_rows_of_a_sink_that_counts_them_are_known(folder: ProjectFolder) -> None:
    """The rows of such a sink are not observed."""
    folder.write({"models/flat.sql": FLAT.replace("lake", "nowhere")})
    folder.rows("in/orders/0.json", order_rows(0), modified=0)
    assert folder.run("flat").succeeded
    add_history(folder)

    found = backfill(folder, since=day(6), until=day(7))

    assert [batch.rows_out for batch in found.batches] == [5]


def forget_commit(folder: ProjectFolder, model: str, batch: int) -> None:
    """Removes the commit of a batch, as if a kill had come between the write to the sink and the commit."""
    (folder.root / f"store/queries/{model}/v1/checkpoint/commits/{batch}").unlink()


@pytest.mark.smoke
def test_ranges_of_files_are_written_once_and_the_stream_goes_on(
    shop: ProjectFolder, tmp_path: Path, read_parquet: ReadParquet
) -> None:
    """Repeated and overlapping ranges write only what is left; in the end the output is that of a stream from scratch."""
    assert shop.run("flat").succeeded
    assert ids(read_parquet(shop.root / "store/flat")) == [*range(5), *range(10, 15)]
    planned = backfill(shop, dry_run=True)
    assert [len(history.files) for batch in planned.batches for history in batch.sources.values()] == [3]

    first = backfill(shop, since=day(6), until=day(7))
    again = backfill(shop, since=day(6), until=day(7))
    rest = backfill(shop, since=day(5))
    shop.rows("in/orders/3.json", order_rows(3), modified=3)
    assert shop.run("flat").succeeded

    assert [(batch.batch, batch.rows_out) for batch in first.batches] == [(2, 5)]
    assert again.batches == ()
    assert [(batch.batch, batch.rows_out) for batch in rest.batches] == [(3, 10)]
    assert shop.committed("flat") == {"0", "1", "2", "3", "4"}
    assert ids(read_parquet(shop.root / "store/flat")) == from_scratch(shop, tmp_path / "other", read_parquet)


@pytest.mark.slow
def test_a_kill_loses_and_repeats_nothing(shop: ProjectFolder, tmp_path: Path, read_parquet: ReadParquet) -> None:
    """A run is refused until the command has completed the batch, whether or not the sink has it already."""
    process = shop.command("backfill", "flat", "--full-range")
    shop.wait_for_batch(process, "flat", 2)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    wait_for_jvm(shop)
    killed = shutil.copytree(shop.root / "target", tmp_path / "killed")
    if not (shop.root / "store/queries/flat/v1/checkpoint/commits/2").exists():  # the kill can come too late
        assert run_refusal(shop) == "unfinished-backfill"
    repeated = shop.invoke("retry", "--state", str(killed))
    assert (repeated.code, repeated.err.splitlines()[0]) == (
        0,
        "Retrying `sqlstream backfill --full-range flat`: 1 of 1 node: flat",
    )

    for sink_has_batch in (True, False):
        forget_commit(shop, "flat", 2)
        if not sink_has_batch:
            (shop.root / "store/flat/_spark_metadata/2").unlink()
        assert run_refusal(shop) == "unfinished-backfill"
        completed = backfill(shop, only_complete=True)
        assert [(batch.batch, batch.is_completed) for batch in completed.batches] == [(2, True)]
    shop.rows("in/orders/3.json", order_rows(3), modified=3)
    assert shop.run("flat").succeeded

    assert shop.committed("flat") == {"0", "1", "2", "3"}
    assert ids(read_parquet(shop.root / "store/flat")) == from_scratch(shop, tmp_path / "other", read_parquet)


def run_refusal(folder: ProjectFolder) -> str:
    """Returns the code with which a run is refused."""
    with pytest.raises(FindingsError) as refused:
        folder.run("flat")
    (finding,) = refused.value.findings
    return finding.code


def wait_for_jvm(folder: ProjectFolder) -> None:
    """Waits until the JVM of a killed command has released the lock of `flat`."""
    from sqlstream.spark.storage.locks import lock_holder

    while lock_holder(folder.root / "store/queries/flat/v1.lock") is not None:
        os.sched_yield()


@pytest.mark.slow
def test_a_database_gets_history_once(folder: ProjectFolder) -> None:
    """A batch that the database has recorded is not written again; a failing one leaves no trace."""
    folder.write(
        {
            "models/_db.yml": "sinks: [{name: db, format: sqlite, path: '{{ model.name }}.sqlite'}]\n",
            "models/flat.sql": FLAT.replace("lake", "db").replace("kind", "cast(amount as int) as amount"),
        }
    )
    folder.rows("in/orders/0.json", order_rows(0), modified=0)
    folder.run("flat")
    add_history(folder)
    model = folder.root / "models/flat.sql"
    sql = model.read_text()

    assert [batch.rows_out for batch in backfill(folder, until=day(6)).batches] == [5]
    forget_commit(folder, "flat", 1)
    assert [batch.is_completed for batch in backfill(folder, only_complete=True).batches] == [True]
    (folder.root / "in/orders/7.json").write_text('{"id": "no number"')
    os.utime(folder.root / "in/orders/7.json", (day(8).timestamp() - DAY / 2,) * 2)
    sources = folder.root / "sources.yml"
    sources.write_text(sources.read_text().replace("format: json\n", "format: json\n        on_corrupt: fail\n"))
    assert refusal(folder, since=day(6)) == "corrupt-record"
    folder.rows("in/orders/7.json", order_rows(7), modified=OLD + 7 * DAY)
    assert [batch.batch for batch in backfill(folder, since=day(6)).batches] == [2]
    folder.rows("in/orders/1.json", order_rows(1), modified=1)
    assert folder.run("flat").succeeded

    assert model.read_text() == sql
    with sqlite3.connect(folder.root / "store/flat.sqlite") as connection:
        found = sorted(row[0] for row in connection.execute("select id from flat"))
    assert found == [10 * number + index for number in (0, 1, 5, 6, 7) for index in range(5)]


@pytest.mark.slow
def test_records_before_the_first_offsets_of_kafka(
    folder: ProjectFolder, topic: Topic, read_parquet: ReadParquet
) -> None:
    """A stream that began with `latest` gets the records before it by their timestamps, in overlapping ranges."""
    options = f"{{kafka.bootstrap.servers: '{topic.servers}', subscribe: {topic.name}, startingOffsets: latest}}"
    folder.write(
        {
            "models/_bus.yml": f"sources: [{{name: bus, tables: [{{name: events, format: kafka, options: {options}}}]}}]\n",
            "models/flat.sql": "{{ config(sink='lake') }}\n"
            "select cast(cast(value as string) as int) as id from {{ source('bus', 'events') }}",
        }
    )
    start = datetime(2024, 1, 1, tzinfo=UTC)

    def send(numbers: range) -> None:
        ms = int(start.timestamp() * 1000)
        topic.send_bytes(
            [Message(str(number).encode(), None, number % 2, timestamp=ms + number * 60_000) for number in numbers]
        )

    def minute(number: int) -> datetime:
        return datetime.fromtimestamp(start.timestamp() + number * 60, UTC)

    send(range(20))
    folder.run("flat")
    send(range(20, 24))
    folder.run("flat")
    assert ids(read_parquet(folder.root / "store/flat")) == [*range(20, 24)]

    middle = backfill(folder, since=minute(8), until=minute(12))
    around = backfill(folder, since=minute(4), until=minute(16))
    send(range(24, 26))
    assert folder.run("flat").succeeded
    assert ids(read_parquet(folder.root / "store/flat")) == [*range(4, 16), *range(20, 26)]
    rest = backfill(folder)
    nothing = backfill(folder)

    assert [batch.rows_out for batch in middle.batches] == [4]
    assert [batch.rows_out for batch in around.batches] == [4, 4]
    assert sum(batch.rows_out or 0 for batch in rest.batches) == 8
    assert nothing.batches == ()
    assert ids(read_parquet(folder.root / "store/flat")) == [*range(26)]


@pytest.mark.slow
def test_files_of_a_backfill_are_not_read_again(shop: ProjectFolder, read_parquet: ReadParquet) -> None:
    """A longer `maxFileAge` after a backfill is refused, because the stream would write the files twice. A replay of the
    backfill's batch is refused, too.
    """
    backfill(shop)
    sources = shop.root / "sources.yml"
    before = sources.read_text()
    sources.write_text(before.replace("options: {", "options: {maxFileAge: 3650d, "))
    assert sources.read_text() != before

    with pytest.raises(FindingsError) as refused:
        shop.run("flat")

    assert [finding.code for finding in refused.value.findings] == ["backfilled-files"]
    assert "3 files" in refused.value.findings[0].message
    sources.write_text(before)
    assert shop.run("flat").succeeded
    assert len(ids(read_parquet(shop.root / "store/flat"))) == 25
    done = shop.invoke("replay", "flat", "--batch", "2")
    assert (done.code, "[replay-batch] batch 2 of `flat` cannot be replayed" in done.err) == (1, True)


@pytest.mark.slow
def test_queries_that_cannot_take_history_are_refused(shop: ProjectFolder) -> None:
    """State, keys, replaced tables and changed queries: each has a reason, and nothing is written."""
    shop.write(
        {
            "models/_db.yml": "sinks: [{name: db, format: sqlite, path: '{{ model.name }}.sqlite'}]\n",
            "models/kinds.sql": "{{ config(sink='db', output_mode='complete') }}\n"
            "select kind, count(*) as n from {{ source('shop', 'orders') }} group by kind",
            "models/hours.sql": "{{ config(sink='lake') }}\nselect /*+ WATERMARK(ts, '1 hour') */ window.start as hour, "
            "count(*) as n from {{ source('shop', 'orders') }} group by window(ts, '1 hour')",
            "models/latest.sql": FLAT.replace("sink='lake'", "sink='db', unique_key='id'"),
            "models/fresh.sql": FLAT,
            "models/shown.sql": FLAT.replace("lake", "table"),
            "models/days.sql": "{{ config(sink='lake') }}\nselect * from {{ ref('calendar') }}",
            "seeds/calendar.csv": "day\n2024-01-01\n",
        }
    )
    shop.run("hours")
    models = ("kinds", "hours", "latest", "fresh", "shown", "days")
    assert [refusal(shop, model) for model in models] == ["cannot-backfill"] * len(models)
    shop.write({"models/flat.sql": FLAT + " where id > 0"})
    assert refusal(shop) == "cannot-backfill"
    assert not (shop.root / "store/queries/flat/v1/backfills.json").exists()


@pytest.mark.slow
def test_a_query_with_state_gets_its_history_in_a_new_version(folder: ProjectFolder, read_parquet: ReadParquet) -> None:
    """A query with state is refused; the commands that the finding names give it all rows."""
    folder.write({"models/once.sql": FLAT.replace("'lake'", "'lake', deduplicate='id'")})
    for number in range(2):
        folder.rows(f"in/orders/{number}.json", order_rows(number), modified=number)
    folder.run("once")
    add_history(folder)
    assert folder.run("once").results[0].rows_out == 0

    with pytest.raises(FindingsError) as refused:
        backfill(folder, "once")
    run, promote = re.findall(r"`sqlstream ([^`]+)`", refused.value.findings[0].fix)
    done = [folder.invoke(*run.split(), "--available-now"), folder.invoke(*promote.split())]

    assert [each.code for each in done] == [0, 0]
    assert ids(read_parquet(folder.root / "store/once")) == [
        *range(5),
        *range(10, 15),
        *range(50, 55),
        *range(60, 65),
        *range(70, 75),
    ]
    assert folder.run("once").results[0].rows_out == 0


def test_the_command_says_what_it_writes(shop: ProjectFolder) -> None:
    """A dry run writes nothing; a range is needed; a damaged record is refused by the next run."""
    arguments = ["backfill", "flat", "--project-dir", str(shop.root)]
    run = CliRunner().invoke

    dry = run(cli, [*arguments, "--full-range", "--dry-run"], catch_exceptions=False)
    assert "shop.orders: 3 files of " in dry.stdout
    assert "Would backfill `flat`, version 1, in 1 batch. Nothing was written." in dry.stdout
    assert shop.committed("flat") == {"0", "1"}
    done = run(cli, [*arguments, "--from", "2020-01-01", "--output", "json"], catch_exceptions=False)
    found = json.loads(done.stdout)
    assert (found["from"], found["to"]) == ("2020-01-01T00:00:00.000Z", None)
    assert [batch["rows_out"] for batch in found["batches"]] == [15]
    assert run(cli, [*arguments, "--from", "2024-01-02", "--to", "2024-01-01"]).exception is not None
    (shop.root / "store/queries/flat/v1/backfills.json").write_text("{")
    assert refusal(shop) == "ledger-unreadable"
