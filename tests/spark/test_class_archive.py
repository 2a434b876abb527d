"""The class-data archive: made by a run of its own, and used by every later start of Spark."""

from __future__ import annotations

import os
from pathlib import Path

from conftest import LONGEST_WAIT_SECONDS, ProjectFolder, descendants, told_by, wait_for

from sqlstream.app.running.class_archive import make_archive
from sqlstream.spark.jvm.class_archive import is_whole


def test_an_archive_is_made_once_and_used_by_the_next_run(orders: ProjectFolder, tmp_path: Path) -> None:
    """The JVM of a run has the archive in its memory, prints nothing of it, and the run is as ever."""
    env = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    archive = make_archive({**os.environ, **env})
    assert archive is not None
    assert is_whole(archive)
    written = archive.stat().st_ino
    assert make_archive({**os.environ, **env}) == archive
    assert archive.stat().st_ino == written

    orders.write({"models/m.sql": "{{ config(sink='nowhere') }} select id from {{ source('shop', 'orders') }}"})
    process = orders.command("run", env=env)
    first = wait_for(process, "START stream m")
    assert any(str(archive) in told_by(pid, "maps") for pid in descendants(process.pid))
    wait_for(process, "m batch 1")
    process.terminate()
    said, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)
    assert process.returncode == 0
    assert "[warning]" not in "\n".join([*first, said])
    assert {path.name for path in archive.parent.iterdir()} == {archive.name, archive.with_suffix(".lock").name}
