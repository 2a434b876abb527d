"""Spark's settings in ledgers: which of them count, and for which queries."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from identities import STATEFUL

from sqlstream.project.values import SourceTable
from sqlstream.state.settings import (
    ANSI,
    CASE_SENSITIVE,
    TIME_ZONE,
    SettingChange,
    changed_settings,
    changes_state,
    declared_settings,
    reads_times_as_text,
)
from sqlstream.state.signature.harmless import GROUPS, SOURCE_KEYS, is_harmless, is_harmless_option
from sqlstream.state.signature.signature import InputRows, StateOperator, StateSignature

COUNT = StateOperator("aggregation", {"keys": ("shop.orders.k",)}, (InputRows("shop.orders(k string)"),))
PLAIN = StateSignature((COUNT,), "update", (), "4.3.0", functions=("attributereference", "count"))
MAP_KEYS, TIME_PARSER = "spark.sql.mapKeyDedupPolicy", "spark.sql.legacy.timeParserPolicy"
PRECISION = "spark.sql.decimalOperations.allowPrecisionLoss"
NOVEL = "spark.sql.setting.of.a.later.spark"


def with_declared(**declared: str) -> dict[str, str]:
    """Returns settings by name, whose dots are written as `__`."""
    return {name.replace("__", "."): value for name, value in declared.items()}


@pytest.mark.parametrize(("before", "after"), [({}, {NOVEL: "1"}), ({NOVEL: "1"}, {}), ({NOVEL: "1"}, {NOVEL: "2"})])
def test_a_setting_counts_when_it_is_added_changed_or_removed(before: dict[str, str], after: dict[str, str]) -> None:
    """A setting that nobody knows can change any result, also of the plainest query."""
    old, new = (replace(STATEFUL, declared=declared) for declared in (before, after))

    (change,) = changed_settings(old, new)

    assert change == SettingChange(NOVEL, before.get(NOVEL), after.get(NOVEL))
    assert changes_state(change, PLAIN, new)


def test_an_early_ledger_is_compared_as_it_was() -> None:
    """Such a ledger has settings of earlier releases and no others, so only these can have changed."""
    legacy = "spark.sql.legacy.sizeOfNull"
    old = replace(STATEFUL, declared=None, settings={**STATEFUL.settings, legacy: "true"})

    found = changed_settings(old, replace(STATEFUL, declared={NOVEL: "1"}))

    assert [change.name for change in found] == [legacy]


def test_harmless_settings_and_secrets() -> None:
    """The ledger has no harmless settings, and booleans in one spelling."""
    spark = {
        "spark.sql.autoBroadcastJoinThreshold": "10",
        "spark.sql.adaptive.enabled": "false",
        "spark.executor.memory": "4g",
        "spark.sql.json.enablePartialResults": "False",
        ANSI: "true",
        NOVEL: "Text",
    }

    assert declared_settings(spark) == {"spark.sql.json.enablePartialResults": "false", NOVEL: "Text"}


@pytest.mark.parametrize(
    ("name", "functions", "contents", "counts"),
    [
        (ANSI, ("count", "attributereference"), "json", False),
        (ANSI, ("count", "cast"), "json", True),
        (ANSI, ("count", "lower", "timewindow"), "json", False),
        (CASE_SENSITIVE, ("count", "cast", "gettimestamp"), "json", False),
        (CASE_SENSITIVE, ("count",), "parquet", True),
        (CASE_SENSITIVE, ("count",), "kafka avro", True),
        (CASE_SENSITIVE, ("count",), "format_of_a_package", True),
        (CASE_SENSITIVE, ("avrodatatocatalyst",), "json", True),
        (MAP_KEYS, ("count", "cast"), "json", False),
        (MAP_KEYS, ("createmap",), "json", True),
        (TIME_PARSER, ("count", "cast"), "json", False),
        (TIME_PARSER, ("gettimestamp",), "json", True),
        (TIME_PARSER, ("dateformatclass",), "json", True),
        (PRECISION, ("average", "cast"), "json", False),
        ("spark.sql.icu.caseMappings.enabled", ("lower",), "json", True),
        ("spark.sql.legacy.sizeOfNull", ("size",), "json", True),
        (ANSI, ("count", "kind_of_a_later_spark"), "json", True),
        ("spark.sql.csv.parser.x", ("count",), "json", False),
        ("spark.sql.csv.parser.x", ("count",), "csv header true", True),
        ("spark.sql.csv.parser.x", ("csvtostructs",), "json", True),
        ("spark.sql.json.x", ("count",), "kafka json", True),
        ("spark.sql.jsonGenerator.x", ("structstojson",), "parquet", True),
        ("spark.sql.jsonGenerator.x", ("invoke",), "parquet", True),
        ("spark.sql.jsonGenerator.x", ("upper",), "parquet", False),
        ("spark.sql.parser.escapedStringLiterals", ("upper",), "json", False),
        ("spark.sql.defaultCatalog", ("count",), "table db.rates", True),  # no plan has the name of a catalog
    ],
)
def test_a_setting_counts_where_something_can_read_it(
    name: str, functions: tuple[str, ...], contents: str, *, counts: bool
) -> None:
    """Readers by their formats, expressions by their kinds, and those of a later Spark always."""
    identity = replace(STATEFUL, contents={"shop.orders": contents})
    signature = replace(PLAIN, functions=functions)

    assert changes_state(SettingChange(name, "a", "b"), signature, identity) is counts


@pytest.mark.parametrize(
    ("name", "type_", "functions"),
    [
        (MAP_KEYS, "map<string, string>", ()),
        (TIME_PARSER, "struct<at: timestamp>", ()),
        (TIME_PARSER, "date", ()),
        (PRECISION, "decimal(10,2)", ("average",)),
    ],
)
def test_a_setting_of_a_type_counts_where_a_column_has_it(name: str, type_: str, functions: tuple[str, ...]) -> None:
    """Only queries that read such a column can have other results."""
    operator = replace(COUNT, inputs=(InputRows(f"shop.orders(k string, v {type_})"),))
    signature = replace(PLAIN, operators=(operator,), functions=functions)
    identity = replace(STATEFUL, contents={"shop.orders": "json"})
    change = SettingChange(name, "a", "b")

    assert changes_state(change, signature, identity)
    named = replace(COUNT, inputs=(InputRows("shop.orders(time bigint, date string, map int)"),))
    assert not changes_state(change, replace(signature, operators=(named,)), identity)


def test_the_zone_is_decided_elsewhere() -> None:
    """The plan has the zone of expressions, so the setting alone is no difference."""
    assert not changes_state(SettingChange(TIME_ZONE, "UTC", "Asia/Tokyo"), PLAIN, STATEFUL)


@pytest.mark.parametrize(
    "name",
    [
        "spark.sql.session.timeZone",
        "spark.sql.caseSensitive",
        "spark.sql.files.ignoreCorruptFiles",
        "spark.sql.jsonGenerator.ignoreNullFields",
        "spark.sql.columnNameOfCorruptRecord",
        "spark.sql.streaming.stateStore.skipNullsForStreamStreamJoins.enabled",
        "spark.sql.parquet.int96AsTimestamp",
        "spark.sql.parquet.datetimeRebaseModeInRead",
        "spark.sql.readSideCharPadding",
        "spark.sql.legacy.timeParserPolicy",
    ],
)
def test_settings_that_change_results_are_not_harmless(name: str) -> None:
    """No pattern of the list covers a setting of which it is known that results depend on it."""
    assert not is_harmless(name)


@pytest.mark.parametrize(
    ("line", "is_text"),
    [
        ("static table 1 (string, timestamp): logicalrelation reads in/rates", True),
        ("static table 1 (string, timestamp_ntz): logicalrelation reads in/rates", False),
        ("shop.orders(ts timestamp)", True),
    ],
)
def test_times_in_the_text_of_any_input_depend_on_the_zone(line: str, *, is_text: bool) -> None:
    """Those of static tables, too, which a plan does not name."""
    identity = replace(
        STATEFUL, contents={"shop.orders" if line.startswith("shop") else "shop.rates": "csv header true"}
    )
    signature = replace(PLAIN, operators=(replace(COUNT, inputs=(InputRows(line),)),))

    assert (reads_times_as_text(signature, identity) is not None) is is_text


def test_credentials_stay_out_of_the_ledger() -> None:
    """A password that is written into a target is in no ledger, also if the setting is unknown."""
    spark = {"spark.sql.catalog.prod.token": "abc", "spark.sql.catalog.prod.jdbc.password": "pw", NOVEL: "1"}

    assert declared_settings(spark) == {NOVEL: "1"}


def test_each_harmless_name_has_a_reason_and_is_said_once() -> None:
    """The list is what a reader checks, so a name is in one place of its group."""
    for title, entries in GROUPS:
        names = [name for entry in entries for name in entry.names]
        assert len(names) == len(set(names)), title
        assert all(entry.reason for entry in entries)


def test_each_key_of_a_source_counts_or_is_known_to_be_harmless() -> None:
    """A new key of sources.yml must be compared, or get a reason in the list."""
    counted = {"format", "path", "schema", "options", "columns", "table", "python", "messages"}
    counted |= {"timestamp_unit", "max_event_time"}
    listed = {name for entry in SOURCE_KEYS for name in entry.names}

    assert {field.name for field in fields(SourceTable)} == counted | listed
    assert not counted & listed


@pytest.mark.parametrize(
    "option", ["maxFilesPerTrigger", "MAXFILESPERTRIGGER", "kafka.security.protocol", "schema.registry.url"]
)
def test_options_of_reading_are_harmless(option: str) -> None:
    """In any letter case; groups of options by the start of their names."""
    assert is_harmless_option(option)


@pytest.mark.parametrize("option", ["multiLine", "sep", "header", "mode", "subscribe", "timestampFormat", "kafkaish"])
def test_options_of_content_count(option: str) -> None:
    """What makes other rows of the same bytes is compared."""
    assert not is_harmless_option(option)


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        ({}, {NOVEL: "1"}, [NOVEL]),
        ({NOVEL: "1"}, {NOVEL: "1"}, []),
        ({NOVEL: "1"}, {}, [NOVEL]),
        (None, {NOVEL: "1"}, []),
        ({NOVEL: "1"}, None, []),  # without Spark they are unknown
    ],
)
def test_settings_from_elsewhere_count(
    before: dict[str, str] | None, after: dict[str, str] | None, names: list[str]
) -> None:
    """A spark-defaults.conf can change results as the target can; an earlier sqlstream did not look."""
    old, new = (replace(STATEFUL, declared={}, inherited=found) for found in (before, after))

    assert [change.name for change in changed_settings(old, new)] == names


def test_a_setting_can_move_into_the_target() -> None:
    """With the same value it is the same setting, wherever it is, and however the plan is made."""
    old = replace(STATEFUL, declared={}, inherited={NOVEL: "1"})

    nothing: list[dict[str, str] | None] = [{}, None]
    for inherited in nothing:
        assert changed_settings(old, replace(STATEFUL, declared={NOVEL: "1"}, inherited=inherited)) == ()


@pytest.mark.parametrize(
    ("name", "is_kept"),
    [
        ("spark.hadoop.fs.s3a.endpoint", True),
        ("spark.hadoop.fs.defaultFS", True),
        ("spark.hadoop.hive.metastore.uris", True),
        ("spark.hadoop.textinputformat.record.delimiter", True),
        ("spark.hadoop.fs.s3a.access.key", False),
        ("spark.hadoop.fs.s3a.connection.maximum", False),
        ("spark.hadoop.fs.azure.account.key.shop.dfs.core.windows.net", False),
        ("spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version", False),
    ],
)
def test_settings_of_hadoop_that_choose_files_count(name: str, *, is_kept: bool) -> None:
    """Where files are and how they are cut into rows; a ledger of an earlier sqlstream has none of them."""
    assert (name in declared_settings({name: "x"})) is is_kept
    if is_kept:
        old, new = (replace(STATEFUL, declared={name: value}, inherited={}) for value in "xy")
        (change,) = changed_settings(old, new)
        assert changes_state(change, PLAIN, replace(STATEFUL, contents={"shop.orders": "json"}))
        early = replace(STATEFUL, declared={}, inherited=None)
        assert changed_settings(early, new) == ()


def test_another_file_system_does_not_concern_a_query_of_kafka() -> None:
    """The state of such a query has no rows of files."""
    change = SettingChange("spark.hadoop.fs.s3a.endpoint", "a", "b")

    assert not changes_state(change, PLAIN, replace(STATEFUL, contents={"shop.orders": "kafka json raw"}))
