"""One query that writes each micro-batch to several sinks: `fan_out: shared`."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqlstream import ProjectRequest
from sqlstream.app.state.files import repair_checkpoint, state_files
from sqlstream.errors import FindingsError, UsageError
from tests.services.kafka_topics import Record, Topic
from tests.spark.conftest import ProjectFolder, java_below, order_rows, wait_for

ReadParquet = Callable[[Path], list[dict[str, Any]]]

SINKS = """sinks:
  - {name: tables, format: sqlite, path: '{{ model.name }}.sqlite'}
  - {name: notes, format: python, function: 'notes:note'}
  - {name: copies, format: json, path: 'copies/{{ model.name }}'}
"""

NOTES = """import os
def note(rows, batch):
    ids = sorted(row[0] for row in rows.collect())
    with open('notes.txt', 'a') as file:
        file.write(f'{batch.id} {batch.model} {ids}\\n')
    if os.path.exists('broken'):
        raise ValueError('the sink is broken')
"""

EVENTS = (
    "{{ config(sink=['lake', 'tables', 'notes', 'copies'], fan_out='shared') }}\n"
    "select id, kind, amount from {{ source('shop', 'orders') }}"
)

TOTALS = (
    "{{ config(sink=['lake', 'tables'], fan_out='shared', output_mode='complete') }}\n"
    "select kind, count(*) as n from {{ source('shop', 'orders') }} group by kind"
)


@pytest.fixture
def shared(orders: ProjectFolder, monkeypatch: pytest.MonkeyPatch) -> ProjectFolder:
    """A project whose model `events` writes to files, a table and a function."""
    monkeypatch.chdir(orders.root)
    orders.write({"models/_sinks.yml": SINKS, "python/notes.py": NOTES, "models/events.sql": EVENTS})
    return orders


def table(folder: ProjectFolder, name: str) -> list[tuple[object, ...]]:
    """Returns the sorted rows of a table of SQLite."""
    with sqlite3.connect(folder.root / f"store/{name}.sqlite") as connection:
        return sorted(connection.execute(f"select * from {name}"))


def notes(folder: ProjectFolder) -> list[str]:
    """Returns what the function has noted."""
    return (folder.root / "notes.txt").read_text().splitlines()


def test_each_batch_arrives_in_every_sink(shared: ProjectFolder, read_parquet: ReadParquet) -> None:
    """The sinks have the same rows; the batch is read once, also after a restart, and one that Spark repeats."""
    result = shared.result("events")
    assert (result.batches, result.rows_in, result.rows_out) == (2, 10, 10)
    ids = [*range(5), *range(10, 15)]
    assert sorted(row["id"] for row in read_parquet(shared.root / "store/events")) == ids
    assert [row[0] for row in table(shared, "events")] == ids
    assert notes(shared) == [f"0 events {ids[:5]}", f"1 events {ids[5:]}"]

    (shared.root / "store/queries/events/v1/checkpoint/commits/1").unlink()
    shared.rows("in/orders/2.json", order_rows(2), modified=2)
    result = shared.result("events")
    assert (result.batches, result.rows_in) == (2, 10)

    ids += range(20, 25)
    assert sorted(row["id"] for row in read_parquet(shared.root / "store/events")) == ids
    assert [row[0] for row in table(shared, "events")] == ids
    assert notes(shared)[2:] == [f"1 events {ids[5:10]}", f"2 events {ids[10:]}"]
    copied = (shared.root / "store/copies/events").glob("*.json")
    assert sum(len(file.read_text().splitlines()) for file in copied) == 15


def test_a_failing_sink_repeats_no_rows_in_the_others(shared: ProjectFolder, read_parquet: ReadParquet) -> None:
    """The sinks before the broken one have the batch; when the run resumes they ignore it, and the others get it."""
    (shared.root / "broken").touch()
    shared.write({"models/events.sql": EVENTS.replace("fan_out=", "retries=0, fan_out=")})
    result = shared.result("events")
    assert result.finding is not None
    assert "the sink is broken" in result.finding.why
    assert not list((shared.root / "store/copies/events").glob("*.json"))

    (shared.root / "broken").unlink()
    assert shared.run("events").succeeded

    ids = [*range(5), *range(10, 15)]
    assert sorted(row["id"] for row in read_parquet(shared.root / "store/events")) == ids
    assert [row[0] for row in table(shared, "events")] == ids
    assert notes(shared) == [f"0 events {ids[:5]}", f"0 events {ids[:5]}", f"1 events {ids[5:]}"]


@pytest.mark.slow
def test_a_killed_query_writes_each_row_once(shared: ProjectFolder, read_parquet: ReadParquet) -> None:
    """Whenever it is killed, files and tables then have each row once."""
    shared.write({"models/events.sql": EVENTS.replace(", 'notes'", "")})
    for number in range(2, 10):
        shared.rows(f"in/orders/{number}.json", order_rows(number), modified=number)
    for kill in range(3):
        process = shared.command("run", "--available-now", "--log-format", "json")
        wait_for(process, '"event": "batch"')
        os.kill(process.pid if kill % 2 else java_below(process.pid), signal.SIGKILL)
        process.communicate()

    assert shared.run("events").succeeded
    repair_checkpoint(ProjectRequest(shared.root), "events")

    ids = [10 * number + i for number in range(10) for i in range(5)]
    for sink in ("lake", "copies"):
        found = state_files(ProjectRequest(shared.root), "events", sink=sink).files
        assert (len(found.committed), found.leftover) == (10, ())
    with pytest.raises(UsageError, match="choose one with --sink"):
        state_files(ProjectRequest(shared.root), "events")
    assert sorted(row["id"] for row in read_parquet(shared.root / "store/events")) == ids
    assert [row[0] for row in table(shared, "events")] == ids


@pytest.mark.slow
def test_complete_mode_replaces_all_outputs(shared: ProjectFolder) -> None:
    """Each batch replaces the files and the rows of the table; the state of the aggregation advances once."""
    shared.write({"models/totals.sql": TOTALS})
    assert shared.run("totals").succeeded
    assert table(shared, "totals") == [("a", 6), ("b", 4)]

    shared.rows("in/orders/2.json", order_rows(2), modified=2)
    assert shared.run("totals").succeeded
    assert table(shared, "totals") == [("a", 9), ("b", 6)]
    assert (shared.root / "store/totals").is_symlink()


def test_only_sinks_with_keys_drop_rows(shared: ProjectFolder, read_parquet: ReadParquet) -> None:
    """With `sequence_by` a table has the last row of each key, and files beside it have all rows."""
    sinks = "sinks: [{name: screen, format: console}]\n"
    config = "sink=['lake', 'tables', 'nowhere', 'screen'], fan_out='shared', unique_key='kind', sequence_by='id'"
    shared.write(
        {"models/_more.yml": sinks, "models/last.sql": EVENTS.replace(EVENTS[10 : EVENTS.index(") }}")], config)}
    )
    assert shared.run("last").succeeded

    assert len(read_parquet(shared.root / "store/last")) == 10
    assert table(shared, "last") == [(13, "b", 3), (14, "a", 4)]


def test_records_are_written_beside_files(shared: ProjectFolder, topic: Topic, read_parquet: ReadParquet) -> None:
    """Kafka gets JSON records of the rows that the files get."""
    options = f"{{kafka.bootstrap.servers: '{topic.servers}', topic: {topic.name}}}"
    shared.write(
        {
            "models/_bus.yml": f"sinks: [{{name: bus, format: kafka, key: id, options: {options}}}]",
            "models/sent.sql": "{{ config(sink=['bus', 'lake'], fan_out='shared') }}\n"
            "select cast(id as string) as id, kind from {{ source('shop', 'orders') }} where id < 2",
        }
    )
    assert shared.run("sent").succeeded

    made = [Record(b'{"id":"0"}', b'{"id":"0","kind":"a"}'), Record(b'{"id":"1"}', b'{"id":"1","kind":"b"}')]
    assert sorted(topic.records(), key=str) == made
    assert sorted(row["id"] for row in read_parquet(shared.root / "store/sent")) == ["0", "1"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sinks", "message"),
    [
        ("sink=['lake', 'tables', 'notes', 'copies', 'more'], fan_out='shared'", "did not write to this sink before"),
        ("sink=['lake', 'tables', 'notes', 'copies']", "a separate query would write to this sink"),
    ],
)
def test_changed_sinks_are_refused(shared: ProjectFolder, sinks: str, message: str) -> None:
    """A new sink would lack the earlier rows, and one with a separate query would have them twice."""
    assert shared.run("events").succeeded
    more = "  - {name: more, format: csv, path: 'more/{{ model.name }}'}\n"
    changed = EVENTS.replace("sink=['lake', 'tables', 'notes', 'copies'], fan_out='shared'", sinks)
    shared.write({"models/_sinks.yml": SINKS + more, "models/events.sql": changed})

    with pytest.raises(FindingsError) as caught:
        shared.run("events")

    (finding,) = [found for found in caught.value.findings if found.code == "sink-change"]
    assert message in finding.why

    shared.write({"models/events.sql": EVENTS.replace("'notes', ", "")})
    assert shared.run("events").succeeded


def test_changed_columns_are_checked_for_each_sink(shared: ProjectFolder) -> None:
    """A column that only one of the sinks cannot hold beside the existing rows is refused."""
    model = (
        "{{ config(sink=['notes', 'lake'], fan_out='shared') }} select id, amount from {{ source('shop', 'orders') }}"
    )
    shared.write({"models/changed.sql": model})
    assert shared.run("changed").succeeded
    shared.write({"models/changed.sql": model.replace("amount from", "cast(amount as string) as amount from")})

    with pytest.raises(FindingsError) as caught:
        shared.run("changed")

    assert {finding.code for finding in caught.value.findings} == {"output-columns"}
