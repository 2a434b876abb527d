"""Tables of Delta Lake and Iceberg whose rows are changed in the order of `sequence_by`, across batches."""

from __future__ import annotations

import json

import pytest

from tests.services.kafka_topics import Message, Topic
from tests.spark import test_unavailable_values as unavailable_values
from tests.spark.conftest import ProjectFolder
from tests.support.keyed_changes import COLUMNS, keyed_changes
from tests.support.lake_tables import FORMATS, SINKS, forget_last_commit, lake_session, rows

pytestmark = pytest.mark.smoke

MODEL = (
    "{{ config(sink='FORMAT', unique_key='ID', sequence_by=['at', 'N'], delete_when=\"op = 'd'\") }}\n"
    "select id, at, n, name, op from {{ source('shop', 'changes') }}"
)
SOURCES = f"""\
sources:
  - name: shop
    tables:
      - {{name: changes, format: json, path: in/changes, schema: "{COLUMNS}", options: {{maxFilesPerTrigger: 1}}}}
"""


@pytest.fixture
def lake(folder: ProjectFolder) -> ProjectFolder:
    """A project with the model `<format>_customers` for each format."""
    models = {f"models/{each}_customers.sql": MODEL.replace("FORMAT", each) for each in FORMATS}
    folder.write({"sinks.yml": SINKS, "sources.yml": SOURCES, **models})
    return folder


def test_the_highest_sequence_wins_in_any_order(lake: ProjectFolder) -> None:
    """Of changes in random order over batches and two runs, those with the highest sequence of their key remain; a
    deletion is not undone by an older change, and a batch that Spark repeats changes nothing.
    """
    changes = keyed_changes(11, 300, 30, 6)
    lake.batches("in/changes", changes.batches[:3])
    assert lake.run().succeeded
    for each in FORMATS:
        forget_last_commit(lake, f"{each}_customers")
    lake.batches("in/changes", changes.batches[3:], first=3)
    assert lake.run().succeeded

    with lake_session(lake) as session:
        for each in FORMATS:
            found = rows(session, lake, each, f"{each}_customers", "id", "at", "n", "name")
            assert sorted(found) == changes.remaining


def test_an_older_change_does_not_bring_back_a_deleted_row(lake: ProjectFolder) -> None:
    """A deletion counts until a newer row arrives. With equal sequences the later batch counts."""
    batches = [
        [{"id": 1, "at": 1, "n": 5, "name": "old", "op": "u"}, {"id": 2, "at": 1, "n": 0, "name": "b", "op": "u"}],
        [{"id": 1, "at": 2, "n": 0, "op": "d"}, {"id": 3, "at": 9, "n": 0, "op": "d"}],
        [{"id": 1, "at": 1, "n": 9, "name": "late", "op": "u"}, {"id": 3, "at": 1, "n": 0, "name": "c", "op": "u"}],
        [{"id": 2, "at": 1, "n": 0, "name": "again", "op": "u"}],
    ]
    lake.batches("in/changes", batches)
    assert lake.run().succeeded

    with lake_session(lake) as session:
        for each in FORMATS:
            assert rows(session, lake, each, f"{each}_customers", "id", "name") == [(2, "again")]


def test_a_deletion_is_forgotten_after_a_time(lake: ProjectFolder) -> None:
    """After `keep_deletes_for` the next deletion removes the tombstone, so that their number is bounded."""
    delete = {"id": 3, "at": 9, "n": 0, "op": "d"}
    lake.rows("in/changes/0.json", [delete], modified=0)
    assert lake.run().succeeded
    with lake_session(lake) as session:
        for each in FORMATS:
            name = tombstones(lake, each)
            assert rows(session, lake, each, name, "id", "at", "n") == [(3, 9, 0)]
            table = f"delta.`{lake.root / 'store' / name}`" if each == "delta" else f"files.{name.replace('/', '.')}"
            session.sql(f"update {table} set _sqlstream_deleted_at = _sqlstream_deleted_at - 604801")

    lake.rows("in/changes/1.json", [{**delete, "id": 4}], modified=1)
    assert lake.run().succeeded
    with lake_session(lake) as session:
        for each in FORMATS:
            assert rows(session, lake, each, tombstones(lake, each), "id", "at", "n") == [(4, 9, 0)]

    late = [{"id": key, "at": 1, "n": 0, "name": "late", "op": "u"} for key in (3, 4)]
    lake.rows("in/changes/2.json", late, modified=2)
    assert lake.run().succeeded
    with lake_session(lake) as session:
        for each in FORMATS:
            assert rows(session, lake, each, f"{each}_customers", "id", "name") == [(3, "late")]


def tombstones(lake: ProjectFolder, format_name: str) -> str:
    """Returns the table with the deleted keys of a table, relative to the storage."""
    (found,) = (lake.root / "store/_sqlstream_tombstones").glob(f"{format_name}_customers_*")
    return str(found.relative_to(lake.root / "store"))


def test_a_table_keeps_the_values_that_a_change_lacks(folder: ProjectFolder, topic: Topic) -> None:
    """Changes of one batch, and of several, leave the last value of each column, as in databases."""
    models = {f"models/to_{each}.sql": unavailable_values.MODEL.format(sink=each) for each in FORMATS}
    sources = unavailable_values.SOURCES.format(servers=topic.servers, topic=topic.name)
    folder.write({"sinks.yml": SINKS, "sources.yml": sources, **models})
    for batch in unavailable_values.BATCHES:
        topic.send_bytes([Message(value) for value in batch])
        assert folder.run().succeeded

    expected = [(*row[:-1], row[-1] and json.loads(row[-1])) for row in unavailable_values.EXPECTED]
    with lake_session(folder) as session:
        for each in FORMATS:
            assert rows(session, folder, each, f"to_{each}", "id", "n", "body", "tags") == expected


@pytest.mark.parametrize("tracked", [(), ("name",)])
def test_a_history_has_the_versions_of_each_row(lake: ProjectFolder, tracked: tuple[str, ...]) -> None:
    """Changes in random order over batches and two runs make the same versions as in their order, also if Spark repeats
    a batch.
    """
    track = f", track_columns={list(tracked)}" if tracked else ""
    model = MODEL.replace("['at', 'N']", f"'at', history=true{track}")
    lake.write({f"models/{each}_customers.sql": model.replace("FORMAT", each) for each in FORMATS})
    changes = keyed_changes(5, 200, 20, 4, times=True)
    lake.batches("in/changes", changes.batches[:2])
    assert lake.run().succeeded
    for each in FORMATS:
        forget_last_commit(lake, f"{each}_customers")
    lake.batches("in/changes", changes.batches[2:], first=2)
    assert lake.run().succeeded

    columns = ("id", "n", "name", "at", "valid_from", "valid_to", "is_current")
    with lake_session(lake) as session:
        for each in FORMATS:
            found = rows(session, lake, each, f"{each}_customers", *columns)
            assert found == sorted(changes.versions(*(tracked or ("n", "name"))), key=str)
