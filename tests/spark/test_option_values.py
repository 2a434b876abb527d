"""The compiler accepts and refuses the same option values as the installed Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from sqlstream.project.formats.formats import format_of
from sqlstream.spark.jvm.gateway import SPARK_ERRORS

COLUMNS = "id int, ts timestamp, d date"

TAKEN = {
    "json": {
        "latestFirst": "TRUE",
        "maxFilesPerTrigger": "+03",
        "maxBytesPerTrigger": "10",
        "maxFileAge": " 7d ",
        "cleanSource": "Delete",
        "maxCachedFiles": "0",
        "discardCachedInputRatio": "0.5",
        "timeZone": "Europe/Paris",
        "encoding": "utf-8",
        "lineSep": "abc",
        "samplingRatio": "2",
        "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]",
        "dateFormat": "dd/MM/yyyy",
        "mode": "failfast",
    },
    "csv": {
        "sep": "||",
        "maxCharsPerColumn": "-1",
        "quote": "",
        "comment": "#",
        "lineSep": "ab",
        "unescapedQuoteHandling": "stop_at_delimiter",
        "timeZone": "+01:00",
        "encoding": "iso-8859-1",
    },
    "text": {"lineSep": "ab", "wholetext": "true"},
    "xml": {"samplingRatio": "2", "rowTag": "row", "timeZone": "PST"},
    "parquet": {"mergeSchema": "true"},
    "orc": {"mergeSchema": "false"},
    "rate-micro-batch": {"rowsPerBatch": "10", "startTimestamp": "0", "advanceMillisPerBatch": "0"},
}
"""Values that Spark accepts, by format."""

REFUSED = {
    "json": {
        "latestFirst": "yes",
        "maxFilesPerTrigger": "0",
        "maxBytesPerTrigger": "1k",
        "maxFileAge": "-1d",
        "cleanSource": "maybe",
        "maxCachedFiles": "-1",
        "discardCachedInputRatio": "2",
        "fileNameOnly": "maybe",
        "recursiveFileLookup": "maybe",
        "ignoreCorruptFiles": "maybe",
        "ignoreMissingFiles": "maybe",
        "ignoreInvalidPartitionPaths": "maybe",
        "timeZone": "Nowhere",
        "encoding": "nosuch",
        "lineSep": "",
        "samplingRatio": "x",
        "timestampFormat": "YYYY-MM-dd",
        "dateFormat": "{",
        "multiLine": "maybe",
        "primitivesAsString": "maybe",
        "prefersDecimal": "maybe",
        "allowComments": "maybe",
        "allowUnquotedFieldNames": "maybe",
        "allowSingleQuotes": "maybe",
        "allowNumericLeadingZeros": "maybe",
        "allowNonNumericNumbers": "maybe",
        "allowBackslashEscapingAnyCharacter": "maybe",
        "allowUnquotedControlChars": "maybe",
        "dropFieldIfAllNull": "maybe",
        "ignoreNullFields": "maybe",
        "inferTimestamp": "maybe",
        "pretty": "maybe",
        "sortKeys": "maybe",
        "useUnsafeRow": "maybe",
        "enableDateTimeParsingFallback": "maybe",
        "writeNonAsciiCharacterAsCodePoint": "maybe",
    },
    "csv": {
        "sep": "",
        "header": "yes",
        "inferSchema": "maybe",
        "enforceSchema": "maybe",
        "maxColumns": "0",
        "maxCharsPerColumn": "-2",
        "inputBufferSize": "x",
        "quote": "ab",
        "escape": "ab",
        "comment": "##",
        "charToEscapeQuoteEscaping": "ab",
        "encoding": "latin1",
        "lineSep": "abc",
        "unescapedQuoteHandling": "bogus",
        "ignoreLeadingWhiteSpace": "maybe",
        "ignoreTrailingWhiteSpace": "maybe",
        "columnPruning": "maybe",
        "preferDate": "maybe",
        "escapeQuotes": "maybe",
        "quoteAll": "maybe",
        "enableDateTimeParsingFallback": "maybe",
    },
    "text": {"lineSep": "", "wholetext": "maybe"},
    "xml": {
        "excludeAttribute": "maybe",
        "ignoreNamespace": "maybe",
        "ignoreSurroundingSpaces": "maybe",
        "inferSchema": "maybe",
        "preferDate": "maybe",
        "prefersDecimal": "maybe",
        "validateName": "maybe",
        "useLegacyXMLParser": "maybe",
        "rowTag": "<row>",
        "valueTag": "",
    },
    "parquet": {"mergeSchema": "maybe"},
    "orc": {"mergeSchema": "maybe"},
    "rate-micro-batch": {"rowsPerBatch": "0", "startTimestamp": "-1", "advanceMillisPerBatch": "x"},
    "rate": {"rowsPerSecond": "1.5", "rampUpTime": "5 seconds", "numPartitions": "0", "useManualClock": "maybe"},
    "socket": {"port": "x", "includeTimestamp": "yes", "numPartitions": "x"},
}
"""Values with which Spark does not start, or fails in the first batch."""

NEEDED = {
    "xml": {"rowTag": "row"},
    "rate-micro-batch": {"rowsPerBatch": "5"},
    "socket": {"host": "localhost", "port": "1"},
}


@pytest.fixture(scope="module")
def data(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one row for each file format."""
    root = tmp_path_factory.mktemp("options")
    rows = spark.sql("select 1 as id, timestamp'2024-01-31 00:00:00' as ts, date'2024-01-31' as d").coalesce(1)
    for name in ("csv", "json", "parquet", "orc"):
        rows.write.format(name).save(str(root / name))
    rows.write.format("xml").option("rowTag", "row").save(str(root / "xml"))
    rows.selectExpr("cast(id as string)").write.text(str(root / "text"))
    return root


def opened(spark: SparkSession, name: str, options: dict[str, str], data: Path) -> DataFrame:
    """Returns a stream of the data of one format."""
    reader = spark.readStream.format(name).options(**{**NEEDED.get(name, {}), **options})
    if name in ("csv", "json", "parquet", "orc", "xml"):
        reader = reader.schema(COLUMNS)
    return reader.load(str(data / name)) if (data / name).exists() else reader.load()


def is_taken(rows: DataFrame, folder: Path) -> bool:
    """Returns whether Spark reads a first batch with these options."""
    query = rows.writeStream.format("noop").option("checkpointLocation", str(folder)).trigger(once=True).start()
    query.awaitTermination(60)
    return query.exception() is None


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*TAKEN, *REFUSED}))
def test_spark_and_the_compiler_judge_values_alike(spark: SparkSession, data: Path, tmp_path: Path, name: str) -> None:
    """Spark and the compiler agree on each value in a stream."""
    asked = [
        *((True, item) for item in TAKEN.get(name, {}).items()),
        *((False, item) for item in REFUSED[name].items()),
    ]
    wrong = []
    for index, (expected, (option, value)) in enumerate(asked):
        try:
            by_spark = is_taken(opened(spark, name, {option: value}, data), tmp_path / str(index))
        except SPARK_ERRORS:
            by_spark = False
        taken = format_of(name).values_of(option, streams=True)
        by_compiler = taken is not None and taken.accepts(value)
        if not by_spark == by_compiler == expected:
            wrong.append((option, value, by_spark, by_compiler))
    assert wrong == []


PATTERNS = {
    "yyyy-MM-dd'T'HH:mm": "2024-01-31T03:04",
    "yyyy-MM-dd HH:mm:ss.SSS": "2024-01-31 03:04:05.123",
    "dd/MM/yyyy hh:mm a": "31/01/2024 03:04 AM",
    "yyyy-MM-dd[ HH]": "2024-01-31",
    "yyyy-DDD": "2024-031",
    "yyyy-MM-dd HH:mm:ss z": "2024-01-31 03:04:05 UTC",
    "yyyy-MM-dd HH:mm:ss VV": "2024-01-31 03:04:05 UTC",
    "yyyy-MM-ddTHH:mm": "2024-01-31T03:04",
    "bogus": "x",
    "epoch": "1",
    "YYYY-MM-dd": "2024-01-31",
    "yyyy-ww": "2024-01",
    "uuuu-MM-dd": "2024-01-31",
    "E yyyy-MM-dd": "Wed 2024-01-31",
    "yyyy QQ": "2024 01",
    "yyyy-MM-dd#": "2024-01-31#",
    "yyyy-MM-dd'": "2024-01-31",
    "yyyyyyyy": "2024",
    "MMMMMM": "January",
    "DDDD": "0031",
    "V": "UTC",
    "": "2024-01-31",
}
"""Time patterns, each with a matching text."""


@pytest.mark.parametrize(("pattern", "text"), PATTERNS.items())
def test_accepted_patterns_are_those_of_spark(spark: SparkSession, pattern: str, text: str) -> None:
    """The compiler accepts the patterns with which Spark reads a value; others fail or make all values NULL."""
    lines = spark.createDataFrame([(text,)], "value string")
    try:
        (row,) = (
            spark.read.option("timestampFormat", pattern)
            .schema("t timestamp")
            .csv(lines.rdd.map(lambda r: r.value))
            .collect()
        )
        reads = row.t is not None
    except PySparkException:
        reads = False
    taken = format_of("csv").values_of("timestampFormat", streams=True)
    assert taken is not None
    assert taken.accepts(pattern) is reads
