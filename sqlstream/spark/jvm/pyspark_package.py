"""Checks the installed PySpark before it is loaded: whether sqlstream can use it, and whether it has a Spark to start.

Over Connect: PySpark needs no Spark, only all of its modules.
"""

from __future__ import annotations

import io
import os
import sys
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from contextlib import redirect_stderr, suppress
from hashlib import sha256
from importlib import metadata
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path

from sqlstream.compiler.spark_versions import TESTED, installed_spark, is_earlier, pyspark_folder, read_pyspark_file
from sqlstream.errors import Finding, FindingsError
from sqlstream.project.wording import quoted
from sqlstream.spark.jvm.java import find_java

DATABRICKS = "databricks-connect"
"""The package of Databricks' client, without a Spark. Its modules are in a folder `pyspark` like those of PySpark."""

_MODULE = "core/context.py"
"""A module of PySpark that pyspark-client, which has only the client of Spark Connect, lacks. databricks-connect has
another one.
"""

_WITHOUT_DATABRICKS = f"pip uninstall {DATABRICKS}, then pip install --force-reinstall pyspark"
_NEEDS_SPARK = "Spark cannot start on this machine"


def require_pyspark() -> None:
    """Call it before the first import of PySpark. Raises: FindingsError if sqlstream cannot use the installed one."""
    wrong = check_pyspark()
    if wrong is not None:
        raise FindingsError([wrong])


def check_start(env: Mapping[str, str]) -> list[Finding]:
    """Returns what is wrong with PySpark, its Spark, or the Java with which that would start. Loads PySpark."""
    return [each for each in (check_spark(env), find_java(env, start=False)) if isinstance(each, Finding)]


def check_pyspark() -> Finding | None:
    """Returns the finding for a PySpark that sqlstream cannot use, also over Spark Connect."""
    folder, version = pyspark_folder(), installed_spark()
    if folder is None:
        return _not_installed()
    if is_earlier(version):
        return _too_old(version)
    if PathFinder.find_spec("context", [str(folder / "core")]) is None:
        return Finding(
            "spark-missing",
            "the installed PySpark lacks modules",
            f"{folder} has no {_MODULE}, as in the package pyspark-client",
            "install the whole package: pip uninstall pyspark-client, then pip install --force-reinstall pyspark",
        )
    if find_spec("py4j") is None:
        return Finding(
            "spark-missing",
            "PySpark cannot be loaded, because py4j is not installed",
            f"this Python environment ({sys.executable}) has {folder}, but not the package py4j that it needs",
            "install it: pip install py4j; or add the py4j zip file in python/lib of Spark to PYTHONPATH",
        )
    return None


def _not_installed() -> Finding:
    spec = find_spec("pyspark")
    if spec is not None and spec.origin is not None:
        why = f"import pyspark would load {spec.origin}"
        return Finding("spark-missing", "a file hides PySpark", why, "rename the file")
    why = f"this Python environment ({sys.executable}) does not have it"
    return Finding("spark-missing", "PySpark is not installed", why, "install it: pip install pyspark")


def _too_old(version: str) -> Finding:
    databricks = databricks_connect()
    replaced = f", and {DATABRICKS} {databricks} has replaced PySpark with its {version}" if databricks else ""
    newer = f"install {DATABRICKS} 18 or later, with Python 3.12; or {_WITHOUT_DATABRICKS}"
    return Finding(
        "spark-too-old",
        f"PySpark {version} is too old",
        f"sqlstream needs {TESTED[0]} or later{replaced}",
        newer if databricks else "upgrade it: pip install --upgrade 'pyspark<5'",
    )


def check_spark(env: Mapping[str, str]) -> Finding | None:
    """Returns the finding for a PySpark that cannot start Spark, unless a Spark runs already. Loads PySpark."""
    found = check_pyspark()
    if found is not None:
        return found
    from sqlstream.spark.jvm.launch import has_jvm

    if has_jvm():
        return None
    databricks = databricks_connect()
    if databricks:
        return Finding(
            "spark-missing",
            f"{_NEEDS_SPARK}, because {DATABRICKS} has replaced PySpark",
            f"the package pyspark is that of {DATABRICKS} {databricks}, which has only the client of Spark Connect",
            f"use another Python environment; or run on a target with `remote`; or {_WITHOUT_DATABRICKS}",
        )
    if "SPARK_HOME" in env:
        return _check_home(env["SPARK_HOME"])
    home = _find_home() or pyspark_folder() or Path()
    missing = _missing(home)
    if not missing:
        return None
    return Finding(
        "spark-missing",
        f"{_NEEDS_SPARK}, because the installed PySpark contains no Spark",
        f"{home} {missing}",
        "install the whole package: pip install --force-reinstall pyspark; or run on a target with `remote`",
    )


def _find_home() -> Path | None:
    """Returns the folder of the Spark that PySpark starts, None if it finds none."""
    from pyspark.find_spark_home import _find_spark_home

    with redirect_stderr(io.StringIO()), suppress(SystemExit):  # what it does without a Spark
        return Path(_find_spark_home())
    return None


def _check_home(home: str) -> Finding | None:
    fix = "set SPARK_HOME to the folder of a Spark, or unset it to use that of PySpark"
    missing = _missing(Path(f"{home}/"))  # an empty one is the root, because `launch_jvm` appends to the text
    if missing:
        message = f"{_NEEDS_SPARK}, because SPARK_HOME contains no Spark"
        return Finding("spark-missing", message, f"SPARK_HOME is {quoted(home)}, which {missing}", fix)
    jar = next(Path(home).glob("jars/spark-core_*.jar"), None)
    version = jar.stem.partition("-")[2].partition("-")[2] if jar is not None else ""
    if not is_earlier(version):
        return None
    why = f"SPARK_HOME is {quoted(home)}, and sqlstream needs {TESTED[0]} or later"
    fix = fix.replace("a Spark", f"Spark {TESTED[0]} or later")
    return Finding("spark-too-old", f"Spark {version} is too old", why, fix)


def databricks_connect() -> str:
    """Returns the version of databricks-connect if its files have replaced those of PySpark, or else an empty text. The
    package that was installed last has written the files that both have.
    """
    try:
        package = metadata.distribution(DATABRICKS)
    except metadata.PackageNotFoundError:
        return ""
    written = next((path for path in package.files or () if path.as_posix() == f"pyspark/{_MODULE}"), None)
    is_there = (
        written is None or written.hash is None or written.hash.value == _digest(read_pyspark_file(_MODULE) or b"")
    )
    return package.version if is_there else ""


def _digest(content: bytes) -> str:
    """Returns the hash of a file as the list of a package's files has it (`RECORD`)."""
    return urlsafe_b64encode(sha256(content).digest()).rstrip(b"=").decode()


def _missing(home: Path) -> str:
    """Returns what a folder lacks to be a Spark that can start, an empty text if nothing."""
    if not os.access(home / "bin" / "spark-submit", os.X_OK):
        return "has no executable bin/spark-submit"
    if not any((home / name).is_dir() for name in ("jars", "assembly")):
        return "has no folder jars"
    return ""
