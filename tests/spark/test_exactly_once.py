"""`kill -9` of Python and of the JVM while a producer writes to Kafka: each event has its effect once in every output.

SQLSTREAM_KILLS sets the number of kills and SQLSTREAM_EVENTS that of the events (`make exactly-once`: 20 and 200,000).
"""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.services.database_server import PASSWORD, USER, DatabaseServer
from tests.services.kafka_topics import Topic, create_topic
from tests.spark.conftest import ProjectFolder, java_below, wait_for

ReadParquet = Callable[[Path], list[dict[str, Any]]]

KILLS = int(os.environ.get("SQLSTREAM_KILLS", "2"))
EVENTS = int(os.environ.get("SQLSTREAM_EVENTS", "4000"))
KEYS = 97
BATCHES_FOR_A_KILL = 5
"""More batches than a run writes before it is killed, so that there is always work left."""

ENV = {"SQLSTREAM_SECRET_DATABASE": PASSWORD}

DATABASE = """
  - name: {name}
    format: jdbc
    options:
      url: "{url}"
      dbtable: "{{{{ model.name }}}}"
      user: {user}
      password: "{{{{ env_var('SQLSTREAM_SECRET_DATABASE') }}}}"
"""

TOTALS = (
    "{{{{ config(sink='{sink}', output_mode='update', unique_key='key') }}}}\n"
    "select key, count(*) as events, sum(id) as total from {{{{ source('bus', 'events') }}}} group by key"
)


def write_project(folder: ProjectFolder, topic: Topic, copies: Topic, servers: Sequence[DatabaseServer]) -> None:
    """Writes queries from one topic to files, to a table in each server, and to another topic."""
    batch = max(1, EVENTS // (KILLS * BATCHES_FOR_A_KILL))
    names = ("in_postgres", "in_mariadb")
    sinks = "".join(
        DATABASE.format(name=name, url=server.url, user=USER) for name, server in zip(names, servers, strict=True)
    )
    bus = (
        f"{{kafka.bootstrap.servers: '{topic.servers}', subscribe: {topic.name}, startingOffsets: earliest, "
        f"maxOffsetsPerTrigger: {batch}}}"
    )
    folder.write(
        {
            "models/_bus.yml": f"sources:\n  - name: bus\n    tables:\n      - name: events\n        format: kafka\n"
            f"        options: {bus}\n        value_format: json\n        schema: id bigint, key string\n"
            f"sinks:{sinks}"
            f"  - {{name: copies, format: kafka, options: {{kafka.bootstrap.servers: '{copies.servers}', "
            f"topic: {copies.name}}}}}\n",
            "models/archive.sql": "{{ config(sink='lake') }} select id from {{ source('bus', 'events') }}",
            "models/copied.sql": "{{ config(sink='copies') }} select id from {{ source('bus', 'events') }}",
            **{f"models/{name}.sql": TOTALS.format(sink=name) for name in names},
        }
    )


@pytest.mark.slow
def test_each_event_has_its_effect_once(
    folder: ProjectFolder,
    topic: Topic,
    postgres: DatabaseServer,
    mariadb: DatabaseServer,
    read_parquet: ReadParquet,
) -> None:
    """Files and tables have each event once after several killed runs; a topic has each at least once."""
    copies = create_topic(topic.servers, f"{topic.name}-copies")
    write_project(folder, topic, copies, (postgres, mariadb))
    keys = [f"k{number * number % KEYS}" for number in range(EVENTS)]
    events = [{"id": number, "key": key} for number, key in enumerate(keys)]
    order = random.Random(11)
    for number in range(KILLS):
        topic.send(events[EVENTS * number // KILLS : EVENTS * (number + 1) // KILLS])
        process = folder.command("run", "--available-now", "--log-format", "json", env=ENV)
        for _ in range(order.randint(1, 8)):
            wait_for(process, '"event": "batch"')
        os.kill(process.pid if number % 2 else java_below(process.pid), signal.SIGKILL)
        process.communicate()
        assert process.returncode != 0

    assert folder.run(env=ENV).succeeded

    assert sorted(row["id"] for row in read_parquet(folder.root / "store/archive")) == list(range(EVENTS))
    counts = Counter(keys)
    totals = {key: sum(number for number, other in enumerate(keys) if other == key) for key in counts}
    expected = sorted([key, str(counts[key]), str(totals[key])] for key in counts)
    for name, server in (("in_postgres", postgres), ("in_mariadb", mariadb)):
        assert sorted(server.run(f"select * from {name}")) == expected
    copied = Counter(record.value for record in copies.records())
    print(f"{sum(copied.values()) - EVENTS} of {EVENTS} events are in the topic more than once")
    assert len(copied) == EVENTS
