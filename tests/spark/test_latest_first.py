"""Reading a backlog newest first under a watermark loses rows."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession


@pytest.mark.parametrize(("latest_first", "hours"), [("false", [0, 1, 2]), ("true", [2])])
def test_rows_of_older_files_are_lost(spark: SparkSession, tmp_path: Path, latest_first: str, hours: list[int]) -> None:
    """The newest file moves the watermark past all other files. The next batch still uses the old watermark; after it
    the rows of all older files are dropped. The newest window stays open in either order.
    """
    for hour in range(4):
        file = tmp_path / f"in/{hour}.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps({"at": f"2024-01-01T0{hour}:30:00"}))
        os.utime(file, (hour, hour))
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    reader = spark.readStream.schema("at timestamp").option("maxFilesPerTrigger", 1)
    reader.option("latestFirst", latest_first).json(str(tmp_path / "in")).createOrReplaceTempView("backlog")
    counted = spark.sql(
        "select hour(window.start) as hour, count(*) as n from backlog watermark at delay of interval 0 seconds "
        "group by window(at, '1 hour')"
    )
    name = f"counted_{latest_first}"

    writer = counted.writeStream.format("memory").queryName(name).trigger(availableNow=True)
    writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()

    assert sorted(row.hour for row in spark.table(name).collect()) == hours
