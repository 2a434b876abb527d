"""PostgreSQL: the whole switch is one transaction."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

from sqlstream.project.databases.jdbc_options import last_part
from sqlstream.spark.writing.databases.database import Connection, DatabaseError
from sqlstream.spark.writing.databases.publishing.switch import LOCK_SECONDS, Named, Switch, SwitchRefusedError

_NAME = r'(?:"(?:[^"]|"")+"|[a-z_][a-z0-9_$]*)'
_COLUMN = rf"(?:{_NAME}\.)?{_NAME}"
_OWN_VIEW = re.compile(rf"\s*SELECT\s+{_COLUMN}(?:,\s*{_COLUMN})*\s+FROM\s+(?:{_NAME}\.)?(?P<table>{_NAME});?\s*\Z")
"""The definition of a view as PostgreSQL prints it, if it only selects columns under their names."""

_EARLIER = "_sqlstream_earlier"
"""The name of a view within the transaction that replaces it."""

_MATERIALIZED = "m"


class PostgresqlViews:
    """Switches with transactional DDL. Grants are those of an object there, and views read tables by their ids."""

    def named(self, connection: Connection, table: str) -> Named | None:
        """Returns what has the name; `detail` is `t` for a table with row-level security."""
        row = connection.first(
            "SELECT CASE WHEN relkind IN ('r', 'p', 'f') THEN 'table' WHEN relkind = 'v' THEN 'view' ELSE 'other' END, "
            "CASE WHEN relkind = 'v' THEN pg_get_viewdef(oid) END, relrowsecurity "
            f"FROM pg_class WHERE oid = to_regclass({_text(table)})"
        )
        return None if row is None else Named(str(row[0]), str(row[1] or ""), str(row[2]))

    def target(self, definition: str) -> str | None:
        """Returns the table of a view."""
        match = _OWN_VIEW.match(definition)
        if match is None:
            return None
        return _unquoted(match["table"])

    def run(self, connection: Connection, switch: Switch, *, rehearse: bool) -> None:
        """Carries the switch out in one transaction. Raises: DatabaseError, SwitchRefusedError."""
        if switch.renames and switch.found is not None and switch.found.detail == "t":
            raise SwitchRefusedError(
                "the table has row-level security, which does not apply to readers of a view",
                "turn it off, or let readers follow the tables of the versions",
            )
        connection.begin()
        try:
            connection.run(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
            if switch.renames:
                _move(connection, switch, last_part(switch.first))
            else:
                _replace(connection, switch)
            if not rehearse:
                connection.commit()
        finally:
            with suppress(DatabaseError):  # an error of the switch matters more
                connection.rollback()


def _replace(connection: Connection, switch: Switch) -> None:
    """Replaces the view, which keeps its grants and its readers. PostgreSQL does so only if the columns stay; otherwise
    another view takes the name.
    """
    connection.run("SAVEPOINT unchanged")
    try:
        connection.run(f"CREATE OR REPLACE VIEW {switch.plain} AS {switch.select()}")
    except DatabaseError:
        if switch.found is None:
            raise
        connection.run("ROLLBACK TO SAVEPOINT unchanged")
        _move(connection, switch, _EARLIER)
        connection.run(f"DROP VIEW {switch.plain.removesuffix(last_part(switch.plain))}{_EARLIER}")


def _move(connection: Connection, switch: Switch, name: str) -> None:
    """Gives what has the plain name another name, and a new view its grants and its readers."""
    follow = [*_grants(connection, switch), *_readers(connection, switch.plain)]
    connection.run(f"ALTER TABLE {switch.plain} RENAME TO {name}")
    connection.run(f"CREATE VIEW {switch.plain} AS {switch.select()}")
    for statement in follow:
        connection.run(statement)


def _grants(connection: Connection, switch: Switch) -> Iterator[str]:
    """Yields the statements that grant SELECT on the view to those who have it on what has the name now."""
    object_ = f"{_text(switch.plain)}::regclass"
    roles = "CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END"
    others = "a.privilege_type = 'SELECT' AND a.grantee <> (SELECT oid FROM pg_roles WHERE rolname = current_user)"
    query = (
        f"SELECT {roles}, '', a.is_grantable "
        "FROM pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a "
        f"WHERE c.oid = {object_} AND {others} UNION SELECT {roles}, quote_ident(c.attname), a.is_grantable "
        f"FROM pg_attribute c, aclexplode(c.attacl) a WHERE c.attrelid = {object_} AND {others}"
    )
    kept = {_unquoted(column) for column in switch.columns}
    for role, column, grantable in connection.all(query):
        if column and _unquoted(str(column)) not in kept:
            continue
        columns = f" ({column})" if column else ""
        option = " WITH GRANT OPTION" if grantable == "t" else ""
        yield f"GRANT SELECT{columns} ON {switch.plain} TO {role}{option}"


def _readers(connection: Connection, table: str) -> Iterator[str]:
    """Yields the statements that make views of the user read the plain name again: they would follow what is renamed.

    Raises: DatabaseError, SwitchRefusedError for a materialized view, which has no such statement.
    """
    query = (
        "SELECT DISTINCT c.oid::regclass::text, c.relkind, pg_get_viewdef(c.oid), array_to_string(c.reloptions, ', ') "
        "FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid JOIN pg_class c ON c.oid = r.ev_class "
        "WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass "
        f"AND d.refobjid = {_text(table)}::regclass AND c.oid <> d.refobjid"
    )
    for view, kind, definition, options in connection.all(query):
        if kind == _MATERIALIZED:
            raise SwitchRefusedError(
                f"the materialized view {view} reads {table}, and would go on to read its present version",
                f"drop {view}, repeat the command, and create {view} again: it then reads the current version",
            )
        settings = f" WITH ({options})" if options else ""
        yield f"CREATE OR REPLACE VIEW {view}{settings} AS {definition}"


def _unquoted(quoted: str) -> str:
    """Returns a quoted or plain name without quotes."""
    return quoted[1:-1].replace('""', '"') if quoted.startswith('"') else quoted


def _text(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"
