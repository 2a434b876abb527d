"""The columns of a source as they are declared and as its data have them, for people to paste."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FoundColumn:
    """One column: its type in Spark's DDL, what is declared of it, and `notes` where types do not agree."""

    name: str
    data_type: str
    description: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class SourceColumns:
    """The columns of table `table`, from `looked_at` of its `files` files, of which `empty` have no columns; all are 0
    where it has no files.

    With `is_fixed` the format gives its columns itself, and declared types would be refused. `replaces` is the key that
    declares the schema otherwise, None where none does; `indent` is how far the table's keys are indented.
    """

    table: str
    format: str
    columns: tuple[FoundColumn, ...]
    looked_at: int
    empty: int
    files: int
    is_fixed: bool
    replaces: str | None
    indent: int
