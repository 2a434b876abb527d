"""The compiler knows the options of Delta Lake and Iceberg, and judges their values and pairs as both do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sqlstream.app.loading.load import load_for_reading
from sqlstream.app.request import ProjectRequest
from sqlstream.app.session.session import spark_session
from sqlstream.compiler.rules.options import EXCLUDING, REPLACED
from sqlstream.project.formats.formats import format_of
from sqlstream.spark.jvm.gateway import SPARK_ERRORS, jvm_of
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.writing.table_formats.table import table_at
from sqlstream.state.ledger import OutputColumn
from tests.support.lake_tables import FORMATS

pytestmark = pytest.mark.smoke

TAKEN = {
    "delta": {
        "maxBytesPerTrigger": "10g",
        "startingVersion": "1",
        "startingTimestamp": "2020-01-01",
        "failOnDataLoss": "FALSE",
    },
    "iceberg": {"stream-from-timestamp": "0", "streaming-max-rows-per-micro-batch": "5"},
}
REFUSED = {
    "delta": {
        "maxBytesPerTrigger": "1.5g",
        "maxFilesPerTrigger": "0",
        "startingVersion": "-1",
        "startingTimestamp": "soon",
        "ignoreChanges": "maybe",
        "skipChangeCommits": "maybe",
        "readChangeFeed": "maybe",
    },
    "iceberg": {"stream-from-timestamp": "2020-01-01", "streaming-max-files-per-micro-batch": "x"},
}
"""Values of options of streams."""

VALUES = {
    "startingVersion": "0",
    "startingTimestamp": "2020-01-01",
    "versionAsOf": "1",
    "timestampAsOf": "2099-01-01",
    "branch": "main",
    "start-timestamp": "0",
    "end-timestamp": "9999999999999",
    "start-snapshot-id": "1",
    "snapshot-id": "1",
    "tag": "t",
    "as-of-timestamp": "1",
}
"""A value of each option that excludes another one."""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session of sqlstream with the connectors of both formats."""
    root = tmp_path_factory.mktemp("project")
    tables = ", ".join(f"{{name: {each}, format: {each}, path: {each}}}" for each in FORMATS)
    (root / "project.yml").write_text("name: options\ntargets: {local: {master: 'local[1]'}}\n")
    (root / "sources.yml").write_text(f"sources: [{{name: lake, tables: [{tables}]}}]\n")
    (root / "models").mkdir()
    for each in FORMATS:
        (root / f"models/read_{each}.sql").write_text(f"select * from {{{{ source('lake', '{each}') }}}}")
    loaded, secrets = load_for_reading(ProjectRequest(root)), Secrets({})
    with spark_session(loaded, secrets) as runtime:
        yield runtime.session


@pytest.fixture(scope="module")
def folders(session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The folders of a table in each format, with two commits."""
    found = {each: str(tmp_path_factory.mktemp("tables") / each) for each in FORMATS}
    for each, path in found.items():
        table = table_at(session, each, path=path)
        table.create([OutputColumn("id", "int")], (), {"delta.enableChangeDataFeed": "true"} if each == "delta" else {})
        for number in range(2):
            session.sql(f"INSERT INTO {table.name} VALUES ({number})")
    return found


@pytest.mark.parametrize("name", FORMATS)
def test_the_formats_and_the_compiler_judge_values_alike(
    session: SparkSession, folders: Mapping[str, str], tmp_path: Path, name: str
) -> None:
    """A stream with a value that the compiler accepts reads a batch, and another one fails."""
    wrong = []
    for expected, values in ((True, TAKEN[name]), (False, REFUSED[name])):
        for option, value in values.items():
            by_format = is_taken(session, name, {option: value}, folders[name], tmp_path / f"{option}{value}")
            taken = format_of(name).values_of(option, streams=True)
            by_compiler = taken is not None and taken.accepts(value)
            if not by_format == by_compiler == expected:
                wrong.append((option, value, by_format, by_compiler))
    assert wrong == []


def is_taken(session: SparkSession, name: str, options: Mapping[str, str], table: str, checkpoint: Path) -> bool:
    """Returns whether a stream with these options reads the table."""
    try:
        rows = session.readStream.format(name).options(**options).load(table)
        writer = rows.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination(60)
    except SPARK_ERRORS:
        return False
    return True


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, pair) for name, pairs in EXCLUDING.items() for pair in pairs if pair[0][:5] not in ("start", "end-t")),
        ("iceberg", ("start-timestamp", "start-snapshot-id")),
        *(("iceberg", (old,)) for old in REPLACED),
        ("iceberg", ("end-snapshot-id",)),
        ("delta", ("readChangeFeed",)),
    ],
)
def test_the_formats_refuse_the_same_combinations(
    session: SparkSession, folders: Mapping[str, str], name: str, options: tuple[str, ...]
) -> None:
    """A static table is not read with options that exclude or need each other, or that Spark replaces."""
    given = {option: VALUES.get(option, "true" if name == "delta" else "1") for option in options}

    with pytest.raises(SPARK_ERRORS):
        session.read.format(name).options(**given).load(folders[name]).collect()


def test_the_compiler_knows_all_options(session: SparkSession) -> None:
    """An option that is missing in the list would be reported as misspelt."""
    jvm = jvm_of(session)
    loader = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    keys = loader.loadClass("org.apache.spark.sql.delta.DeltaOptions$").getField("MODULE$").get(None)
    delta = set(jvm.scala.jdk.javaapi.CollectionConverters.asJava(keys.validOptionKeys()))
    ice = set()
    for name in ("Read", "Write"):
        for field in loader.loadClass(f"org.apache.iceberg.spark.Spark{name}Options").getFields():
            ice |= {value} if isinstance(value := field.get(None), str) else set()
    ours = {"path", "queryName", "checkpointLocation"}
    internal = {"useNullIntolerantEqualityWithDPO", "writePartitionColumns", "__v1_save_as_table_overwrite"}

    assert {name for name in delta if "." not in name} - ours - internal <= set(format_of("delta").options)
    assert ice - ours - {"snapshot-property"} <= set(format_of("iceberg").options)
