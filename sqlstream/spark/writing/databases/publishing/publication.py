"""The plain name of a database's table, see `Publication`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from sqlstream.compiler.compiled import CompiledModel
from sqlstream.spark.publication.publication import NotWrittenError
from sqlstream.spark.writing.databases.database import Database
from sqlstream.spark.writing.databases.publishing.publish import is_published, is_written, publish
from sqlstream.state.layout import output_table


@dataclass(frozen=True)
class TablePublication:
    """The table that `database` returns, whose name readers use. `name` is the table or path of the sink as declared,
    `place` is complete.
    """

    name: str
    place: str
    database: Callable[[], Database]
    model: CompiledModel

    @property
    def first_move(self) -> tuple[str, str]:
        """See `Publication`. Does not connect to the database. A file of SQLite has a table for each query."""
        is_server = any(self.name == output.database_table for output in self.model.outputs)
        table, file = (self.place, "") if is_server else (self.model.query_id, f" in {self.place}")
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
