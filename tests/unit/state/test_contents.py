"""Which options decide the rows of an input: other ones of a stream than of a static table, and never a password."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from sqlstream import ProjectRequest
from sqlstream.app.loading.load import load
from sqlstream.state.changes import describe_changes
from sqlstream.state.identity import identity_of
from sqlstream.state.ledger import QueryIdentity
from sqlstream.state.readers import source_uses

PROJECT = "name: shop\ntargets: {local: {master: local, storage: s, spark: %s}}\n"
SOURCES = """sources:
  - name: shop
    tables:
      - {name: orders, format: json, path: in, schema: 'k string'}
      - {name: rates, mode: MODE, INPUT, options: OPTIONS}
"""
MODEL = """{{ config(sink='out', output_mode='update') }}
select o.k, count(*) as n from {{ source('shop', 'orders') }} o join {{ source('shop', 'rates') }} r
on o.k = cast(r.k as string) group by o.k
"""
JDBC = "format: jdbc, schema: 'k string'"
KAFKA = "format: kafka, value_format: json, schema: 'k string'"
PYTHON = "format: python, class: 'feed:Rates', schema: 'k string'"
URL = "jdbc:postgresql://db/shop"


def identity(
    root: Path, declared: str, options: Mapping[str, object], mode: str = "batch", spark: str = "{}"
) -> QueryIdentity:
    """Returns the query of a project whose table `rates` has these options."""
    sources = SOURCES.replace("MODE", mode).replace("INPUT", declared).replace("OPTIONS", json.dumps(options))
    files = {
        "project.yml": PROJECT % spark,
        "sources.yml": sources,
        "sinks.yml": "sinks: [{name: out, format: noop}]\n",
        "python/feed.py": "class Rates:\n    pass\n",
        "models/sums.sql": MODEL,
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    compiled = load(ProjectRequest(root, env={})).compiled
    model = next(each for each in compiled.models.values() if each.name == "sums")
    return identity_of(compiled, model, source_uses(compiled, model, None), None, stateful=True, settings={})


def changed(
    root: Path, declared: str, before: Mapping[str, object], after: Mapping[str, object], mode: str = "batch"
) -> bool:
    """Returns whether the input `rates` is another one with the options `after`."""
    old, new = (identity(root, declared, options, mode) for options in (before, after))
    assert describe_changes(old, old) == ()
    return any("rates" in change.text for change in describe_changes(old, new))


TABLE = {"url": URL, "dbtable": "rates", "user": "a", "password": "one", "fetchsize": 10}
BOUNDS = {"partitionColumn": "k", "lowerBound": 1, "upperBound": 9, "numPartitions": 4}
TOPIC = {"kafka.bootstrap.servers": "b1:9092,b2:9092", "subscribe": "rates", "startingOffsets": "earliest"}


@pytest.mark.parametrize(
    ("declared", "options", "change"),
    [
        (JDBC, TABLE, {"url": "jdbc:postgresql://db/other"}),
        (JDBC, TABLE, {"url": "jdbc:postgresql://127.0.0.1/shop"}),
        (JDBC, TABLE, {"url": f"{URL}?currentSchema=old"}),
        (JDBC, TABLE, {"currentSchema": "old"}),
        (JDBC, TABLE, {"dbtable": "old"}),
        (JDBC, TABLE, {"sessionInitStatement": "set role reader"}),
        (JDBC, TABLE, {"pushDownPredicate": "false"}),
        (KAFKA, TOPIC, {"startingOffsets": '{"rates": {"0": 5}}'}),
        (KAFKA, TOPIC, {"endingOffsets": '{"rates": {"0": 5}}'}),
        (KAFKA, TOPIC, {"startingTimestamp": "1700000000000"}),
        (KAFKA, TOPIC, {"subscribe": "other"}),
        (KAFKA, TOPIC, {"kafka.bootstrap.servers": "b3:9092"}),
        (KAFKA, TOPIC, {"kafka.isolation.level": "read_committed"}),
        (PYTHON, {}, {"url": "https://rates/v2"}),
        (PYTHON, {"user": "a"}, {"user": "b"}),
        (PYTHON, {"startingOffsets": "1"}, {"startingOffsets": "2"}),
    ],
)
def test_what_selects_the_rows_of_a_static_table_counts(
    tmp_path: Path, declared: str, options: Mapping[str, object], change: Mapping[str, object]
) -> None:
    """A static table is read from its start each time, so where it begins and which server has it decides its rows."""
    assert changed(tmp_path, declared, options, {**options, **change})


@pytest.mark.parametrize(
    ("declared", "options", "change"),
    [
        (JDBC, TABLE, {"password": "two", "user": "b"}),
        (JDBC, TABLE, {"url": f"{URL}?user=a&password=two&sslmode=require&socketTimeout=10"}),
        (JDBC, TABLE, {"fetchsize": 1000, "queryTimeout": 5, "sslmode": "require"}),
        (JDBC, TABLE, BOUNDS),
        (KAFKA, TOPIC, {"kafka.bootstrap.servers": "b2:9092, b1:9092"}),
        (KAFKA, TOPIC, {"kafka.bootstrap.servers": "b3:9092,b2:9092"}),
        (KAFKA, TOPIC, {"kafka.security.protocol": "SSL", "kafka.ssl.key.password": "x", "minPartitions": 4}),
        (PYTHON, {"api_key": "one"}, {"api_key": "two"}),
    ],
)
def test_how_a_static_table_is_reached_and_read_is_harmless(
    tmp_path: Path, declared: str, options: Mapping[str, object], change: Mapping[str, object]
) -> None:
    """Passwords, connections and the number of tasks select no rows; nor do the bounds of a column."""
    assert not changed(tmp_path, declared, options, {**options, **change})


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        ({"startingOffsets": "latest"}, False),
        ({"kafka.bootstrap.servers": "b3:9092"}, False),  # the reader of the query has them
        ({"kafka.isolation.level": "read_committed"}, True),
    ],
)
def test_a_stream_goes_on_where_it_stopped(tmp_path: Path, change: Mapping[str, object], *, counts: bool) -> None:
    """For a stream the start is harmless, but not which records of open transactions it has."""
    old, new = (identity(tmp_path, KAFKA, options, "stream") for options in (TOPIC, {**TOPIC, **change}))

    assert (old.contents != new.contents) is counts


SECRETS = [
    f"{URL}?user=me&password=hunter2&currentSchema=s",
    "jdbc:mysql://me:hunter2@db1,me:hunter2@db2/shop",
    "jdbc:sqlserver://db:1433;databaseName=shop;user=me;password={hunter2;}}x};encrypt=true",
    "jdbc:oracle:thin:me/hunter2@//db:1521/shop",
    "jdbc:mysql://address=(host=db)(port=1)(user=me)(password=hunter2)/shop",
    "jdbc:mysql://(host=db,port=1,user=me,password=hunter2)/shop",
    "jdbc:db2://db:50000/shop:user=me;password=hunter2;",
    "https://me:hunter2@host/rates?api_key=hunter2",
    "host=db dbname=shop password='hunter2 x'",
]


@pytest.mark.parametrize("address", SECRETS)
@pytest.mark.parametrize(("declared", "option", "mode"), [(JDBC, "url", "batch"), (PYTHON, "source", "stream")])
def test_a_ledger_has_no_password_of_an_address(
    tmp_path: Path, address: str, declared: str, option: str, mode: str
) -> None:
    """Neither as an option of a table of any kind, nor in a setting of the target; all else of the address counts."""
    options = {"dbtable": "rates", option: address, "sslPassword": "hunter2", "token": "hunter2"}
    spark = json.dumps({"spark.sql.catalog.prod.uri": address})
    found = identity(tmp_path, declared, options, mode, spark)
    other = identity(
        tmp_path,
        declared,
        {**options, option: address.replace("hunter2", "other")},
        mode,
        spark.replace("hunter2", "b"),
    )
    moved = identity(
        tmp_path,
        declared,
        {**options, option: address.replace("db", "host9").replace("//me:hunter2@host/", "//h/")},
        mode,
        spark,
    )

    assert "hunter2" not in json.dumps(asdict(found))
    assert (found.contents, found.sources, found.declared) == (other.contents, other.sources, other.declared)
    assert (found.contents, found.sources) != (moved.contents, moved.sources)


@pytest.mark.parametrize(
    ("declared", "options", "early"),
    [
        (JDBC, TABLE, "jdbc dbtable rates, fetchsize 10"),
        (JDBC, {**TABLE, **BOUNDS}, "jdbc dbtable rates, fetchsize 10, lowerBound 1, partitionColumn k, upperBound 9"),
        (KAFKA, TOPIC, "kafka json raw subscribe rates"),
        (PYTHON, {"url": "https://rates"}, "python feed:Rates"),
        (PYTHON, {"folder": "a", "numPartitions": 2}, "python feed:Rates folder a"),
    ],
)
def test_a_ledger_of_an_earlier_version_has_no_change(
    tmp_path: Path, declared: str, options: Mapping[str, object], early: str
) -> None:
    """It lacks the options of static tables that did not count then, so the query resumes and the ledger is renewed."""
    new = identity(tmp_path, declared, options)
    old = replace(new, contents={**new.contents, "shop.rates": early}, added_contents=None)

    assert describe_changes(old, new) == ()
    other = identity(tmp_path, declared, {**options, "dbtable": "old", "subscribe": "old", "x": "y"})
    assert describe_changes(old, other) != ()


AVRO = """{"type": "record", "name": "R", "doc": "DOC", "fields": [{"name": "k", "type": "string"},
{"name": "at", "type": {"type": "long", "logicalType": "timestamp-UNIT"}}]}"""


@pytest.mark.parametrize(("unit", "doc", "counts"), [("millis", "b", False), ("micros", "a", True)])
def test_a_schema_of_avro_counts_with_all_that_it_says(tmp_path: Path, unit: str, doc: str, *, counts: bool) -> None:
    """Two units of time have the same columns; only its documentation means nothing."""
    declared = "format: kafka, value_format: avro, schema_file: r.avsc"
    found = []
    for text in (("millis", "a"), (unit, doc)):
        (tmp_path / "r.avsc").write_text(AVRO.replace("UNIT", text[0]).replace("DOC", text[1]))
        found.append(identity(tmp_path, declared, TOPIC))

    changes = describe_changes(*found)

    assert found[0].schemas["shop.rates"] == found[1].schemas["shop.rates"]
    assert [change.text for change in changes] == (
        ["the Avro schema of the values of `shop.rates` changed"] if counts else []
    )
