"""Options of one source or sink that need or exclude each other."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstream.compiler.rules.options.given import GivenOptions
from sqlstream.compiler.rules.options.kafka import kafka_problems
from sqlstream.compiler.rules.options.lake import lake_problems
from sqlstream.errors import Finding
from sqlstream.project.wording import quoted, quoted_list

SPLIT_BY = ("partitionColumn", "lowerBound", "upperBound")
"""Options of a JDBC source that need each other and numPartitions, which does not need them."""


def conflicts(given: GivenOptions) -> Iterator[Finding]:
    """Yields the conflicts between the options of a source or sink."""
    if given.streams:
        yield from _refused_in_streams(given)
        yield from _file_streams(given)
    if given.format.name == "jdbc":
        yield from _jdbc_problems(given)
    if given.format.name == "kafka":
        yield from kafka_problems(given)
    if given.format.is_table:
        yield from lake_problems(given)


def _refused_in_streams(given: GivenOptions) -> Iterator[Finding]:
    for name, option in given.format.options.items():
        if option.use == "batch_only" and given.has(name):
            yield Finding(
                "option-value",
                f"{given.what} is a stream with the option {name}",
                "Spark supports this option only for static tables",
                "remove it, or set mode: batch"
                + ("; to choose files, use pathGlobFilter" if given.format.is_file else ""),
                given.place(name),
            )


def _file_streams(given: GivenOptions) -> Iterator[Finding]:
    if given.has("maxFilesPerTrigger") and given.has("maxBytesPerTrigger"):
        yield Finding(
            "option-value",
            f"{given.what} sets both maxFilesPerTrigger and maxBytesPerTrigger",
            "Spark limits a batch by only one of them",
            "remove one of them",
            given.place("maxBytesPerTrigger"),
        )
    if given.text("cleanSource").lower() == "archive" and not given.has("sourceArchiveDir"):
        yield Finding(
            "missing-key",
            f"{given.what} archives the files it has read, but sets no sourceArchiveDir",
            "Spark moves the files to that folder, and does not start without it",
            "set sourceArchiveDir to a folder outside the path, or use cleanSource: off",
            given.place("cleanSource"),
        )


def _jdbc_problems(given: GivenOptions) -> Iterator[Finding]:
    table, query = given.has("dbtable"), given.is_source and given.has("query")
    if table == query:
        yield Finding(
            "option-value" if table else "missing-key",
            f"{given.what} has {'both of the options dbtable and query' if table else 'no option dbtable'}",
            "Spark reads one table or one query from a database, and writes one table",
            "remove one of them" if table else "add options: {dbtable: schema.table}",
            given.place("query") if table else given.location,
        )
    split = [name for name in SPLIT_BY if given.has(name)]
    missing = [name for name in (*SPLIT_BY, "numPartitions") if not given.has(name)]
    if given.is_source and split and missing:
        yield Finding(
            "missing-key",
            f"{given.what} sets the option {quoted(split[0])} without {quoted_list(missing)}",
            "Spark splits the table into ranges of the column, and needs all of these options or none",
            f"add the missing options, or remove {quoted_list(split)}",
            given.place(split[0]),
        )
