"""The columns of a source as declared and as found in its data, ready to paste."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class InferredColumn:
    """One column: its type in Spark's DDL, its declared type, and `notes` if the types differ."""

    name: str
    data_type: str
    description: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class SourceColumns:
    """The columns of table `table`, read from `looked_at` of its `files` files, of which `empty` have no columns. All
    three are 0 for formats without files. `is_fixed`: the format determines the columns and refuses declared types.
    `replaces` is the other key that declares the schema, None without one. `indent` is the indentation of the table's
    keys.
    """

    table: str
    format: str
    columns: tuple[InferredColumn, ...]
    looked_at: int
    empty: int
    files: int
    is_fixed: bool
    replaces: str | None
    indent: int
