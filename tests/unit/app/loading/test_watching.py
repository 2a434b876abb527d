"""Which files have changed."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from sqlstream.app.loading.watching import changed_paths, take_snapshot, wait_for_change


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with a file of each kind, and files that do not belong to it."""
    names = (
        "project.yml",
        "models/a/b.sql",
        "macros/m.sql",
        "python/p.py",
        "seeds/s.csv",
        "schemas/x.ddl",
        "target/t.sql",
        "data/d.json",
    )
    for name in (*names, "python/__pycache__/p.pyc", "models/.b.sql.swp", "models/b.sql~"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    return tmp_path


def test_project_files_are_watched(root: Path) -> None:
    """Project files and explicitly named files are watched, but no data, artifacts or editor backups."""
    assert set(take_snapshot(root, ("schemas/x.ddl", "no/such.ddl"))) == {
        "macros/m.sql", "models/a/b.sql", "project.yml", "python/p.py", "schemas/x.ddl", "seeds/s.csv",
    }  # fmt: skip


def test_a_replaced_file_of_the_same_size_and_time_is_changed(root: Path) -> None:
    """A replaced file counts as changed even if size and time are equal, and so do new and deleted files."""
    before = take_snapshot(root)
    model = root / "models" / "a" / "b.sql"
    status = model.stat()
    new = root / "models" / "a" / "new"
    new.write_text("")
    os.utime(new, ns=(status.st_mtime_ns, status.st_mtime_ns))
    new.replace(model)
    (root / "macros" / "m.sql").unlink()
    (root / "sources.yml").write_text("")

    assert changed_paths(before, take_snapshot(root)) == ("macros/m.sql", "models/a/b.sql", "sources.yml")


def test_the_watcher_waits_for_a_change(root: Path) -> None:
    """The watcher waits until a file changes."""
    before = take_snapshot(root)
    writer = threading.Timer(0, (root / "models" / "c.sql").write_text, ["select 1"])
    writer.start()

    assert changed_paths(before, wait_for_change(root, (), before)) == ("models/c.sql",)
    writer.join()
