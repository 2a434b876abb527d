"""The versions and settings of Spark for which the compiler's rules are right, and the interface to Spark's own parser.

The compiler has lists of Spark's functions, their arguments, types, formats and options. A later Spark may have more of
each, so unknown names are only warnings there. Some settings change what Spark accepts, so most rules cannot run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sqlstream.errors import Finding, Severity
from sqlstream.project.wording import quoted_list

if TYPE_CHECKING:  # the declarations of commands load this module, and need no pydantic
    from sqlstream.project.configuration.target import Target

TESTED = ("4.1", "4.2", "4.3")
"""The minor versions of Spark that the lists were compared with, oldest first."""

LISTED = frozenset({
    "argument-count", "column-type", "option-value", "real-time-trigger", "sink-schema", "type-mismatch",
    "unknown-format", "unknown-function",
})  # fmt: skip
"""The codes of errors that depend on such a list. They are warnings on a later Spark."""

CHANGES_SPARK = (
    "spark.sql.allowNamedFunctionArguments", "spark.sql.ansi.", "spark.sql.caseSensitive", "spark.sql.charAsVarchar",
    "spark.sql.collation.", "spark.sql.crossJoin.enabled", "spark.sql.decimalOperations.", "spark.sql.function.",
    "spark.sql.groupBy", "spark.sql.lateralColumnAlias.", "spark.sql.legacy.", "spark.sql.operatorPipeSyntaxEnabled",
    "spark.sql.orderByOrdinal", "spark.sql.parser.", "spark.sql.preserveCharVarcharTypeInfo",
    "spark.sql.streaming.realTimeMode.", "spark.sql.streaming.statefulOperator.",
    "spark.sql.streaming.unsupportedOperationCheck", "spark.sql.streaming.validateEventTimeWatermarkColumn",
    "spark.sql.timeType.", "spark.sql.timestampType", "spark.sql.tvf.", "spark.sql.variable.substitute",
)  # fmt: skip
"""Settings, or prefixes of settings, that change what Spark accepts or how it reads names and types."""


_DEFAULTS = {
    "spark.sql.allowNamedFunctionArguments": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.charAsVarchar": "false",
    "spark.sql.crossJoin.enabled": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.groupByAliases": "true",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.lateralColumnAlias.enableImplicitResolution": "true",
    "spark.sql.operatorPipeSyntaxEnabled": "true",
    "spark.sql.orderByOrdinal": "true",
    "spark.sql.preserveCharVarcharTypeInfo": "false",
    "spark.sql.streaming.statefulOperator.allowMultiple": "true",
    "spark.sql.streaming.unsupportedOperationCheck": "true",
    "spark.sql.streaming.validateEventTimeWatermarkColumn": "true",
    "spark.sql.timestampType": "timestamp_ltz",
    "spark.sql.variable.substitute": "false",
}
"""Such settings with the values that change nothing: Spark's defaults, or those that sqlstream sets."""


def rules_apply(target: Target) -> bool:
    """Returns whether the compiler's rules are right for `target`, because Spark has its default behavior there."""
    return not _changing(target)


def _changing(target: Target) -> list[str]:
    named = (name for name in target.spark if name.startswith(CHANGES_SPARK))
    return [name for name in named if str(target.spark[name]).lower() != _DEFAULTS.get(name)]


def rules_off(target: Target) -> Finding | None:
    """Returns the warning that most rules do not run for `target`; None if they do."""
    changing = _changing(target)
    if not changing:
        return None
    return Finding(
        "rules-off",
        f"target `{target.name}` sets {quoted_list(changing)}: columns, types and stream rules are not checked",
        "these settings change what Spark accepts, and sqlstream's rules follow Spark's defaults",
        "have Spark check the project with `sqlstream compile --check`, or remove the settings",
        target.location,
        Severity.WARNING,
    )


def knows_functions(target: Target) -> bool:
    """Returns whether Spark has only built-in functions: packages, jars, extensions and catalogs can add others."""
    adding = ("spark.jars", "spark.sql.extensions", "spark.sql.catalog", "spark.submit", "spark.driver.extraClassPath")
    return not target.packages and not any(name.startswith(adding) for name in target.spark) and target.remote is None


def installed_spark() -> str:
    """Returns the version of the PySpark that Python would load, without loading it, or an empty text if there is none.

    It is that of the files, because another package such as databricks-connect can replace those of PySpark.
    """
    if pyspark_folder() is None:
        return ""
    found = re.search(rb"__version__[^=\n]*= *[\"']([^\"']+)", read_pyspark_file("version.py") or b"")
    if found:
        return found[1].decode()
    from importlib import metadata  # loads email and zipfile

    with suppress(metadata.PackageNotFoundError):
        return metadata.version("pyspark")  # its folder has only bytecode
    return ""


def pyspark_folder() -> Path | None:
    """Returns the folder of the package that Python would load as `pyspark`, None if there is none, or only a file."""
    spec = find_spec("pyspark")
    # a folder without `__init__.py` is what a removed package leaves
    if spec is None or spec.origin is None or spec.submodule_search_locations is None:
        return None
    return Path(spec.origin).parent


def read_pyspark_file(name: str) -> bytes | None:
    """Returns the content of a file of PySpark, which can be in a zip file, and None if there is no such file."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        return None
    read: Callable[[str], bytes] = spec.loader.get_data  # type: ignore[union-attr]
    with suppress(OSError):
        # with the folder as `sys.path` has it, because that of a zip file is compared as a text
        return read(os.path.join(os.path.dirname(spec.origin), name))  # noqa: PTH118, PTH120
    return None


def minor_version(version: str) -> tuple[int, int]:
    """Returns the first two numbers of a version such as `4.4.0.dev1`, (0, 0) if it does not begin with two."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def minor_version_text(version: str) -> str:
    """Returns the minor version as text, such as `4.3`."""
    return ".".join(map(str, minor_version(version)))


def is_later(version: str) -> bool:
    """Returns whether the minor version of Spark is later than every tested one."""
    return minor_version(version) > minor_version(TESTED[-1])


def is_earlier(version: str) -> bool:
    """Returns whether the minor version of Spark is known, and earlier than every tested one."""
    return (0, 0) < minor_version(version) < minor_version(TESTED[0])


def on_spark(findings: Sequence[Finding], version: str) -> Iterator[Finding]:
    """Yields `findings` for Spark `version`. On a later one, those in `LISTED` are warnings. On one that is not tested,
    one more finding says so.
    """
    if not is_later(version):
        yield from findings
        if is_earlier(version):
            yield Finding(
                "untested-spark",
                f"Spark {version} is earlier than the versions that sqlstream supports ({TESTED[0]} to {TESTED[-1]})",
                "it lacks functions, types and formats that sqlstream accepts, and sqlstream starts no query on it",
                f"install PySpark {TESTED[0]} or later",
                severity=Severity.WARNING,
            )
        return
    for finding in findings:
        is_lowered = finding.is_error and finding.code in LISTED
        yield replace(finding, severity=Severity.WARNING) if is_lowered else finding
    yield Finding(
        "untested-spark",
        f"Spark {version} is later than the versions that sqlstream's lists were checked against "
        f"({TESTED[0]} to {TESTED[-1]}): unknown functions, arguments, types, formats and options are warnings",
        "a later Spark may have functions, types, formats and options that the lists do not have",
        "have Spark check the project with `sqlstream compile --check`",
        severity=Severity.WARNING,
    )


@dataclass(frozen=True)
class SyntaxRefusal:
    """An error of Spark's parser: its words, its error condition if any, and the offset at which it stops if known."""

    words: str
    condition: str | None
    offset: int | None


ParseWithSpark = Callable[[str], SyntaxRefusal | None]
"""Parses a text with Spark. Returns None if Spark accepts it."""


class ParserUnavailableError(Exception):
    """Spark's parser is not available. The message says why."""


class SparkParser(Protocol):
    """Spark's parser, started on demand."""

    @property
    def identity(self) -> str:
        """The version and settings of Spark, on which its results depend."""

    def open(self, count: int) -> AbstractContextManager[ParseWithSpark]:
        """Starts the parser for `count` models. Raises: ParserUnavailableError, here or while it parses."""
