"""Compares an existing table with the columns and the key of a query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlstream.errors import Finding, FindingsError
from sqlstream.project.databases.statements import StoredColumn, TableLayout
from sqlstream.project.wording import quoted_list
from sqlstream.spark.writing.databases.database import Database, FoundColumn, FoundTable
from sqlstream.spark.writing.micro_batches import SinkTarget
from sqlstream.state.refusals import refresh_text


def check_table(target: SinkTarget, database: Database, layout: TableLayout, found: FoundTable) -> list[str]:
    """Returns the statements that add the missing columns to the table, if sqlstream may add them.

    Raises: FindingsError with all differences that sqlstream cannot or may not change.
    """
    differences = _Differences(target, database, layout, found)
    problems = [*differences.key(), *differences.other_keys(), *differences.types()]
    missing = differences.missing()
    if not database.adds_columns:
        problems += missing
    if problems:
        raise FindingsError([differences.finding(problems)])
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

    def finding(self, differences: Sequence[tuple[str, str]]) -> Finding:
        """Returns the finding about the differences: each is a description, and the statement to change it, or ""."""
        model = self._target.model
        statements = [statement for _, statement in differences if statement]
        changes = [f"run in {self._layout.dialect.title}: {'; '.join(statements)}"] if statements else []
        if len(statements) < len(differences):
            changes.append("give the column another name")
        return Finding(
            "output-columns",
            f"the table {self._layout.table} does not fit the rows of `{model.name}`",
            "; ".join(text for text, _ in differences),
            f"{'; '.join(changes)}; or {refresh_text(model.name)}",
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
