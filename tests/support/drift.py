"""Changes of the data of a source, and what happens to a record in each format: docs/schema-changes.md has the table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

COLUMNS = "id int, name string, count int, big bigint, ratio double, price decimal(10,2), flag boolean, at timestamp, day date"
NESTED = "item struct<sku: string, parts: array<struct<no: int>>>"
"""The declared columns, those that CSV does not have apart. `need`, the last one, is required."""

ROW: dict[str, tuple[Any, str]] = {
    "id": (1, "int32"),
    "name": ("a", "string"),
    "count": (5, "int32"),
    "big": (7, "int64"),
    "ratio": (1.5, "float64"),
    "price": (Decimal("2.50"), "decimal128(10, 2)"),
    "flag": (True, "bool"),
    "at": (datetime(2026, 1, 1, tzinfo=UTC), "timestamp(us)"),
    "day": (date(2026, 1, 1), "date32"),
    "item": ({"sku": "x", "parts": [{"no": 1}]}, "item"),
    "need": ("n", "string"),
}
"""The values of a record as declared, and their types in Arrow; `item` is the declared type of the column."""

PAGE = Path(__file__).parents[2] / "docs" / "schema-changes.md"
FORMATS = ("JSON", "CSV", "Parquet", "ORC", "Avro", "Kafka, Avro")


@dataclass(frozen=True)
class Drift:
    """A change of a record: the columns that it `sets` with their types in Arrow, and those that it `removes`; its
    columns are in another order if it is `reversed`. `doubled` is a column that is there twice.
    """

    sets: Mapping[str, tuple[Any, str]] = field(default_factory=dict)
    removes: tuple[str, ...] = ()
    reversed: bool = False
    doubled: str | None = None

    def row(self) -> dict[str, tuple[Any, str]]:
        """Returns the values and types of the columns of the record."""
        row = {name: value for name, value in {**ROW, **self.sets}.items() if name not in self.removes}
        return dict(reversed(row.items())) if self.reversed else row


def as_json(drift: Drift, number: int) -> str:
    """Returns the record with the id `number` as a line of JSON."""
    row = {name: value for name, (value, _) in drift.row().items()}
    text = json.dumps({**row, "id": number}, default=_plain)
    twice = "" if drift.doubled is None else f', "{drift.doubled}": {json.dumps(row[drift.doubled])}}}'
    return text if drift.doubled is None else text[:-1] + twice


def as_csv(drift: Drift, number: int) -> str:
    """Returns the record with the id `number` as a CSV file with a header."""
    row = {name: value for name, (value, _) in drift.row().items() if name != "item"}
    row["id"] = number
    names, values = list(row), ["" if value is None else str(_plain(value)) for value in row.values()]
    if drift.doubled is not None:
        names, values = [*names, drift.doubled], [*values, str(row[drift.doubled])]
    return f"{','.join(names)}\n{','.join(values)}\n"


def _plain(value: object) -> object:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%SZ")
    return value.isoformat() if isinstance(value, date) else value


_ITEM = {"sku": "x", "parts": [{"no": 1}]}
_SKU, _PARTS = "sku: string", "parts: list<struct<no: int32>>"

DRIFTS: dict[str, Drift] = {
    "nothing changes": Drift(),
    "a new field, null": Drift({"color": (None, "string")}),
    "a new field, a number": Drift({"color": (3, "int64")}),
    "a new field, a text": Drift({"color": ("red", "string")}),
    "a new field, an object": Drift({"color": ({"r": 1}, "struct<r: int32>")}),
    "a new field, a list": Drift({"color": (["red"], "list<string>")}),
    "a new field in a struct": Drift({"item": ({**_ITEM, "lot": 7}, f"struct<{_SKU}, {_PARTS}, lot: int32>")}),
    "a new field in a list of structs": Drift(
        {
            "item": (
                {"sku": "x", "parts": [{"no": 1, "bin": "b"}]},
                f"struct<{_SKU}, parts: list<struct<no: int32, bin: string>>>",
            )
        }
    ),
    "a removed field": Drift(removes=("name",)),
    "a removed field, required": Drift(removes=("need",)),
    "a removed field in a struct": Drift({"item": ({"parts": [{"no": 1}]}, f"struct<{_PARTS}>")}),
    "null": Drift({"name": (None, "string")}),
    "null in a required field": Drift({"need": (None, "string")}),
    "a renamed field": Drift({"title": ("a", "string")}, removes=("name",)),
    "a name in another letter case": Drift({"Name": ("a", "string")}, removes=("name",)),
    "another order": Drift(reversed=True),
    "another order in a struct": Drift({"item": (dict(reversed(_ITEM.items())), f"struct<{_PARTS}, {_SKU}>")}),
    "a field twice": Drift(doubled="name"),
    "int: a bigint that fits": Drift({"count": (6, "int64")}),
    "int: 5000000000": Drift({"count": (5_000_000_000, "int64")}),
    "int: 1.5": Drift({"count": (1.5, "float64")}),
    'int: the text "6"': Drift({"count": ("6", "string")}),
    'int: the text "many"': Drift({"count": ("many", "string")}),
    "bigint: an int": Drift({"big": (8, "int32")}),
    "string: 6": Drift({"name": (6, "int32")}),
    "string: an object": Drift({"name": ({"first": "a"}, "struct<first: string>")}),
    "string: a list": Drift({"name": (["a"], "list<string>")}),
    "double: 2": Drift({"ratio": (2, "int32")}),
    "double: a float": Drift({"ratio": (2.5, "float32")}),
    'boolean: the text "yes"': Drift({"flag": ("yes", "string")}),
    'timestamp: the text "soon"': Drift({"at": ("soon", "string")}),
    'timestamp: the text "2026-01-02T00:00:00Z"': Drift({"at": ("2026-01-02T00:00:00Z", "string")}),
    "timestamp: in milliseconds": Drift({"at": (ROW["at"][0], "timestamp(ms)")}),
    "timestamp: a date": Drift({"at": (date(2026, 1, 2), "date32")}),
    "date: a timestamp": Drift({"day": (datetime(2026, 1, 2, 10, tzinfo=UTC), "timestamp(us)")}),
    "decimal(10,2): 12345678901.5": Drift({"price": (Decimal("12345678901.50"), "decimal128(20, 2)")}),
    "decimal(10,2): 2.505": Drift({"price": (Decimal("2.505"), "decimal128(10, 3)")}),
    "struct: a text": Drift({"item": ("x", "string")}),
    "struct: an empty object": Drift({"item": ({}, "struct<>")}),
}


def expected(form: str) -> dict[str, str]:
    """Returns what happens to each change in a column of the page's table: how the row differs from the one without a
    change. Changes that the format does not have are left out.
    """
    table = PAGE.read_text(encoding="utf-8").partition("<!-- drift -->\n")[2].partition("<!-- end of drift -->")[0]
    header, _, *lines = ([cell.strip() for cell in line.strip("| ").split(" | ")] for line in table.splitlines())
    at = header.index(form)
    return {line[0]: line[at] for line in lines if line[at] != "–"}
