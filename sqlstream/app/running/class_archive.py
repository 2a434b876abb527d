"""Builds, removes and describes the class archive of `spark/jvm/class_archive.py`.

The classes in it are those that a small project needs, which comes with the package: so it does not depend on what the
user happened to run first.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import lock_descriptor

from sqlstream.app.running.unattended import is_unattended
from sqlstream.errors import Finding, FindingsError, UsageError
from sqlstream.spark.jvm.class_archive import (
    ARCHIVE_VARIABLE,
    archive_path,
    cache_folder,
    is_complete,
    is_disabled,
    make_options,
)
from sqlstream.spark.jvm.java import find_java

TRAINING = Path(__file__).parent / "training"
"""The project whose run loads the classes. Its project.yml lacks the closing line, which is written here."""

FREE_BYTES = 1_000_000_000
"""With less free space on the disk no archive is built unasked."""

MEGABYTE = 1_000_000
USUAL_MEGABYTES = 190

DAY_SECONDS = 24 * 3600
"""How long after a failure nothing is built unasked."""

UNUSED_SECONDS = 30 * DAY_SECONDS
"""An archive that was not used for so long is removed."""

LONGEST_SECONDS = 600.0

COMMAND = "sqlstream debug --class-archive build"


@dataclass(frozen=True)
class BuiltArchive:
    """An archive, and the seconds that building it took: 0 where it was there already."""

    path: Path
    seconds: float

    @property
    def megabytes(self) -> int:
        """Its size."""
        return _megabytes(self.path)


def build_later(env: Mapping[str, str]) -> str | None:
    """Starts a process of the lowest priority that builds the archive, and returns a line that says so.

    Returns None, and starts nothing, where an archive is there, in CI and containers, where one cannot be built, and
    for a day after a failure.
    """
    archive = archive_path(env)
    if archive is None or is_complete(archive) or is_unattended(env) or _has_failed(archive):
        return None
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(archive.parent).free < FREE_BYTES or not os.access(archive.parent, os.W_OK):
            return None
        with _locked(archive, wait=False):
            pass
        subprocess.Popen(  # noqa: S603 - this very program
            ["nice", "-n", "19", sys.executable, "-m", *COMMAND.split()],  # noqa: S607 - every POSIX system has it
            cwd=archive.parent,
            env={**env, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return None
    return (
        f"Building a class archive (about {USUAL_MEGABYTES} MB) in {archive.parent}, so that later runs start in about "
        f"half the time; {ARCHIVE_VARIABLE}=off turns this off"
    )


def build(env: Mapping[str, str]) -> BuiltArchive:
    """Builds the archive where there is none and waits for it, also where another process is building it.

    Raises: UsageError where none can be built here; FindingsError without a usable Java; OSError.
    """
    archive = _buildable(env)
    began = time.monotonic()
    archive.parent.mkdir(parents=True, exist_ok=True)
    with _locked(archive, wait=True):
        if is_complete(archive):
            return BuiltArchive(archive, 0.0)
        made = archive.with_suffix(".new")
        said = _train(made, env)
        if not is_complete(made):
            _failure(archive).touch()
            raise UsageError(f"Java wrote no class archive; the training run ended with: {said}")
        made.replace(archive)
        _drop_unused(archive.parent)
        return BuiltArchive(archive, time.monotonic() - began)


def remove(env: Mapping[str, str]) -> list[tuple[Path, int]]:
    """Removes the archives of every Java and Spark, and returns them with their sizes in MB. Raises: OSError."""
    folder = cache_folder(env)
    removed = []
    for path in sorted(folder.glob("spark-*")) if folder is not None else ():
        if path.suffix == ".jsa":
            removed.append((path, _megabytes(path)))
        path.unlink(missing_ok=True)
    return removed


def describe(env: Mapping[str, str]) -> str:
    """Returns what there is, in a few words."""
    if is_disabled(env):
        return f"off ({ARCHIVE_VARIABLE})"
    archive = archive_path(env)
    if archive is None:
        return "none: there is no home folder"
    if is_complete(archive):
        return f"{archive} ({_megabytes(archive)} MB)"
    return f"none; `{COMMAND}` makes Spark start in about half the time"


def _buildable(env: Mapping[str, str]) -> Path:
    """Where the archive belongs."""
    if is_disabled(env):
        raise UsageError(f"{ARCHIVE_VARIABLE}=off disables class archives; unset it to build one")
    java = find_java(env, start=False)
    if isinstance(java, Finding):
        raise FindingsError([java])
    archive = archive_path(env)
    if archive is None:
        raise UsageError("there is no folder for the class archive; set HOME or XDG_CACHE_HOME")
    return archive


@contextmanager
def _locked(archive: Path, *, wait: bool) -> Iterator[None]:
    """Keeps other processes from building `archive`. Raises: BlockingIOError where one does and `wait` is false."""
    with archive.with_suffix(".lock").open("w") as lock:
        if not lock_descriptor(lock.fileno(), blocking=wait):
            raise BlockingIOError(f"another process is building {archive}")
        yield


def _megabytes(path: Path) -> int:
    return round(path.stat().st_size / MEGABYTE)


def _train(archive: Path, env: Mapping[str, str]) -> str:
    """Runs the training project in a JVM that writes `archive` when it ends; returns the last line of what was said."""
    with tempfile.TemporaryDirectory(prefix="sqlstream-training-") as folder:
        project = Path(shutil.copytree(TRAINING, Path(folder) / "project"))
        with (project / "project.yml").open("a") as settings:
            settings.write(f"      spark.driver.extraJavaOptions: '{make_options(archive)}'\n")
        done = subprocess.run(  # noqa: S603 - this very program
            [sys.executable, "-m", "sqlstream", "run", "--project-dir", str(project)],
            env={**env, ARCHIVE_VARIABLE: "off"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,  # the JVM has the pipe as well, and holds it until it ends
            stderr=subprocess.STDOUT,
            timeout=LONGEST_SECONDS,
            check=False,
        )
        return (done.stdout.decode(errors="replace").strip().splitlines() or ["no output"])[-1]


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
