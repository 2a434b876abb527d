"""MariaDB and MySQL: one statement renames the table and the view at once, because DDL ends a transaction there."""

from __future__ import annotations

import re
from contextlib import suppress
from zlib import crc32

from sqlstream.project.databases.jdbc_options import last_part
from sqlstream.project.databases.mysql import name_parts
from sqlstream.spark.writing.databases.database import Connection, DatabaseError
from sqlstream.spark.writing.databases.publishing.switch import LOCK_SECONDS, Named, Switch, SwitchRefusedError

_NAME = "`(?:[^`]|``)+`"
_OWN_VIEW = re.compile(
    rf"select (?:(?:{_NAME}\.)*(?P<column>{_NAME}) AS (?P=column),?)+ from (?:{_NAME}\.)?(?P<table>{_NAME})\Z"
)
"""The definition of a view as the server prints it, if it only selects columns under their names."""

NEXT_VIEW = "_sqlstream_next"
"""The start of the name of a view before it gets the plain name."""

_KINDS = {"VIEW": "view", "BASE TABLE": "table", "SYSTEM VERSIONED": "table"}


class MysqlViews:
    """Switches with RENAME TABLE, or CREATE OR REPLACE VIEW. Grants and views refer to tables by name there."""

    def named(self, connection: Connection, table: str) -> Named | None:
        """Returns what has the name."""
        schema, name = name_parts(table)
        row = connection.first(
            "SELECT t.table_type, v.view_definition FROM information_schema.tables t "
            "LEFT JOIN information_schema.views v ON v.table_schema = t.table_schema AND v.table_name = t.table_name "
            f"WHERE t.table_schema = {schema} AND t.table_name = {name}"
        )
        return None if row is None else Named(_KINDS.get(str(row[0]), "other"), str(row[1] or ""))

    def target(self, definition: str) -> str | None:
        """Returns the table of a view."""
        match = _OWN_VIEW.match(definition)
        return None if match is None else match["table"][1:-1].replace("``", "`")

    def run(self, connection: Connection, switch: Switch, *, rehearse: bool) -> None:
        """Carries the switch out in one statement. Raises: DatabaseError, SwitchRefusedError."""
        connection.run(f"SET SESSION lock_wait_timeout = {LOCK_SECONDS}")
        if rehearse:
            self._rehearse(connection, switch)
        elif not switch.renames:
            connection.run(f"CREATE OR REPLACE VIEW {switch.plain} AS {switch.select()}")
        elif switch.current == switch.first:
            # Only after somebody has dropped the table of the version that was current: a view can then not be
            # created before the rename.
            connection.run(f"RENAME TABLE {switch.plain} TO {switch.first}")
            connection.run(f"CREATE VIEW {switch.plain} AS {switch.select()}")
        else:
            view, _ = _next_names(switch.plain)
            connection.run(f"CREATE OR REPLACE VIEW {view} AS {switch.select()}")
            try:
                connection.run(f"RENAME TABLE {switch.plain} TO {switch.first}, {view} TO {switch.plain}")
            finally:
                self._drop(connection, view)

    def _rehearse(self, connection: Connection, switch: Switch) -> None:
        """Creates and renames another view, which needs the rights of a switch, and drops it."""
        view, other = _next_names(switch.plain)
        source = switch.plain if switch.renames and switch.current == switch.first else switch.current
        self._drop(connection, other)  # of a command that was killed
        try:
            connection.run(f"CREATE OR REPLACE VIEW {view} AS SELECT {', '.join(switch.columns)} FROM {source}")
            connection.run(f"RENAME TABLE {view} TO {other}")
            created = self.named(connection, other)
            if created is None or self.target(created.definition) is None:
                raise SwitchRefusedError(
                    "the user of the sink cannot read the definitions of views",
                    "grant it the right SHOW VIEW in the database",
                )
        finally:
            self._drop(connection, view)
            self._drop(connection, other)

    def _drop(self, connection: Connection, view: str) -> None:
        """Drops a view that sqlstream has created under a name that only switches use."""
        with suppress(DatabaseError):  # the name is a table, or the switch has failed for a reason that matters more
            connection.run(f"DROP VIEW IF EXISTS {view}")


def _next_names(table: str) -> tuple[str, str]:
    """Returns two names for views in the schema of a table, which only its switches use."""
    schema = table.removesuffix(last_part(table))
    name = f"{NEXT_VIEW}_{crc32(table.encode()):08x}"
    return f"{schema}`{name}`", f"{schema}`{name}_2`"
