"""The compiler's list of options equals that of the installed Spark."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from sqlstream.project.formats.formats import format_of
from sqlstream.spark.jvm.gateway import jvm_of

CLASSES = {
    "csv": "catalyst.csv.CSVOptions",
    "json": "catalyst.json.JSONOptions",
    "orc": "execution.datasources.orc.OrcOptions",
    "parquet": "execution.datasources.parquet.ParquetOptions",
    "text": "execution.datasources.text.TextOptions",
    "xml": "catalyst.xml.XmlOptions",
}


def options_of(spark: SparkSession, name: str) -> set[str]:
    """Returns the options that a Spark class lists."""
    instance = jvm_of(spark).java.lang.Class.forName(f"org.apache.spark.sql.{name}$").getField("MODULE$").get(None)
    found = instance.getAllOptions().iterator()
    names = set()
    while found.hasNext():
        names.add(str(found.next()).lower())
    return names


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_no_option_of_a_format_is_missing(spark: SparkSession, name: str) -> None:
    """The list contains every option of a format; a missing one would be reported as misspelt."""
    assert options_of(spark, CLASSES[name]) <= {option.lower() for option in format_of(name).options}


def test_no_option_of_files_is_missing(spark: SparkSession) -> None:
    """The list contains the options that choose which files are read."""
    known = {option.lower() for option in format_of("binaryFile").options}

    assert options_of(spark, "execution.datasources.FileIndexOptions") <= known
