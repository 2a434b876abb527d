"""Values that PostgreSQL does not send with a change, and Debezium marks as unavailable: the table keeps its own."""

from __future__ import annotations

import json
import random
import sqlite3
from typing import Any

import pytest

from tests.services.database_server import PASSWORD, DatabaseServer
from tests.services.kafka_topics import Message, Topic
from tests.spark.conftest import ProjectFolder
from tests.support.keyed_changes import as_text

TEXT = "__debezium_unavailable_value"
SOURCES = """\
sources:
  - name: crm
    options: {{kafka.bootstrap.servers: "{servers}", subscribe: "{topic}", startingOffsets: earliest}}
    tables:
      - name: customers
        format: kafka
        value_format: debezium
        value_options: {{listUnavailable: true}}
        schema: "id int, n int, body string, raw binary, tags array<string>, more struct<a: int>"
"""
MODEL = """\
{{{{ config(sink='{sink}', unique_key='id', sequence_by='_kafka_offset', delete_when="op = 'd'",
            unavailable_columns='unavailable') }}}}
select row.*, op, unavailable, _kafka_offset from {{{{ source('crm', 'customers') }}}}
"""


def change(key: int, n: int, op: str = "u", **more: Any) -> bytes:
    """Returns a change event; values that are not given are unavailable."""
    unknown = {"body": TEXT, "raw": "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==", "tags": [TEXT], "more": None}
    row = {"id": key, "n": n, **unknown, **more}
    return json.dumps({"op": op, "before": row if op == "d" else None, "after": None if op == "d" else row}).encode()


def full(key: int, n: int, op: str = "u") -> bytes:
    """Returns a change event with all values, made of `n`."""
    return change(key, n, op, body=f"b{n}", raw="AQ==", tags=[f"t{n}"], more={"a": n})


BATCHES = (
    [full(1, 0, "c"), full(2, 0, "c"), full(3, 0, "c"), full(4, 0, "r"), change(1, 1), change(5, 1)],
    [
        change(1, 2, body="new"),
        change(1, 3),  # the body of the change before, the tags of the first batch
        change(2, 2, body=None),  # null is a value
        change(3, 2, "d"),
        change(4, 2, "d"),
        full(4, 3, "c"),
        change(4, 4),
    ],
    [change(2, 3), change(1, 4), change(3, 3)],
)
EXPECTED = [
    (1, 4, "new", '["t0"]'),
    (2, 3, None, '["t0"]'),
    (3, 3, None, None),
    (4, 4, "b3", '["t3"]'),
    (5, 1, None, None),
]


@pytest.mark.slow
def test_a_table_keeps_the_values_that_a_change_lacks(
    folder: ProjectFolder, topic: Topic, postgres: DatabaseServer, mariadb: DatabaseServer
) -> None:
    """Changes of one batch, and of several, leave the last value of each column. A deletion leaves none."""
    servers = {"postgres": postgres, "mariadb": mariadb}
    sinks = "".join(server.sink(name) for name, server in servers.items())
    sqlite = "  - {name: sqlite, format: sqlite, path: '{{ model.name }}.sqlite'}\n"
    names = ("sqlite", *servers)
    folder.write({f"models/to_{name}.sql": MODEL.format(sink=name) for name in names})
    folder.write(
        {
            "sinks.yml": f"sinks:\n{sqlite}{sinks}",
            "sources.yml": SOURCES.format(servers=topic.servers, topic=topic.name),
        }
    )
    for batch in BATCHES:
        topic.send_bytes([Message(value) for value in batch])
        assert folder.run(env={"SQLSTREAM_SECRET_DATABASE": PASSWORD}).succeeded

    columns = "id, n, body, tags"
    with sqlite3.connect(folder.root / "store/to_sqlite.sqlite") as connection:
        assert as_text(connection.execute(f"select {columns} from to_sqlite")) == as_text(EXPECTED)
    for name, server in servers.items():
        assert as_text(server.run(f"select {columns} from to_{name}")) == as_text(EXPECTED)


@pytest.mark.slow
def test_random_changes_leave_the_last_value_of_each_column(folder: ProjectFolder, topic: Topic) -> None:
    """Inserts, updates that lack some values, and deletions of a few keys, in two partitions and several batches, some
    of them in one run and after a restart.
    """
    sinks = "sinks: [{name: sqlite, format: sqlite, path: '{{ model.name }}.sqlite'}]\n"
    sources = SOURCES.format(servers=topic.servers, topic=topic.name)
    few = sources.replace("startingOffsets: earliest", "startingOffsets: earliest, maxOffsetsPerTrigger: 60")
    folder.write({"models/copy.sql": MODEL.format(sink="sqlite"), "sinks.yml": sinks, "sources.yml": few})
    random_, rows = random.Random(5), dict[int, dict[str, Any]]()
    for _ in range(2):
        messages = []
        for _ in range(200):
            key, n = random_.randrange(12), random_.randrange(1000)
            op = "c" if key not in rows else random_.choice("uuuuuud")
            given = {"body": random_.choice([None, f"b{n}"]), "tags": [f"t{n}"]}
            known = given if op == "c" else {name: given[name] for name in given if random_.random() < 0.3}
            messages.append(Message(change(key, n, op, **known), partition=key % 2))
            rows[key] = {**rows.get(key, {}), **known, "n": n}
            if op == "d":
                del rows[key]
        topic.send_bytes(messages)
        assert folder.run().succeeded

    with sqlite3.connect(folder.root / "store/copy.sqlite") as connection:
        found = connection.execute("select id, n, body, tags from copy").fetchall()
    assert {row[0]: {"n": row[1], "body": row[2], "tags": json.loads(row[3])} for row in found} == rows
