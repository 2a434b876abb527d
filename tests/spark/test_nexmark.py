"""The queries of `make bench-nexmark`."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.nexmark.generator import write_events, write_side_input
from benchmarks.nexmark.queries import copy_project, differences
from tests.spark.conftest import ProjectFolder, bare_session

EVENTS, RATE, FILES = 6_000, 200, 4
"""Half a minute of events, so that windows of ten seconds close; in two batches, and one with later events."""


@pytest.mark.slow
def test_streams_have_the_rows_of_batch_runs(tmp_path: Path) -> None:
    """Each query has the same rows as a batch run of its SQL over the same files."""
    project, data = copy_project(tmp_path / "nexmark"), tmp_path / "data"
    write_events(data / "events", EVENTS, FILES, 1, RATE)
    write_side_input(data / "side_input")
    paths = {name: str(data / name) for name in ("events", "side_input")}
    outcome = ProjectFolder(project).run(variables={**paths, "rows": str(project / "rows")})
    names = {result.model for result in outcome.results}
    found = differences(bare_session("local[2]"), project, data, names)
    assert len(found) == 21
    assert {name: rows[1:] for name, rows in found.items() if rows[1] + rows[2]} == {}
    assert [name for name, (rows, _, _) in found.items() if not rows] == []
