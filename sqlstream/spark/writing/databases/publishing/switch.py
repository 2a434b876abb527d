"""One switch of a plain name to the table of a version, and what each database does for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlstream.spark.writing.databases.database import Connection

LOCK_SECONDS = 5
"""How long a switch waits for a table that somebody reads: in the meantime new readers wait, too."""


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
