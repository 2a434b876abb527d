"""Static tables whose options change between two runs, on real checkpoints: no other rows without a word."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from sqlstream.errors import FindingsError
from tests.services.database_server import PASSWORD, USER, DatabaseServer
from tests.services.kafka_topics import Topic
from tests.spark.conftest import ProjectFolder, order_rows

FEED = """from pyspark.sql.datasource import DataSource, DataSourceReader


class Rates(DataSource):
    @classmethod
    def name(cls):
        return "rates"

    def reader(self, schema):
        return Reader(self.options.get("url", "first"))


class Reader(DataSourceReader):
    def __init__(self, name):
        self.rate = name

    def read(self, partition):
        yield ("a", self.rate)
"""

JDBC = {
    "format": "jdbc",
    "url": "URL",
    "dbtable": "rates",
    "user": USER,
    "password": "{{ env_var('SQLSTREAM_SECRET_ONE') }}",
}
KAFKA = {"format": "kafka", "kafka.bootstrap.servers": "SERVERS", "subscribe": "TOPIC", "startingOffsets": "earliest"}
PYTHON = {"format": "python", "class": "feed:Rates"}
CATALOG = {"format": "table", "table": "shop_db.public.rates"}

TABLES: dict[str, tuple[Mapping[str, str], Mapping[str, str], bool]] = {
    "host": (JDBC, {**JDBC, "url": "OTHER"}, False),
    "address": (JDBC, {**JDBC, "url": "URL?currentSchema=more"}, False),
    "relation": (JDBC, {**JDBC, "dbtable": "public.rates"}, False),
    "password": (JDBC, {**JDBC, "password": "{{ env_var('SQLSTREAM_SECRET_TWO') }}", "fetchsize": "10"}, True),
    "bounds": (
        JDBC,
        {**JDBC, "partitionColumn": "n", "lowerBound": "5", "upperBound": "6", "numPartitions": "2"},
        True,
    ),
    "plain": ({**JDBC, "url": f"URL?user={USER}&password={PASSWORD}"}, JDBC, True),
    "ending": (KAFKA, {**KAFKA, "endingOffsets": '{"TOPIC": {"0": 1, "1": 0}}'}, False),
    "starting": (KAFKA, {**KAFKA, "startingOffsets": '{"TOPIC": {"0": 1, "1": 0}}'}, False),
    "brokers": (KAFKA, {**KAFKA, "kafka.bootstrap.servers": "NAMED,SERVERS"}, True),
    "client": (KAFKA, {**KAFKA, "kafka.fetch.max.bytes": "100000", "minPartitions": "3"}, True),
    "feed": (PYTHON, {**PYTHON, "url": "second"}, False),
    "secret": ({**PYTHON, "api_key": "one"}, {**PYTHON, "api_key": "two"}, True),
    "cataloged": (CATALOG, {**CATALOG, "table": "shop_db.public.old"}, False),
}
"""The tables before and after an edit, and whether the query resumes."""

MODEL = """{{{{ config(sink='nowhere', output_mode='update') }}}}
select r.name, count(*) as n from {{{{ source('shop', 'orders') }}}} o
join {{{{ source('static', '{name}') }}}} r on o.kind = r.k group by r.name
"""


@pytest.mark.slow
def test_another_selection_of_rows_is_refused(orders: ProjectFolder, postgres: DatabaseServer, topic: Topic) -> None:
    """Of databases, topics, sources in Python and catalogs; passwords, connections and tasks may change."""
    postgres.run("create table rates (k text, name text, n int)")
    postgres.run("drop schema if exists more cascade")
    postgres.run("create schema more")
    postgres.run("create table more.rates (k text, name text, n int)")
    postgres.run("create table old (k text, name text, n int)")
    postgres.run("insert into rates values ('a', 'alpha', 1), ('b', 'beta', 9)")
    topic.send([{"id": number, "k": "ab"[number % 2], "name": str(number)} for number in range(4)])
    env = {"SQLSTREAM_SECRET_ONE": PASSWORD, "SQLSTREAM_SECRET_TWO": PASSWORD}
    other = postgres.url.replace("127.0.0.1", "localhost")
    assert other != postgres.url

    def write(*, changed: bool) -> None:
        lines = ["sources:", "  - name: static", "    tables:"]
        for name, (before, after, _) in TABLES.items():
            found = after if changed else before
            keys = {key: value for key, value in found.items() if key in ("format", "class", "table")}
            options = {key: value for key, value in found.items() if key not in keys}
            lines += [f"      - name: {name}", "        mode: batch"]
            lines += [f"        {key}: {value}" for key, value in keys.items()]
            lines += ["        schema: k string, name string"] if keys["format"] in ("kafka", "python") else []
            lines += ["        value_format: json"] if keys["format"] == "kafka" else []
            lines += ["        options:"] if options else []
            lines += [f"          {key}: {value!r}" for key, value in options.items()]
        text = "\n".join(lines).replace("URL", postgres.url).replace("OTHER", other)
        orders.write(
            {
                "models/_static.yml": text.replace("NAMED", topic.servers.replace("127.0.0.1", "localhost"))
                .replace("SERVERS", topic.servers)
                .replace("TOPIC", topic.name)
                + "\n"
            }
        )

    catalog = {
        "": "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
        ".url": f"{postgres.url}?user={USER}&password={PASSWORD}",
        ".driver": "org.postgresql.Driver",
    }
    settings = "".join(f"spark.sql.catalog.shop_db{name}: '{value}', " for name, value in catalog.items())
    orders.write({"python/feed.py": FEED, **{f"models/{name}.sql": MODEL.format(name=name) for name in TABLES}})
    project = (orders.root / "project.yml").read_text()
    orders.write({"project.yml": project.replace("storage: store", f"storage: store, spark: {{{settings}}}")})
    write(changed=False)
    assert orders.run(*TABLES, env=env).succeeded
    ledgers = "".join(path.read_text() for path in orders.root.glob("store/queries/*/v1/ledger.json"))
    assert PASSWORD not in ledgers

    write(changed=True)
    orders.rows("in/orders/2.json", order_rows(2), modified=2)
    with pytest.raises(FindingsError) as caught:
        orders.run(*TABLES, env=env)
    assert {each.code for each in caught.value.findings} == {"state-change"}
    refused = {name for name in TABLES for each in caught.value.findings if f"`{name}`" in each.message}
    assert refused == {name for name, (_, _, resumes) in TABLES.items() if not resumes}
    assert orders.run("host", *(TABLES.keys() - refused), env=env, accept_state_change=("host",)).succeeded

    moved = settings.replace(postgres.url, other)  # another server of the same table
    orders.write({"project.yml": project.replace("storage: store", f"storage: store, spark: {{{moved}}}")})
    with pytest.raises(FindingsError) as caught:
        orders.run("cataloged", env=env)
    assert [each.code for each in caught.value.findings] == ["state-change"]
    assert "shop_db.url" in caught.value.findings[0].why
    assert PASSWORD not in caught.value.findings[0].why
