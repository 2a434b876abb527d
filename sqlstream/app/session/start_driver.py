"""The program of the driver of a submitted run: unpacks the project and sqlstream, and runs the command.

A copy of this file travels beside the archive, so it imports only Python's own library until both are unpacked.
"""

from __future__ import annotations

import json
import os
import runpy
import shutil
import sys
import tempfile
import zipfile
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

ENVIRONMENT = "sqlstream-environment.json"
"""The file with the variables and secrets that a submission sends to YARN. The driver removes its link to it; the file
is in the private folder of each container of the application until that ends.
"""

SUBMITTED = "SQLSTREAM_SUBMITTED"
"""The variable that says that this process is the driver of a submitted run: the name of its archive."""

PROJECT, PACKAGES = "project", "packages"
"""The folders in an archive: the project, and sqlstream, unless the Python of the driver has it."""


def start_driver(archive: str, arguments: list[str]) -> None:
    """Runs `sqlstream` with `arguments` in the project of `archive`, which lies beside this file or in the working
    folder. Raises: SystemExit with the exit code of the command.
    """
    places = (Path(__file__).absolute().parent, Path.cwd())
    found = next(place / archive for place in places if (place / archive).exists())
    for place in places:
        _take_variables(place / ENVIRONMENT)
    _set_spark_home()
    folder = Path(tempfile.mkdtemp(prefix="sqlstream-", dir=_writable_folder()))
    try:
        with zipfile.ZipFile(found) as packed:
            packed.extractall(folder)
        os.environ[SUBMITTED] = archive
        os.chdir(folder / PROJECT)
        if (folder / PACKAGES).exists():
            sys.path.insert(0, str(folder / PACKAGES))
        sys.argv = ["sqlstream", *arguments]
        runpy.run_module("sqlstream", run_name="__main__")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _writable_folder() -> str | None:
    """Returns the working folder, which YARN removes at the end; None for the default, if it cannot be written."""
    return str(Path.cwd()) if os.access(Path.cwd(), os.W_OK) else None


def _set_spark_home() -> None:
    """Names the Spark of this Python, if the cluster does not: YARN gives Python only a part of it, in a zip file."""
    with suppress(PackageNotFoundError):
        installed = Path(str(distribution("pyspark").locate_file("pyspark")))
        if (installed / "jars").is_dir():
            os.environ.setdefault("SPARK_HOME", str(installed))


def _take_variables(path: Path) -> None:
    if path.exists():
        os.environ.update(json.loads(path.read_bytes()))
        path.unlink()


if __name__ == "__main__":
    start_driver(sys.argv[1], sys.argv[2:])
