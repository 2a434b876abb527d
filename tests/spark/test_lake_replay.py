"""`sqlstream replay` of a query that reads a table of Delta Lake."""

from __future__ import annotations

import os

import pytest

from sqlstream import ProjectRequest
from sqlstream.app.replay.replay_batch import ReplayRequest, replay_batch
from tests.spark.conftest import ProjectFolder
from tests.support.lake_tables import RAW_TABLE, SINKS

pytestmark = pytest.mark.smoke


def replayed(folder: ProjectFolder, batch: int) -> list[tuple[str, list[object]]]:
    """Returns the ids of the source and the model in a batch of the query that copies the table."""
    request = ReplayRequest(ProjectRequest(folder.root, env=os.environ), "copy", batch)
    nodes = replay_batch(request).nodes
    return [(node.name, sorted((row[0] for row in node.rows.rows), key=str)) for node in nodes if node.rows is not None]


def test_a_batch_has_its_versions_only(folder: ProjectFolder) -> None:
    """A replayed batch has the rows of the versions that it has read, not of those that were written later."""
    folder.write(
        {
            "sinks.yml": SINKS,
            "sources.yml": (folder.root / "sources.yml").read_text() + RAW_TABLE,
            "models/raw.sql": "{{ config(sink='delta') }} select id from {{ source('shop', 'orders') }}",
            "models/copy.sql": "{{ config(sink='delta') }} select id from {{ source('lake', 'raw') }} where id > 0",
        }
    )
    for number in range(3):
        folder.rows(f"in/orders/{number}.json", [{"id": 0}, {"id": number + 1}], modified=number)
        assert folder.run("raw").succeeded
        assert folder.run("copy").succeeded

    assert replayed(folder, 0) == [("lake.raw", [0, 1]), ("copy", [1])]
    assert replayed(folder, 1) == [("lake.raw", [0, 2]), ("copy", [2])]
