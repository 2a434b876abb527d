"""The first rows of a node as a table, JSON or CSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from decimal import Decimal
from io import StringIO

from sqlstream.numbers import count_text, plural
from sqlstream.report.table import fit_table
from sqlstream.state.shown_rows import ShownRows

NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
"""The types whose columns are aligned to the right."""

DEEPEST_LINE = 4
"""The depth from which values stay on one line: that of a row."""


def rows_text(shown: ShownRows, width: int | None) -> str:
    """Returns a title line and the table, at most `width` characters wide (None: no limit)."""
    header = [column.name for column in shown.columns]
    cells = [[shown_text(value) for value in row] for row in shown.rows]
    right = [at for at, column in enumerate(shown.columns) if column.data_type.partition("(")[0] in NUMBERS]
    table, hidden = fit_table(header, cells, right, width)
    lines = [f"{shown.name}, {_count(shown)}", *([table] if header else [])]
    if hidden:
        lines.append(f"{plural(len(hidden), 'more column')}: {', '.join(hidden)}")
    return "\n".join(lines)


def _count(shown: ShownRows) -> str:
    if not shown.rows:
        return "no rows"
    if shown.is_cut:
        return f"the first {count_text(len(shown.rows))} rows" if len(shown.rows) > 1 else "the first row"
    return plural(len(shown.rows), "row")


def cell_text(value: object) -> str:
    """Returns a value for a cell of a table: text unchanged, other values as JSON."""
    if value is None:
        return "null"
    return value if isinstance(value, str) else json_text(value)


def shown_text(value: object) -> str:
    """Returns a value for a cell of a table. Ambiguous text is quoted and escaped: empty text, the text `null`, leading
    and trailing blanks, and characters that are not printable.
    """
    if not isinstance(value, str) or _is_plain(value):
        return cell_text(value)
    return repr(value)


def _is_plain(text: str) -> bool:
    is_other = text.casefold() == "null" or text[:1] in ("'", '"')
    return bool(text) and text == text.strip() and text.isprintable() and not is_other


def rows_json(shown: Sequence[ShownRows]) -> str:
    """Returns one JSON object with an entry for each node. `rows` are objects keyed by column names."""
    return json_text({"succeeded": True, "results": [_entry(each) for each in shown]}, indent=2)


def _entry(shown: ShownRows) -> dict[str, object]:
    return {"name": shown.name, "unique_id": shown.unique_id, **row_objects(shown)}


def row_objects(shown: ShownRows) -> dict[str, object]:
    """Returns the columns with their types, and the rows as objects keyed by column names."""
    names = _unique([column.name for column in shown.columns])
    types = [column.data_type for column in shown.columns]
    columns = [{"name": name, "data_type": data_type} for name, data_type in zip(names, types, strict=True)]
    rows = [dict(zip(names, row, strict=True)) for row in shown.rows]
    return {"columns": columns, "rows": rows}


def _unique(names: Sequence[str]) -> list[str]:
    """Returns the names, with a number added to repeated ones, because JSON objects need unique keys."""
    unique: list[str] = []
    for name in names:
        numbered = (name, *(f"{name}_{number}" for number in range(2, len(names) + 2)))
        unique.append(next(candidate for candidate in numbered if candidate not in unique))
    return unique


def rows_csv(shown: ShownRows) -> str:
    """Returns the rows as CSV with a header. Null is empty, and nested values are JSON."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([column.name for column in shown.columns])
    writer.writerows(["" if value is None else cell_text(value) for value in row] for row in shown.rows)
    return text.getvalue().rstrip("\n")


def json_text(value: object, indent: int = 0, depth: int = 0) -> str:
    """Returns `value` as JSON. Numbers keep all their digits, and each row is on one line."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, dict):
        parts = [f"{_quoted(key)}: {json_text(item, indent, depth + 1)}" for key, item in value.items()]
        return _joined(parts, "{}", indent, depth)
    if isinstance(value, list | tuple):
        return _joined([json_text(item, indent, depth + 1) for item in value], "[]", indent, depth)
    return json.dumps(value, ensure_ascii=False, default=str)


def _joined(parts: Sequence[str], brackets: str, indent: int, depth: int) -> str:
    if not indent or depth >= DEEPEST_LINE or not parts:
        return f"{brackets[0]}{', '.join(parts)}{brackets[1]}"
    lines = ",\n".join(f"{' ' * indent * (depth + 1)}{part}" for part in parts)
    return f"{brackets[0]}\n{lines}\n{' ' * indent * depth}{brackets[1]}"


def _quoted(key: object) -> str:
    return json.dumps(str(key), ensure_ascii=False)
