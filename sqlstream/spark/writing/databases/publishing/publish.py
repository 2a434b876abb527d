"""Makes the plain name of a table a view of the current version, so that readers keep one name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager

from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import Finding, FindingsError
from sqlstream.spark.writing.databases.database import Connection, Database, DatabaseError, table_name
from sqlstream.spark.writing.databases.publishing.mysql import MysqlViews
from sqlstream.spark.writing.databases.publishing.postgresql import PostgresqlViews
from sqlstream.spark.writing.databases.publishing.sqlite import SqliteViews
from sqlstream.spark.writing.databases.publishing.switch import Named, Switch, SwitchRefusedError, ViewDatabase
from sqlstream.state.layout import beside_table
from sqlstream.state.refusals import refresh_text

_VIEWS: Mapping[str, ViewDatabase] = {
    "postgresql": PostgresqlViews(),
    "mariadb": MysqlViews(),
    "mysql": MysqlViews(),
    "sqlite": SqliteViews(),
}


def publish(database: Database, model: CompiledModel, version: int, *, rehearse: bool = False) -> bool:
    """Makes the table of `database`, whose name is the plain one, a view of the table of version `version`, and returns
    whether anything had to change. A table that has the name becomes that of version 1.

    Readers find the rows of one version at any time. An interrupted switch is finished by the next call. With
    `rehearse`, only finds out whether it would fail. Raises: FindingsError.
    """
    with _findings(database, model), closing(database.connect()) as connection:
        switch = _switch(connection, database, version)
        if switch is None:
            return False
        _views(database).run(connection, switch, rehearse=rehearse)
        return True


def is_written(database: Database, model: CompiledModel, version: int) -> bool:
    """Returns whether the table of `version` exists; that of version 1 may still have the plain name.

    Raises: FindingsError.
    """
    with _findings(database, model), closing(database.connect()) as connection:
        views, table = _views(database), beside_table(database.table, f"v{version}")
        if views.named(connection, table) is not None:
            return True
        found = views.named(connection, database.table) if version == 1 else None
        return found is not None and found.kind == "table"


def is_published(database: Database, model: CompiledModel, version: int) -> bool:
    """Returns whether the plain name shows all columns of `version`, or whether the database does not answer: its
    query then waits for it. Raises: FindingsError.
    """
    try:
        connection = database.connect()
    except DatabaseError:
        return True
    with _findings(database, model), closing(connection):
        return _switch(connection, database, version) is None


def check_writable(connection: Connection, database: Database, model: CompiledModel, plain: str) -> None:
    """Checks that the table of `database` is that of one version: not a name for another one, and not that of version 1
    before an interrupted switch has given its table this name. `plain` is the name that readers use.

    Raises: FindingsError, DatabaseError.
    """
    views, table = _views(database), database.table
    longest = database.dialect.longest_name
    if longest and len(table_name(table).encode()) > longest and table != plain:
        why = f"{database.dialect.title} cuts names after {longest} bytes, so it would be the table of another version"
        raise FindingsError([_not_writable(database, model, why, "give the table a shorter name")])
    found = views.named(connection, table)
    target = None if found is None else _own_target(views, found, table)
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
    before = _views(database).named(connection, plain) if is_first else None
    return before is not None and before.kind == "table"


def _switch(connection: Connection, database: Database, version: int) -> Switch | None:
    """Returns what has to change, None if nothing has to. Raises: DatabaseError, SwitchRefusedError."""
    views, plain = _views(database), database.table
    current, first = beside_table(plain, f"v{version}"), beside_table(plain, "v1")
    found = views.named(connection, plain)
    if found is not None and found.kind == "table" and views.named(connection, first) is not None:
        raise SwitchRefusedError(
            f"the table {plain} would get the name {first}, which is in use",
            f"give {first} another name, then repeat the command",
        )
    target = None if found is None else _own_target(views, found, plain)
    if found is not None and found.kind != "table" and target is None:
        raise SwitchRefusedError(
            f"{plain} is a view that sqlstream has not created, or that it cannot read",
            "give it another name, then repeat the command",
        )
    moves = found is not None and found.kind == "table" and version == 1
    columns = _columns(connection, views, plain if moves else current)
    if target == table_name(current) and columns == _columns(connection, views, plain):
        return None
    return Switch(plain, first, current, [database.dialect.quote(name) for name in columns], found)


def _columns(connection: Connection, views: ViewDatabase, table: str) -> list[str]:
    found = connection.find_table(table) if views.named(connection, table) is not None else None
    if found is None:
        raise SwitchRefusedError(
            f"the table {table} of this version does not exist", "restore it, or start over with --full-refresh"
        )
    return [column.name for column in found.columns]


def _own_target(views: ViewDatabase, found: Named, plain: str) -> str | None:
    """Returns the table of a version that the view `plain` shows, None for a table and for any other view."""
    target = (views.target(found.definition) or "").lower() if found.kind == "view" else ""
    start, _, number = target.rpartition("_v")
    return target if start == table_name(plain) and number.isdigit() else None


def _views(database: Database) -> ViewDatabase:
    return _VIEWS[database.dialect.name]


@contextmanager
def _findings(database: Database, model: CompiledModel) -> Iterator[None]:
    """Converts errors of a switch. Raises: FindingsError."""
    try:
        yield
    except SwitchRefusedError as error:
        raise FindingsError([_finding(database, model, error.why, error.fix)]) from error
    except DatabaseError as error:
        fix = (
            "let the user of the sink rename the table and create views beside it, or change what the message names; "
            "then repeat the command"
        )
        raise FindingsError([_finding(database, model, str(error), fix)]) from error


def _not_writable(database: Database, model: CompiledModel, why: str, fix: str) -> Finding:
    what = f"`{model.name}` cannot write to the table {database.table}"
    return Finding("plain-name", what, why, fix, model.place_of("sink"))


def _finding(database: Database, model: CompiledModel, why: str, fix: str) -> Finding:
    return Finding(
        "plain-name",
        f"readers of {database.table} cannot be switched to another version of `{model.name}`",
        why,
        fix,
        model.place_of("sink"),
    )
