"""The table that readers of a database use: its plain name becomes a view of the current version."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property

from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import Finding, FindingsError
from sqlstream.spark.publication.publication import NotWrittenError
from sqlstream.spark.writing.databases.database import Connection, Database, DatabaseError, table_name
from sqlstream.spark.writing.databases.views import Switch, SwitchRefusedError, ViewDatabase, own_target, views_of
from sqlstream.state.layout import beside_table, output_table


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
        views_of(database).run(connection, switch, rehearse=rehearse)
        return True


def is_written(database: Database, model: CompiledModel, version: int) -> bool:
    """Returns whether the table of `version` exists; that of version 1 may still have the plain name.

    Raises: FindingsError.
    """
    with _findings(database, model), closing(database.connect()) as connection:
        views, table = views_of(database), beside_table(database.table, f"v{version}")
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


def _switch(connection: Connection, database: Database, version: int) -> Switch | None:
    """Returns what has to change, None if nothing has to. Raises: DatabaseError, SwitchRefusedError."""
    views, plain = views_of(database), database.table
    current, first = beside_table(plain, f"v{version}"), beside_table(plain, "v1")
    found = views.named(connection, plain)
    if found is not None and found.kind == "table" and views.named(connection, first) is not None:
        raise SwitchRefusedError(
            f"the table {plain} would get the name {first}, which is in use",
            f"give {first} another name, then repeat the command",
        )
    target = None if found is None else own_target(views, found, plain)
    if found is not None and found.kind != "table" and target is None:
        raise SwitchRefusedError(
            f"{plain} is a view that sqlstream has not created, or that it cannot read",
            "give it another name, then repeat the command",
        )
    # the table of version 1 still has the plain name
    moves = found is not None and found.kind == "table" and version == 1
    columns = _columns(connection, views, plain if moves else current)
    # a view lists its columns, so one that the table gets later needs a new view
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


def _finding(database: Database, model: CompiledModel, why: str, fix: str) -> Finding:
    return Finding(
        "plain-name",
        f"readers of {database.table} cannot be switched to another version of `{model.name}`",
        why,
        fix,
        model.location_of("sink"),
    )


@dataclass(frozen=True)
class TablePublication:
    """The table that `database` returns, whose name readers use. `name` is the table or path of the sink as declared,
    `path` is complete.
    """

    name: str
    path: str
    database: Callable[[], Database]
    model: CompiledModel

    @property
    def first_move(self) -> tuple[str, str]:
        """Does not connect to the database. A file of SQLite has a table for each query."""
        is_server = any(self.name == output.database_table for output in self.model.outputs)
        table, file = (self.path, "") if is_server else (self.model.query_id, f" in {self.path}")
        return f"the table {table}{file}", f"the table {output_table(table, 1, is_published=True)}"

    def prepare(self, version: int, *, is_first: bool) -> None:  # noqa: ARG002 - the database knows whether it is
        """Finds out whether the database would refuse the switch. Raises: NotWrittenError, FindingsError."""
        database = self._database
        if not is_written(database, self.model, version):
            raise NotWrittenError(f"version {version} has no table yet")
        publish(database, self.model, version, rehearse=True)

    def is_shown(self, version: int) -> bool:
        """Returns whether the plain name is a view with all columns of the version. Raises: FindingsError."""
        return is_published(self._database, self.model, version)

    def switch_to(self, version: int) -> None:
        """Makes the plain name a view of the version. Raises: FindingsError."""
        publish(self._database, self.model, version)

    def keep_up(self, version: int) -> None:
        """Does nothing: a view shows each batch at once."""

    @cached_property
    def _database(self) -> Database:
        return self.database()
