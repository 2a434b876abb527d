"""Names the Hadoop package that contains a missing class, in the version for the installed Spark."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pyspark

from sqlstream.compiler.spark_versions import minor_version_text
from sqlstream.project.connectors.table import CONNECTORS
from sqlstream.spark.jvm.gateway import Cause

CLASSES = {
    "fs.s3a.S3AFileSystem": "hadoop-aws",
    "fs.azurebfs.": "hadoop-azure",
    "fs.azure.": "hadoop-azure",
    "fs.gs.GoogleHadoopFileSystem": "hadoop-gcp",
}
"""Hadoop's packages, by the start of the name of a class that they contain."""

OTHER_SCHEMES = {
    "s3": "use a path with s3a://..., which needs {aws}",
    "s3n": "use a path with s3a://..., which needs {aws}",
    "gs": "add com.google.cloud.bigdataoss:gcs-connector:hadoop3-2.2.26 to the target's packages:",
}
"""The fix for schemes without a file system in Hadoop; before Hadoop 3.5, that includes gs."""

_NOT_ENABLED = "_DATA_SOURCE_NOT_ENABLED"
"""The end of the error condition for a format without its jars, after the format's name in capitals."""

_UNDEFINED = re.compile(r"NoClassDefFoundError: (?:Could not initialize class )?(?P<name>[\w.$/]+)")
_NO_SCHEME = re.compile(r"No FileSystem for scheme:? \"?(?P<scheme>\w+)")
_NOT_FOUND = re.compile(r"(?:ClassNotFoundException: |Class )(?:Class )?org\.apache\.hadoop\.(?P<name>[\w.$]+)")


def package_fix(causes: Sequence[Cause]) -> str | None:
    """Returns a fix that names the missing package, None if `causes` are not about a package."""
    name = (causes[0].condition or "").removesuffix(_NOT_ENABLED).lower()
    release = CONNECTORS[name].release_for(minor_version_text(pyspark.__version__)) if name in CONNECTORS else None
    if release is not None:  # sqlstream adds connectors for declared formats, but not for those that only Python names
        return f"declare a source or sink with format: {name}, or add {release.jars[0]} to the target's packages:"
    words = "\n".join(f"{cause.kind}: {cause.words}" for cause in causes)
    scheme = _NO_SCHEME.search(words)
    if scheme is not None and scheme["scheme"] in OTHER_SCHEMES:
        return OTHER_SCHEMES[scheme["scheme"]].format(aws=_hadoop_package("hadoop-aws"))
    if scheme is not None:
        name = scheme["scheme"]
        return f"fix the scheme {name}:// of the path, or add the package of its file system to the target's packages:"
    missing = [match["name"] for match in _NOT_FOUND.finditer(words)]
    packages = (package for name in missing for part, package in CLASSES.items() if name.startswith(part))
    found = next(packages, None)
    if found is not None:
        return f"add {_hadoop_package(found)} to the target's packages:"
    undefined = _UNDEFINED.search(words)
    if undefined is None:
        return None
    return f"add the package with the Java class {undefined['name'].replace('/', '.')} to the target's packages:"


def _hadoop_package(package: str) -> str:
    return f"org.apache.hadoop:{package}:{hadoop_version()}"


def hadoop_version() -> str:
    """Returns the version of Hadoop in the installed pyspark; Hadoop's packages must have the same version."""
    jars = Path(pyspark.__file__).parent / "jars"
    found = (re.fullmatch(r"hadoop-client-api-(.+)\.jar", path.name) for path in jars.glob("hadoop-client-api-*.jar"))
    return next((match[1] for match in found if match), "VERSION")
