"""The columns of a source as YAML to copy into sources.yml."""

from __future__ import annotations

import re

from sqlstream.numbers import plural
from sqlstream.project.yaml.writing import flow_text
from sqlstream.report.rows import json_text
from sqlstream.state.source_columns import InferredColumn, SourceColumns

PLAIN = re.compile(r"[A-Za-z_](?:[\w .,()<>/`'-]|:(?=\S)|(?<=\S)#)*(?<![ :])")
"""Text that needs no quotes in block YAML."""

WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n", "~"})
"""Words that YAML 1.1 does not read as text."""


def columns_yaml(found: SourceColumns) -> str:
    """Returns `columns:` with the indentation of the table's keys, and a comment on where the columns come from."""
    margin = " " * found.indent
    lines = [*(f"# {line}" for line in _comments(found)), "columns:"]
    for column in found.columns:
        lines += _column(column, typed=not found.is_fixed)
    return "\n".join(f"{margin}{line}" for line in lines)


def columns_json(found: SourceColumns) -> str:
    """Returns the columns as one JSON object. `files` is null for a format without files."""
    files = {"total": found.files, "looked_at": found.looked_at, "empty": found.empty}
    columns = [
        {
            "name": column.name,
            "data_type": column.data_type,
            "description": column.description,
            "notes": list(column.notes),
        }
        for column in found.columns
    ]
    return json_text(
        {
            "source": found.table,
            "format": found.format,
            "files": files if found.files else None,
            "columns": columns,
        },
        indent=2,
    )


def _comments(found: SourceColumns) -> list[str]:
    if found.is_fixed:
        return [f"{found.table}: {found.format} has fixed columns, so declare no data_type"]
    lines = [f"{found.table}: read {found.looked_at:,} of {plural(found.files, 'file')}"]
    if not found.files:
        lines = [f"{found.table}: the columns of the {found.format} table"]
    if found.empty:
        lines[0] += f", {found.empty:,} of them empty"
    if found.replaces is not None:
        lines.append(f"replaces `{found.replaces}:`, which declares the schema now")
    return lines


def _column(column: InferredColumn, *, typed: bool) -> list[str]:
    lines = [f"  - name: {_scalar(column.name)}"]
    if typed:
        lines.append(f"    data_type: {_scalar(column.data_type)}")
    if note := "; ".join(column.notes if typed else [column.data_type, *column.notes]):
        lines[-1] += f"  # {note}"
    if column.description:
        lines.append(f"    description: {_scalar(column.description)}")
    return lines


def _scalar(text: str) -> str:
    if PLAIN.fullmatch(text) and text.lower() not in WORDS:
        return text
    return flow_text(text)
