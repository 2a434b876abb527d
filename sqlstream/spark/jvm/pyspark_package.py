"""Checks the installed PySpark without loading it: whether sqlstream can use it, and whether it has a Spark to start.

Over Connect: PySpark needs no Spark, only all of its modules.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from sqlstream.compiler.spark_versions import TESTED, installed_spark, is_earlier, pyspark_file, pyspark_folder
from sqlstream.errors import Finding
from sqlstream.project.wording import quoted

DATABRICKS = "databricks-connect"
"""The package of Databricks' client. It has no Spark, and its folder of modules is `pyspark`, as that of PySpark."""

_OF_DATABRICKS = "dbconnect_version.py"
"""A file that only Databricks' `pyspark` has."""

_WHOLE = "core/context.py"
"""A file of PySpark that packages with only the client of Spark Connect lack."""

_REPAIR = f"pip uninstall {DATABRICKS}, then pip install --force-reinstall pyspark"
_NEEDS_SPARK = "Spark cannot start on this machine"


def check_client() -> Finding | None:
    """Returns the finding for a PySpark that sqlstream cannot use, also over Spark Connect."""
    version = installed_spark()
    if not version:
        why = f"this Python environment ({sys.executable}) does not have it"
        return Finding("spark-missing", "PySpark is not installed", why, "install it: pip install pyspark")
    if not is_earlier(version):
        return None if pyspark_file(_WHOLE) is not None else _missing_modules()
    databricks = databricks_connect()
    replaced = f", and {DATABRICKS} {databricks} has replaced PySpark with its {version}" if databricks else ""
    newer = f"install {DATABRICKS} 18 or later, with Python 3.12; or {_REPAIR}"
    return Finding(
        "spark-too-old",
        f"PySpark {version} is too old",
        f"sqlstream needs {TESTED[0]} or later{replaced}",
        newer if databricks else "upgrade it: pip install -U pyspark",
    )


def _missing_modules() -> Finding:
    return Finding(
        "spark-missing",
        "the installed PySpark lacks modules",
        f"{pyspark_folder()} has no {_WHOLE}, as if the package were pyspark-client",
        "install all of PySpark: pip uninstall pyspark-client, then pip install --force-reinstall pyspark",
    )


def check_spark(env: Mapping[str, str]) -> Finding | None:
    """Returns the finding for a PySpark that cannot start Spark. A program such as spark-submit may have started it."""
    found = check_client()
    if found is not None or "PYSPARK_GATEWAY_PORT" in env:
        return found
    databricks = databricks_connect()
    if databricks:
        return Finding(
            "spark-missing",
            f"{_NEEDS_SPARK}, because {DATABRICKS} has replaced PySpark",
            f"{DATABRICKS} {databricks} is only a client of Spark Connect, and its files are in the folder of PySpark",
            f"use a target with `remote`; or another Python environment; or {_REPAIR}",
        )
    return _check_home(env["SPARK_HOME"]) if "SPARK_HOME" in env else _check_package()


def _check_package() -> Finding | None:
    """Returns the finding if no folder has a Spark in which PySpark looks for it (`_find_spark_home`)."""
    folder = pyspark_folder() or Path()
    # another Hadoop with PYSPARK_HADOOP_VERSION; a build of Spark, whose PySpark is in `python/pyspark`
    others = folder / "spark-distribution", folder.parent.parent
    missing = _missing(folder)
    if not missing or any(not _missing(each) for each in others):
        return None
    return Finding(
        "spark-missing",
        f"{_NEEDS_SPARK}, because the installed PySpark has none",
        f"{folder} {missing}",
        "install all of PySpark: pip install --force-reinstall pyspark; or use a target with `remote`",
    )


def _check_home(home: str) -> Finding | None:
    fix = "set SPARK_HOME to the folder of a Spark, or unset it to use that of PySpark"
    missing = _missing(Path(home or "/"))  # PySpark adds its paths to the text
    if missing:
        message = f"{_NEEDS_SPARK}, because SPARK_HOME does not contain one"
        return Finding("spark-missing", message, f"SPARK_HOME is {quoted(home)}, which {missing}", fix)
    jar = next(Path(home).glob("jars/spark-core_*.jar"), None)
    version = jar.stem.partition("-")[2].partition("-")[2] if jar is not None else ""
    if not is_earlier(version):
        return None
    why = f"SPARK_HOME is {quoted(home)}, and sqlstream needs {TESTED[0]} or later"
    fix = fix.replace("a Spark", f"Spark {TESTED[0]} or later")
    return Finding("spark-too-old", f"Spark {version} is too old", why, fix)


def databricks_connect() -> str:
    """Returns the version of databricks-connect if its files have replaced those of PySpark, or else an empty text."""
    try:
        version = metadata.version(DATABRICKS)
    except metadata.PackageNotFoundError:
        return ""
    return version if pyspark_file(_OF_DATABRICKS) is not None else ""


def _missing(home: Path) -> str:
    """Returns what a folder lacks to be a Spark that can start, an empty text if nothing."""
    if not os.access(home / "bin" / "spark-submit", os.X_OK):
        return "has no bin/spark-submit that can be executed"
    if not any((home / name).is_dir() for name in ("jars", "assembly")):
        return "has no folder jars"
    return ""
