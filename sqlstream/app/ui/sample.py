"""The newest rows of a query's output, read from its files without Spark."""

from __future__ import annotations

import csv
import gzip
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urlsplit

from sqlstream.compiler.compiled import CompiledModel, Output
from sqlstream.state.batch_logs import SINK_LOG, entry_names

MAX_SAMPLE = 200
"""The most rows of a sample."""

LOG_TAIL_BYTES = 64_000
"""The end of a log entry to read: a compact entry lists every file."""

MAX_FILES = 50
"""The most files to open for one sample."""

SQLITE = "sqlite"

READ_FORMATS = ("parquet", "orc", "json", "csv", "text")


@dataclass(frozen=True)
class Sample:
    """Rows with JSON values, or None with a `note` that says how to see rows."""

    columns: tuple[str, ...] = ()
    rows: list[list[Any]] | None = None
    note: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Returns the sample as plain values."""
        return {"columns": list(self.columns), "rows": self.rows, "note": self.note}


def sample_of(model: CompiledModel, path: str | None, limit: int) -> Sample:
    """Returns up to `limit` rows of the newest files of a query's first output, which is at `path`: an absolute path
    or URI, None if the query has not run.
    """
    output = model.output
    if output is None:
        return Sample(note="a view has no output")
    try:
        found = _read(model, output, path, min(limit, MAX_SAMPLE))
    except (OSError, ValueError, sqlite3.Error) as error:  # pyarrow's errors are ValueErrors or OSErrors
        return Sample(note=f"the output cannot be read: {str(error).splitlines()[0]}")
    show = f"run `sqlstream show --select {model.name}` to see rows of the model"
    return found or Sample(note=f"the page reads no output of the format {output.format}; {show}")


def _read(model: CompiledModel, output: Output, path: str | None, limit: int) -> Sample | None:
    if output.format not in (*READ_FORMATS, SQLITE):
        return None
    folder = local_path(path)
    if path is not None and folder is None:
        return Sample(note=f"the output is in {path}, which only Spark can read")
    if folder is None or not folder.exists():
        return Sample(note="the query has not written any files yet")
    return _sqlite_rows(folder, model.query_id, limit) if output.format == SQLITE else _file_rows(output, folder, limit)


def local_path(path: str | None) -> Path | None:
    """Returns an absolute path or `file:` URI as a path, None for other paths."""
    if path is None or path.startswith("/"):
        return None if path is None else Path(path)
    return Path(unquote(urlsplit(path).path)) if path.startswith("file:") else None


def _file_rows(output: Output, folder: Path, limit: int) -> Sample:
    columns: dict[str, None] = {}
    rows: list[dict[str, Any]] = []
    for path in islice(_newest_files(folder), MAX_FILES):
        partition = _partition(path.relative_to(folder) if path.is_relative_to(folder) else Path())
        for row in _rows_of(output, path, limit - len(rows)):
            rows.append({**row, **partition})
            columns |= dict.fromkeys(rows[-1])
        if len(rows) >= limit:
            break
    note = None if rows else "the output has no rows yet"
    return Sample(tuple(columns), [[_plain(row.get(name)) for name in columns] for row in rows], note)


def _newest_files(folder: Path) -> Iterator[Path]:
    """Yields the committed files of an output, the newest first: those in the log of Spark's file sink, or all data
    files of an output without a log.
    """
    log = folder / SINK_LOG
    if not log.is_dir():
        found = list(_data_files(folder))
        yield from sorted(found, key=lambda path: path.stat().st_mtime_ns, reverse=True)
        return
    names = entry_names(os.listdir(log))  # noqa: PTH208 - only names are needed
    for number in sorted(names, reverse=True):
        for line in reversed(_tail(log / names[number])):
            path = local_path(json.loads(line).get("path"))
            if path is not None and path.exists():
                yield path
        # it lists the files of all entries before it
        if names[number].endswith(".compact"):
            return


def _data_files(folder: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "_")) or "=" in name]
        yield from (Path(root, name) for name in names if not name.startswith((".", "_")))


def _tail(path: Path) -> list[str]:
    """Returns the last complete lines of JSON of a log entry."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - LOG_TAIL_BYTES, 0))
        lines = file.read().decode("utf-8", errors="replace").split("\n")
    return [line for line in lines if line.startswith("{") and line.endswith("}")]


def _partition(path: Path) -> dict[str, str]:
    """Returns the columns in the folder names of a file, such as `day=2024-01-01`."""
    pairs = (part.partition("=") for part in path.parts[:-1] if "=" in part)
    return {unquote(name): unquote(value) for name, _, value in pairs}


def _rows_of(output: Output, path: Path, limit: int) -> Iterator[dict[str, Any]]:
    if output.format in ("parquet", "orc"):
        return _arrow_rows(output.format, path, limit)
    with _opened(path) as file:
        if output.format == "json":
            rows: Sequence[dict[str, Any]] = [json.loads(line) for line in islice(file, limit)]
        elif output.format == "text":
            rows = [{"value": line.rstrip("\n")} for line in islice(file, limit)]
        else:
            rows = _csv_rows(output.options, file, limit)
    return iter(rows)


def _opened(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8", errors="replace")
    return path.open(encoding="utf-8", errors="replace", newline="")


def _csv_rows(options: Mapping[str, object], file: IO[str], limit: int) -> list[dict[str, Any]]:
    given = {name.lower(): str(value) for name, value in options.items()}
    reader = csv.reader(file, delimiter=given.get("sep", given.get("delimiter", ","))[:1])
    header = next(reader, []) if given.get("header", "").lower() == "true" else None
    return [
        dict(zip(header or [f"_c{number}" for number in range(len(row))], row, strict=False))
        for row in islice(reader, limit)
    ]


def _arrow_rows(format_name: str, path: Path, limit: int) -> Iterator[dict[str, Any]]:
    if format_name == "parquet":
        from pyarrow.parquet import ParquetFile  # slow to import, and most pages show no sample

        with ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=limit):
                yield from batch.to_pylist()
                return
        return
    from pyarrow.orc import ORCFile

    file = ORCFile(path)
    if file.nstripes:
        yield from file.read_stripe(0).slice(0, limit).to_pylist()


def _sqlite_rows(file: Path, table: str, limit: int) -> Sample:
    name = '"' + table.replace('"', '""') + '"'
    with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        found = connection.execute(f"SELECT * FROM {name} ORDER BY rowid DESC LIMIT ?", [limit])  # noqa: S608 - quoted
        columns = tuple(column[0] for column in found.description)
        return Sample(columns, [[_plain(value) for value in row] for row in found])


def _plain(value: object) -> object:
    """Returns a value as JSON: times in ISO 8601, decimals as text, bytes as hexadecimal text."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and value not in (float("inf"), float("-inf")) and value == value:
        return value
    return str(value) if isinstance(value, float | Decimal | timedelta) else value
