"""Converts Spark's error about a corrupt record to a finding that names the file and possible fixes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from sqlstream.compiler.compiled import CompiledProject
from sqlstream.errors import Finding
from sqlstream.location import Location, Place, printable
from sqlstream.numbers import plural
from sqlstream.project.configuration.columns import fields_of
from sqlstream.project.declarations.on_corrupt import option_of
from sqlstream.project.files.paths import plain_path
from sqlstream.project.formats.formats import format_of
from sqlstream.project.values import SourceTable
from sqlstream.project.wording import quoted
from sqlstream.spark.jvm.gateway import Cause, causes_of
from sqlstream.spark.reading.corrupt import CORRUPT_RECORD, NEW_FIELD
from sqlstream.spark.reading.data_tests import VIOLATED
from sqlstream.spark.secrets import Secrets

CORRUPT_MESSAGE = "sqlstream cannot read a message of Kafka:"
"""The start of the error that a query raises at a corrupt message of Kafka. Lines with the source, the topic, the
partition, the offset and the reason follow.
"""

SHOWN_ROWS, SHOWN_CHARACTERS = 3, 300
"""How many rows that violate a data test are shown, and how many characters of each."""

_RAISED = "USER_RAISED_EXCEPTION"
"""The condition of what `raise_error` raises; its parameter is the whole text."""
_FILE, _RECORD = "FAILED_READ_FILE", "MALFORMED_RECORD_IN_PARSING"
"""The starts of the conditions of a file that cannot be read, and of a record that cannot be parsed."""
_CLASSES = re.compile(r"^(?:[\w.$]+(?:Exception|Error)(?:: |$))+")
_NO_NUMBER = re.compile(r'(?i)For input string: "(.*)"')
_PATTERN = re.compile(r"[\][{}*?\\]")
_DECORATION = re.compile(r"\s*SQLSTATE: \w{5}|^\[[A-Z0-9_.]+\]\s*|\s*\(start marker at .*$|;? ?at \[Source: .*$")


@dataclass(frozen=True)
class CorruptRecord:
    """A record that Spark cannot parse: the path or URI of its file, the values that Spark could parse, and the reason,
    each empty if unknown. Spark reports neither the line nor the text.
    """

    file: str
    values: str
    reason: str


@dataclass(frozen=True)
class RefusedRecord:
    """A record that sqlstream refuses: `start` is that of the error, which says what is wrong. The others are its
    source, the path or URI of its file or its place in Kafka (empty: unknown), and the reason.
    """

    start: str
    source: str
    place: str
    reason: str


@dataclass(frozen=True)
class CorruptMessage:
    """A message of Kafka that does not have the declared format: its source and position, and the reason."""

    source: str
    topic: str
    partition: int
    offset: int
    reason: str


@dataclass(frozen=True)
class ViolatingRows:
    """Rows, as JSON, that violate a data test of a model; `location` is that of the test. `count` is how many rows of
    the batch do, None if it is unknown.
    """

    model: str
    test: str
    location: Location
    rows: tuple[str, ...]
    count: int | None = None


BadRecord = CorruptRecord | CorruptMessage | RefusedRecord | ViolatingRows
"""What ends a query, now and whenever it reads the same data again."""


def read_corrupt_record(error: BaseException) -> BadRecord | None:
    """Returns the corrupt record that `error` is about, None if it is about something else."""
    causes = causes_of(error)
    for cause in causes:
        found = _corrupt_message(cause) or _refused_record(cause) or _violating_rows(cause)
        if found is not None:
            return found
    # one exception of the chain knows the file, another one the record
    files = [cause.parameters["path"] for cause in causes if (cause.condition or "").startswith(_FILE)]
    records = [cause.parameters["badRecord"] for cause in causes if (cause.condition or "").startswith(_RECORD)]
    if not files or not records:
        return None
    innermost = causes[-1]
    reason = "" if (innermost.condition or "").startswith(_RECORD) else _reason(innermost.message)
    return CorruptRecord(plain_file(files[0]), " ".join(records[0].split()), reason)


def _corrupt_message(cause: Cause) -> CorruptMessage | None:
    """Returns the message of Kafka at which the query raised `cause`, None if the user's SQL raised it."""
    if cause.condition != _RAISED:
        return None
    # the last part is the reason, which can have line ends
    start, *parts = cause.parameters.get("errorMessage", "").split("\n", 5)
    if start != CORRUPT_MESSAGE or len(parts) != 5 or not (parts[2].isdigit() and parts[3].isdigit()):
        return None
    source, topic, partition, offset, reason = parts
    return CorruptMessage(source, topic, int(partition), int(offset), reason)


def _refused_record(cause: Cause) -> RefusedRecord | None:
    """Returns the record at which sqlstream's reader raised `cause`."""
    text = cause.parameters.get("errorMessage", "") if cause.condition == _RAISED else ""
    start, *parts = text.split("\n", 3)
    is_refused = start in (CORRUPT_RECORD, NEW_FIELD) and len(parts) == 3
    return RefusedRecord(start, parts[0], plain_file(parts[1]), parts[2]) if is_refused else None


def _violating_rows(cause: Cause) -> ViolatingRows | None:
    text = cause.parameters.get("errorMessage", "") if cause.condition == _RAISED else ""
    # the row is the last part; the user's SQL can raise any text
    start, *parts = text.split("\n", 6)
    if start != VIOLATED or len(parts) != 6 or not (parts[3].isdigit() and parts[4].isdigit()):
        return None
    model, test, path, line, column, row = parts
    return ViolatingRows(model, test, Location(path, int(line), int(column)), (row,))


def tables_with_records(compiled: CompiledProject, node_id: str) -> tuple[SourceTable, ...]:
    """Returns the source tables that a node reads or is, with absolute paths, if they can have corrupt records."""
    project = compiled.project
    read = {node_id, *compiled.upstream(node_id)}
    return tuple(
        table.model_copy(update={"path": plain_path(str(project.root), table.path)})
        for node, table in compiled.sources.items()
        if table.path and format_of(table.format.lower()).is_parsed and node in read
    )


def corrupt_record_finding(
    record: BadRecord,
    what: str,
    place: Place,
    secrets: Secrets,
    tables: Sequence[SourceTable],
) -> Finding:
    """Returns the finding that `what` fails because of the record, which is from one of `tables`."""
    if isinstance(record, ViolatingRows):
        return _violations_finding(record, what, secrets)
    if isinstance(record, CorruptMessage):
        return Finding(
            "corrupt-record",
            f"{what}: a message of source `{record.source}` cannot be read",
            f"in topic {record.topic}, partition {record.partition}, at offset {record.offset}, {record.reason}",
            "fix the declared format or columns, or set on_corrupt: drop or quarantine in the source; then run again",
            place.location,
            calls=place.calls,
        )
    if isinstance(record, RefusedRecord):
        return _refused_finding(record, what, place, secrets)
    because = f" ({record.reason})" if record.reason else ""
    return Finding(
        "corrupt-record",
        f"{what}: a record of {record.file} cannot be parsed",
        secrets.redact(f"Spark reports: the record that reads as {quoted(record.values)} is malformed{because}"),
        f"{_correction(record, tables)}, or set on_corrupt: drop or quarantine in the source; then run again",
        place.location,
        calls=place.calls,
    )


def _violations_finding(record: ViolatingRows, what: str, secrets: Secrets) -> Finding:
    count = record.count or 1
    rows = ", ".join(secrets.redact(row)[:SHOWN_CHARACTERS] for row in record.rows)
    shown = len(record.rows)
    start = "the row is" if count == 1 else "they are" if count == shown else f"{shown} of them are"
    number = "a row" if record.count is None else plural(count, "row")
    return Finding(
        "data-test-failed",
        f"{what}: {number} of `{record.model}` {'violates' if count == 1 else 'violate'} the data test `{record.test}`",
        f"{start} {rows}",
        "fix the data or the model, or set on_violation: drop or warn in the test; then run again",
        record.location,
    )


def _refused_finding(record: RefusedRecord, what: str, place: Place, secrets: Secrets) -> Finding:
    where = f"source `{record.source}`"
    if record.start == NEW_FIELD:
        problem = f"a record of {where} has fields that are not declared"
        why = f"in {record.place}, they are {printable(record.reason)}"
        fix = "declare them, or set schema_changes: evolve, rescue or ignore in the source; then run again"
    else:
        where = f"{record.place}, which {where} reads," if record.place else where
        problem = f"a record of {where} is corrupt"
        why = record.reason
        fix = "fix the file, or what the source declares, or set on_corrupt: drop or quarantine in it; then run again"
    code = "schema-changed" if record.start == NEW_FIELD else "corrupt-record"
    return Finding(code, f"{what}: {problem}", secrets.redact(why), fix, place.location, calls=place.calls)


def _correction(record: CorruptRecord, tables: Sequence[SourceTable]) -> str:
    """Returns what to fix: the file, the declared type, or the option for a header line."""
    table = _table_of(record.file, tables)
    if table is None or table.spark_schema is None:
        return "fix the file, or the type of the column in the source"
    names = tuple(field.name for field in fields_of(table.spark_schema))
    declared = table.spark_schema.location
    text = _NO_NUMBER.fullmatch(record.reason)
    # the record has the name of a column: it is a header line
    if table.format.lower() == "csv" and option_of(table, "header") is None and text and text.group(1) in names:
        return f"set the option header: true of source `{table.full_name}` at {table.location}"
    unread = _unread_column(record.values, names)
    column = f"the type of the column {quoted(unread)}" if unread else "the column's type"
    return f"fix the file; if the file is correct, fix {column} in {declared}"


def _table_of(file: str, tables: Sequence[SourceTable]) -> SourceTable | None:
    """Returns the only table whose path contains `file`, None if there is none or several."""
    # the table of corrupt records has the same files as its source
    declared = [table for table in tables if table.corrupt_of is None]
    found = [table for table in declared if _contains(table.path or "", plain_path("/", file))]
    return found[0] if len(found) == 1 else None


def _contains(path: str, file: str) -> bool:
    """Returns whether `path`, which can be a pattern, can match `file` or a folder above it."""
    start, *pattern = _PATTERN.split(path, maxsplit=1)
    return file.startswith(start) if pattern else file == start or file.startswith(f"{start}/")


def _unread_column(values: str, names: Sequence[str]) -> str | None:
    """Returns the column that Spark could not parse, the only one without a value; None if that is uncertain.

    Spark separates the values with commas, and does not quote text.
    """
    shown = values.removeprefix("[").removesuffix("]").split(",")
    is_certain = len(shown) == len(names) and shown.count("null") == 1
    return names[shown.index("null")] if is_certain else None


def _reason(text: str) -> str:
    first = _CLASSES.sub("", text.splitlines()[0] if text else "")
    while (shorter := _DECORATION.sub("", first)) != first:
        first = shorter
    return first.strip().rstrip(".;")


def plain_file(file: str) -> str:
    """Returns the path of a local file, the URI of any other."""
    try:
        parts = urlsplit(file)
    except ValueError:  # `s3a://[x/y` is no URI
        return file
    return unquote(parts.path) if parts.scheme == "file" else file
