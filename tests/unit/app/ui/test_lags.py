"""The lag of running queries on the page, from their checkpoints."""

from __future__ import annotations

import shutil
from pathlib import Path

from sqlstream import ProjectRequest
from sqlstream.app.ui.data import Checkpoints
from sqlstream.app.ui.live_runs import LiveQuery
from sqlstream.app.ui.project_view import ProjectView
from tests.tools.make_checkpoints import FOLDER, ROOT, with_root, write_project, write_rows


def test_the_lag_is_that_of_the_version_that_runs(tmp_path: Path) -> None:
    """A parallel version has read the file that the current one has left. A query that does not run has no lag."""
    with_root(FOLDER / "spark-4.3", tmp_path, ROOT, str(tmp_path))
    write_project(tmp_path)
    for number in (1, 2):
        write_rows(tmp_path, number)
    versions = tmp_path / "store/queries/plain"
    shutil.copytree(versions / "v1", versions / "v2")
    (versions / "versions.json").write_text('{"current": 1, "parallel": 2}')
    log = versions / "v2/checkpoint/sources/shop__orders/0"
    log.write_text(f"{log.read_text()}\n{log.read_text().splitlines()[-1].replace('1.json', '2.json')}")
    seen = ProjectView(ProjectRequest(tmp_path)).seen()

    found = {}
    for version, status in ((1, "running"), (2, "running"), (1, "success")):
        entry = {"checkpoint": str(versions / f"v{version}/checkpoint")}
        live = {"plain": LiveQuery(0, "plain", entry=entry, status=status)}
        found[version, status] = {model: lags for model, lags, _ in Checkpoints().read(seen, live)}

    size = (tmp_path / "in/orders/2.json").stat().st_size
    assert found == {
        (1, "running"): {"plain": {"shop.orders": {"files": 1, "bytes": size}}},
        (2, "running"): {"plain": {"shop.orders": {"files": 0, "bytes": 0}}},
        (1, "success"): {},
    }
