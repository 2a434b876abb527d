"""Queries that write to Kafka, to a real broker."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.services.kafka_broker import KafkaBroker
from tests.services.kafka_topics import Record, Topic, create_topic
from tests.spark.conftest import LONGEST_WAIT_SECONDS, PROJECT, ProjectFolder


@pytest.fixture
def topic(kafka: KafkaBroker, tmp_path: Path) -> Topic:
    """A new compacted topic: the broker refuses records without a key."""
    return create_topic(kafka.servers, tmp_path.name.lower(), **{"cleanup.policy": "compact"})


def sink(topic: Topic, keys: str = "", options: str = "") -> str:
    """Returns the YAML of a sink of the topic, with more keys and options."""
    return f"sinks: [{{name: bus, format: kafka, {keys} options: {{kafka.bootstrap.servers: '{topic.servers}', {options}}}}}]"


@pytest.mark.slow
def test_records_are_made_of_the_columns(folder: ProjectFolder, topic: Topic) -> None:
    """The value has all columns, nulls too, but no headers; unique_key is the key; delete_when writes no value. The
    query resumes.
    """
    folder.write(
        {
            "models/_bus.yml": sink(topic, "headers: [kind, source],", f"topic: {topic.name}"),
            "models/totals.sql": "{{ config(sink='bus', unique_key='id', delete_when='amount < 0') }}\n"
            "select id, amount, kind, array(struct('from' as key, cast('shop' as binary) as value)) as source "
            "from {{ source('shop', 'orders') }}",
        }
    )
    folder.rows("in/orders/1.json", [{"id": 1, "kind": "a"}], modified=1)
    assert folder.result("totals").rows_out == 1
    folder.rows("in/orders/2.json", [{"id": 1, "amount": -1}], modified=2)
    assert folder.result("totals").rows_out == 1

    shop = ("from", b"shop")
    assert topic.records() == [
        Record(b'{"id":1}', b'{"id":1,"amount":null}', (("kind", b"a"), shop)),
        Record(b'{"id":1}', None, (("kind", None), shop)),
    ]


@pytest.mark.slow
def test_a_batch_model_writes_avro_to_the_topic_of_each_row(folder: ProjectFolder, topic: Topic) -> None:
    """The column `topic` is not in the value."""
    folder.write(
        {
            "models/_bus.yml": sink(topic, "value_format: avro, key: id,"),
            "models/one.sql": f"{{{{ config(sink='bus') }}}}\nselect 1 as id, '{topic.name}' as topic",
        }
    )

    assert folder.run("one").succeeded

    assert topic.records() == [Record(b'{"id":1}', b"\x02")]


def test_times_keep_all_digits(folder: ProjectFolder, topic: Topic) -> None:
    """A value has times with six digits. In a key, a time of whole milliseconds has three, so that keys stay the same."""
    select = "select {0} as at, timestamp_ntz'2024-01-01 00:00:00.000001' as local"
    in_struct = "named_struct('Start', timestamp'2024-01-01 00:00:02')"
    folder.write(
        {
            "models/_bus.yml": sink(topic, "key: at,", f"topic: {topic.name}"),
            "models/a.sql": "{{ config(sink='bus') }} " + select.format("timestamp'2024-01-01 00:00:00.5'"),
            "models/b.sql": "{{ config(sink='bus') }} " + select.format("timestamp'2024-01-01 00:00:01.123456'"),
            "models/c.sql": "{{ config(sink='bus') }} " + select.format(in_struct),
        }
    )

    assert folder.run("a", "b", "c").succeeded

    local = b'"local":"2024-01-01T00:00:00.000001"}'
    assert sorted((record.key, record.value) for record in topic.records()) == [
        (b'{"at":"2024-01-01T00:00:00.500Z"}', b'{"at":"2024-01-01T00:00:00.500000Z",' + local),
        (b'{"at":"2024-01-01T00:00:01.123456Z"}', b'{"at":"2024-01-01T00:00:01.123456Z",' + local),
        (b'{"at":{"Start":"2024-01-01T00:00:02.000Z"}}', b'{"at":{"Start":"2024-01-01T00:00:02.000000Z"},' + local),
    ]


def test_a_column_value_is_written_as_it_is(folder: ProjectFolder, topic: Topic) -> None:
    """A model with the columns `value` and `key` makes the whole record itself."""
    folder.write(
        {
            "models/_bus.yml": sink(topic, options=f"topic: {topic.name}"),
            "models/made.sql": "{{ config(sink='bus', unique_key='key', delete_when='id = 2') }}\n"
            "select id, 'k' as key, kind as value from {{ source('shop', 'orders') }}",
        }
    )
    folder.rows("in/orders/1.json", [{"id": 1, "kind": "a"}, {"id": 2, "kind": "b"}])

    assert folder.run("made").succeeded

    assert topic.records() == [Record(b"k", b"a"), Record(b"k", None)]


@pytest.mark.slow
def test_records_are_made_without_micro_batches(folder: ProjectFolder, kafka: KafkaBroker, topic: Topic) -> None:
    """Continuous and real-time queries write JSON too."""
    given = create_topic(kafka.servers, f"{topic.name}-in")
    options = f"{{kafka.bootstrap.servers: '{given.servers}', subscribe: {given.name}, startingOffsets: earliest}}"
    modes = {
        "flowing": "trigger={'continuous': '1 second'}",
        "real": "trigger={'real_time': '5 minutes'}, output_mode='update'",
    }
    folder.write(
        {
            "project.yml": PROJECT.replace("local[2]", "local[8]"),
            "models/_bus.yml": f"{sink(topic, 'key: id,', f'topic: {topic.name}')}\n"
            f"sources: [{{name: bus, tables: [{{name: given, format: kafka, options: {options}}}]}}]",
            **{
                f"models/{name}.sql": f"{{{{ config(sink='bus', {mode}) }}}}\n"
                f"select concat('{name}', cast(key as string)) as id from {{{{ source('bus', 'given') }}}}"
                for name, mode in modes.items()
            },
        }
    )
    given.send([{"id": 7}])
    process = folder.command("run")

    records = topic.next_records(2)

    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=LONGEST_WAIT_SECONDS)
    made = [f'{{"id":"{name}7"}}'.encode() for name in modes]
    assert sorted(records, key=str) == [Record(each, each) for each in made]
