"""Checks of a seed's file: its header, quotes, line ends, and the number of values in its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from typing import TypeVar

from sqlstream.errors import Finding
from sqlstream.location import location_at
from sqlstream.project.files.csv_text import BLANK_BEFORE, TEXT_AFTER, UNCLOSED, CsvText, Fault, Row, Value
from sqlstream.project.files.files import ProjectFiles
from sqlstream.project.types.declared import type_problem
from sqlstream.project.values import DeclaredColumn, Seed
from sqlstream.project.wording import counted, did_you_mean, quoted, quoted_list

T = TypeVar("T")

MOST_SHOWN = 5
"""The most findings of one kind for one file. Others are only counted."""

MOST_COUNTED = 1000
"""The most wrong rows that are searched. A file with more is wrong as a whole, and counting all would take seconds."""

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
"""The separators in files that programs export."""


def check_file_name(seed: Seed, findings: list[Finding]) -> None:
    """Adds a finding for a file that Spark would treat as hidden, and read no rows from."""
    if seed.name.startswith("_"):
        findings.append(
            Finding(
                "invalid-value",
                f"the name of a seed cannot start with `_`: {quoted(seed.name)}",
                "Spark ignores files with such names, and would read no rows",
                "rename the file",
                seed.location,
            )
        )


def check_columns(seed: Seed, header: tuple[str, ...], findings: list[Finding]) -> None:
    """Adds a finding for each typed column that is not in the header, at its location in the YAML."""
    known = {name.lower() for name in header}
    findings.extend(
        Finding(
            "seed-column",
            f"{quoted(column.name)} is not a column of seed {quoted(seed.name)}",
            f"the header of {quoted(seed.path)} has {quoted_list(header)}",
            did_you_mean(column.name, header),
            column.places.get("name", seed.properties_location),
        )
        for column in seed.columns
        if column.name.lower() not in known
    )


def check_types(seed: Seed, files: ProjectFiles, findings: list[Finding]) -> None:
    """Adds a finding for each declared type that Spark would refuse, at its location in the YAML."""
    for column in seed.columns:
        place = column.places.get("data_type", seed.properties_location)
        problem = type_problem(column.data_type, place, files) if column.data_type and place else None
        if problem is not None:
            what = wrong_type(seed, column)
            findings.append(replace(problem, code="seed-column", message=what, why=problem.message))


def wrong_type(seed: Seed, column: DeclaredColumn) -> str:
    """Returns the message for an invalid type of the column."""
    return f"column {quoted(column.name)} of seed {quoted(seed.name)} cannot have the type {quoted(column.data_type)}"


def first_few(items: Sequence[T], describe: Callable[[T], Finding]) -> list[Finding]:
    """Returns the findings for the first `MOST_SHOWN` items, and one with the number of the others."""
    findings = [describe(item) for item in items[: MOST_SHOWN + 1]]
    if len(items) > MOST_SHOWN:
        following = findings.pop()
        more = counted(len(items) - MOST_SHOWN, "more mistake")
        findings.append(
            Finding(
                following.code,
                f"{'at least ' if len(items) >= MOST_COUNTED else ''}{more} of this kind after this one",
                f"only the first {MOST_SHOWN} of this file are shown",
                "fix those first, then check again",
                following.location,
            )
        )
    return findings


class SeedCheck:
    """One check of one file, which adds to `findings`. `configured`: the delimiter is known. If YAML could not be read,
    a comma is only a guess.
    """

    def __init__(self, path: str, csv: CsvText, configured: bool) -> None:
        self.findings: list[Finding] = []
        self._path = path
        self._csv = csv
        self._configured = configured

    def run(self) -> tuple[str, ...] | None:
        """Returns the names of the header, None if the file is too broken to know."""
        header = next(self._csv.rows(), None)
        stray = self._csv.stray_line_end()
        if header is None or not self._csv.text.strip():
            self._add("seed-header", 0, *_EMPTY)
        elif stray is not None:
            self._add("seed-syntax", stray, *_MIXED_LINE_ENDS)
        elif header.fault is not None:
            self.findings.append(self._fault(header.fault))
        else:
            return self._read(self._csv.values(header))
        return None

    def _read(self, header: tuple[Value, ...]) -> tuple[str, ...] | None:
        other = _other_separator(header, self._csv.delimiter)
        if other is not None:
            if self._configured:
                self._add("seed-header", header[0].text.index(other), *self._wrong_separator(other))
            return None
        self._check_names(header)
        odd = list(islice(self._csv.odd_rows(len(header)), MOST_COUNTED))
        self.findings.extend(first_few(odd, lambda row: self._odd_row(row, len(header))))
        return tuple(value.text for value in header)

    def _check_names(self, header: tuple[Value, ...]) -> None:
        wrong: list[tuple[int, tuple[str, str, str]]] = []
        first: dict[str, str] = {}
        for number, (name, offset, _) in enumerate(header, start=1):
            if not name.strip():
                wrong.append((offset, _nameless(number)))
            elif name != name.strip():
                wrong.append((offset, _blanks(name)))
            elif name.lower() in first:
                wrong.append((offset, _same_names(name, first[name.lower()])))
            first.setdefault(name.lower(), name)
        self.findings.extend(first_few(wrong, lambda item: self._finding("seed-header", item[0], *item[1])))

    def _odd_row(self, row: Row, count: int) -> Finding:
        if row.fault is not None:
            return self._fault(row.fault)
        values = self._csv.values(row)
        what = f"this row has {counted(len(values), 'value')}, but the header has {counted(count, 'column')}"
        if len(values) < count:
            return self._finding("seed-row", row.start, what, *_TOO_FEW)
        return self._finding("seed-row", values[count].offset, what, *_TOO_MANY)

    def _wrong_separator(self, other: str) -> tuple[str, str, str]:
        used, expected = (
            SEPARATORS[other],
            SEPARATORS.get(self._csv.delimiter, f"the character `{self._csv.delimiter}`"),
        )
        yaml = other.replace("\t", "\\t")
        return (
            f"the values are separated by {used}, not by {expected}",
            f"the header is read as one column, whose name would contain {used}",
            f'separate the values by {expected}, or set `delimiter: "{yaml}"` in the configuration of the seed',
        )

    def _fault(self, fault: Fault) -> Finding:
        return self._finding("seed-syntax", fault.offset, *_FAULTS[fault.kind])

    def _add(self, code: str, offset: int, what: str, why: str, fix: str) -> None:
        self.findings.append(self._finding(code, offset, what, why, fix))

    def _finding(self, code: str, offset: int, what: str, why: str, fix: str) -> Finding:
        return Finding(code, what, why, fix, location_at(self._path, self._csv.text, offset))


_EMPTY = (
    "the seed is empty",
    "a seed is a CSV file with its column names in the first line",
    "add the header line, or delete the file",
)
_MIXED_LINE_ENDS = (
    "this line and the first line have different line ends",
    "Spark uses the first line end, and treats any other as part of the value",
    "use the same line end in the whole file",
)
_TOO_FEW = (
    "each row needs one value per column; nothing between two delimiters is null",
    "add the missing values or delimiters; put text with a line break in double quotes",
)
_TOO_MANY = (
    "each row needs one value per column; this is the first extra value",
    "put text that contains the delimiter in double quotes, or remove the extra values",
)
_FAULTS = {
    UNCLOSED: (
        "this quote is never closed",
        "everything up to the end of the file would be one value",
        "close it; double a quote inside quotes",
    ),
    TEXT_AFTER: (
        "text follows the closing quote of a value",
        "a closing quote ends the value",
        "double a quote inside quotes, or remove the quotes",
    ),
    BLANK_BEFORE: (
        "there is a space before the opening quote of a value",
        "Spark would read the quotes as part of the value",
        "remove the space",
    ),
}


def _other_separator(header: tuple[Value, ...], delimiter: str) -> str | None:
    """The separator that the file uses instead of the delimiter, if its header looks like a single unquoted name."""
    if len(header) > 1 or header[0].is_quoted:
        return None
    return next((letter for letter in header[0].text if letter in SEPARATORS and letter != delimiter), None)


def _nameless(number: int) -> tuple[str, str, str]:
    return (
        f"column {number} of the header has no name",
        "Spark would generate a name for it",
        "name the column, or remove it from all rows",
    )


def _blanks(name: str) -> tuple[str, str, str]:
    return (
        f"the name {quoted(name)} has spaces around it",
        "they would be part of the column name",
        f"remove the spaces: {quoted(name.strip())}",
    )


def _same_names(name: str, first: str) -> tuple[str, str, str]:
    both = f"the column {quoted(name)} twice" if name == first else f"both {quoted(first)} and {quoted(name)}"
    return (
        f"the header has {both}",
        "Spark ignores the case of names, so a query could not refer to one of them",
        "rename or remove one of them",
    )
