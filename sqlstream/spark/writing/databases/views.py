"""Views under the plain names of tables: what each database does to make such a name show the current version, and
which table a version may write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol
from zlib import crc32

from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import Finding, FindingsError
from sqlstream.project.databases.jdbc_options import last_part
from sqlstream.project.databases.mysql import name_parts
from sqlstream.spark.writing.databases.database import Connection, Database, DatabaseError, table_name
from sqlstream.state.layout import beside_table
from sqlstream.state.refusals import refresh_text

LOCK_SECONDS = 5
"""How long a switch waits for a table that somebody reads: in the meantime new readers wait, too."""

NEXT_VIEW = "_sqlstream_next"
"""The start of the name of a view before it gets the plain name."""


@dataclass(frozen=True)
class Named:
    """What has a name in a database: a `table`, a `view`, or something `other`, and the definition of a view."""

    kind: str
    definition: str = ""
    detail: str = ""


@dataclass(frozen=True)
class Switch:
    """Makes the name `plain` a view of the table `current`, whose columns are `columns`. `found` is what has the name
    now, None if nothing has it. A table with this name becomes `first`. All names are quoted.
    """

    plain: str
    first: str
    current: str
    columns: Sequence[str]
    found: Named | None

    @property
    def renames(self) -> bool:
        """Whether the plain name is still the table of version 1."""
        return self.found is not None and self.found.kind == "table"

    def select(self) -> str:
        """Returns the query of the view. `columns` are quoted."""
        return f"SELECT {', '.join(self.columns)} FROM {self.current}"


class SwitchRefusedError(Exception):
    """The database would lose something in the switch. `why` and `fix` are lines of a finding."""

    def __init__(self, why: str, fix: str) -> None:
        super().__init__(why)
        self.why, self.fix = why, fix


class ViewDatabase(Protocol):
    """The part of a database in a switch. All methods but `target` raise DatabaseError."""

    def named(self, connection: Connection, table: str) -> Named | None:
        """Returns what has the name `table`, None if nothing has it."""

    def target(self, definition: str) -> str | None:
        """Returns the unquoted name of the table whose columns the view selects as they are, None for another view."""

    def run(self, connection: Connection, switch: Switch, *, rehearse: bool) -> None:
        """Carries the switch out, so that readers find all of it or nothing. With `rehearse`, only finds out whether
        it would fail. Raises: SwitchRefusedError.
        """


_SQLITE_OWN_VIEW = re.compile(r'CREATE VIEW "(?:[^"]|"")+" AS SELECT \* FROM "(?P<table>(?:[^"]|"")+)"\Z')


class SqliteViews:
    """Switches with transactional DDL. A view selects `*`, which SQLite reads again when columns are added."""

    def named(self, connection: Connection, table: str) -> Named | None:
        name = _unquoted(table).replace("'", "''")
        # SQLite compares names without letter case, in ASCII, as NOCASE does
        found = "SELECT type, sql FROM sqlite_master WHERE type IN ('table', 'view') "
        row = connection.first(f"{found}AND name = '{name}' COLLATE NOCASE")
        return None if row is None else Named(str(row[0]), str(row[1]))

    def target(self, definition: str) -> str | None:
        """Returns the table of a view, whose definition is the text that created it."""
        match = _SQLITE_OWN_VIEW.match(definition)
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


_POSTGRESQL_NAME = r'(?:"(?:[^"]|"")+"|[a-z_][a-z0-9_$]*)'
_POSTGRESQL_COLUMN = rf"(?:{_POSTGRESQL_NAME}\.)?{_POSTGRESQL_NAME}"
_POSTGRESQL_OWN_VIEW = re.compile(
    rf"\s*SELECT\s+{_POSTGRESQL_COLUMN}(?:,\s*{_POSTGRESQL_COLUMN})*\s+FROM\s+(?:{_POSTGRESQL_NAME}\.)?(?P<table>{_POSTGRESQL_NAME});?\s*\Z"
)
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
        match = _POSTGRESQL_OWN_VIEW.match(definition)
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
    # after an error PostgreSQL refuses the rest of a transaction that does not go back to a savepoint
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
    # before the rename: PostgreSQL prints definitions with the names of the moment, and they must have the plain one
    follow = [*_grants(connection, switch), *_readers(connection, switch.plain)]
    connection.run(f"ALTER TABLE {switch.plain} RENAME TO {name}")
    connection.run(f"CREATE VIEW {switch.plain} AS {switch.select()}")
    for statement in follow:
        connection.run(statement)


def _grants(connection: Connection, switch: Switch) -> Iterator[str]:
    """Yields the statements that grant SELECT on the view to those who have it on what has the name now."""
    object_ = f"{_text(switch.plain)}::regclass"
    # grantee 0 is everybody, and an ACL that nobody has changed is null (pg_class.relacl)
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
        f"AND d.refobjid = {_text(table)}::regclass AND c.oid <> d.refobjid"  # a view's rule depends on the view
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


_MYSQL_NAME = "`(?:[^`]|``)+`"
_MYSQL_OWN_VIEW = re.compile(
    rf"select (?:(?:{_MYSQL_NAME}\.)*(?P<column>{_MYSQL_NAME}) AS (?P=column),?)+ "
    rf"from (?:{_MYSQL_NAME}\.)?(?P<table>{_MYSQL_NAME})\Z"
)
"""The definition of a view as the server prints it, if it only selects columns under their names."""


_KINDS = {"VIEW": "view", "BASE TABLE": "table", "SYSTEM VERSIONED": "table"}


class MysqlViews:
    """Switches with RENAME TABLE, or CREATE OR REPLACE VIEW. Grants and views refer to tables by name there."""

    def named(self, connection: Connection, table: str) -> Named | None:
        schema, name = name_parts(table)
        row = connection.first(
            "SELECT t.table_type, v.view_definition FROM information_schema.tables t "
            "LEFT JOIN information_schema.views v ON v.table_schema = t.table_schema AND v.table_name = t.table_name "
            f"WHERE t.table_schema = {schema} AND t.table_name = {name}"
        )
        return None if row is None else Named(_KINDS.get(str(row[0]), "other"), str(row[1] or ""))

    def target(self, definition: str) -> str | None:
        match = _MYSQL_OWN_VIEW.match(definition)
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
    # not the name itself, which may be as long as a name can be
    name = f"{NEXT_VIEW}_{crc32(table.encode()):08x}"
    return f"{schema}`{name}`", f"{schema}`{name}_2`"


_VIEWS: Mapping[str, ViewDatabase] = {
    "postgresql": PostgresqlViews(),
    "mariadb": MysqlViews(),
    "mysql": MysqlViews(),
    "sqlite": SqliteViews(),
}


def own_target(views: ViewDatabase, found: Named, plain: str) -> str | None:
    """Returns the table of a version that the view `plain` shows, None for a table and for any other view."""
    target = (views.target(found.definition) or "").lower() if found.kind == "view" else ""
    start, _, number = target.rpartition("_v")
    return target if start == table_name(plain) and number.isdigit() else None


def views_of(database: Database) -> ViewDatabase:
    """Returns what the kind of `database` does."""
    return _VIEWS[database.dialect.name]


def check_writable(connection: Connection, database: Database, model: CompiledModel, plain: str) -> None:
    """Checks that the table of `database` is that of one version: not a name for another one, and not that of version 1
    before an interrupted switch has given its table this name. `plain` is the name that readers use.

    Raises: FindingsError, DatabaseError.
    """
    views, table = views_of(database), database.table
    longest = database.dialect.longest_name
    if longest and len(table_name(table).encode()) > longest and table != plain:
        why = f"{database.dialect.title} cuts names after {longest} bytes, so it would be the table of another version"
        raise FindingsError([_not_writable(database, model, why, "give the table a shorter name")])
    found = views.named(connection, table)
    target = None if found is None else own_target(views, found, table)
    if target is not None:
        why = f"it is a view of {target}, which readers see, so the file versions.json of the query is an older one"
        fix = f"restore the file; or {refresh_text(model.name)}"
        raise FindingsError([_not_writable(database, model, why, fix)])
    if found is None and awaits_switch(connection, database, plain):
        why = f"its rows are still in {plain}, because a switch of its readers was interrupted"
        raise FindingsError([_not_writable(database, model, why, "start the query again, which finishes the switch")])


def awaits_switch(connection: Connection, database: Database, plain: str) -> bool:
    """Returns whether the table of `database`, which does not exist, is still the one with the name `plain`: a switch
    of its readers was interrupted, and the next run finishes it. Raises: DatabaseError.
    """
    is_first = database.table == beside_table(plain, "v1")
    before = views_of(database).named(connection, plain) if is_first else None
    return before is not None and before.kind == "table"


def _not_writable(database: Database, model: CompiledModel, why: str, fix: str) -> Finding:
    what = f"`{model.name}` cannot write to the table {database.table}"
    return Finding("plain-name", what, why, fix, model.location_of("sink"))
