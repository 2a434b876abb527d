"""Applies a model's `deduplicate` with Spark's operator."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from sqlstream.compiler.rewrite.deduplicate import key_columns

WATERMARK = "spark.watermarkDelayMs"
"""The metadata key of a column with a watermark (`EventTimeWatermark.delayKey`)."""


def drop_duplicates(frame: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Returns one row of `frame` for each combination of values in `columns`; all rows if `columns` is empty.

    In a stream with a watermark, Spark remembers a row until the watermark passes its time plus the delay; without a
    watermark, forever. Raises: AnalysisException.
    """
    if not columns:
        return frame
    keys = list(key_columns(columns))
    if frame.isStreaming and any(WATERMARK in field.metadata for field in frame.schema.fields):
        return frame.dropDuplicatesWithinWatermark(keys)
    return frame.dropDuplicates(keys)
