"""Separates the records that a parser cannot read from the others, whichever columns a model reads.

Spark does not parse columns that a query does not read, so it would miss errors in them; `count(*)` parses nothing.
Therefore a condition on all columns separates the rows. Spark's optimizer simplifies most such conditions
(`size(array(struct(*))) = 1` becomes true), but not array functions with a lambda.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from uuid import uuid4

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.functions import col, count_if, current_timestamp
from pyspark.sql.types import StringType, StructField, StructType

from sqlstream.compiler.sql.names import quote_identifier
from sqlstream.project.formats.formats import format_of
from sqlstream.project.on_corrupt import CORRUPT_OPTION, captures_corrupt, option_of
from sqlstream.project.values import SourceTable
from sqlstream.state.runs.progress import DROPPED_STATIC

CORRUPT = "_sqlstream_corrupt"
"""The column with the text of a corrupt record; models do not see it."""

DEFAULT_NAME = "spark.sql.columnNameOfCorruptRecord"
"""The setting with the default name of the column of corrupt records."""

LEGACY_XML = "useLegacyXMLParser"
"""Selects the XML parser that returns a corrupt element as its own record and continues after it. The other parser
returns the whole file as one record and skips its rest (tested on 4.3).
"""

FAILING = {"mode": "FAILFAST"}
"""The options of a reader that fails at the first corrupt record."""

OBSERVATION_SECONDS = 1.0
"""Time after a write for Spark to report an observation. Spark never reports it if it has removed the reader from the
plan (`where false`).
"""

POLL_SECONDS = 0.01


def corrupt_policy(table: SourceTable, session: SparkSession) -> str | None:
    """Returns the policy for corrupt records of `table`: `fail`, `drop` or `quarantine`. None if its format has no
    corrupt records, or if options or schema already handle them.
    """
    if table.messages is not None:
        return table.on_corrupt or "fail"
    if not format_of(table.format).is_parsed or option_of(table, "mode") is not None:
        return None
    if table.on_corrupt is not None:
        return table.on_corrupt
    return None if captures_corrupt(table, str(session.conf.get(DEFAULT_NAME))) else "fail"


def permissive_options(table: SourceTable) -> dict[str, str]:
    """Returns the options for a reader of `table` that also returns corrupt records."""
    options = {"mode": "PERMISSIVE", CORRUPT_OPTION: CORRUPT}
    if table.format == "xml" and option_of(table, LEGACY_XML) is None:
        options[LEGACY_XML] = "true"
    return options


def with_corrupt(schema: StructType) -> StructType:
    """Returns `schema` with the column for corrupt records."""
    return StructType([*schema.fields, StructField(CORRUPT, StringType())])


def good_rows(frame: DataFrame, columns: Sequence[str], metric: str | Observation | None) -> DataFrame:
    """Returns the parsed rows of `frame`, still with the column for corrupt records.

    With a `metric`, Spark counts the corrupt rows as `rows` under that name.
    """
    if metric is not None:
        frame = frame.observe(metric, count_if(col(CORRUPT).isNotNull()).alias("rows"))
    return frame.filter(_condition(columns, "isnull"))


def corrupt_rows(frame: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Returns the corrupt rows of `frame`, with the columns of a table of corrupt records."""
    return frame.filter(_condition(columns, "isnotnull")).select(
        col(CORRUPT).alias("record"),
        frame.metadataColumn("_metadata").getField("file_path").alias("file"),
        current_timestamp().alias("quarantined_at"),
    )


def _condition(columns: Sequence[str], test: str) -> str:
    row = ", ".join(map(quote_identifier, columns))
    return f"exists(array(struct({row})), row -> {test}({CORRUPT}))"


def new_observation() -> Observation:
    """Returns a new counter of the corrupt records of one static table.

    A stream that reads the table reports the counter with each batch.
    """
    return Observation(DROPPED_STATIC + uuid4().hex)


def dropped_counts(observations: Iterable[Observation]) -> dict[str, dict[str, int]]:
    """Returns the counts of the write that has just ended, in the format of a stream's progress."""
    until = time.monotonic() + OBSERVATION_SECONDS
    complete = [observation for observation in observations if _wait_for(observation, until)]
    return {str(observation._name): observation.get for observation in complete}  # noqa: SLF001


def _wait_for(observation: Observation, until: float) -> bool:
    """Waits for the observation, and returns whether it has completed; `observation.get` would wait forever."""
    java = getattr(observation, "_jo", None)  # a private field; without it the count is left out
    while java is not None and not java.future().isCompleted():
        if time.monotonic() >= until:
            return False
        time.sleep(POLL_SECONDS)
    return java is not None
