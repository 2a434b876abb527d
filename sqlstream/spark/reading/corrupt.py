"""Records that a parser cannot read: kept apart from the others, exactly, whichever columns a model reads.

Spark parses no column that a query does not read: what is wrong in it is then not seen, and `count(*)` parses nothing.
So the rows that are kept and those that are not are told apart by a condition over all columns. Of the conditions that
say the same Spark's optimizer takes most to pieces (`size(array(struct(*))) = 1` is true, so it goes), and then reads
what is left; it does not look into a function on arrays that takes a lambda.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.functions import col, count_if, current_timestamp
from pyspark.sql.types import StringType, StructField, StructType

from sqlstream.compiler.sql.names import quote_identifier
from sqlstream.project.formats.formats import format_of
from sqlstream.project.on_corrupt import CORRUPT_OPTION, captures_corrupt, option_of
from sqlstream.project.values import SourceTable

CORRUPT = "_sqlstream_corrupt"
"""The column that Spark puts the text of a corrupt record into; no model sees it."""

DEFAULT_NAME = "spark.sql.columnNameOfCorruptRecord"
"""The setting that names the column of corrupt records where no option does."""

LEGACY_XML = "useLegacyXMLParser"
"""The XML parser that goes on behind an element that it cannot read, and gives its text alone: for the other one the
rest of the file is lost, and the record is the whole file (tried on 4.3).
"""

FAILING = {"mode": "FAILFAST"}
"""The options of a reader that fails with the first corrupt record that it meets."""


def handling(table: SourceTable, session: SparkSession) -> str | None:
    """Returns what is done with corrupt records of `table`: `fail`, `drop` or `quarantine`, and None where its format
    knows none, or the options or the schema already say what is done.
    """
    if not format_of(table.format).is_parsed or option_of(table, "mode") is not None:
        return None
    if table.on_corrupt is not None:
        return table.on_corrupt
    return None if captures_corrupt(table, str(session.conf.get(DEFAULT_NAME))) else "fail"


def separating_options(table: SourceTable) -> dict[str, str]:
    """Returns the options with which a reader of `table` gives corrupt records too."""
    options = {"mode": "PERMISSIVE", CORRUPT_OPTION: CORRUPT}
    if table.format == "xml" and option_of(table, LEGACY_XML) is None:
        options[LEGACY_XML] = "true"
    return options


def with_corrupt(schema: StructType) -> StructType:
    """Returns `schema` with the column for corrupt records."""
    return StructType([*schema.fields, StructField(CORRUPT, StringType())])


def good_rows(frame: DataFrame, columns: Sequence[str], metric: str | Observation | None) -> DataFrame:
    """Returns the rows of `frame` that could be read, with the column for corrupt records left in.

    With a `metric` Spark counts the others as `rows`, under that name.
    """
    if metric is not None:
        frame = frame.observe(metric, count_if(col(CORRUPT).isNotNull()).alias("rows"))
    return frame.filter(_condition(columns, "isnull"))


def corrupt_rows(frame: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Returns the other rows of `frame`, with the columns of a table of corrupt records."""
    return frame.filter(_condition(columns, "isnotnull")).select(
        col(CORRUPT).alias("record"),
        frame.metadataColumn("_metadata").getField("file_path").alias("file"),
        current_timestamp().alias("quarantined_at"),
    )


def _condition(columns: Sequence[str], test: str) -> str:
    row = ", ".join(map(quote_identifier, columns))
    return f"exists(array(struct({row})), row -> {test}({CORRUPT}))"
