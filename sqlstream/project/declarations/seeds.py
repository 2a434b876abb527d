"""The seeds: each CSV file under seeds/ with its YAML, and the checks of its header, quotes, line ends and rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TypeVar

from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location, location_at
from sqlstream.numbers import plural
from sqlstream.project.configuration.columns import type_problem
from sqlstream.project.configuration.config import SeedConfig, check_patch, combine_patches
from sqlstream.project.configuration.documents import DeclaredColumn
from sqlstream.project.configuration.folder_config import FolderConfig
from sqlstream.project.configuration.properties import NO_PROPERTIES, Properties
from sqlstream.project.configuration.resources import written_config
from sqlstream.project.declarations.models import file_name, folders_of
from sqlstream.project.files.csv_text import BLANK_BEFORE, TEXT_AFTER, UNCLOSED, CsvText, Fault, Row, Value
from sqlstream.project.files.files import ProjectFiles, checksum
from sqlstream.project.values import Seed
from sqlstream.project.wording import did_you_mean, quoted, quoted_list

KEPT_SEED_ROWS, KEPT_SEED_LENGTH = 200, 20_000
"""The most rows and characters of a seed that are kept to show what changed."""

T = TypeVar("T")

MOST_SHOWN = 5
"""The most findings of one kind for one file. Others are only counted."""

MOST_COUNTED = 1000
"""The most wrong rows that are searched. A file with more is wrong as a whole, and counting all would take seconds."""

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
"""The separators in files that programs export."""


def load_seeds(
    files: ProjectFiles,
    paths: tuple[str, ...],
    folders: FolderConfig,
    properties: Mapping[str, Properties],
    findings: list[Finding],
    *,
    configured: bool,
) -> tuple[Seed, ...]:
    """Returns the enabled seeds, sorted by name, and adds the errors in their files. `configured`: all YAML could be
    read; otherwise a seed's delimiter may be missing.
    """
    seeds = (_build_seed(path, folders, properties.get(file_name(path), NO_PROPERTIES)) for path in paths)
    checked = [_with_header(files, seed, findings, configured) for seed in seeds if _is_enabled(seed)]
    return tuple(sorted(checked, key=lambda seed: seed.name))


@dataclass(frozen=True)
class SeedContent:
    """The rows of a seed: their number, a digest of each column, in their order, and the rows themselves if they are
    few: the text of each value, None for a missing one.
    """

    count: int
    columns: Mapping[str, str]
    rows: tuple[tuple[str | None, ...], ...] | None = None


@lru_cache(100)
def seed_content(root: Path, path: str, delimiter: str, checksum: str) -> SeedContent | None:  # noqa: ARG001 - the key
    """Returns the rows of the seed at `path`, None if it cannot be read any more. `checksum` is that of its text."""
    try:
        text = ProjectFiles(root).read_exactly(path)
    except FindingsError:
        return None
    found = _all_rows(text, delimiter)
    header, rows = found[0] if found else (), found[1:]
    columns = zip(*rows, strict=False) if rows else [()] * len(header)
    digests = {str(name): _digest(values) for name, values in zip(header, columns, strict=False)}
    is_small = len(rows) <= KEPT_SEED_ROWS and len(text) <= KEPT_SEED_LENGTH
    return SeedContent(len(rows), digests, tuple(rows) if is_small else None)


def seed_rows(root: Path, seed: Seed) -> list[tuple[str | None, ...]]:
    """Returns the text of each value below the header, None for a missing one, as Spark reads the file.

    Raises: FindingsError if the file can no longer be read, or no longer has the seed's header.
    """
    found = _all_rows(ProjectFiles(root).read_exactly(seed.path), seed.delimiter)
    if not found or found[0] != seed.header or any(len(row) != len(seed.header) for row in found):
        why = "it is not the file that was checked before Spark started"
        raise FindingsError([Finding("seed-syntax", "the seed has changed", why, "start again", seed.location)])
    return found[1:]


def _all_rows(text: str, delimiter: str) -> list[tuple[str | None, ...]]:
    csv = CsvText(text, delimiter)
    return [tuple(_value(value) for value in csv.values(row)) for row in csv.rows()]


def _value(value: Value) -> str | None:
    # As Spark reads it: nothing between two delimiters is null, and two quotes are empty text.
    return value.text if value.text or value.is_quoted else None


def _digest(values: Iterable[str | None]) -> str:
    return sha256(repr(tuple(values)).encode(errors="surrogatepass")).hexdigest()


def find_values(root: Path, seed: Seed, cells: Iterable[tuple[int, int]]) -> list[tuple[Location, str]]:
    """Returns the location and text of values of a seed, by row (0 is the first below the header) and column.

    Omits a value that no longer exists because the file has changed. Raises: FindingsError if the file can no longer be
    read.
    """
    csv = CsvText(ProjectFiles(root).read_exactly(seed.path), seed.delimiter)
    found = []
    for row, column in cells:
        values = [value for line in islice(csv.rows(), row + 1, row + 2) for value in csv.values(line)]
        found += [(location_at(seed.path, csv.text, at.offset), at.text) for at in values[column : column + 1]]
    return found


def _build_seed(path: str, folders: FolderConfig, properties: Properties) -> Seed:
    patches = [*folders.patches_for(folders_of(path), file_name(path)), properties.config]
    typed = tuple(column for column in properties.columns if column.data_type is not None)
    written = [*folders.written_for(folders_of(path), file_name(path)), properties.written]
    types = [[column.name, column.data_type] for column in typed]
    return Seed(
        name=file_name(path),
        path=path,
        description=properties.description,
        columns=typed,
        config=combine_patches(patches),
        location=Location(path),
        properties_location=properties.location,
        column_locations=properties.column_locations,
        written={**written_config(*written), **({"columns": types} if types else {})},
    )


def _is_enabled(seed: Seed) -> bool:
    enabled = seed.config.get("enabled")
    return enabled is None or enabled.value is not False


def _with_header(files: ProjectFiles, seed: Seed, findings: list[Finding], configured: bool) -> Seed:
    """The seed with the names of its columns. Adds the errors in its file."""
    check_file_name(seed, findings)
    check_types(seed, files, findings)
    try:
        text = files.read_exactly(seed.path)
    except FindingsError as error:
        findings.extend(error.findings)
        return seed
    if check_patch(seed.config, SeedConfig):  # already a finding; the delimiter may be the reason
        return seed
    check = SeedCheck(seed.path, CsvText(text, seed.delimiter), configured)
    header = check.run()
    findings.extend(check.findings)
    if header is None:
        return seed
    check_columns(seed, header, findings)
    # with Unix line ends, because those of a checkout depend on the machine
    return replace(seed, header=header, checksum=checksum(text.replace("\r\n", "\n")))


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
            seed.location_of_column(column.name, "name"),
        )
        for column in seed.columns
        if column.name.lower() not in known
    )


def check_types(seed: Seed, files: ProjectFiles, findings: list[Finding]) -> None:
    """Adds a finding for each declared type that Spark would refuse, at its location in the YAML."""
    for column in seed.columns:
        place = seed.location_of_column(column.name, "data_type")
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
        more = plural(len(items) - MOST_SHOWN, "more mistake")
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
        what = f"this row has {plural(len(values), 'value')}, but the header has {plural(count, 'column')}"
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
