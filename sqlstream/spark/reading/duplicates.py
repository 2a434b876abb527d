"""`deduplicate` on the rows of a model's SQL, as Spark's own operator."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from sqlstream.compiler.rewrite.deduplicate import key_columns

WATERMARK = "spark.watermarkDelayMs"
"""What Spark notes of a column that carries a watermark (`EventTimeWatermark.delayKey`)."""


def drop_duplicates(frame: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Returns one row of `frame` for each combination of values in `columns`; all of them where `columns` is empty.

    In a stream whose rows carry a watermark the first row stays known for as long as that is late, and longer by its
    delay; without one for ever. Raises: AnalysisException.
    """
    if not columns:
        return frame
    keys = list(key_columns(columns))
    if frame.isStreaming and any(WATERMARK in field.metadata for field in frame.schema.fields):
        return frame.dropDuplicatesWithinWatermark(keys)
    return frame.dropDuplicates(keys)
