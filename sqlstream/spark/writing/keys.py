"""The keys of the rows in a batch: how many there are, and that no two rows have the same."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, count, lit, max_by, struct, to_json
from pyspark.sql.functions import sum as sum_

from sqlstream.compiler.sql.names import quote_identifier


class RepeatedKeyError(ValueError):
    """Several rows of a batch have the same `unique_key`, so it is undefined which of them stays."""


def count_keys(rows: DataFrame, keys: Sequence[str]) -> int:
    """Returns the number of rows, of which no two have the same values in the columns `keys`.

    Runs one Spark job. Raises: RepeatedKeyError, Spark's errors.
    """
    columns = [col(quote_identifier(key)) for key in keys]
    same = rows.groupBy(*columns).agg(count(lit(1)).alias("n")).select("n", to_json(struct(*columns)).alias("key"))
    (found,) = same.agg(sum_("n"), max_by(struct("n", "key"), "n")).collect()
    if found[1] is not None and found[1][0] > 1:
        raise RepeatedKeyError(
            f"{found[1][0]} rows of the batch have the same unique_key {found[1][1]}, so it is not defined which of "
            "them the table should keep; make the model emit one row for each key, for example with max_by(...) and "
            "GROUP BY, or add the columns that distinguish the rows to unique_key"
        )
    return found[0] or 0
