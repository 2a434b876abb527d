"""Problems in a model's SQL, located by offset, before they become findings in the user's file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlstream.compiler.flow.columns import Where
from sqlstream.errors import Finding, Severity
from sqlstream.location import Place

ORIGIN = "\ufffc"
"""A placeholder for the location of an origin in `why`: the cache stores no locations, which move with other lines."""


@dataclass(frozen=True)
class SqlProblem:
    """A `Finding` without its location: `offset` (0-based, in characters) is the place of the error in the SQL.

    `origins` are the places that replace each `ORIGIN` in `why`, in order.
    """

    offset: int
    code: str
    message: str
    why: str
    fix: str
    severity: Severity = Severity.ERROR
    origins: tuple[Where, ...] = ()

    def at(self, place: Place, origins: Iterable[str] = ()) -> Finding:
        """Returns the finding at `place`, the place of the offset. `origins` are the places of the origins in words."""
        why = self.why
        for origin in origins:
            why = why.replace(ORIGIN, origin, 1)
        return Finding(self.code, self.message, why, self.fix, place.location, self.severity, place.calls)
