"""The class archive: a command builds it, and every later start of Spark uses it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sqlstream.spark.jvm.class_archive import archive_path, is_complete
from tests.spark.conftest import LONGEST_WAIT_SECONDS, ProjectFolder, descendants, read_proc_file, wait_for


@pytest.mark.slow
def test_the_next_run_uses_the_archive(orders: ProjectFolder, tmp_path: Path) -> None:
    """The JVM of the next run maps the archive and prints nothing about it."""
    env = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    archive = archive_path({**os.environ, **env})
    assert archive is not None

    assert re.fullmatch(rf"Built {archive} \(\d\d\d MB\) in \d+\.\d s\n", managed("build", env))
    assert is_complete(archive)
    assert managed("build", env).endswith(" MB) is up to date\n")

    orders.write({"models/m.sql": "{{ config(sink='nowhere') }} select id from {{ source('shop', 'orders') }}"})
    process = orders.command("run", env=env)
    first = wait_for(process, "START stream m")
    assert any(str(archive) in read_proc_file(pid, "maps") for pid in descendants(process.pid))
    wait_for(process, "m batch 1")
    process.terminate()
    printed, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)
    assert process.returncode == 0
    assert "[warning]" not in "\n".join([*first, printed])
    assert list(archive.parent.iterdir()) == [archive]

    assert managed("remove", env).startswith(f"Removed {archive} (")
    assert managed("remove", env) == "There is no class archive\n"


def managed(action: str, env: dict[str, str]) -> str:
    """Returns the output of `debug --class-archive`."""
    command = [sys.executable, "-m", "sqlstream", "debug", "--class-archive", action]
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, check=True)
    return done.stdout
