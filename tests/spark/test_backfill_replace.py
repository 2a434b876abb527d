"""`sqlstream backfill --replace`: the rows of a range are recomputed, replace those of the sink in one step, and the stream
goes on.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq
import pytest

from sqlstream import FindingsError
from sqlstream.app.backfill.backfill import BackfillRequest
from sqlstream.app.backfill.backfill_query import backfill_query
from sqlstream.app.request import ProjectRequest
from sqlstream.spark.storage.local import LocalStorage
from tests.services.kafka_topics import Message, Topic
from tests.spark.conftest import ProjectFolder, bare_session

DAYS = (
    "{{ config(sink='lake', partition_by='day') }}\n"
    "select id, kind, amount, to_date(ts) as day from {{ source('shop', 'orders') }}"
)
HOURS = (
    "{{ config(sink='lake', partition_by='hour') }}\nselect /*+ WATERMARK(ts, '1 hour') */ window.start as hour, "
    "count(*) as n, sum(amount) as amount from {{ source('shop', 'orders') }} group by window(ts, '1 hour')"
)
RANGE = ("--from", "2024-01-02", "--to", "2024-01-04")
DAYS_2_AND_3 = (datetime(2024, 1, 2, tzinfo=UTC), datetime(2024, 1, 4, tzinfo=UTC))


def order(number: int, day: int, hour: int = 0, amount: int = 1) -> dict[str, Any]:
    """Returns an order of January 2024."""
    return {"id": number, "ts": f"2024-01-{day:02}T{hour:02}:30:00Z", "kind": "a", "amount": amount}


def add_days(folder: ProjectFolder, first: int, last: int) -> None:
    """Writes one file for each day, with two orders."""
    for day in range(first, last):
        orders = [order(10 * day + hour, day, hour) for hour in range(2)]
        folder.rows(f"in/orders/{day:02}.json", orders, modified=day)


@pytest.fixture
def shop(folder: ProjectFolder) -> ProjectFolder:
    """A project whose query `days` has written four days with one mistake: the amounts are negative."""
    folder.write({"models/days.sql": DAYS.replace("amount,", "-amount as amount,")})
    add_days(folder, 1, 5)
    assert folder.run("days").succeeded
    folder.write({"models/days.sql": DAYS})
    add_days(folder, 5, 6)
    assert folder.run("days").succeeded
    return folder


def recompute(folder: ProjectFolder, model: str, *arguments: str) -> dict[str, Any]:
    """Recomputes a range, and returns what the command says about it."""
    done = folder.invoke("backfill", model, "--replace", "--output", "json", *(arguments or RANGE))
    assert done.code == 0, done.out + done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


def refusal(folder: ProjectFolder, model: str, *arguments: str) -> tuple[str, str]:
    """Returns the code and the reason with which the command is refused."""
    done = folder.invoke("backfill", model, "--replace", "--output", "json", *(arguments or RANGE))
    assert done.code == 1, done.out + done.err
    (finding,) = (each for each in json.loads(done.out)["findings"] if each["severity"] == "error")
    return finding["code"], finding["why"]


def stored(folder: ProjectFolder, name: str) -> list[dict[str, Any]]:
    """Returns the rows of the committed files of an output, with the names of their folders as text."""
    found = []
    for path in map(Path, folder.invoke("state", "files", name).out.splitlines()):
        folders = dict(part.split("=", 1) for part in path.parts if "=" in part)
        values = {column: unquote(value) for column, value in folders.items()}
        found += [row | values for row in pq.read_table(path, partitioning=None).to_pylist()]
    return found


def amounts(folder: ProjectFolder) -> dict[int, int]:
    """Returns the amount of each order in the output of `days`, which is there once."""
    rows = stored(folder, "days")
    found = {row["id"]: row["amount"] for row in rows}
    assert len(found) == len(rows)
    return found


class KilledError(Exception):
    """Ends the command as a kill does: nothing of it is undone."""


def kill_at(monkeypatch: pytest.MonkeyPatch, method: str, is_last: Callable[[str], bool], *, after: bool) -> None:
    """Kills the command before its first change of the storage with a path that `is_last`, or `after` it."""
    original = getattr(LocalStorage, method)

    def change(storage: LocalStorage, *paths: str) -> None:
        if is_last(paths[-1] if method == "move" else paths[0]):
            if after:
                original(storage, *paths)
            raise KilledError
        original(storage, *paths)

    monkeypatch.setattr(LocalStorage, method, change)


def kill(
    folder: ProjectFolder,
    model: str,
    since: datetime,
    until: datetime,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    is_last: Callable[[str], bool],
    *,
    after: bool = False,
) -> None:
    """Recomputes a range, and is killed as `kill_at` says."""
    request = BackfillRequest(ProjectRequest(folder.root, env=os.environ), model, since, until, replaces=True)
    with monkeypatch.context() as patched:
        kill_at(patched, method, is_last, after=after)
        # Spark turns what a batch raises into its own error
        with pytest.raises((KilledError, FindingsError)):
            backfill_query(request)


@pytest.mark.smoke
def test_whole_partitions_are_replaced_and_the_stream_goes_on(shop: ProjectFolder) -> None:
    """Only the rows of the range change. Old files stay until `maintain` archives them; the next runs write each row
    once, and a later range can be recomputed, too.
    """
    before = amounts(shop)
    assert before == {10 * day + i: (1 if day == 5 else -1) for day in range(1, 6) for i in range(2)}
    on_disk = set((shop.root / "store/days").rglob("part-*"))

    planned = recompute(shop, "days", *RANGE, "--dry-run")["recomputed"]
    assert (planned["rows_before"], planned["rows_after"], planned["files_before"]) == (4, 4, 2)
    assert amounts(shop) == before

    done = recompute(shop, "days")

    assert done["recomputed"] | {"files_after": 0} == {
        "sink": "lake",
        "format": "parquet",
        "column": "day",
        "rows_before": 4,
        "rows_after": 4,
        "files_before": 2,
        "files_after": 0,
    }
    after = {number: 1 if 20 <= number < 40 else amount for number, amount in before.items()}
    assert amounts(shop) == after
    assert on_disk < set((shop.root / "store/days").rglob("part-*"))
    add_days(shop, 6, 9)
    assert shop.run("days").succeeded
    after |= {10 * day + i: 1 for day in range(6, 9) for i in range(2)}
    assert amounts(shop) == after
    recompute(shop, "days", "--from", "2024-01-01", "--to", "2024-01-02")
    assert amounts(shop) == after | {10: 1, 11: 1}
    kept = shop.invoke("maintain", "--retain", "1 millisecond")
    assert "moved 3 replaced files to the archive" in kept.out
    assert len(set((shop.root / "store/days").rglob("part-*")) & on_disk) == len(on_disk) - 3
    session = bare_session("local[2]")
    try:
        assert session.read.parquet(str(shop.root / "store/days")).count() == 16
    finally:
        session.stop()


@pytest.mark.slow
def test_a_corrected_query_needs_no_new_data(
    folder: ProjectFolder, read_parquet: Callable[[Path], list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A range can be recomputed as soon as the SQL is corrected, also after a run that has read nothing, after a change
    that was undone, and of a version with the plain path. Its readers see each row once, also if `maintain` follows a
    command that was killed before readers saw the new files.
    """

    def correct(factor: int) -> None:
        folder.write({"models/days.sql": DAYS.replace("amount,", f"{factor} * amount as amount,")})

    def shown() -> dict[int, int]:
        rows = read_parquet(folder.root / "store/days")
        found = {row["id"]: row["amount"] for row in rows}
        assert len(found) == len(rows)
        return found

    def expected(inside: int, outside: int, last: int = 3) -> dict[int, int]:
        days = {day: inside if day in (2, 3) else outside for day in range(1, last + 1)}
        return {10 * day + i: amount for day, amount in days.items() for i in range(2)}

    correct(-1)
    add_days(folder, 1, 4)
    assert folder.run("days").succeeded
    correct(1)
    notes = recompute(folder, "days")["notes"]
    assert notes[0].startswith("the query has changed before")
    assert amounts(folder) == expected(1, -1)
    assert "unchanged" in folder.invoke("plan", "--select", "days").out
    for factor in (2, 3, 2):
        correct(factor)
        assert folder.run("days").succeeded
    recompute(folder, "days")
    add_days(folder, 4, 5)
    assert folder.run("days").succeeded
    assert amounts(folder) == expected(2, -1) | {40: 2, 41: 2}

    assert folder.run("days", full_refresh=True).succeeded
    assert shown() == expected(2, 2, 4)
    listed = set((folder.root / "store/days").rglob("part-*"))
    correct(5)
    recompute(folder, "days")
    assert shown() == amounts(folder) == expected(5, 2, 4)
    assert listed < set((folder.root / "store/days").rglob("part-*"))
    add_days(folder, 5, 6)
    assert folder.run("days").succeeded
    recompute(folder, "days", "--from", "2024-01-01", "--to", "2024-01-02")
    assert shown() == amounts(folder) == expected(5, 2, 4) | {10: 5, 11: 5, 50: 5, 51: 5}
    assert folder.invoke("maintain", "--retain", "1 millisecond").code == 0
    assert shown() == amounts(folder)
    assert len(set((folder.root / "store/days").rglob("part-*"))) == 5

    correct(7)
    kill(folder, "days", *DAYS_2_AND_3, monkeypatch, "write_text", lambda path: path.endswith(".compact"), after=True)
    assert folder.invoke("maintain", "--retain", "1 millisecond").code == 0
    assert shown() == amounts(folder) == expected(7, 2, 4) | {10: 5, 11: 5, 50: 5, 51: 5}


@pytest.mark.slow
def test_closed_windows_are_recomputed(folder: ProjectFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of closed windows get late rows, too; windows that are open are left to the stream, which adds them once.
    After a kill, too, the stream has its state.
    """
    folder.write({"models/hours.sql": HOURS})
    folder.batches("in/orders", [[order(1, 1, 1), order(2, 1, 3)], [order(3, 1, 6)]])
    assert folder.run("hours").succeeded
    folder.batches("in/orders", [[order(4, 1, 1, amount=100)]], first=2)
    assert folder.run("hours").succeeded

    def hours() -> dict[str, tuple[int, int]]:
        rows = stored(folder, "hours")
        found = {row["hour"][11:13]: (row["n"], row["amount"]) for row in rows}
        assert len(found) == len(rows)
        return found

    assert hours() == {"01": (1, 1), "03": (1, 1)}
    done = recompute(folder, "hours", "--from", "2024-01-01T00:00", "--to", "2024-01-01T03:00")
    assert (done["recomputed"]["rows_before"], done["recomputed"]["rows_after"], done["notes"]) == (1, 1, [])
    assert hours() == {"01": (2, 101), "03": (1, 1)}

    everything = recompute(folder, "hours", "--from", "2024-01-01", "--to", "2024-01-02")
    assert everything["notes"] == ["windows that are still open are left to the stream"]
    assert hours() == {"01": (2, 101), "03": (1, 1)}
    folder.batches("in/orders", [[order(5, 1, 6), order(6, 2, 6)]], first=3)
    assert folder.run("hours").succeeded
    assert hours() == {"01": (2, 101), "03": (1, 1), "06": (2, 2)}

    since, until = (datetime(2024, 1, day, tzinfo=UTC) for day in (1, 2))
    kill(folder, "hours", since, until, monkeypatch, "write_text", lambda path: path.endswith(".compact"), after=True)
    folder.batches("in/orders", [[order(7, 2, 6), order(8, 3, 6)]], first=4)
    assert folder.run("hours").succeeded
    rows = sorted((row["hour"][8:13], row["n"]) for row in stored(folder, "hours"))
    assert rows == [("01 01", 2), ("01 03", 1), ("01 06", 2), ("02 06", 2)]


@pytest.mark.slow
def test_rows_of_a_database_are_replaced_in_one_transaction(folder: ProjectFolder) -> None:
    """Rows of the range are recomputed, and the record of batches stays; without --by, the time must be clear. A row that
    the table does not accept changes nothing.
    """
    sql = "{{ config(sink='db') }} select id, ts, to_date(ts) as day, -amount as amount from {{ source('shop', 'orders') }}"
    folder.write(
        {
            "models/_db.yml": "sinks: [{name: db, format: sqlite, path: '{{ model.name }}.sqlite'}]\n",
            "models/flat.sql": sql,
        }
    )
    add_days(folder, 1, 4)
    assert folder.run("flat").succeeded
    folder.write({"models/flat.sql": sql.replace("-amount as amount", "if(id = 99, null, amount) as amount")})
    add_days(folder, 4, 5)
    assert folder.run("flat").succeeded

    def rows() -> dict[int, int]:
        with sqlite3.connect(folder.root / "store/flat.sqlite") as connection:
            found = connection.execute("select id, amount from flat").fetchall()
        assert len(dict(found)) == len(found)
        return dict(found)

    assert refusal(folder, "flat")[0] == "cannot-backfill"
    planned = recompute(folder, "flat", "--by", "TS", *RANGE, "--dry-run")["recomputed"]
    done = recompute(folder, "flat", "--by", "ts", "--from", "2024-01-02T01:00", "--to", "2024-01-03")["recomputed"]
    assert (planned["rows_before"], planned["rows_after"]) == (4, 4)
    assert (done["rows_before"], done["rows_after"]) == (1, 1)
    assert rows() == {10: -1, 11: -1, 20: -1, 21: 1, 30: -1, 31: -1, 40: 1, 41: 1}

    with sqlite3.connect(folder.root / "store/flat.sqlite") as connection:
        connection.execute(
            "create trigger no before insert on flat when new.id = 30 begin select raise(abort, 'no'); end"
        )
    done = folder.invoke("backfill", "flat", "--replace", "--by", "day", *RANGE)
    assert (done.code, "no" in done.err) == (1, True)
    assert rows()[20] == -1
    with sqlite3.connect(folder.root / "store/flat.sqlite") as connection:
        connection.execute("drop trigger no")
    retried = folder.invoke("retry")
    assert retried.code == 0, retried.err
    add_days(folder, 5, 6)
    assert folder.run("flat").succeeded
    assert rows() == {10: -1, 11: -1, **{10 * day + i: 1 for day in (2, 3, 4, 5) for i in range(2)}}


@pytest.mark.slow
def test_a_kill_at_any_change_leaves_old_or_new_rows(shop: ProjectFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the new entry of the log exists, the sink has the old rows, and after it the new ones. The next run goes on
    in both cases.
    """
    old = amounts(shop)
    new = {number: 1 if 20 <= number < 40 else amount for number, amount in old.items()}
    since, until = DAYS_2_AND_3
    output = str(shop.root / "store/days/")
    changes: list[tuple[str, Callable[[str], bool]]] = [
        ("write_text", lambda path: path.endswith("offsets/7")),
        ("write_text", lambda path: path.endswith("merged.json")),
        ("move", lambda path: path.startswith(output) and "day=2024-01-02/part-" in path),
        ("move", lambda path: path.startswith(output) and "day=2024-01-03/part-" in path),
        ("remove", lambda path: path.endswith("recomputed")),
        ("write_text", lambda path: path.endswith("offsets/9")),
        ("write_text", lambda path: path.endswith("9.compact")),
    ]

    for method, is_last in changes:
        kill(shop, "days", since, until, monkeypatch, method, is_last)
        assert amounts(shop) == old
    assert shop.run("days").succeeded
    assert amounts(shop) == old

    kill(shop, "days", since, until, monkeypatch, "write_text", lambda path: path.endswith("19.compact"))
    assert amounts(shop) == old
    assert recompute(shop, "days")["recomputed"]["rows_before"] == 4  # it completes batch 19 first
    assert amounts(shop) == new
    kill(shop, "days", since, until, monkeypatch, "write_text", lambda path: path.endswith("39.compact"), after=True)
    assert amounts(shop) == new
    add_days(shop, 6, 7)
    assert shop.run("days").succeeded
    new |= {60: 1, 61: 1}
    assert amounts(shop) == new
    assert recompute(shop, "days")["recomputed"]["rows_before"] == 4
    assert amounts(shop) == new


@pytest.mark.slow
def test_records_of_kafka_are_read_again(folder: ProjectFolder, topic: Topic) -> None:
    """The records that the stream has read are recomputed, and those before its first offsets are not. If Kafka may have
    removed records of the range, it is refused.
    """
    options = f"{{kafka.bootstrap.servers: '{topic.servers}', subscribe: {topic.name}, startingOffsets: latest}}"
    sql = "{{ config(sink='db') }} select cast(cast(value as string) as int) as id, -1 as amount, timestamp as ts from "
    sql += "{{ source('bus', 'events') }}"
    folder.write(
        {
            "models/_db.yml": "sinks: [{name: db, format: sqlite, path: '{{ model.name }}.sqlite'}]\n"
            f"sources: [{{name: bus, tables: [{{name: events, format: kafka, options: {options}}}]}}]\n",
            "models/flat.sql": sql,
        }
    )
    start = datetime(2024, 1, 1, tzinfo=UTC)

    def send(first: int, last: int) -> None:
        times = [int(start.timestamp() * 1000) + number * 3_600_000 for number in range(first, last)]
        messages = zip(range(first, last), times, strict=True)
        topic.send_bytes([Message(str(number).encode(), None, number % 2, timestamp=ms) for number, ms in messages])
        assert folder.run("flat").succeeded

    send(0, 4)  # the stream begins after these
    send(4, 40)
    folder.write({"models/flat.sql": sql.replace("-1 as", "1 as")})
    send(40, 42)

    def rows() -> dict[int, int]:
        with sqlite3.connect(folder.root / "store/flat.sqlite") as connection:
            found = connection.execute("select id, amount from flat").fetchall()
        assert len(dict(found)) == len(found)
        return dict(found)

    done = recompute(folder, "flat", "--from", "2024-01-01", "--to", "2024-01-02")["recomputed"]
    assert (done["rows_before"], done["rows_after"]) == (20, 20)
    expected = {number: (-1 if 24 <= number < 40 else 1) for number in range(4, 42)}
    assert rows() == expected

    topic.delete_records()
    send(42, 44)
    code, reason = refusal(folder, "flat", "--from", "2024-01-02", "--to", "2024-01-03")
    assert (code, reason.partition(": ")[0]) == (
        "cannot-backfill",
        "Kafka no longer has all records of `bus.events` since 1 day before --from",
    )
    later = recompute(folder, "flat", "--from", "2024-01-03T19:30", "--to", "2024-01-04")["recomputed"]
    assert (later["rows_before"], later["rows_after"]) == (0, 0)
    assert rows() == expected | {42: 1, 43: 1}


@pytest.mark.slow
def test_what_cannot_be_recomputed_is_refused(folder: ProjectFolder) -> None:
    """Each refusal has its reason, and nothing is written: keys, other state, other sinks, unclear times, parts of days,
    streams that read the output, other sources, and sources that have lost files.
    """
    models = {
        "days": DAYS,
        "flat": DAYS.replace(", partition_by='day'", ""),
        "once": DAYS.replace("'lake'", "'lake', deduplicate='id'"),
        "shown": DAYS.replace("sink='lake', partition_by='day'", "sink='nowhere'"),
        "latest": DAYS.replace("sink='lake', partition_by='day'", "sink='db', unique_key='id'"),
        "read": DAYS,
        "reader": "{{ config(sink='lake') }} select id from {{ source('own', 'copied') }}",
    }
    more = (
        "sinks: [{name: db, format: sqlite, path: '{{ model.name }}.sqlite'}]\nsources: [{name: own, tables: "
        "[{name: copied, format: parquet, path: store/read, schema: 'id int'}]}, {name: shop, tables: [{name: returns, "
        "format: json, path: in/orders, schema: 'id int, ts timestamp, kind string, amount int'}]}]\n"
    )
    folder.write({"models/_more.yml": more, **{f"models/{name}.sql": sql for name, sql in models.items()}})
    add_days(folder, 1, 4)
    assert folder.run("days flat once").succeeded

    def why(model: str, *arguments: str) -> str:
        code, reason = refusal(folder, model, *arguments)
        assert code == "cannot-backfill"
        return reason

    assert why("flat").startswith(
        "only whole folders of files can be replaced, and partition_by of the sink has no date"
    )
    assert why("days", "--from", "2024-01-02T01:00", "--to", "2024-01-03").startswith("the range begins or ends within")
    assert why("days", *RANGE, "--by", "kind") == "`kind` is no column with a date or a time: its type is string"
    assert why("once").startswith("it keeps state other than that of one aggregation")
    assert why("shown").startswith("its sink `nowhere` has the format noop")
    assert why("latest").startswith("it replaces rows by their `id`")
    assert why("read") == "`reader` reads its output as a stream, and would get the rows twice or fail"
    folder.write({"models/days.sql": f"{DAYS} union all {DAYS.partition('}}')[2].replace('orders', 'returns')}"})
    assert why("days").startswith("it has read other sources so far")
    folder.write({"models/days.sql": DAYS})
    (folder.root / "in/orders/01.json").unlink()
    code, reason = refusal(folder, "days")
    assert (code, "in/orders/01.json" in reason) == ("source-file-gone", True)
    assert folder.invoke("backfill", "days", "--replace").code == 2
    assert folder.invoke("backfill", "days", "--full-range", "--by", "day").code == 2
    assert folder.committed("days") == {"0", "1", "2"}


@pytest.mark.slow
def test_ranges_that_overlap_keep_the_other_days(shop: ProjectFolder) -> None:
    """Several days that were replaced together are separate afterwards: for another range, and for merged files."""
    expected = {10 * day + i: (-1 if day == 1 else 1) for day in range(1, 6) for i in range(2)}
    recompute(shop, "days", "--from", "2024-01-02", "--to", "2024-01-05")
    assert amounts(shop) == expected
    recompute(shop, "days", "--from", "2024-01-02", "--to", "2024-01-03")
    assert amounts(shop) == expected
    merged = shop.invoke("maintain", "--merge-files", "--retain", "1 millisecond")
    assert merged.code == 0, merged.out + merged.err
    assert amounts(shop) == expected
    recompute(shop, "days", "--from", "2024-01-04", "--to", "2024-01-06")
    assert amounts(shop) == expected


@pytest.mark.slow
def test_rows_that_could_leave_the_range_are_refused(folder: ProjectFolder) -> None:
    """The column of the range must have the same values again: not the clock, a session or an aggregate, and no folders
    whose names mean two times.
    """
    source = "from {{ source('shop', 'orders') }}"
    table = "{{ config(sink='rows') }}\nselect "
    models = {
        "loads": f"{{{{ config(sink='lake', partition_by='day') }}}}\nselect id, current_date() as day {source}",
        "recent": f"{table} id, ts {source} where ts > current_timestamp() - interval 100 years",
        "sessions": f"{table} /*+ WATERMARK(ts, '1 hour') */ session_window.start as s, count(*) as n {source} "
        "group by session_window(ts, '10 minutes'), kind",
        "newest": f"{table} /*+ WATERMARK(ts, '1 hour') */ max(ts) as t, count(*) as n {source} "
        "group by window(ts, '1 hour')",
        "hours": f"{{{{ config(sink='lake', partition_by='hour') }}}}\nselect id, date_trunc('hour', ts) as hour {source}",
        "quoted": f"{{{{ config(sink='lake', partition_by='text') }}}}\nselect id, to_date(ts) as text {source}",
    }
    folder.write({f"models/{name}.sql": text for name, text in models.items()})
    folder.write({"models/_sinks.yml": "sinks: [{name: rows, format: sqlite, path: '{{ model.name }}.sqlite'}]"})
    project = folder.root / "project.yml"
    zone = "spark: {spark.sql.session.timeZone: America/New_York}"
    assert "targets: {local: {" in project.read_text(), project.read_text()
    project.write_text(project.read_text().replace("targets: {local: {", f"targets: {{local: {{{zone}, "))
    add_days(folder, 1, 5)
    assert folder.run().succeeded

    def why(model: str, *more: str) -> str:
        """Returns the reason with which a range of a model is refused."""
        return refusal(folder, model, *RANGE, *more)[1]

    assert why("loads").endswith("`day` cannot be the column of the range: it depends on the current time")
    assert why("recent", "--by", "ts").endswith("it depends on the current time")
    assert why("sessions", "--by", "s").endswith("it is a session, which late rows extend")
    assert why("newest", "--by", "t").endswith("it is aggregated, so late rows change it")
    assert "have times of America/New_York, of which one hour a year comes twice" in why("hours")
    assert recompute(folder, "quoted")["recomputed"]["rows_after"] == 4
