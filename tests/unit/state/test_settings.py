"""Spark's settings in ledgers: which of them count, and for which queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from sqlstream.app.loading.load import load
from sqlstream.app.plan.compiled_identity import identity_without_spark
from sqlstream.app.request import ProjectRequest
from sqlstream.project.secret_text import SecretName, SecretText
from sqlstream.project.values import SourceTable
from sqlstream.state.changes import describe_changes
from sqlstream.state.checkpoints import CheckpointState
from sqlstream.state.judgement import Judgement, judge_changes
from sqlstream.state.ledger import QueryIdentity
from sqlstream.state.plan import Action, QueryPlan
from sqlstream.state.signature.harmless import GROUPS, SOURCE_KEYS, is_harmless, is_harmless_option
from sqlstream.state.signature.signature import InputRows, StateOperator, StateSignature
from sqlstream.state.spark_settings import (
    ANSI,
    CASE_SENSITIVE,
    ONLY_SPARK,
    TIME_ZONE,
    SettingChange,
    changed_settings,
    changes_state,
    declared_settings,
    reads_times_as_text,
    substituted,
)
from sqlstream.state.verdicts import Verdict, verdict_of
from tests.support.identities import STATEFUL, ledger_of

COUNT = StateOperator("aggregation", {"keys": ("shop.orders.k",)}, (InputRows("shop.orders(k string)"),))
PLAIN = StateSignature((COUNT,), "update", (), "4.3.0", functions=("attributereference", "count"))
MAP_KEYS, TIME_PARSER = "spark.sql.mapKeyDedupPolicy", "spark.sql.legacy.timeParserPolicy"
PRECISION = "spark.sql.decimalOperations.allowPrecisionLoss"
NOVEL = "spark.sql.setting.of.a.later.spark"


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
    counted = {"format", "path", "spark_schema", "options", "columns", "table", "python", "messages"}
    counted |= {"timestamp_unit", "max_event_time"}
    counted |= {"schema_", "schema_file"}  # as `spark_schema`
    counted |= {"value_format", "value_options", "key_format", "key_columns", "schema_registry"}  # as `messages`
    listed = {name for entry in SOURCE_KEYS for name in entry.names}

    assert SourceTable.model_fields.keys() == counted | listed
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
        ("spark.hadoop.fs.s3a.bucket.shop.session.token", False),
        ("spark.hadoop.fs.s3a.endpoint.region", False),
        ("spark.hadoop.fs.s3a.assumed.role.arn", False),
        ("spark.hadoop.fs.s3a.create.conditional.enabled", False),
        ("spark.hadoop.fs.s3a.bucket.shop.endpoint", True),
        ("spark.hadoop.fs.azure.account.key.shop.dfs.core.windows.net", False),
        ("spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version", False),
        ("spark.hadoop.mapreduce.input.linerecordreader.line.maxlength", True),
        ("spark.hadoop.mapred.linerecordreader.maxlength", True),
        ("spark.hadoop.mapreduce.input.pathFilter.class", True),
        ("spark.hadoop.mapreduce.input.fileinputformat.split.maxsize", False),
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


SUBSTITUTES = {"spark.sql.variable.substitute": "true"}


@pytest.mark.parametrize(
    ("sql", "settings", "values"),
    [
        ("select ${env:FACTOR} * v", {}, {"${env:FACTOR}": "2"}),
        ("select '${spark.my.factor}'", {"spark.my.factor": "3"}, {"${spark.my.factor}": "3"}),
        ("select ${hivevar:x}, ${x}", {"x": "1"}, {"${hivevar:x}": "1", "${x}": "1"}),
        ("select ${a}", {"a": "${env:FACTOR}"}, {"${a}": "${env:FACTOR}", "${env:FACTOR}": "2"}),
        ("select ${a}", {"a": "${a}"}, {"${a}": "${a}"}),
        ("select '${env:NONE}'", {}, {"${env:NONE}": "${env:NONE}"}),
        ("select '${system:x}', '${b}'", {}, {"${system:x}": ONLY_SPARK, "${b}": ONLY_SPARK}),
        ("select '${other:x}', '${', '$v', '${}'", {}, {}),
    ],
)
def test_what_spark_puts_into_sql_is_recorded(sql: str, settings: dict[str, str], values: dict[str, str]) -> None:
    """Settings, variables and properties, also within values; an unknown form is left as written."""
    env = {"FACTOR": "2"}

    assert substituted([sql], {**SUBSTITUTES, **settings}, env) == values
    assert substituted([sql], settings, env) == {}


def test_spark_tells_what_the_target_does_not_have() -> None:
    """Its environment and properties are those of the JVM; settings that the checkpoint fixes are those of the session."""
    asked: list[tuple[str, str]] = []

    def find(kind: str, name: str) -> str:
        asked.append((kind, name))
        return "found"

    sql = "select ${system:x}, ${env:y}, ${spark:z}, ${spark.sql.shuffle.partitions}"
    spark = {**SUBSTITUTES, "spark.sql.shuffle.partitions": "9"}

    assert set(substituted([sql], spark, {"y": "other"}, find).values()) == {"found"}
    assert sorted(asked) == [("", "spark.sql.shuffle.partitions"), ("", "z"), ("env", "y"), ("system", "x")]
    assert substituted(["${spark.sql.shuffle.partitions}"], spark, {}) == {
        "${spark.sql.shuffle.partitions}": ONLY_SPARK
    }


def test_a_secret_in_sql_is_no_text_in_the_ledger() -> None:
    """It is a digest, so that another secret is a change, or the name of its variable."""
    sql = "select '${env:SQLSTREAM_SECRET_X}', '${my.password}', '${env:API_KEY}', '${my.url}', '${named}'"
    secret = SecretText((SecretName("SQLSTREAM_SECRET_X"),))
    spark = {**SUBSTITUTES, "my.password": "pw1", "my.url": "https://me:pw2@shop/x", "named": secret}
    first = {"SQLSTREAM_SECRET_X": "pw3", "API_KEY": "pw4"}

    before, after = (substituted([sql], spark, env) for env in (first, {**first, "API_KEY": "other"}))

    assert not [value for value in before.values() if "pw" in value]
    assert before["${my.url}"] == "https://shop/x"
    assert before["${named}"] == str(secret)
    assert [name for name in before if before[name] != after[name]] == ["${env:API_KEY}"]


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ({"${x}": "1"}, {"${x}": "2"}, ["${x}"]),
        ({"${x}": "1"}, {"${x}": "1"}, []),
        ({"${x}": "1"}, {}, []),  # then the SQL has changed
        ({}, {"${x}": "1"}, []),
        (None, {"${x}": "1"}, ["${x}"]),
        ({"${x}": "1"}, {"${x}": ONLY_SPARK}, ["${x}"]),
    ],
)
def test_another_value_in_sql_is_a_change(
    before: dict[str, str] | None, after: dict[str, str], found: list[str]
) -> None:
    """The plans are compared then, which have the values; a ledger of an earlier sqlstream has none."""
    old, new = (replace(STATEFUL, declared={}, substituted=values) for values in (before, after))

    changes = changed_settings(old, new)

    assert [change.name for change in changes] == found
    assert not any(changes_state(change, PLAIN, new) for change in changes)
    assert len(describe_changes(old, new)) == len(found)


@pytest.mark.parametrize(
    ("name", "is_read"),
    [
        ("spark.my.factor", True),
        ("my.factor", True),
        ("spark.executorEnv.FACTOR", True),
        ("spark.executorEnv.PYTHONPATH", False),
        ("spark.kubernetes.driverEnv.FACTOR", True),
        ("spark.yarn.appMasterEnv.FACTOR", True),
        ("spark.yarn.am.memory", False),
        ("spark.kubernetes.executor.podNamePrefix", False),
        ("spark.kubernetes.driver.pod.name", False),
        ("spark.executor.memory", False),
        ("spark.driver.memory", False),
        ("spark.eventLog.dir", False),
        ("spark.jars.packages", False),
        ("spark.sqlstream.internals", False),
        ("spark.sql.adaptive.enabled", False),
    ],
)
def test_python_code_can_read_settings_that_sql_cannot(name: str, *, is_read: bool) -> None:
    """There they count unless they belong to Spark's runtime; the code of a sink computes nothing."""
    settings = [declared_settings({name: value}) for value in "12"]

    def names(code: dict[str, str], then: dict[str, str] | None) -> list[str]:
        old = replace(STATEFUL, declared=settings[0], code=code, substituted=then)
        return [change.name for change in changed_settings(old, replace(old, declared=settings[1], substituted={}))]

    assert is_harmless(name)
    assert names({"totals": "x"}, {}) == names({"function f": "x"}, {}) == ([name] if is_read else [])
    assert names({}, {}) == names({"sink out": "x"}, {}) == []
    assert names({"totals": "x"}, None) == []  # an earlier sqlstream has recorded none


def test_a_setting_that_python_reads_is_judged_like_its_code() -> None:
    """The plan shows what a model makes of it, but not what a function or a source does."""
    old = replace(STATEFUL, declared={"spark.my.factor": "2"}, code={"totals": "x"}, substituted={})
    new = replace(old, declared={"spark.my.factor": "3"})

    def judgement(old: QueryIdentity, new: QueryIdentity, plan: StateSignature) -> Judgement:
        ledger = replace(ledger_of(old), signature=PLAIN)
        return judge_changes(ledger, new, describe_changes(old, new), lambda _: plan)

    other = replace(PLAIN, operators=(replace(COUNT, parts={"keys": ("shop.orders.k * 3",)}),))
    calling = replace(PLAIN, calls_python=True)
    assert judgement(old, new, PLAIN).is_safe
    assert judgement(old, new, other).differences
    assert judgement(old, new, calling).unknown
    of_source = [replace(each, code={"source shop.orders": "x"}) for each in (old, new)]
    assert judgement(of_source[0], of_source[1], PLAIN).unknown


@pytest.mark.parametrize(
    ("names", "sink", "expected"),
    [
        (["spark.sql.timestampType"], "parquet", Verdict.UNDECIDED),
        (["spark.sql.timestampType"], "kafka", Verdict.RESUME),
        (["spark.sql.preserveCharVarcharTypeInfo"], "jdbc", Verdict.UNDECIDED),
        (["spark.sql.charAsVarchar"], "delta", Verdict.UNDECIDED),
        ([NOVEL], "json", Verdict.UNDECIDED),
        (["spark.sql.json.enablePartialResults"], "parquet", Verdict.RESUME),
        (["spark.hadoop.fs.s3a.endpoint", "spark.sql.legacy.sizeOfNull"], "parquet", Verdict.RESUME),
        (["spark.sql.json.enablePartialResults", "spark.sql.ansi.doubleQuotedIdentifiers"], "csv", Verdict.UNDECIDED),
    ],
)
def test_only_spark_knows_the_columns_with_some_settings(names: list[str], sink: str, expected: Verdict) -> None:
    """A query without state resumes without Spark only if its columns are certainly the same."""
    old = replace(STATEFUL, stateful=False, sink_format=sink, declared={}, inherited={}, substituted={})
    new = replace(old, declared=dict.fromkeys(names, "x"))
    plan = QueryPlan(Action.RESUME, 1, writes_ledger=True, changes=("changed",))

    assert verdict_of(plan, new, old, has_spark=False)[0] is expected
    assert verdict_of(plan, new, old, has_spark=True)[0] is Verdict.RESUME
    in_python = replace(old, code={"totals": "x"})
    pairs = [
        [replace(in_python, substituted={"${x}": value}) for value in "12"],
        [replace(in_python, declared={"spark.my.factor": value}) for value in "12"],
    ]
    assert [verdict_of(plan, now, then, has_spark=False)[0] for then, now in pairs] == [Verdict.UNDECIDED] * 2


PROJECT = {
    "project.yml": "name: shop\ntargets: {{local: {{master: local, storage: store, spark: {{{spark}}}}}}}\n",
    "sources.yml": "sources: [{name: shop, tables: [{name: orders, format: json, path: in, schema: 'k string'}]}]\n",
    "sinks.yml": "sinks: [{name: lake, format: parquet, path: out}]\n",
}
MODEL = {
    "models/total.sql": "{{ config(sink='lake') }}\nselect k, '${env:FACTOR}' as f from {{ source('shop', 'orders') }}\n"
}


def without_spark(root: Path, spark: str, old: QueryIdentity, model: Mapping[str, str] = MODEL) -> QueryIdentity:
    """Returns the query of a project with a `model` whose target has the settings `spark`, compared with `old`."""
    for name, text in {**PROJECT, **model}.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text.format(spark=spark) if name == "project.yml" else text)
    compiled = load(ProjectRequest(root, env={})).compiled
    state = CheckpointState(1, ledger_of(old), True, "ledger.json", last_commit=0)
    return identity_without_spark(compiled, next(iter(compiled.models.values())), state)


def test_a_variable_of_the_environment_turns_off_ansi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Spark as with it: only the text `false`, and not if the target or a spark-defaults.conf sets the mode."""
    plain = replace(STATEFUL, settings={ANSI: "true"})
    elsewhere = replace(plain, inherited={}, defaults={ANSI: "true"})
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    found = []
    for value in ("false", "FALSE", "true"):
        monkeypatch.setenv("SPARK_ANSI_SQL_MODE", value)
        given = (("", plain), ("spark.sql.ansi.enabled: true", plain))
        found.append([without_spark(tmp_path, *each).settings[ANSI] for each in given])
        (tmp_path / "spark-defaults.conf").write_text(f"{ANSI} true\n")
        found[-1].append(without_spark(tmp_path, "", elsewhere).settings[ANSI])
        (tmp_path / "spark-defaults.conf").unlink()

    assert found == [["false", "true", "true"], ["true"] * 3, ["true"] * 3]


def test_a_setting_with_the_default_of_spark_is_none_without_spark(tmp_path: Path) -> None:
    """The ledger knows that it has the default, so it stays unchanged; with another value it counts."""
    old = replace(STATEFUL, declared={}, defaults={NOVEL: "1"})

    assert without_spark(tmp_path, f"{NOVEL}: 1", old).declared == {}
    assert without_spark(tmp_path, f"{NOVEL}: 2", old).declared == {NOVEL: "2"}


def test_a_plan_reads_the_settings_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Java reads it, where Spark does, except for what the target sets. A setting that is not of SQL is as in the
    ledger if it is not in the file: Spark itself has some. Options in the environment may have others.
    """
    for name in ("PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    conf = tmp_path / "spark/conf/spark-defaults.conf"
    conf.parent.mkdir(parents=True)
    conf.write_text(
        "# a comment\n! another\nspark.executor.memory 1g\nspark.sql.default 1\nother.key x\n"
        f"  {NOVEL}:  a\\tb \\\n   c\\u0021  \nspark.sql.given=file\nspark.hadoop.textinputformat.record.delimiter = |\n"
    )
    inherited = {"spark.sql.removed": "1", "spark.hadoop.fs.s3a.vectored.read.max.merged.size": "2M"}
    old = replace(STATEFUL, declared={}, inherited=inherited, defaults={"spark.sql.default": "1"})

    assert without_spark(tmp_path, "spark.sql.given: '2'", old).inherited == {
        NOVEL: "a\tb c!",
        "spark.hadoop.fs.s3a.vectored.read.max.merged.size": "2M",
        "spark.hadoop.textinputformat.record.delimiter": "|",
    }
    assert without_spark(tmp_path, "", replace(old, inherited=None)).inherited is None
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf spark.sql.removed=1 pyspark-shell")
    assert without_spark(tmp_path, "", old).inherited == inherited


def test_the_environment_in_sql_is_compared_without_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the target makes Spark replace it; the text of the SQL is the same."""
    monkeypatch.setenv("FACTOR", "3")

    values = {
        spark: without_spark(tmp_path, f"spark.sql.variable.substitute: {spark}", STATEFUL).substituted
        for spark in ("true", "false")
    }

    assert values == {"true": {"${env:FACTOR}": "3"}, "false": {}}


def test_sql_in_python_code_has_values_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in a module that the model imports, and between the parts of an f-string."""
    monkeypatch.setenv("FACTOR", "3")
    files = {
        "python/made.py": "def made(rows, k):\n    return rows.selectExpr(f'{k} * ${{env:FACTOR}}')\n",
        "models/total.py": "from made import made\n\ndef model(sqlstream, spark):\n    sqlstream.config(sink='lake')\n"
        "    return made(sqlstream.source('shop', 'orders'), 'k')\n",
    }

    found = without_spark(tmp_path, "spark.sql.variable.substitute: true", STATEFUL, files)

    assert found.substituted == {"${env:FACTOR}": "3"}
