"""The statement that applies the rows of a batch to a table: replaces and deletes rows by key, and adds the others."""

from __future__ import annotations

from collections.abc import Sequence

from sqlstream.compiler.sql.names import quote_identifier

DELETES = "__sqlstream_deletes"
"""The column of the source that marks rows which delete the row with their key."""


def merge_sql(table: str, source: str, columns: Sequence[str], keys: Sequence[str], written: Sequence[str]) -> str:
    """Returns the MERGE of the view `source` into `table`, both with `columns`; the view also has `DELETES`.

    `written` are the columns of the query: an update leaves the others as they are. A null in a key is a value like
    any other. The view must have each key once.
    """
    names = {name.lower(): _quoted(name) for name in columns}
    on = " AND ".join(f"target.{names[key.lower()]} <=> source.{names[key.lower()]}" for key in keys)
    changed = [names[name.lower()] for name in written]
    updates = ", ".join(f"{name} = source.{name}" for name in changed)
    inserted = list(names.values())
    values = ", ".join(f"source.{name}" for name in inserted)
    added = f"({', '.join(inserted)}) VALUES ({values})"
    return f"""\
MERGE INTO {table} AS target USING {source} AS source ON {on}
WHEN MATCHED AND source.{DELETES} THEN DELETE
WHEN MATCHED THEN UPDATE SET {updates}
WHEN NOT MATCHED AND NOT source.{DELETES} THEN INSERT {added}"""


def _quoted(name: str) -> str:
    return quote_identifier(name, always=True)
