"""Which package a missing class or data source comes with, in a version for the installed Spark."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pyspark

from sqlstream.project.formats.formats import format_of

CLASSES = {
    "fs.s3a.S3AFileSystem": "hadoop-aws",
    "fs.azurebfs.": "hadoop-azure",
    "fs.azure.": "hadoop-azure",
    "fs.gs.GoogleHadoopFileSystem": "hadoop-gcp",
}
"""Hadoop's packages, by a part of the name of the class that is missing without them."""

OTHER_SCHEMES = {
    "s3": "use a path with s3a://..., which needs {aws}",
    "s3n": "use a path with s3a://..., which needs {aws}",
    "gs": "add com.google.cloud.bigdataoss:gcs-connector:hadoop3-2.2.26 to the target's packages:",
}
"""What to do about schemes that Hadoop itself knows nothing of; gs is such a one before Hadoop 3.5."""

_NOT_ENABLED = "_DATA_SOURCE_NOT_ENABLED"
"""The end of the error condition for a format without its package; the format's name in capitals comes before it."""

_NO_SCHEME = re.compile(r"No FileSystem for scheme:? \"?(?P<scheme>\w+)")
_NOT_FOUND = re.compile(r"(?:ClassNotFoundException: |Class )(?:Class )?org\.apache\.hadoop\.(?P<name>[\w.$]+)")


def package_fix(said: str, condition: str | None) -> str | None:
    """Returns which package to add, where an error says that one is missing."""
    package = format_of((condition or "").removesuffix(_NOT_ENABLED).lower()).package
    if package is not None:
        also = f" and {package.beside}" if package.beside else ""
        return f"add org.apache.spark:{package.name}_2.13:{_release(package.releases)}{also} to the target's packages:"
    scheme = _NO_SCHEME.search(said)
    if scheme is not None and scheme["scheme"] in OTHER_SCHEMES:
        return OTHER_SCHEMES[scheme["scheme"]].format(aws=_of_hadoop("hadoop-aws"))
    for missing in _NOT_FOUND.finditer(said):
        of_hadoop = next((name for part, name in CLASSES.items() if missing["name"].startswith(part)), None)
        if of_hadoop is not None:
            return f"add {_of_hadoop(of_hadoop)} to the target's packages:"
    return None


def _release(releases: Sequence[str]) -> str:
    """The newest of `releases` that is no newer than the installed Spark."""
    installed = _numbers(pyspark.__version__)
    return next((release for release in reversed(releases) if _numbers(release) <= installed), releases[0])


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def _of_hadoop(package: str) -> str:
    return f"org.apache.hadoop:{package}:{hadoop_version()}"


def hadoop_version() -> str:
    """Returns the version of Hadoop that the installed pyspark comes with: its other packages must have the same."""
    jars = Path(pyspark.__file__).parent / "jars"
    found = (re.fullmatch(r"hadoop-client-api-(.+)\.jar", path.name) for path in jars.glob("hadoop-client-api-*.jar"))
    return next((match[1] for match in found if match), "VERSION")
