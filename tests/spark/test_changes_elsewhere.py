"""Changes outside of the files of a model, on real checkpoints: a run refuses them like those within."""

from __future__ import annotations

import json

import pytest

from sqlstream.app.plan.plan import plan_project
from sqlstream.app.request import PlanRequest, ProjectRequest
from sqlstream.errors import FindingsError
from sqlstream.state.verdicts import QueryVerdict, Verdict
from tests.services.avro_bytes import avro_long, avro_string
from tests.services.kafka_topics import Message, Topic
from tests.spark.conftest import ProjectFolder, order_rows

NULLS = "spark.sql.jsonGenerator.ignoreNullFields"

SHOWN = """{{ config(sink='nowhere', output_mode='update') }}
select to_json(named_struct('kind', kind, 'none', cast(null as int))) as k, count(*) as n
from {{ source('shop', 'orders') }} group by 1"""


@pytest.mark.slow
def test_settings_of_a_spark_defaults_file_count(orders: ProjectFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """They reach each session, so a setting that is added there changes keys of the state as one of the target does. A
    plan without Spark reads the file, too.
    """
    orders.write({"models/shown.sql": SHOWN, "conf/spark-defaults.conf": "spark.executor.memory 1g\n"})
    run, conf = ("run", "--available-now"), {"SPARK_CONF_DIR": str(orders.root / "conf")}
    monkeypatch.setenv(*next(iter(conf.items())))

    def planned() -> QueryVerdict:
        (query,) = plan_project(PlanRequest(ProjectRequest(orders.root, env={}))).queries
        return query

    with orders.command(*run, env=conf) as first:
        printed, _ = first.communicate(timeout=300)
    assert first.returncode == 0, printed
    assert planned().verdict is Verdict.UNCHANGED

    orders.write({"conf/spark-defaults.conf": f"{NULLS} false\n"})
    assert planned().verdict is not Verdict.UNCHANGED
    assert NULLS in str(planned().changes)
    orders.rows("in/orders/2.json", order_rows(2), modified=2)
    with orders.command(*run, env=conf) as second:
        printed, _ = second.communicate(timeout=300)
    assert second.returncode == 1, printed
    assert "[state-change]" in printed
    assert NULLS in printed

    with orders.command(*run, "--accept-state-change", "shown", env=conf) as third:
        printed, _ = third.communicate(timeout=300)
    assert third.returncode == 0, printed
    assert planned().verdict is Verdict.UNCHANGED


TIMES = """{{ config(sink='nowhere', output_mode='update') }}
select k, max(at) as latest from {{ source('bus', 'events') }} group by k"""


@pytest.mark.slow
def test_a_schema_of_avro_with_the_same_columns(folder: ProjectFolder, topic: Topic) -> None:
    """Milliseconds that become microseconds are other values of the same type; documentation is none."""

    def write(unit: str, doc: str) -> None:
        at = {"name": "at", "type": {"type": "long", "logicalType": f"timestamp-{unit}"}}
        record = {"type": "record", "name": "E", "doc": doc, "fields": [{"name": "k", "type": "string"}, at]}
        folder.write({"event.avsc": json.dumps(record)})

    options = f"kafka.bootstrap.servers: '{topic.servers}', subscribe: {topic.name}, startingOffsets: earliest"
    folder.write(
        {
            "models/_bus.yml": "sources: [{name: bus, tables: [{name: events, format: kafka, value_format: avro, "
            f"schema_file: event.avsc, options: {{{options}}}}}]}}]\n",
            "models/times.sql": TIMES,
        }
    )
    write("millis", "first")
    topic.send_bytes([Message(avro_string("a") + avro_long(1_700_000_000_000))])
    assert folder.run().succeeded

    write("millis", "second")
    assert folder.run().succeeded
    write("micros", "second")
    (query,) = plan_project(PlanRequest(ProjectRequest(folder.root, env={}))).queries
    assert query.verdict is Verdict.UNDECIDED
    with pytest.raises(FindingsError) as caught:
        folder.run()
    assert [each.code for each in caught.value.findings] == ["state-change"]
