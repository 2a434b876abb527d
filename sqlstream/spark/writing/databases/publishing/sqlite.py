"""SQLite: the whole switch is one transaction, and readers see the file as it was before or after."""

from __future__ import annotations

import re
from contextlib import suppress

from sqlstream.spark.writing.databases.database import Connection, DatabaseError
from sqlstream.spark.writing.databases.publishing.switch import Named, Switch

_OWN_VIEW = re.compile(r'CREATE VIEW "(?:[^"]|"")+" AS SELECT \* FROM "(?P<table>(?:[^"]|"")+)"\Z')


class SqliteViews:
    """Switches with transactional DDL. A view selects `*`, which SQLite reads again when columns are added."""

    def named(self, connection: Connection, table: str) -> Named | None:
        """Returns what has the name."""
        name = _unquoted(table).replace("'", "''")
        found = "SELECT type, sql FROM sqlite_master WHERE type IN ('table', 'view') "
        row = connection.first(f"{found}AND name = '{name}' COLLATE NOCASE")
        return None if row is None else Named(str(row[0]), str(row[1]))

    def target(self, definition: str) -> str | None:
        """Returns the table of a view, whose definition is the text that created it."""
        match = _OWN_VIEW.match(definition)
        return None if match is None else match["table"].replace('""', '"')

    def run(self, connection: Connection, switch: Switch, *, rehearse: bool) -> None:
        """Carries the switch out in one transaction. Views of the user go on to read the plain name."""
        connection.run("PRAGMA legacy_alter_table = ON")  # otherwise a rename changes the views that read the table
        connection.begin()
        try:
            if switch.renames:
                connection.run(f"ALTER TABLE {switch.plain} RENAME TO {switch.first}")
            else:
                connection.run(f"DROP VIEW IF EXISTS {switch.plain}")
            connection.run(f"CREATE VIEW {switch.plain} AS SELECT * FROM {switch.current}")
            if not rehearse:
                connection.commit()
        finally:
            with suppress(DatabaseError):  # an error of the switch matters more
                connection.rollback()


def _unquoted(table: str) -> str:
    return table.removeprefix('"').removesuffix('"').replace('""', '"')
