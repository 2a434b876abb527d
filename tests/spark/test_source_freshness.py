"""`sqlstream source freshness` where only Spark can find the time: columns, Kafka, databases and patterns."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.services.database_server import PASSWORD, USER, DatabaseServer
from tests.services.kafka_topics import Topic
from tests.spark.conftest import ProjectFolder

LIMITS = "{warn_after: {count: 1, period: hour}, error_after: {count: 1, period: day}}"


def check(folder: ProjectFolder, *tables: str) -> dict[str, Any]:
    """Returns the results by table."""
    lines = "".join(f"      - {table}\n" for table in tables)
    folder.write(
        {
            "sources.yml": f"sources:\n  - name: shop\n    freshness: {LIMITS}\n    tables:\n{lines}",
            "models/one.sql": "select 1 as one",
        }
    )
    folder.invoke("source", "freshness")
    results = json.loads((folder.root / "target/sources.json").read_text())["results"]
    return {result["unique_id"].rpartition(".")[2]: result for result in results}


@pytest.mark.slow
def test_a_column_has_its_maximum_among_filtered_rows(folder: ProjectFolder) -> None:
    """The time is the maximum of a column or expression over the rows of the filter; without rows it is infinitely old."""
    rows: list[dict[str, Any]] = [
        {"id": 1, "ts": "2024-01-01T00:00:00Z"},
        {"id": 2, "ts": "2024-01-03T00:00:00Z"},
        {"id": 3},
    ]
    folder.rows("in/orders/1.json", rows)
    orders = "format: json, path: in/orders, schema: 'id int, ts timestamp'"

    found = check(
        folder,
        f"{{name: latest, {orders}, loaded_at_field: ts}}",
        f"{{name: first, {orders}, loaded_at_field: ts, freshness: {{filter: id = 1}}}}",
        f"{{name: none, {orders}, loaded_at_field: ts, freshness: {{filter: id > 9}}}}",
        f"{{name: text, {orders}, loaded_at_field: \"date_format(ts + interval 1 hour, 'yyyy-MM-dd HH:mm:ss')\"}}",
        f"{{name: number, {orders}, loaded_at_field: id}}",
        f"{{name: unknown, {orders}, loaded_at_field: tss}}",
        f"{{name: condition, {orders}, loaded_at_field: ts, freshness: {{filter: idd > 9}}}}",
    )

    times = {name: result["max_loaded_at"] for name, result in found.items() if "max_loaded_at" in result}
    assert times == {
        "latest": "2024-01-03T00:00:00.000000Z",
        "first": "2024-01-01T00:00:00.000000Z",
        "none": "0001-01-01T00:00:00.000000Z",
        "text": "2024-01-03T01:00:00.000000Z",
    }
    errors = {name: result["error"] for name, result in found.items() if "error" in result}
    assert errors.keys() == {"number", "unknown", "condition"}
    assert all("[freshness-unknown]" in error for error in errors.values())
    assert "which is not a time" in errors["number"]
    assert "did you mean `ts`?" in errors["unknown"]


def test_files_of_a_pattern_that_only_spark_reads(folder: ProjectFolder) -> None:
    """Braces in a path are Spark's own: it lists the files."""
    folder.rows("in/a/1.json", [{"id": 1}], modified=0)
    folder.rows("in/b/1.json", [{"id": 1}], modified=60)
    folder.rows("in/c/1.json", [{"id": 1}], modified=90)
    began = time.time()

    found = check(folder, "{name: some, format: json, path: 'in/{a,b}', schema: id int}")

    modified = (folder.root / "in/b/1.json").stat().st_mtime
    age = found["some"]["max_loaded_at_time_ago_in_s"]
    assert began - modified - 1 < age < time.time() - modified + 1
    assert found["some"]["status"] == ("pass" if age < 3_600 else "warn")


def test_a_topic_has_the_time_of_its_newest_record(folder: ProjectFolder, topic: Topic) -> None:
    """The time of a topic comes from the brokers, or from a column of its messages; an empty one is stale."""
    options = f"kafka.bootstrap.servers: '{topic.servers}'"
    bus = f"format: kafka, options: {{{options}, subscribe: {topic.name}}}"
    messages = f"{bus}, value_format: json, schema: 'at timestamp, id int', loaded_at_field: at"
    pattern = f"format: kafka, options: {{{options}, subscribePattern: '{topic.name}.*'}}"
    one = f"format: kafka, options: {{{options}, assign: '{{\"{topic.name}\": [0, 1]}}'}}"
    assert check(folder, f"{{name: bus, {bus}}}")["bus"]["max_loaded_at"].startswith("0001-01-01")
    began = time.time()
    topic.send([{"id": 1, "at": "2024-01-01T00:00:00Z"}, {"id": 2, "at": "2024-01-02T00:00:00Z"}])

    found = check(
        folder,
        f"{{name: bus, {bus}}}",
        f"{{name: messages, {messages}}}",
        f"{{name: pattern, {pattern}}}",
        f"{{name: one, {one}}}",
        "{name: down, format: kafka, options: {kafka.bootstrap.servers: 'localhost:1', subscribe: a}}",
    )

    assert found["messages"]["max_loaded_at"] == "2024-01-02T00:00:00.000000Z"
    for name in ("bus", "pattern", "one"):
        assert found[name]["status"] == "pass"
        assert found[name]["max_loaded_at_time_ago_in_s"] <= time.time() - began + 1
    assert found["down"]["status"] == "runtime error"


@pytest.mark.slow
def test_a_table_of_a_database_has_the_time_of_a_column(
    folder: ProjectFolder, postgres: DatabaseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL computes the rows of the filter; the password stays secret."""
    postgres.run("create table people (id int, changed timestamptz)")
    postgres.run("insert into people values (1, '2024-05-01T00:00:00Z'), (2, '2024-06-01T00:00:00Z'), (3, null)")
    monkeypatch.setenv("SQLSTREAM_SECRET_DATABASE", PASSWORD)
    options = f"url: '{postgres.url}', user: {USER}, password: \"{{{{ env_var('SQLSTREAM_SECRET_DATABASE') }}}}\""
    jdbc = f"format: jdbc, mode: batch, loaded_at_field: changed, options: {{{options}"

    found = check(
        folder,
        f"{{name: people, {jdbc}, dbtable: people}}, freshness: {{filter: id < 2}}}}",
        f"{{name: all, {jdbc}, dbtable: people}}}}",
        f"{{name: gone, {jdbc}, dbtable: nobody}}}}",
    )

    assert found["people"]["max_loaded_at"] == "2024-05-01T00:00:00.000000Z"
    assert found["all"]["max_loaded_at"] == "2024-06-01T00:00:00.000000Z"
    assert found["gone"]["status"] == "runtime error"
    assert PASSWORD not in json.dumps(found)
