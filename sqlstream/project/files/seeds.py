"""The seeds: each CSV file under seeds/, checked, with its YAML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from itertools import islice
from pathlib import Path

from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location, location_at
from sqlstream.project.configuration.config import SeedConfig, check_patch, combine_patches
from sqlstream.project.configuration.properties import Properties
from sqlstream.project.configuration.resources import written_config
from sqlstream.project.files.csv_text import CsvText, Value
from sqlstream.project.files.files import ProjectFiles, checksum
from sqlstream.project.files.folders import FolderConfig
from sqlstream.project.files.models import file_name, folders_of
from sqlstream.project.files.seed_checks import SeedCheck, check_columns, check_file_name, check_types
from sqlstream.project.values import Seed


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
    seeds = (_build_seed(path, folders, properties.get(file_name(path))) for path in paths)
    checked = [_with_header(files, seed, findings, configured) for seed in seeds if _is_enabled(seed)]
    return tuple(sorted(checked, key=lambda seed: seed.name))


KEPT_SEED_ROWS, KEPT_SEED_LENGTH = 200, 20_000
"""The most rows and characters of a seed that are kept to show what changed."""


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
        csv = CsvText(ProjectFiles(root).read_exactly(path), delimiter)
    except FindingsError:
        return None
    found = [tuple(_value(value) for value in csv.values(row)) for row in csv.rows()]
    header, rows = found[0] if found else (), found[1:]
    columns = zip(*rows, strict=False) if rows else [()] * len(header)
    digests = {str(name): _digest(values) for name, values in zip(header, columns, strict=False)}
    is_small = len(rows) <= KEPT_SEED_ROWS and len(csv.text) <= KEPT_SEED_LENGTH
    return SeedContent(len(rows), digests, tuple(rows) if is_small else None)


def _value(value: Value) -> str | None:
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


def _build_seed(path: str, folders: FolderConfig, properties: Properties | None) -> Seed:
    patches = [*folders.patches_for(folders_of(path), file_name(path)), properties.config if properties else {}]
    typed = tuple(column for column in properties.columns if column.data_type is not None) if properties else ()
    written = [*folders.written_for(folders_of(path), file_name(path)), properties.written if properties else {}]
    types = [[column.name, column.data_type] for column in typed]
    return Seed(
        name=file_name(path),
        path=path,
        description=properties.description if properties else "",
        columns=typed,
        config=combine_patches(patches),
        location=Location(path),
        properties_location=properties.location if properties else None,
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
