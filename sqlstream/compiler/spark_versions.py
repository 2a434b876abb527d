"""The versions of Spark that the compiler's lists were checked against, and how a later one changes findings.

The lists are those of functions, of the arguments that functions take, of types, of formats and of options. A later
Spark may have more of each, so a name that no list has may be right there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from importlib import metadata

from sqlstream.errors import Finding, Severity

TESTED = ("4.1", "4.2", "4.3")
"""The minor versions of Spark whose verdicts the lists were compared with, oldest first."""

LISTED = frozenset({
    "argument-count", "column-type", "option-value", "real-time-trigger", "sink-schema", "type-mismatch",
    "unknown-format", "unknown-function",
})  # fmt: skip
"""The codes of errors that rest on such a list: warnings on a later Spark."""


def installed_spark() -> str:
    """Returns the version of the installed PySpark, from its metadata alone; empty where there is none."""
    try:
        return metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        return ""


def minor_version(version: str) -> tuple[int, int]:
    """Returns the first two numbers of a version, `4.4.0.dev1` for example; (0, 0) where it does not begin with two."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def is_later(version: str) -> bool:
    """Returns whether Spark `version` is later than every tested one; a patch release is not."""
    return minor_version(version) > minor_version(TESTED[-1])


def on_spark(findings: Sequence[Finding], version: str) -> Iterator[Finding]:
    """Gives `findings` as they are on Spark `version`: on a later one, those of `LISTED` are warnings, and one more
    finding says so.
    """
    if not is_later(version):
        yield from findings
        return
    yield from _as_warnings(findings)
    yield Finding(
        "untested-spark",
        f"Spark {version} is later than the versions that sqlstream's lists were checked against "
        f"({TESTED[0]} to {TESTED[-1]}): unknown functions, arguments, types, formats and options are warnings",
        "a later Spark may have functions, types, formats and options that the lists do not have",
        "have Spark check the project with `sqlstream compile --check`",
        severity=Severity.WARNING,
    )


def _as_warnings(findings: Iterable[Finding]) -> Iterator[Finding]:
    for finding in findings:
        is_lowered = finding.is_error and finding.code in LISTED
        yield replace(finding, severity=Severity.WARNING) if is_lowered else finding
