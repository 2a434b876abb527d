"""The lineage of a model's columns as a table or JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.graph import kind_of
from sqlstream.compiler.manifest.manifest import output_columns
from sqlstream.report.table import table_text

HEADER = ("column", "type", "watermark", "made from")


def lineage_text(columns: Sequence[Column]) -> str:
    """Returns a table with a row for each column; `-` means none or unknown."""
    return table_text(HEADER, [_row(column) for column in columns])


def lineage_json(model: str, columns: Sequence[Column]) -> str:
    """Returns the columns of `model` with their origins as one JSON object."""
    return json.dumps({"model": model, "columns": output_columns(tuple(columns))}, indent=2)


def _row(column: Column) -> tuple[str, ...]:
    origins = ", ".join(f"{_shown(node)}.{name}" for node, name in sorted(column.origins))
    time = column.event_time.delay if column.event_time else "-"
    return column.name, "-" if column.type is None else str(column.type), time, origins or "-"


def _shown(node: str) -> str:
    """Returns a source as `source.table`, a model or a seed by its name."""
    parts = node.split(".")
    return ".".join(parts[2:]) if kind_of(node) == "source" else parts[-1]
