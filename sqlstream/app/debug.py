"""`sqlstream debug`: checks whether this machine and this project can run."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlstream.app.loading.load import Loaded, load_for_reading
from sqlstream.app.request import ProjectRequest
from sqlstream.compiler.connectors import needed_connectors
from sqlstream.compiler.spark_versions import TESTED, installed_spark, is_later
from sqlstream.errors import Finding, FindingsError
from sqlstream.numbers import plural
from sqlstream.project.files.paths import is_absolute, join
from sqlstream.project.files.python_files import PYTHON
from sqlstream.project.secret_text import OptionValue
from sqlstream.project.wording import quoted, quoted_list
from sqlstream.spark.jvm.java import NO_UTF8, NO_UTF8_FIX, JavaRuntime, find_java, java_locale
from sqlstream.spark.jvm.pyspark_package import check_pyspark, check_spark, databricks_connect
from sqlstream.spark.secrets import Secrets, secret_names
from sqlstream.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sqlstream.spark.queries.executors import ClockReading

NOT_RESOLVED = "unresolved dependency"
"""Ivy's message for a package that it cannot find."""

EXECUTOR_SECONDS = 60.0
"""How long to wait for the first executor. A run waits for ten minutes, in which Kubernetes can pull an image."""

YARN_SECONDS = 180.0
"""How long to wait for YARN to start an application. Spark may first copy its jars."""

CLOCK_SECONDS = 1.0
"""A clock that differs by this much is an error: processing time and lag are compared across machines."""

NO_EXECUTOR_FIX = (
    "set spark.driver.host to an address of this machine that the cluster's machines reach, if they cannot reach that "
    "one; otherwise free cores and memory for an executor (spark.executor.memory), or see the cluster's own logs"
)
DRIVER_FIX = (
    "set spark.driver.host to an address that they reach, and open spark.driver.port and spark.blockManager.port"
)
SHARED_FIX = (
    "set storage: to a URI that all machines reach, such as s3a://bucket/folder, or mount the same folder on all"
)

NAME_WIDTH = 9
"""The length of the longest name of a check."""


@dataclass(frozen=True)
class Check:
    """One line of the output: what was checked, whether it is `ok`, what was found, and how to fix it."""

    name: str
    ok: bool
    found: str
    fix: str = ""


def debug(request: ProjectRequest) -> Iterator[Check]:
    """Yields each check when it is done. Starts Spark, which asks the servers of the project."""
    yield Check("sqlstream", True, __version__)
    yield Check("Python", True, f"{sys.version.split()[0]} ({sys.executable})")
    pyspark = _pyspark()
    yield pyspark
    java = _java(request.env)
    try:
        loaded = load_for_reading(request)
    except FindingsError as error:
        yield java
        yield from (_from_finding("project", finding) for finding in error.findings)
        return
    project = loaded.compiled.project
    is_remote = project.target.remote is not None
    yield Check("Java", True, "only needed by `test`, because the target has `remote`") if is_remote else java
    if java_locale() is None and not is_remote:
        yield Check("locale", False, NO_UTF8, NO_UTF8_FIX)
    yield Check("project", True, f"{project.name} in {project.root}")
    remote = str(project.target.remote or "").partition(";")[0]  # its parameters can have a token
    yield Check("target", True, f"{project.target.name}: {remote or project.target.master}")
    yield from _secrets(loaded, request.env)
    yield from _write_access(loaded)
    if not pyspark.ok:
        return
    cannot_start = None if is_remote else check_spark(request.env)
    if cannot_start is not None:
        yield _from_finding("Spark", cannot_start)
    elif java.ok or is_remote:
        if not is_remote:
            yield Check("archive", True, _class_archive(request.env))
        yield from _spark(loaded, request.env)


def _class_archive(env: Mapping[str, str]) -> str:
    from sqlstream.spark.jvm.class_archive import describe  # loads pyspark

    return describe(env)


def _pyspark() -> Check:
    wrong = check_pyspark()
    if wrong is not None:
        return _from_finding("PySpark", wrong)
    version, databricks = installed_spark(), databricks_connect()
    found = f"{version} of databricks-connect {databricks}" if databricks else version
    later = f", newer than the tested versions ({TESTED[0]} to {TESTED[-1]})" if is_later(version) else ""
    return Check("PySpark", True, found + later)


def _java(env: Mapping[str, str]) -> Check:
    java = find_java(env)
    if isinstance(java, JavaRuntime):
        found_by = "JAVA_HOME" if env.get("JAVA_HOME") else "PATH"
        return Check("Java", True, f"{java.version} ({java.path}, from {found_by})")
    return _from_finding("Java", java)


def _from_finding(name: str, finding: Finding) -> Check:
    where = f"{finding.location}: " if finding.location else ""
    return Check(name, not finding.is_error, f"{where}{finding.message}: {finding.why}", finding.fix)


def _secrets(loaded: Loaded, env: Mapping[str, str]) -> Iterator[Check]:
    """Yields one check for all secrets that are set, and one for each that is not. None if the project uses none."""
    project = loaded.compiled.project
    options: list[OptionValue] = [*project.target.spark.values(), project.target.remote or ""]
    options += [value for table in project.sources for value in table.options.values()]
    compiled = loaded.compiled
    outputs = (output for model in compiled.models.values() for output in compiled.outputs_of(model))
    options += [value for output in outputs for value in output.options.values()]
    options += [value for channel in project.target.alerts.notify for value in channel.secret_options.values()]
    names = secret_names(options)
    unset = [name for name in names if name not in env]
    if len(names) > len(unset):
        yield Check("secrets", True, f"set: {', '.join(name for name in names if name in env)}")
    for name in unset:
        yield Check("secrets", False, f"`{name}` is not set", f"set it in the environment: export {name}=...")


def _write_access(loaded: Loaded) -> Iterator[Check]:
    project = loaded.compiled.project
    folders = {"target/": loaded.target_folder, "logs/": project.root / "logs"}
    for name, folder in folders.items():
        yield _writable(name, folder)
    if not is_absolute(project.target.storage) or project.target.storage.startswith("/"):
        yield _writable("storage", Path(join(str(project.root), project.target.storage)))


def _writable(name: str, folder: Path) -> Check:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return Check(name, False, f"cannot write to {folder}: {error.strerror}", f"give {_user()} write access to it")
    return Check(name, True, f"{folder} is writable")


def _user() -> str:
    return os.environ.get("USER", "this user")


def _spark(loaded: Loaded, env: Mapping[str, str]) -> Iterator[Check]:
    """Yields the checks of the jars, of Spark, which does not start without them, and of the project's servers."""
    from sqlstream.app.session.session import spark_session  # loads pyspark
    from sqlstream.spark.jvm.connect import LOSSES
    from sqlstream.spark.queries.connections import ask_servers, servers_of

    packages = ", ".join(loaded.compiled.project.target.packages)
    jars = ", ".join([*needed_connectors(loaded.compiled), *loaded.compiled.project.target.packages])
    secrets, began = Secrets(env), time.monotonic()
    try:
        with spark_session(loaded, secrets, over_connect=True, patience=YARN_SECONDS) as runtime:
            seconds = time.monotonic() - began
            is_cluster = runtime.cluster is not None and runtime.connect is None
            cluster = list(_cluster(loaded, runtime.session, secrets)) if is_cluster else []
            answers = list(ask_servers(list(servers_of(loaded.compiled, runtime.session, secrets)), secrets))
    except FindingsError as error:
        yield from (_from_finding(_failed(finding, packages), finding) for finding in error.findings)
        return
    if jars:
        yield Check("connectors", True, jars)
    how = "starts" if runtime.connect is None else "answers"
    yield Check("Spark", True, f"{runtime.version} {how} in {seconds:.1f} s")
    if runtime.connect is not None:
        for sentence in LOSSES:
            yield Check("Connect", True, f"differs from a master: {sentence}")
    yield from cluster
    for server, answer in answers:
        if isinstance(answer, Finding):
            yield replace(_from_finding(server.kind, answer), ok=False)
        else:
            yield Check(server.kind, True, f"{server.location}: {server.what}: {answer}")


def _cluster(loaded: Loaded, session: SparkSession, secrets: Secrets) -> Iterator[Check]:
    """Yields the checks of a cluster's executors. The later ones need executors that reach the driver."""
    from sqlstream.spark.jvm.cluster import Registrations, cores_by_executor, wait_for_cores
    from sqlstream.spark.queries.executors import ExecutorsError, driver_address, read_clocks

    cores, address = wait_for_cores(session, EXECUTOR_SECONDS), driver_address(session)
    if not cores:
        found = f"none has registered within {EXECUTOR_SECONDS:.0f} s; executors call the driver at {address}"
        found += Registrations(session).where()
        yield Check("executors", False, found, NO_EXECUTOR_FIX)
        return
    yield Check(
        "executors", True, f"{plural(len(cores_by_executor(session)), 'executor')} with {plural(cores, 'core')}"
    )
    try:
        clocks = read_clocks(session, cores)
    except ExecutorsError as error:
        yield Check(
            "driver", False, f"tasks fail on executors, which call {address}: {secrets.redact(str(error))}", DRIVER_FIX
        )
        return
    yield Check("driver", True, f"at {address}, reached from {quoted_list(sorted({clock.host for clock in clocks}))}")
    yield _clocks(clocks)
    yield _executor_python(loaded, session, secrets, cores)
    yield _storage_of_executors(loaded, session, secrets, cores)


def _clocks(clocks: Sequence[ClockReading]) -> Check:
    worst = max(clocks, key=lambda clock: abs(clock.ahead))
    if abs(worst.ahead) >= CLOCK_SECONDS:
        way = "ahead of" if worst.ahead > 0 else "behind"
        found = f"the clock of {quoted(worst.host)} is at least {abs(worst.ahead):.1f} s {way} this machine's"
        return Check("clocks", False, found, "synchronize the clocks of all machines, for example with chrony")
    most = max(abs(clock.ahead) + clock.uncertainty for clock in clocks)
    return Check("clocks", True, f"executors' clocks differ from this machine's by less than {most:.1f} s")


def _executor_python(loaded: Loaded, session: SparkSession, secrets: Secrets, cores: int) -> Check:
    """Returns the check of the Python with which executors run the project's functions, sources and sinks."""
    from sqlstream.spark.queries.executors import ExecutorsError, read_pythons

    here = "{}.{}".format(*sys.version_info)
    command = session.sparkContext.pythonExec
    fix = f"install Python {here} with pyarrow on their machines, and set spark.pyspark.python to its path in `spark:`"
    try:
        pythons = read_pythons(session, cores)
        without = [python.host for python in pythons if not python.pyarrow]
        versions = quoted_list(sorted({python.version for python in pythons}))
        found = f"executors run {command}: Python {versions}"
        found += f", without pyarrow on {quoted_list(without)}" if without else " with pyarrow"
        ok = not without
    except ExecutorsError as error:
        ok, found = False, f"executors cannot run {command}: {secrets.redact(str(error))}"
    if not ok and not _has_python(loaded):
        return Check("workers", True, f"{found}; only Python code needs it, and this project has none")
    return Check("workers", ok, found, "" if ok else fix)


def _has_python(loaded: Loaded) -> bool:
    compiled = loaded.compiled
    return (compiled.project.root / PYTHON).is_dir() or any(model.file.is_python for model in compiled.models.values())


def _storage_of_executors(loaded: Loaded, session: SparkSession, secrets: Secrets, cores: int) -> Check:
    from sqlstream.app.session.target_storage import storage_base
    from sqlstream.spark.queries.executors import ExecutorsError, sees_storage

    folder = storage_base(loaded)
    try:
        if sees_storage(session, folder, cores):
            return Check("shared", True, f"executors see the files in {folder}")
        found = f"executors do not see all files in {folder}"
    except ExecutorsError as error:
        found = f"executors cannot read what this machine writes to {folder}: {secrets.redact(str(error))}"
    return Check("shared", False, found, SHARED_FIX)


def _failed(finding: Finding, packages: str) -> str:
    if finding.code.startswith("connector-"):
        return "connectors"
    return "packages" if packages and NOT_RESOLVED in str(finding.why).lower() else "Spark"


def try_alerts(request: ProjectRequest) -> Iterator[Check]:
    """Yields a check for each channel of alerts, after a test message. Starts Spark for a sink.

    Raises: FindingsError if the project cannot be compiled; UsageError without channels.
    """
    from sqlstream.app.alerts.channel_check import try_channels  # most checks need neither

    for name, ok, found in try_channels(request, _open_sink):
        yield Check(name, ok, found, "" if ok else "fix its entry in `notify` of project.yml, or the receiver")


def _open_sink(loaded: Loaded, secrets: Secrets) -> AbstractContextManager[Any]:
    from sqlstream.app.run.own_rows import writing_alerts  # loads pyspark

    return writing_alerts(loaded, secrets)


def check_text(name: str, ok: bool, found: str, fix: str) -> str:
    """Returns `OK     Java      17.0.15 (/usr/bin/java)`, followed by the fix if it is not OK."""
    line = f"{'OK' if ok else 'ERROR':<6} {name:<{NAME_WIDTH}} {found}"
    return line if ok or not fix else f"{line}\n  fix: {fix}"


def checks_json(checks: Sequence[Mapping[str, object]]) -> str:
    """Returns the checks, mappings of `name`, `ok`, `found` and `fix`, as one JSON object."""
    return json.dumps({"succeeded": all(check["ok"] for check in checks), "checks": list(checks)}, indent=2)
