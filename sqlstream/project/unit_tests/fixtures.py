"""The rows of unit tests: written in YAML, or as CSV, JSON, JSON lines or SQL there or in tests/fixtures/; also as
messages of Kafka.

All forms become mappings of YAML nodes, so that each value keeps its text and its location.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal

from sqlstream.errors import Finding
from sqlstream.location import Location, locator
from sqlstream.numbers import plural
from sqlstream.project.configuration.validate import validate_node
from sqlstream.project.files.csv_text import CsvText, Row
from sqlstream.project.files.files import ProjectFiles
from sqlstream.project.types.data_types import Array, Field, Primitive, Struct
from sqlstream.project.unit_tests.unit_test_documents import ExpectedBatchDocument
from sqlstream.project.values import SourceTable
from sqlstream.project.wording import alternatives, did_you_mean, given, quoted
from sqlstream.project.yaml import (
    YamlEntry,
    YamlMapping,
    YamlNode,
    YamlScalar,
    YamlSequence,
    from_plain,
    locate_in_scalar,
    plain,
)

FIXTURES = "tests/fixtures"
"""The folder of fixture files."""

FORMATS = ("csv", "json", "jsonl", "sql")
"""The formats of a fixture file, which are also its suffixes."""

_BINARY, _STRING = Primitive("binary"), Primitive("string")
_HEADERS = Array(Struct((Field("key", _STRING), Field("value", _BINARY))))

FIELDS = (
    Field("key", _BINARY),
    Field("value", _BINARY),
    Field("topic", _STRING),
    Field("partition", Primitive("int")),
    Field("offset", Primitive("bigint")),
    Field("timestamp", Primitive("timestamp")),
    Field("timestampType", Primitive("int")),
    Field("headers", _HEADERS),
)
"""The columns of Spark's Kafka reader, and the keys of a message in a unit test."""

FIRST_TIME = "1970-01-01 00:00:00"
"""The timestamp of messages without one, unless the source compares event times with it."""


@dataclass(frozen=True)
class Rows:
    """The rows of a batch or of an expectation: mappings of columns to values, or a query that returns them.

    `are_messages`: the rows are messages of Kafka, which the source parses.
    """

    location: Location
    rows: tuple[YamlMapping, ...] = ()
    sql: str | None = None
    are_messages: bool = False


@dataclass(frozen=True)
class RowText:
    """Rows as text. `place(offset)` returns the location of a character."""

    text: str
    location: Location
    location_of: Callable[[int], Location]


class FixtureReader:
    """Reads rows. Invalid rows are None, with their errors in `findings`."""

    def __init__(self, files: ProjectFiles, findings: list[Finding]) -> None:
        self._files = files
        self.findings = findings

    def read(self, holder: YamlMapping) -> Rows | None:
        """Returns the rows in `rows`, `messages`, `fixture` and `format` of a mapping, None if it has none of these."""
        rows, fixture, messages = (holder.entry(key) for key in ("rows", "fixture", "messages"))
        if messages is not None and (rows or fixture) is not None:
            what = "the input has both rows and messages"
            self.report(what, "only one of them could be used", "remove one of them", messages.key_location)
            return None
        if messages is not None:
            found = self._from_yaml(messages, None)
            return None if found is None else replace(found, are_messages=True)
        if rows is not None and fixture is not None:
            what = "rows are defined twice: here and in a fixture"
            self.report(what, "only one of them could be used", "remove one of them", fixture.key_location)
            return None
        format_node = holder.get("format")
        named = str(format_node.value) if isinstance(format_node, YamlScalar) and format_node.value else None
        if fixture is not None and isinstance(fixture.value, YamlScalar):
            return self._from_file(str(fixture.value.value), named, fixture.value.location)
        if rows is None:
            return None
        if isinstance(rows.value, YamlScalar) and isinstance(rows.value.value, str) and named in FORMATS:
            scalar = rows.value
            whole = self._files.read_text(scalar.location.path)
            text = str(scalar.value)
            place = RowText(text, scalar.location, lambda at: locate_in_scalar(whole, scalar.location, text, at))
            return self._from_text(place, named or "")
        return self._from_yaml(rows, named)

    def read_entry(self, entry: YamlEntry) -> Rows | None:
        """Returns the rows below a key: a list, or a mapping with the keys that `read` knows."""
        if not isinstance(entry.value, YamlMapping):
            return self._from_yaml(entry, None)
        validate_node(ExpectedBatchDocument, entry.value, self.findings)
        return self.read(entry.value)

    def _from_yaml(self, rows: YamlEntry, named: str | None) -> Rows | None:
        node = rows.value
        if isinstance(node, YamlScalar) and node.value is None:
            return Rows(rows.key_location)
        if not isinstance(node, YamlSequence):
            fix = "start each row with `- `"
            if named in FORMATS:
                fix = f"use text after `|` for rows with `format: {named}`"
            elif isinstance(node, YamlScalar):
                fix += f", or set the format of the text: `format: {FORMATS[0]}` (or {', '.join(FORMATS[1:])})"
            items = "messages" if rows.key == "messages" else "rows"
            what = f"`{rows.key}` must be a list of {items}, but is {given(plain(node))}"
            self.report(what, "each row is a mapping of columns to values", fix, rows.key_location)
            return None
        if named in FORMATS and node.items:
            what = f"`rows` must be text in the format {named}, but is a list"
            self.report(what, f"`format: {named}` requires it", "remove `format`", rows.key_location)
            return None
        return self._mappings(node, rows.key_location)

    def _mappings(self, node: YamlSequence, location: Location) -> Rows | None:
        known = len(self.findings)
        for item in node.items:
            if not isinstance(item, YamlMapping):
                what = f"a row must be a mapping of columns to values, but is {given(plain(item))}"
                fix = "use {column: value, other_column: value}"
                self.report(what, "each row names its columns", fix, item.location)
        if len(self.findings) > known:
            return None
        return Rows(location, tuple(item for item in node.items if isinstance(item, YamlMapping)))

    def _from_file(self, name: str, named: str | None, named_at: Location) -> Rows | None:
        path = self._find(name, named, named_at)
        if path is None:
            return None
        text = self._files.try_read(path, self.findings, named_at)
        if text is None:
            return None
        rows = RowText(text, Location(path), locator(path, text))
        return self._from_text(rows, path.rsplit(".", 1)[-1])

    def _find(self, name: str, named: str | None, named_at: Location) -> str | None:
        """The path of the fixture `name`; None after adding a finding if it does not exist."""
        listing = self._files.list_files(FIXTURES, *(f".{ending}" for ending in FORMATS))
        names = {path.removeprefix(f"{FIXTURES}/"): path for path in listing.paths}
        endings = (named,) if named in FORMATS else FORMATS
        wanted = (name, *(f"{name}.{ending}" for ending in endings))
        found = [path for short, path in names.items() if short in wanted and short.rsplit(".", 1)[-1] in endings]
        if len(found) == 1:
            return found[0]
        if found:
            what = f"{quoted(name)} matches {plural(len(found), 'fixture')}"
            why = f"the fixtures are {' and '.join(found)}"
            self.report(what, why, "add the extension to the name", named_at)
            return None
        form = f" in the format {named}" if named in FORMATS else ""
        stems = sorted({short.rsplit(".", 1)[0] for short in names})
        extensions = alternatives([f".{ending}" for ending in endings])
        why = f"fixtures are files in {FIXTURES}/ with the extension {extensions}"
        what = f"there is no fixture {quoted(name)}{form}"
        self.report(what, why, did_you_mean(name, stems) if stems else f"create {wanted[-1]}", named_at)
        return None

    def _from_text(self, rows: RowText, form: str) -> Rows | None:
        if form == "sql":
            return Rows(rows.location, sql=rows.text)
        if form == "csv":
            return self._from_csv(rows)
        try:
            return Rows(rows.location, tuple(_json_lines(rows) if form == "jsonl" else _json_rows(rows)))
        except json.JSONDecodeError as error:
            what = f"this is not valid JSON: {error.msg}"
            place = rows.location_of(error.pos)
        except _NotARowError as error:
            what, place = f"a row must be a JSON object, but is {error}", error.place
        why = "each line is one JSON object" if form == "jsonl" else "rows are a JSON array of objects"
        self.report(what, why, "fix the JSON", place)
        return None

    def _from_csv(self, rows: RowText) -> Rows | None:
        csv = CsvText(rows.text, ",")
        lines = list(csv.rows())
        faults = [line for line in lines if line.fault is not None]
        header = [value.text.strip() for value in csv.values(lines[0])] if lines and not faults else []
        for line in faults or [line for line in lines if line.width != len(header)]:
            self._report_row(line, len(header), rows)
        if faults or any(line.width != len(header) for line in lines) or self._repeats_a_name(csv, lines, rows):
            return None
        return Rows(rows.location, tuple(_csv_row(csv, line, header, rows) for line in lines[1:]))

    def _repeats_a_name(self, csv: CsvText, lines: list[Row], rows: RowText) -> bool:
        """Whether two columns of the header have the same name."""
        seen: set[str] = set()
        for value in csv.values(lines[0]) if lines else ():
            name = value.text.strip().casefold()
            if name in seen:
                what, why = f"the header contains {quoted(value.text.strip())} twice", "one of them would be ignored"
                self.report(what, why, "remove or rename one of them", rows.location_of(value.offset))
                return True
            seen.add(name)
        return False

    def _report_row(self, line: Row, count: int, rows: RowText) -> None:
        if line.fault is not None:
            what, at = "the quotes of this value are not balanced", line.fault.offset
        else:
            what = f"this row has {plural(line.width, 'value')}, but the header has {plural(count, 'column')}"
            at = line.start
        fix = "fix the row; put text with a comma or a quote in double quotes, and double the quotes inside"
        self.report(what, "each row needs one value per column", fix, rows.location_of(at))

    def report(self, what: str, why: str, fix: str, location: Location, code: str = "unit-test-fixture") -> None:
        """Adds a finding."""
        self.findings.append(Finding(code, what, why, fix, location))


class _NotARowError(ValueError):
    """A JSON value that is not an object, with its location `place`."""

    def __init__(self, value: object, place: Location) -> None:
        super().__init__(given(value))
        self.place = place


_DECODER = json.JSONDecoder(parse_float=Decimal)
"""Decimals keep all of their digits."""

_BETWEEN = re.compile(r"[ \t\r\n,]*")
"""The characters between the items of a JSON array."""


def _json_lines(rows: RowText) -> list[YamlMapping]:
    found = []
    for line in re.finditer(r"[^\n]*\S[^\n]*", rows.text):  # without blank lines
        try:
            value = _DECODER.decode(line[0])
        except json.JSONDecodeError as error:
            raise json.JSONDecodeError(error.msg, rows.text, line.start() + error.pos) from error  # in the whole text
        found.append(_json_row(value, rows.location_of(line.start())))
    return found


def _json_rows(rows: RowText) -> list[YamlMapping]:
    value = _DECODER.decode(rows.text)
    if not isinstance(value, list):
        raise _NotARowError(value, rows.location_of(0))
    places = _item_locations(rows)
    return [_json_row(item, place) for item, place in zip(value, places, strict=True)]


def _item_locations(rows: RowText) -> list[Location]:
    """The offset of each item of the array in the text."""
    text = rows.text
    places: list[Location] = []
    at = text.index("[") + 1
    while True:
        at = _BETWEEN.match(text, at).end()  # type: ignore[union-attr]  # it matches nothing, too
        if text[at] == "]":
            return places
        places.append(rows.location_of(at))
        _, at = _DECODER.raw_decode(text, at)


def _json_row(value: object, place: Location) -> YamlMapping:
    node = from_plain(value, place)
    if not isinstance(node, YamlMapping):
        raise _NotARowError(value, place)
    return node


def _csv_row(csv: CsvText, line: Row, header: list[str], rows: RowText) -> YamlMapping:
    """A row of a CSV text. Nothing between two commas is null, and two quotes are empty text."""
    entries = []
    for name, value in zip(header, csv.values(line), strict=True):
        place = rows.location_of(value.offset)
        text = None if value.text == "" and not value.is_quoted else value.text
        entries.append(YamlEntry(name, place, YamlScalar(text, value.text, place)))
    return YamlMapping(tuple(entries), rows.location_of(line.start))


_PARTS = ("key", "value")
"""The keys whose lists and mappings become JSON."""


def message_rows(batches: Sequence[Rows], table: SourceTable) -> list[Rows]:
    """Returns all messages of an input as rows, batch by batch.

    A message without a topic, partition or timestamp is in the source's first topic and partition 0, and has the time
    `FIRST_TIME`, or that of the test if the source has `max_event_time`. A message without an offset has the next one
    of its partition.
    """
    offsets: Counter[str] = Counter()
    time = FIRST_TIME if table.max_event_time is None else f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}Z"
    return [replace(rows, rows=tuple(_row(row, table, offsets, time) for row in rows.rows)) for rows in batches]


def _row(message: YamlMapping, table: SourceTable, offsets: Counter[str], time: str) -> YamlMapping:
    given = {entry.key.casefold(): entry for entry in message.entries}
    entries = [entry._replace(value=_value(entry)) for entry in message.entries]
    partition = str(plain(given["partition"].value)) if "partition" in given else "0"
    defaults = {"topic": _topic(table), "partition": "0", "timestamp": time, "timestamptype": "0"}
    defaults["offset"] = str(offsets[partition])
    at = message.location
    entries += [YamlEntry(key, at, YamlScalar(text, text, at)) for key, text in defaults.items() if key not in given]
    offset = next(str(plain(entry.value)) for entry in entries if entry.key.casefold() == "offset")
    offsets[partition] = int(offset) + 1 if offset.isdecimal() else offsets[partition] + 1
    return replace(message, entries=tuple(entries))


def _value(entry: YamlEntry) -> YamlNode:
    node = entry.value
    if entry.key.casefold() in _PARTS and isinstance(node, YamlMapping | YamlSequence):
        text = json.dumps(plain(node), ensure_ascii=False, default=str)
        return YamlScalar(text, text, node.location)
    if entry.key.casefold() == "headers" and isinstance(node, YamlMapping):
        return YamlSequence(tuple(_header(each) for each in node.entries), node.location)
    return node


def _header(entry: YamlEntry) -> YamlMapping:
    at = entry.key_location
    return YamlMapping(
        (YamlEntry("key", at, YamlScalar(entry.key, entry.key, at)), YamlEntry("value", at, entry.value)), at
    )


def _topic(table: SourceTable) -> str:
    named = next((str(value) for name, value in table.options.items() if name.lower() == "subscribe"), table.name)
    return named.split(",")[0].strip()
