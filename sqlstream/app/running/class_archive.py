"""Builds, removes and describes the class archive of `spark/jvm/class_archive.py`.

It contains the classes that a small training project loads. That project is part of the package, so the archive does
not depend on what the user runs first.
"""

from __future__ import annotations

import os
import re
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
"""The project whose run loads the classes. Its project.yml lacks the last line, which `_train` adds."""

FREE_BYTES = 1_000_000_000
"""The free disk space that an automatic build needs."""

MEGABYTE = 1_000_000
USUAL_MEGABYTES = 190

DAY_SECONDS = 24 * 3600
"""How long a failure prevents automatic builds."""

UNUSED_SECONDS = 30 * DAY_SECONDS
"""Archives that were not used for this long are removed."""

LONGEST_SECONDS = 600.0

COMMAND = "sqlstream debug --class-archive build"

CONTAINER_FILES = ("/.dockerenv", "/run/.containerenv")
"""Files that Docker and Podman create in each container."""

CONTAINER_VARIABLES = ("KUBERNETES_SERVICE_HOST", "container")
"""Set by Kubernetes, and by Podman, LXC and systemd-nspawn."""

CGROUPS = "/proc/1/cgroup"
_CONTAINER_CGROUP = re.compile(r"docker|kubepods|containerd|libpod|lxc")

NOT_CI = ("", "0", "false")
"""Values of the variable CI outside CI."""


@dataclass(frozen=True)
class BuiltArchive:
    """An archive, and how long the build took: 0 seconds if it existed already."""

    path: Path
    seconds: float

    @property
    def megabytes(self) -> int:
        """The size of the archive."""
        return _megabytes(self.path)


def build_later(env: Mapping[str, str]) -> str | None:
    """Starts a background process of the lowest priority that builds the archive, and returns a message about it.

    Returns None, and starts nothing, if the archive exists or cannot be built, in CI and in containers, and for a day
    after a failure.
    """
    archive = archive_path(env)
    if archive is None or is_complete(archive) or in_ci_or_container(env) or _has_failed(archive):
        return None
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(archive.parent).free < FREE_BYTES or not os.access(archive.parent, os.W_OK):
            return None
        with _locked(archive, wait=False):
            pass
        subprocess.Popen(  # noqa: S603 - runs sqlstream itself
            ["nice", "-n", "19", sys.executable, "-m", *COMMAND.split()],  # noqa: S607 - every POSIX system has nice
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
    """Builds the archive if it does not exist. If another process is building it, waits for that process.

    Raises: UsageError if it cannot be built here; FindingsError without a usable Java; OSError.
    """
    archive = _buildable(env)
    began = time.monotonic()
    archive.parent.mkdir(parents=True, exist_ok=True)
    with _locked(archive, wait=True):
        if is_complete(archive):
            return BuiltArchive(archive, 0.0)
        new = archive.with_suffix(".new")
        last_line = _train(new, env)
        if not is_complete(new):
            _failure_marker(archive).touch()
            raise UsageError(f"Java wrote no class archive; the training run ended with: {last_line}")
        new.replace(archive)
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
    """Returns the state of the archive in a few words."""
    if is_disabled(env):
        return f"off ({ARCHIVE_VARIABLE})"
    archive = archive_path(env)
    if archive is None:
        return "none: there is no home folder"
    if is_complete(archive):
        return f"{archive} ({_megabytes(archive)} MB)"
    return f"none; `{COMMAND}` makes Spark start in about half the time"


def _buildable(env: Mapping[str, str]) -> Path:
    """Returns the path of the archive to build. Raises: UsageError, FindingsError."""
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
    """Locks `archive` during the body. Raises: BlockingIOError if another process builds it and `wait` is false."""
    with archive.with_suffix(".lock").open("w") as lock:
        if not lock_descriptor(lock.fileno(), blocking=wait):
            raise BlockingIOError(f"another process is building {archive}")
        yield


def _megabytes(path: Path) -> int:
    return round(path.stat().st_size / MEGABYTE)


def _train(archive: Path, env: Mapping[str, str]) -> str:
    """Runs the training project in a JVM that writes `archive` at its end. Returns the last line of its output."""
    with tempfile.TemporaryDirectory(prefix="sqlstream-training-") as folder:
        project = Path(shutil.copytree(TRAINING, Path(folder) / "project"))
        with (project / "project.yml").open("a") as settings:
            settings.write(f"      spark.driver.extraJavaOptions: '{make_options(archive)}'\n")
        done = subprocess.run(  # noqa: S603 - runs sqlstream itself
            [sys.executable, "-m", "sqlstream", "run", "--project-dir", str(project)],
            env={**env, ARCHIVE_VARIABLE: "off"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,  # the JVM inherits the pipe, so this waits until the JVM ends
            stderr=subprocess.STDOUT,
            timeout=LONGEST_SECONDS,
            check=False,
        )
        return (done.stdout.decode(errors="replace").strip().splitlines() or ["no output"])[-1]


def _failure_marker(archive: Path) -> Path:
    """Returns the file whose time is that of the last failed build."""
    return archive.with_suffix(".failed")


def _has_failed(archive: Path) -> bool:
    return _age_seconds(_failure_marker(archive), default=DAY_SECONDS) < DAY_SECONDS


def _drop_unused(folder: Path) -> None:
    for path in folder.glob("spark-*"):
        if _age_seconds(path, default=0) > UNUSED_SECONDS:
            path.unlink(missing_ok=True)


def _age_seconds(path: Path, default: float) -> float:
    with suppress(OSError):
        return time.time() - path.stat().st_mtime
    return default


def in_ci_or_container(env: Mapping[str, str], root: Path = Path("/")) -> bool:
    """Returns whether `env` and the file system below `root` are those of CI or of a container, where the next run does
    not find the files of this one.
    """
    if env.get("CI", "").lower() not in NOT_CI or any(env.get(name) for name in CONTAINER_VARIABLES):
        return True
    if any((root / path.lstrip("/")).exists() for path in CONTAINER_FILES):
        return True
    with suppress(OSError):
        cgroups = (root / CGROUPS.lstrip("/")).read_text(encoding="utf-8", errors="replace")
        return bool(_CONTAINER_CGROUP.search(cgroups))
    return False
