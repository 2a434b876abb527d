"""Makes the class-data archive of `spark/jvm/class_archive.py`, in a process that goes on when the command has ended.

The classes in it are those that a small project needs, which comes with the package: so it does not depend on what the
user happened to run first. Whatever goes wrong, there is no archive, and Spark starts as slowly as ever.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from sqlstream.spark.jvm.class_archive import SWITCH, archive_path, is_whole, make_options

TRAINING = Path(__file__).parent / "training"
"""The project whose run loads the classes. Its project.yml lacks the closing line, which is written here."""

FREE_BYTES = 1_000_000_000
"""Less room than this on the disk is not for archives, which take about 180 MB each."""

DAY_SECONDS = 24 * 3600
"""How long nothing is tried again after it has failed."""

UNUSED_SECONDS = 30 * DAY_SECONDS
"""An archive that was not used for so long is dropped."""

LONGEST_SECONDS = 600.0


def make_later(env: Mapping[str, str]) -> None:
    """Begins to make the archive where there is none and there can be one, with the least priority, and returns."""
    archive = archive_path(env)
    if archive is None or is_whole(archive) or _has_failed(archive):
        return
    with suppress(OSError):
        archive.parent.mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(archive.parent).free < FREE_BYTES or not os.access(archive.parent, os.W_OK):
            return
        subprocess.Popen(
            [sys.executable, "-m", "sqlstream.app.running.class_archive"],
            cwd=archive.parent,
            env={**env, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


def make_archive(env: Mapping[str, str]) -> Path | None:
    """Makes the archive and returns it; returns None where there can be none, or another process is making it.

    Raises: OSError, subprocess.SubprocessError.
    """
    archive = archive_path(env)
    if archive is None or is_whole(archive):
        return archive
    archive.parent.mkdir(parents=True, exist_ok=True)
    with archive.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return None
        made = archive.with_suffix(".new")
        _train(made, env)
        if not is_whole(made):
            _failure(archive).touch()
            return None
        made.replace(archive)
        _drop_unused(archive.parent)
        return archive


def _train(archive: Path, env: Mapping[str, str]) -> None:
    """Runs the training project in a JVM that writes `archive` when it ends, which is waited for."""
    with tempfile.TemporaryDirectory(prefix="sqlstream-training-") as folder:
        project = Path(shutil.copytree(TRAINING, Path(folder) / "project"))
        with (project / "project.yml").open("a") as settings:
            settings.write(f"      spark.driver.extraJavaOptions: '{make_options(archive)}'\n")
        subprocess.run(  # noqa: S603 - this very program
            [sys.executable, "-m", "sqlstream", "run", "--project-dir", str(project)],
            env={**env, SWITCH: "off"},
            stdin=subprocess.DEVNULL,
            capture_output=True,  # the JVM has the pipe as well, and holds it until it ends
            timeout=LONGEST_SECONDS,
            check=False,
        )


def _failure(archive: Path) -> Path:
    """The file whose time says when there was no archive to be made."""
    return archive.with_suffix(".failed")


def _has_failed(archive: Path) -> bool:
    with suppress(OSError):
        return time.time() - _failure(archive).stat().st_mtime < DAY_SECONDS
    return False


def _drop_unused(folder: Path) -> None:
    for path in folder.glob("spark-*"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > UNUSED_SECONDS:
                path.unlink()


if __name__ == "__main__":
    os.nice(19)
    sys.exit(0 if make_archive(os.environ) else 1)
