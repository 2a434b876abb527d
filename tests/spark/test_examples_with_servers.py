"""The examples that need servers: nest and cdc with a broker, and the table of events in databases."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sqlstream.state.runs.events import TableShown
from tests.services.database_server import PASSWORD, USER, DatabaseServer
from tests.services.kafka_broker import KafkaBroker
from tests.services.kafka_topics import create_topic
from tests.spark.conftest import ROOT, ProjectFolder

Rows = Callable[[Path], list[dict[str, Any]]]


def cameras() -> Iterator[dict[str, Any]]:
    """Yields the state of each camera in each recorded message."""
    for path in sorted((ROOT / "tests/data/nest").glob("*.gz")):
        for line in gzip.decompress(path.read_bytes()).splitlines():
            yield from json.loads(line)["devices"]["cameras"].values()


@pytest.mark.slow
def test_three_queries_over_one_topic(examples: ProjectFolder, kafka: KafkaBroker, read_parquet: Rows) -> None:
    """The archive has every event, and the report has the zip codes with more than 1,000 sightings, after a restart too."""
    for name in ("nest-updates", "nest-sightings"):
        create_topic(kafka.servers, name)
    brokers = {"kafka_brokers": kafka.servers}
    for models in (("nest_feed",), ("nest_archive", "nest_sightings"), ("nest_archive", "nest_sightings")):
        outcome = examples.run(*models, variables=brokers)
        assert outcome.succeeded

    assert [result.rows_in for result in outcome.results] == [0, 0]
    archived = read_parquet(examples.root / ".sqlstream/local/nest_archive")
    assert len(archived) == len(list(cameras()))
    outcome = examples.run("nest_busy_zip_codes", variables=brokers)
    (table,) = [event for event in examples.events if isinstance(event, TableShown)]
    seen = Counter(camera["device_id"] for camera in cameras() if camera["last_event"]["has_person"])
    assert table.columns == ("zip_code", "sightings", "last_hour")
    last = "2024-03-04 19:00:00"
    assert [tuple(row) for row in table.rows] == [("02134", seen["camera-1"], last), ("07105", seen["camera-2"], last)]


@pytest.mark.slow
def test_a_table_is_replicated(examples: ProjectFolder, kafka: KafkaBroker) -> None:
    """The replica has the customers with their last change, also if the changes of a customer are in one batch."""
    create_topic(kafka.servers, "cdc-customers")
    for model in ("cdc_feed", "cdc_customers"):
        assert examples.run(model, variables={"kafka_brokers": kafka.servers}).succeeded

    expected: dict[int, tuple[int, str, str, str]] = {}
    for line in (ROOT / "tests/data/cdc/customers.json").read_text().splitlines():
        change = json.loads(line)
        row = change["after"] or change["before"]
        expected[row["id"]] = (*row.values(), change["op"])
    left = sorted(row for row in expected.values() if row[-1] != "d")
    with sqlite3.connect(examples.root / ".sqlstream/local/cdc_customers.sqlite") as replica:
        assert sorted(replica.execute("select id, name, city, op from cdc_customers")) == left


@pytest.mark.slow
@pytest.mark.parametrize("target", ["postgres", "mariadb"])
def test_events_are_upserted_into_databases(
    examples: ProjectFolder, target: str, request: pytest.FixtureRequest
) -> None:
    """The table of each server has one row for each customer, with the numbers of all batches."""
    server: DatabaseServer = request.getfixturevalue(target)
    project = (examples.root / "project.yml").read_text()
    changed = project.replace("user: shop", f"user: {USER}").replace(
        "default_target: local", f"default_target: {target}"
    )
    examples.write({"project.yml": changed})
    outcome = examples.run(
        "customer_visits",
        env={"SQLSTREAM_SECRET_DATABASE": PASSWORD},
        variables={f"{target}_url": server.url},
    )
    assert outcome.succeeded
    assert outcome.results[0].batches > 1

    counts: dict[str, list[int]] = {}
    for path in sorted((ROOT / "tests/data/events").glob("*.json")):
        for event in map(json.loads, path.read_text().splitlines()):
            counts.setdefault(event["customer_id"], [0, 0])[event["action"] != "Open"] += 1
    found = server.run("select customer_id, opens, closes from customer_visits")
    assert sorted(found) == sorted([customer, str(opens), str(closes)] for customer, (opens, closes) in counts.items())
