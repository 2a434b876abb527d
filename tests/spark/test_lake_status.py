"""The lag of a query that reads a table of Delta Lake, in `sqlstream status` and in an alert."""

from __future__ import annotations

import os
import re

import pytest

from sqlstream import ProjectRequest
from sqlstream.app.request import Selection
from sqlstream.app.status.status import read_status
from sqlstream.state.runs.events import AlertChanged, RunEvent
from sqlstream.state.sources.lag import Lag, VersionLag
from tests.spark.conftest import ProjectFolder
from tests.support.lake_tables import RAW_TABLE, SINKS

pytestmark = pytest.mark.smoke


def lag(folder: ProjectFolder) -> Lag | None:
    """Returns the lag of the query that copies the table."""
    (query,) = read_status(ProjectRequest(folder.root, env=os.environ), Selection(("copy",))).progress
    (source,) = query.versions[0].sources
    assert (source.name, source.position.form) == ("lake.raw", "delta")
    return source.lag


def test_the_lag_of_delta(folder: ProjectFolder) -> None:
    """The lag is the number of versions that were written since; each batch of the other query writes one."""
    folder.write(
        {
            "sinks.yml": SINKS,
            "sources.yml": (folder.root / "sources.yml").read_text() + RAW_TABLE,
            "models/raw.sql": "{{ config(sink='delta') }} select id from {{ source('shop', 'orders') }}",
            "models/copy.sql": "{{ config(sink='delta') }} select id from {{ source('lake', 'raw') }}",
        }
    )
    folder.rows("in/orders/0.json", [{"id": 0}], modified=0)
    assert folder.run("raw").succeeded
    assert folder.run("copy").succeeded
    before = lag(folder)
    for number in (1, 2):
        folder.rows(f"in/orders/{number}.json", [{"id": number}], modified=number)
    assert folder.run("raw").succeeded

    assert (before, lag(folder)) == (VersionLag(0), VersionLag(2))


def test_a_lag_is_raised_and_resolved(folder: ProjectFolder) -> None:
    """A query that has more versions of Delta Lake left than its limit raises an alert, until it has read them."""
    folder.write(
        {
            "sinks.yml": SINKS,
            "sources.yml": (folder.root / "sources.yml").read_text()
            + RAW_TABLE.replace("startingVersion: 0", "startingVersion: 0, maxFilesPerTrigger: 1"),
            "models/raw.sql": "{{ config(sink='delta') }} select id from {{ source('shop', 'orders') }}",
            "models/copy.sql": "{{ config(sink='delta', trigger='3 seconds', alerts={'lag_over': {'versions': 1}}) }} "
            "select id from {{ source('lake', 'raw') }}",
        }
    )
    for number in range(6):
        folder.rows(f"in/orders/{number}.json", [{"id": number}], modified=number)
    assert folder.run("raw").succeeded

    def is_resolved(events: list[RunEvent]) -> bool:
        return any(isinstance(event, AlertChanged) and event.state == "resolved" for event in events)

    assert folder.run_until(is_resolved, "copy").succeeded
    raised, resolved = (event for event in folder.events if isinstance(event, AlertChanged))
    assert [(raised.alert, raised.state), (resolved.alert, resolved.state)] == [
        ("lag_over", "raised"),
        ("lag_over", "resolved"),
    ]
    assert re.search(r"has a lag of \d+ versions; the limit is 1$", raised.message)
    assert resolved.value == 0
