"""`sqlstream deps`: downloads the jars of a project's connectors and packages, and pins them in connectors.lock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sqlstream.app.loading.load import load_for_reading
from sqlstream.app.request import ProjectRequest
from sqlstream.errors import UsageError
from sqlstream.project.connectors.connectors import Jar
from sqlstream.project.connectors.lock import LOCK_FILE, ConnectorsLock, lock_text

if TYPE_CHECKING:  # loads pyspark
    from sqlstream.app.session.project_jars import JarStore, ResolvedJars


@dataclass(frozen=True)
class FetchedConnector:
    """One connector, or the packages of the target: its jars, how many of them were downloaded, and their size.

    `stands_in` is the version of a release for an earlier Spark that is used because there is none for this Spark.
    """

    name: str
    jars: tuple[str, ...]
    downloaded: int
    megabytes: float
    stands_in: str


@dataclass(frozen=True)
class FetchedJars:
    """Everything that the project needs for `spark`, a minor version, and the lock if it was written."""

    spark: str
    connectors: tuple[FetchedConnector, ...]
    written: Path | None


class DownloadProgress(Protocol):
    """Shows downloads for as long as it is entered."""

    def __enter__(self) -> DownloadProgress:
        """Begins to show them."""

    def __exit__(self, *error: object) -> None:
        """Ends."""

    def update(self, name: str, done: int, total: int) -> None:
        """Shows the bytes of one jar so far, from any thread; `total` is 0 if it is unknown."""


class NoProgress:
    """Shows nothing."""

    def __enter__(self) -> NoProgress:
        """Returns itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Does nothing."""

    def update(self, name: str, done: int, total: int) -> None:
        """Does nothing."""


def fetch_connectors(request: ProjectRequest, progress: DownloadProgress, *, upgrade: bool) -> FetchedJars:
    """Downloads the missing jars of the target's connectors and packages, checks all, and writes connectors.lock.

    Keeps the jars that the lock names; with `upgrade` it takes those that this version of sqlstream names, and
    resolves packages again. Raises: FindingsError, UsageError.
    """
    from sqlstream.app.session.project_jars import jar_store, project_lock, resolve_jars, spark_minor  # loads pyspark
    from sqlstream.spark.secrets import Secrets

    loaded = load_for_reading(request)
    project, spark = loaded.compiled.project, spark_minor()
    store = jar_store(project.target, Secrets(request.env), request.env)
    lock = project_lock(project.root)
    resolved = resolve_jars(loaded, store, lock.without(spark) if upgrade else lock, request.env)
    missing = store.missing(resolved)
    with progress:
        store.fetch(missing, progress.update)
    new = lock.with_jars(spark, {each.name: each.jars for each in resolved})
    connectors = tuple(_fetched(each, missing, store) for each in resolved)
    return FetchedJars(spark, connectors, _write_lock(project.root / LOCK_FILE, lock, new))


def _fetched(resolved: ResolvedJars, missing: Sequence[tuple[Jar, ResolvedJars]], store: JarStore) -> FetchedConnector:
    size = sum((store.folder / jar.path).stat().st_size for jar in resolved.jars)
    downloaded = sum(each is resolved for _, each in missing)
    names = tuple(jar.coordinate for jar in resolved.jars)
    return FetchedConnector(resolved.name, names, downloaded, size / 1_000_000, resolved.stands_in)


def _write_lock(path: Path, old: ConnectorsLock, new: ConnectorsLock) -> Path | None:
    """Writes the file if it changes. Raises: UsageError."""
    if new == old:
        return None
    try:
        path.write_text(lock_text(new), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from error
    return path
