"""The tables of AUTO CDC, as `auto_cdc.py` has stored them, beside those of `sequence_by` and `history`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.keyed_changes import as_text, model

FILE = os.environ.get("SQLSTREAM_AUTO_CDC", "")
"""What `auto_cdc.py` has written (`make auto-cdc`)."""

KILLS = int(os.environ.get("SQLSTREAM_KILLS", "2"))
FILES_FOR_A_KILL = 3

MODELS = {
    "last": "",
    "versions": ", history=true, track_columns=['n', 'name']",
    "tracked": ", history=true, track_columns=['name']",
}
"""The configuration with which a model writes the same rows as a table of AUTO CDC."""

_LAST, _VERSION = ("id", "at", "n", "name"), ("id", "n", "name")


def columns(table: str) -> tuple[str, ...]:
    """Returns the columns of sqlstream's table that are compared."""
    return _LAST if table == "last" else (*_VERSION, "valid_from", "valid_to")


def models(sinks: Sequence[str]) -> dict[str, str]:
    """Returns the files of the models that write each table to each sink, such as `models/last_sqlite.sql`."""
    return {f"models/{table}_{sink}.sql": model(sink, more) for table, more in MODELS.items() for sink in sinks}


@dataclass(frozen=True)
class AutoCdc:
    """Changes in random order, and the rows of the tables that AUTO CDC has made of them, as sorted texts."""

    changes: list[dict[str, Any]]
    tables: dict[str, list[tuple[str, ...]]]

    def batches(self) -> Iterator[list[dict[str, Any]]]:
        """Returns the changes for as many files as runs through `KILLS` kills need."""
        files = FILES_FOR_A_KILL * KILLS
        return (self.changes[number::files] for number in range(files))


def read_auto_cdc() -> AutoCdc:
    """Returns what `FILE` has."""
    stored = json.loads(Path(FILE).read_text())
    tables = {
        name: as_text(
            [row[column] for column in (_LAST if name == "last" else (*_VERSION, "__START_AT", "__END_AT"))]
            for row in rows
        )
        for name, rows in stored["tables"].items()
    }
    return AutoCdc(stored["changes"], tables)
