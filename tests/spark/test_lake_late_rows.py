"""Late rows beside tables of Delta Lake and Iceberg."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.spark.conftest import PROJECT, ProjectFolder
from tests.support.lake_tables import FORMATS, SINKS

SOURCE = (
    "sources: [{name: shop, tables: [{name: orders, format: json, path: in/orders, options: {maxFilesPerTrigger: 1}, "
    "schema: 'id int, ts timestamp', watermark: {column: ts, delay: 30 minutes}}]}]\n"
)
NO_EMPTY_BATCHES = "spark: {spark.sql.streaming.noDataMicroBatches.enabled: 'false'}"
MODEL = (
    "{{ config(sink='FORMAT', quarantine_sink='notes', late_rows='quarantine') }}\n"
    "select window.start as hour, count(*) as n from {{ source('shop', 'orders') }} group by window(ts, '1 hour')"
)


@pytest.mark.smoke
@pytest.mark.parametrize("form", FORMATS)
def test_late_rows_of_a_batch_that_the_table_has_are_not_lost(folder: ProjectFolder, form: str) -> None:
    """A run ends after the commit of the table and before the late rows: the repeated batch finds them again."""
    folder.write(
        {
            "project.yml": PROJECT.replace("storage: store", f"storage: store, {NO_EMPTY_BATCHES}"),
            "sources.yml": SOURCE,
            "sinks.yml": f"{SINKS}  - {{name: notes, format: json, path: '{{{{ model.name }}}}'}}\n",
            "models/hours.sql": MODEL.replace("FORMAT", form),
        }
    )
    times = ["12:00", "12:10", "10:00"]
    folder.batches("in/orders", [[{"id": id_, "ts": f"2026-01-01T{time}:00Z"}] for id_, time in enumerate(times)])
    assert folder.result().batches == 3
    place = folder.root / "store/hours__late"

    def late() -> list[int]:
        return [json.loads(line)["id"] for file in place.rglob("*.json") for line in file.open()]

    assert late() == [2]
    shutil.rmtree(place)
    (folder.root / "store/queries/hours/v1/checkpoint/commits/2").unlink()
    assert folder.result().batches == 1
    assert late() == [2]
