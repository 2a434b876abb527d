"""Ships the project's Python code to executors, imports it, and registers its functions for SQL."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource
from pyspark.sql.udtf import UserDefinedTableFunction

from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.rules.rule import terminal_models
from sqlstream.compiler.rules.sources import used_sources
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location
from sqlstream.project.files.python_files import PYTHON, PythonFunction
from sqlstream.spark.jvm.gateway import is_connect

FOREACH_BATCH_ARGUMENTS = 2

ARCHIVE = "sqlstream_project_python.zip"
"""The copy of python/ from which workers import."""


def ship_python(session: SparkSession, root: Path) -> None:
    """Adds python/ of the project at `root` to this process's import path, and a copy to that of every worker.

    Modules of an earlier run in this process are removed, so that changed files are imported again. Over Connect: the
    copy belongs to the session and to the clones of it.
    """
    folder = root / PYTHON
    _forget_modules()
    if not folder.is_dir():
        return
    archives = tempfile.TemporaryDirectory(prefix="sqlstream-python-")
    archive = Path(archives.name) / ARCHIVE
    with zipfile.ZipFile(archive, "w") as packed:
        paths = (path for path in sorted(folder.rglob("*")) if "__pycache__" not in path.parts)
        for path in filter(Path.is_file, paths):
            packed.write(path, path.relative_to(folder))
    if is_connect(session):
        session.addArtifacts(str(archive), pyfile=True)
    else:
        session.sparkContext.addPyFile(str(archive))
    sys.path.insert(0, str(folder))
    _SHIPPED[str(folder)] = archives
    importlib.invalidate_caches()  # the import system remembers the files of folders


def shipped_archive() -> bytes | None:
    """Returns the copy of python/ that `ship_python` has sent, None without that folder."""
    return next((Path(copies.name, ARCHIVE).read_bytes() for copies in _SHIPPED.values()), None)


def add_archive(content: bytes) -> None:
    """Adds a copy of python/ from another process to the import path of this one."""
    copies = tempfile.TemporaryDirectory(prefix="sqlstream-python-")
    archive = Path(copies.name) / ARCHIVE
    archive.write_bytes(content)
    sys.path.insert(0, str(archive))
    _SHIPPED[str(archive)] = copies


_SHIPPED: dict[str, tempfile.TemporaryDirectory[str]] = {}
"""Folders of project modules on this process's import path, each with the copy that Spark reads while it runs. The
copies are deleted with their entry here, or at the end of the process.
"""


def _forget_modules() -> None:
    for folder, archives in _SHIPPED.items():
        for name in _modules_below(folder):
            del sys.modules[name]
        # addPyFile has added the archive to the path of this process, too
        sys.path[:] = [path for path in sys.path if path != folder and not path.endswith(ARCHIVE)]
        archives.cleanup()
    _SHIPPED.clear()


def _modules_below(folder: str) -> list[str]:
    return [
        name
        for name, module in list(sys.modules.items())
        if str(getattr(module, "__file__", None) or "").startswith(folder + os.sep)
    ]


def check_python(compiled: CompiledProject) -> list[Finding]:
    """Imports the project's Python functions, and the Python sources and sinks in use; returns a finding for each
    error.
    """
    sources = [table for table in used_sources(compiled) if table.python is not None]
    used = {output.sink for _, output in terminal_models(compiled)}
    sinks = [sink for sink in compiled.project.sinks if sink.function is not None and sink.name in used]
    references = (
        *((function.reference, function.location, "function") for function in compiled.project.functions),
        *((table.python or "", table.locations.get("class", table.location), "source") for table in sources),
        *((sink.function or "", sink.locations.get("function", sink.location), "sink") for sink in sinks),
    )
    return [finding for reference in references for finding in _problems(*reference)]


def import_name(reference: str, location: Location) -> Any:
    """Imports and returns the object of `reference`, a `module:name` in python/. Raises: FindingsError."""
    module_name, _, name = reference.partition(":")
    try:
        module = importlib.import_module(module_name)
        found = getattr(module, name)
    except Exception as error:
        raise FindingsError([_not_imported(reference, error, location)]) from error
    pickle_by_value()
    return found


def pickle_by_value() -> None:
    """Lets Spark send the imported modules of python/ to workers with the code that uses them.

    By reference, a worker would import them: Spark cannot create a @udf("int") there, and the process that prepares a
    transformWithState does not have python/ on its path (Spark 4.3, StreamingPythonRunner).
    """
    for folder in _SHIPPED:
        for below in _modules_below(folder):
            cloudpickle.register_pickle_by_value(sys.modules[below])  # type: ignore[no-untyped-call]


def register_functions(session: SparkSession, functions: Iterable[PythonFunction]) -> None:
    """Registers `functions` under their names for the SQL of `session`. Raises: FindingsError, Spark's errors."""
    for function in functions:
        obj = import_name(function.reference, function.location)
        if isinstance(obj, UserDefinedTableFunction):
            session.udtf.register(function.name, obj)
        else:
            session.udf.register(function.name, obj)


def is_foreach_batch(obj: object) -> bool:
    """Returns whether `obj` is a function that accepts each batch's rows and number."""
    if inspect.isclass(obj) or not callable(obj):
        return False
    try:
        inspect.signature(obj).bind(*range(FOREACH_BATCH_ARGUMENTS))
    except (TypeError, ValueError):
        return False
    return True


def is_foreach(obj: object) -> bool:
    """Returns whether `obj` is a class whose instances process rows one by one."""
    return inspect.isclass(obj) and not is_data_source(obj) and callable(getattr(obj, "process", None))


def is_data_source(obj: object) -> bool:
    """Returns whether `obj` is a PySpark data source."""
    return inspect.isclass(obj) and issubclass(obj, DataSource)


_REQUIREMENTS: Mapping[str, tuple[Callable[[object], bool], str, str]] = {
    "function": (
        lambda obj: isinstance(obj, UserDefinedTableFunction) or hasattr(obj, "evalType"),
        "SQL can call only functions made with udf, pandas_udf or udtf of pyspark.sql.functions",
        'decorate it, for example with @udf("int")',
    ),
    "source": (
        is_data_source,
        "a source of format python must be a DataSource",
        "derive the class from pyspark.sql.datasource.DataSource",
    ),
    "sink": (
        lambda obj: is_foreach_batch(obj) or is_foreach(obj) or is_data_source(obj),
        "a sink must be a function of (rows, batch), a class with process(row), or a DataSource",
        "for example, define def send(rows, batch)",
    ),
}
"""By kind of object: the check, the reason, and the fix."""


def _problems(reference: str, location: Location, kind: str) -> list[Finding]:
    fits, why, fix = _REQUIREMENTS[kind]
    try:
        obj = import_name(reference, location)
    except FindingsError as error:
        return list(error.findings)
    if fits(obj):
        return []
    return [Finding("python-name", f"`{reference}` cannot be a {kind}", why, fix, location)]


def _not_imported(reference: str, error: Exception, location: Location) -> Finding:
    lines = str(error).strip().splitlines()
    return Finding(
        "python-import",
        f"`{reference}` cannot be imported from python/",
        f"Python reports: {type(error).__name__}{f': {lines[0]}' if lines else ''}",
        "fix the module; what it imports must be installed where Spark runs",
        location,
    )
