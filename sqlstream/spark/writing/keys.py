"""The keys of the rows in a batch: how many there are, that no two rows have the same, and which of several counts."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, count, lit, max_by, struct, to_json
from pyspark.sql.functions import sum as sum_

from sqlstream.compiler.sql.names import quote_identifier


class RefusedRowsError(Exception):
    """A batch cannot be applied, now or later: its rows contradict the keys of the sink."""


def count_keys(rows: DataFrame, keys: Sequence[str]) -> int:
    """Returns the number of rows, of which no two have the same values in the columns `keys`.

    Runs one Spark job. Raises: RefusedRowsError, Spark's errors.
    """
    columns = [_column(key) for key in keys]
    same = rows.groupBy(*columns).agg(count(lit(1)).alias("n")).select("n", to_json(struct(*columns)).alias("key"))
    (found,) = same.agg(sum_("n"), max_by(struct("n", "key"), "n")).collect()
    if found[1] is not None and found[1][0] > 1:
        raise RefusedRowsError(
            f"{found[1][0]} rows of the batch have the same unique_key {found[1][1]}, so it is not defined which of "
            "them the table should keep; set sequence_by to the columns that order the rows, or add the columns that "
            "distinguish them to unique_key"
        )
    return found[0] or 0


def last_rows(rows: DataFrame, keys: Sequence[str], sequence: Sequence[str]) -> DataFrame:
    """Returns for each combination of values in the columns `keys` the row with the greatest values of `sequence`."""
    order = struct(*map(_column, sequence))
    last = rows.groupBy(*map(_column, keys)).agg(max_by(struct("*"), order).alias("row"))
    return last.select("row.*")


def _column(name: str) -> Column:
    return col(quote_identifier(name))
