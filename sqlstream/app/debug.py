"""`sqlstream debug`: whether this machine and this project can run, line by line."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from sqlstream.app.loading import Loaded, load
from sqlstream.app.request import ProjectRequest
from sqlstream.errors import Finding, FindingsError
from sqlstream.project.paths import is_absolute, join
from sqlstream.spark.java import Java, find_java
from sqlstream.spark.secrets import Secrets


@dataclass(frozen=True)
class Check:
    """One line: what was looked at, whether it is well, what was found, and otherwise how to mend it."""

    name: str
    ok: bool
    found: str
    fix: str = ""


def debug(request: ProjectRequest, start_spark: Callable[[Loaded], str] | None = None) -> Iterator[Check]:
    """Yields each check as it is done. `start_spark` starts and stops a session and returns its version."""
    yield _python()
    yield _pyspark()
    java = _java(request.env)
    yield java
    try:
        loaded = load(request)
    except FindingsError as error:
        yield from (_from_finding("project", finding) for finding in error.findings)
        return
    project = loaded.compiled.project
    yield Check("project", True, f"{project.name} in {project.root}")
    yield Check("target", True, f"{project.target.name}: {project.target.remote or project.target.master}")
    yield from _write_access(loaded)
    if java.ok and start_spark is not None:
        yield _spark(loaded, start_spark)


def _python() -> Check:
    return Check("Python", True, f"{sys.version.split()[0]} ({sys.executable})")


def _pyspark() -> Check:
    try:
        return Check("PySpark", True, metadata.version("pyspark"))
    except metadata.PackageNotFoundError:
        return Check("PySpark", False, "not installed", "install it into this Python: pip install pyspark")


def _java(env: Mapping[str, str]) -> Check:
    java = find_java(env)
    if isinstance(java, Java):
        return Check("Java", True, f"{java.version} ({java.path})")
    return _from_finding("Java", java)


def _from_finding(name: str, finding: Finding) -> Check:
    where = f"{finding.location}: " if finding.location else ""
    return Check(name, not finding.is_error, f"{where}{finding.message}: {finding.why}", finding.fix)


def _write_access(loaded: Loaded) -> Iterator[Check]:
    project = loaded.compiled.project
    folders = {"target/": loaded.target_folder, "logs/": project.root / "logs"}
    if not is_absolute(project.target.storage) or project.target.storage.startswith("/"):
        folders["storage"] = Path(join(str(project.root), project.target.storage))
    for name, folder in folders.items():
        yield _writable(name, folder)


def _writable(name: str, folder: Path) -> Check:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return Check(name, False, f"{folder} cannot be written: {error.strerror}", f"give {_user()} write access to it")
    return Check(name, True, f"{folder} can be written")


def _user() -> str:
    return os.environ.get("USER", "this user")


def _spark(loaded: Loaded, start_spark: Callable[[Loaded], str]) -> Check:
    try:
        return Check("Spark", True, f"{start_spark(loaded)} starts")
    except FindingsError as error:
        return _from_finding("Spark", error.findings[0])


def session_version(loaded: Loaded) -> str:
    """Starts Spark for the project's target, stops it again, and returns its version. Raises: FindingsError."""
    from sqlstream.app.session import start_session  # pyspark is loaded here and not before
    from sqlstream.spark.session import stop_spark

    runtime = start_session(loaded, Secrets(dict(os.environ)))
    try:
        return runtime.version
    finally:
        stop_spark(runtime)
