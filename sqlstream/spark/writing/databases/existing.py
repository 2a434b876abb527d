"""Compares an existing table with the columns and the key of a query."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from sqlstream.errors import Finding, FindingsError
from sqlstream.project.databases.statements import StoredColumn, TableLayout
from sqlstream.project.formats.formats import format_of
from sqlstream.project.wording import quoted_list
from sqlstream.spark.writing.databases.database import Database, FoundColumn, FoundTable
from sqlstream.spark.writing.micro_batches import SinkTarget
from sqlstream.state.refusals import new_version_text


def check_table(
    target: SinkTarget, database: Database, layout: TableLayout, found: FoundTable, old: Collection[str] = ()
) -> list[str]:
    """Returns the statements that add the missing columns to the table, if sqlstream may add them. `old` are the
    columns that the query has written so far.

    Raises: FindingsError with all differences that sqlstream cannot or may not change.
    """
    differences = _Differences(target, database, layout, found)
    stale, missing = differences.stale(old), differences.missing()
    problems = [*differences.key(), *differences.other_keys(), *differences.types()]
    if not database.adds_columns and not stale:
        problems += missing
    if problems or stale:
        raise FindingsError([differences.finding(problems, stale)])
    return [statement for _, statement in missing]


class _Differences:
    def __init__(self, target: SinkTarget, database: Database, layout: TableLayout, found: FoundTable) -> None:
        self._target, self._database, self._layout, self._found = target, database, layout, found
        self._existing = {column.name.lower(): column for column in found.columns}

    def missing(self) -> list[tuple[str, str]]:
        """Returns each column that the table does not have: a description, and the statement that adds it."""
        quote = self._layout.dialect.quote
        return [
            (
                f"it has no column `{column.name}`",
                f"ALTER TABLE {self._layout.table} ADD COLUMN {quote(column.name)} {column.stored.type}",
            )
            for column in self._layout.columns
            if column.name.lower() not in self._existing
        ]

    def stale(self, old: Collection[str]) -> list[str]:
        """Returns the columns of the table that the query has written so far and no longer writes, if it updates rows:
        they would keep the old value.
        """
        model, written = self._target.model, {column.name.lower() for column in self._layout.columns}
        if not self._layout.keys or not model.streaming or model.config.output_mode == "complete":
            return []
        return [name for name in old if name.lower() not in written and name.lower() in self._existing]

    def _rename(self, stale: Sequence[str]) -> tuple[list[str], list[str]]:
        """Returns the statements that give stale columns the names of missing ones of their type and add the others,
        and the statements for new columns in place of the stale ones. No renames if no type fits.
        """
        table, quote = self._layout.table, self._layout.dialect.quote
        missing = {column.name: column for column in self._layout.columns if column.name.lower() not in self._existing}
        left, renames, drops = dict(missing), [], []
        for name in stale:
            new = next((each for each in left.values() if _holds(self._existing[name.lower()], each)), None)
            drops.append(f"ALTER TABLE {table} DROP COLUMN {quote(name)}")
            if new is None:
                renames.append(drops[-1])
            else:
                del left[new.name]
                renames.append(f"ALTER TABLE {table} RENAME COLUMN {quote(name)} TO {quote(new.name)}")
        added = {name: f"ALTER TABLE {table} ADD COLUMN {quote(name)} {missing[name].stored.type}" for name in missing}
        others = [*drops, *added.values()]
        return ([*renames, *map(added.__getitem__, left)], others) if renames != drops else ([], others)

    def types(self) -> Iterator[tuple[str, str]]:
        """Yields each column whose type cannot hold the values of the query, and the statement to change it, or ""."""
        for column in self._layout.columns:
            existing = self._existing.get(column.name.lower())
            if existing is not None and not _holds(existing, column):
                text = f"its column `{column.name}` is {_described(existing)}, but the model needs {column.stored.type}"
                yield text, self._change(column)

    def key(self) -> Iterator[tuple[str, str]]:
        """Yields the problem of a table whose rows the key does not identify, and the statement that adds the key."""
        keys = frozenset(key.lower() for key in self._layout.keys)
        if keys and keys <= self._existing.keys() and keys not in self._found.unique.values():
            names = [self._layout.dialect.quote(column.name) for column in self._layout.key_columns]
            text = f"it has no primary key or unique index on exactly {quoted_list(self._layout.keys)}"
            yield text, self._layout.dialect.add_key(self._layout.table, names)

    def other_keys(self) -> Iterator[tuple[str, str]]:
        """Yields the unique indexes for which the database would replace other rows, and how to drop each of them."""
        layout, drop = self._layout, self._layout.dialect.drop_unique
        keys = frozenset(key.lower() for key in layout.keys)
        if not keys or drop is None:
            return
        for name, columns in self._found.unique.items():
            if keys <= columns or any(self._is_numbered(column) for column in columns):
                continue
            text = f"its unique index on {quoted_list(sorted(columns))} makes {layout.dialect.title} replace other keys"
            yield text, drop(layout.table, name)

    def _is_numbered(self, column: str) -> bool:
        """Returns whether a column gets a new number in each row, because the query does not write it."""
        is_written = column in {written.name.lower() for written in self._layout.columns}
        return not is_written and column in self._existing and self._existing[column].is_numbered

    def _change(self, column: StoredColumn) -> str:
        dialect = self._layout.dialect
        if dialect.change_type is None:
            return ""
        return dialect.change_type(self._layout.table, dialect.quote(column.name), column.stored.type)

    def finding(self, differences: Sequence[tuple[str, str]], stale: Sequence[str] = ()) -> Finding:
        """Returns the finding about the differences: each is a description, and the statement to change it, or "".
        `stale` is as returned by `stale`.
        """
        model, title = self._target.model, self._layout.dialect.title
        texts = [text for text, _ in differences]
        texts += [f"updated rows would keep the old value of its column `{name}`" for name in stale]
        statements = [statement for _, statement in differences if statement]
        renames, others = self._rename(stale) if stale else ([], [])
        changes = [f"run in {title}: {'; '.join([*statements, *(renames or others)])}"]
        changes = changes if statements or stale else []
        if renames:
            changes.append(f"or, if the new column is not the old one with another name, {'; '.join(others)}")
        if any(not statement for _, statement in differences):
            changes.append("give the column another name")
        if stale:
            changes.append(f"or select {quoted_list(stale)} again")
        has_versions = model.streaming and all(format_of(each.format).keeps_output for each in model.outputs)
        return Finding(
            "output-columns",
            f"the table {self._layout.table} does not fit the rows of `{model.name}`",
            "; ".join(texts),
            f"{'; '.join(changes)}; or {new_version_text(model.name, can_run_beside=has_versions)}",
            model.place_of("sink"),
        )


def _holds(existing: FoundColumn, column: StoredColumn) -> bool:
    stored = column.stored
    fits = existing.digits is None or all(
        has >= needs for has, needs in zip(existing.digits, stored.digits, strict=True)
    )
    return fits and (existing.type == stored.type.lower() or existing.type in stored.accepts)


def _described(column: FoundColumn) -> str:
    if column.digits is None:
        return column.type
    whole, scale = column.digits
    return f"{column.type}({whole + scale},{scale})"
