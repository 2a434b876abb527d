"""The sink of the target `check`."""

from pyspark.sql import DataFrame

import sqlstream


def write(rows: DataFrame, batch: sqlstream.MicroBatch) -> None:
    """Writes the rows of each batch to a folder."""
    rows.write.parquet(f"{batch.options['folder']}/{batch.model}/batch={batch.id}", mode="overwrite")
