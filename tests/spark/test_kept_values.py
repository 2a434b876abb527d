"""What Spark's files keep of odd values of every type, compared with the compiler's table of facts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from sqlstream.compiler.rules.sinks.columns import unfit_partition, unwritten_reason
from sqlstream.project.formats.formats import format_of
from sqlstream.project.formats.kept_values import CHANGED, FileFacts, changed_partition, changed_value
from sqlstream.project.types.ddl import parse_type
from tests.support.odd_values import VALUES, exact, rows_of

TYPED = VALUES | {"variant": [*VALUES["variant"], "cast(date'2024-01-01' as variant)"]}
"""The values, and a variant of a type that JSON does not have."""

BERLIN = "Europe/Berlin"
SHORT = {"timestampFormat": "yyyy-MM-dd HH:mm:ss.SSS", "dateFormat": "yyyy-MM"}
CASES: list[tuple[str, str, dict[str, str]]] = [
    ("parquet", BERLIN, {}),
    ("orc", BERLIN, {}),
    ("json", BERLIN, {}),
    ("json", "UTC", {"timestampFormat": "yyyy-MM-dd HH:mm:ss.SSSSSS"}),
    ("json", BERLIN, {"timestampFormat": "yyyy-MM-dd HH:mm:ss.SSSSSS"}),
    ("json", BERLIN, SHORT),
    ("json", "UTC", {"encoding": "ISO-8859-1", "lineSep": "\n"}),
    ("csv", BERLIN, {}),
    ("csv", "UTC", {"nullValue": "NULL", "header": "true"}),
    ("xml", BERLIN, {"rowTag": "row"}),
    ("xml", BERLIN, {"rowTag": "row", "ignoreSurroundingSpaces": "false"}),
]


def read_back(
    frame: DataFrame, types: list[str], path: str, format_name: str, options: Mapping[str, str], by: str = ""
) -> DataFrame:
    """Returns the rows of `frame` after Spark has written and read them, as sqlstream does for a stored model."""
    session = frame.sparkSession
    writer = frame.coalesce(1).write.format(format_name).options(**format_of(format_name).writer_options(options, ""))
    (writer.partitionBy(by) if by else writer).save(path)
    schema = ", ".join(["id int", *(f"c{at} {type_}" for at, type_ in enumerate(types))])
    return session.read.format(format_name).options(**options, mode="FAILFAST").schema(schema).load(path)


@pytest.mark.slow
@pytest.mark.parametrize(("format_name", "zone", "options"), CASES)
def test_the_table_says_what_spark_keeps(
    spark: SparkSession, tmp_path: Path, format_name: str, zone: str, options: dict[str, str]
) -> None:
    """A type that the table does not name keeps all values; one that it names loses one, or cannot be read."""
    spark.conf.set("spark.sql.session.timeZone", zone)
    facts = FileFacts(format_name, {name.lower(): value for name, value in options.items()}, {SESSION: zone})
    types = [type_ for type_ in VALUES if unwritten_reason(format_name, parse_type(type_)) is None]
    kept = [type_ for type_ in types if changed_value(facts, parse_type(type_)) is None]
    frame = rows_of(spark, *kept, values=TYPED)
    assert exact(read_back(frame, kept, str(tmp_path / "kept"), format_name, options), *kept) == exact(frame, *kept)

    known = CHANGED.get(format_name, {})
    simple = [type_ for type_ in types if "<" not in type_ or type_.partition("<")[0] in known]
    for number, type_ in enumerate(type_ for type_ in simple if type_ not in kept):
        frame = rows_of(spark, type_, values=TYPED)
        try:
            found = exact(read_back(frame, [type_], str(tmp_path / str(number)), format_name, options), type_)
        except (PySparkException, Py4JJavaError):
            continue
        assert found != exact(frame, type_), type_


SESSION = "spark.sql.session.timeZone"


@pytest.mark.slow
@pytest.mark.parametrize("zone", ["UTC", BERLIN])
def test_the_table_says_what_folders_keep(spark: SparkSession, tmp_path: Path, zone: str) -> None:
    """Names of folders keep all values of the other types, and of text all but the empty one."""
    spark.conf.set(SESSION, zone)
    facts = FileFacts("parquet", {}, {SESSION: zone})
    for number, type_ in enumerate(VALUES):
        parsed = parse_type(type_)
        if unfit_partition(parsed) or changed_partition(facts, parsed) is not None:
            continue
        frame = rows_of(spark, type_)
        frame = frame.where("c0 <> '' or c0 is null") if type_ == "string" else frame
        back = read_back(frame, [type_], str(tmp_path / str(number)), "parquet", {}, by="c0")
        assert exact(back, type_) == exact(frame, type_), type_
