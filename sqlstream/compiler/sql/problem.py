"""What is wrong at one place of a model's SQL, before that place is traced back to the user's file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlstream.compiler.flow.columns import Where
from sqlstream.errors import Finding, Severity
from sqlstream.location import Place

ORIGIN = "\ufffc"
"""Stands in a text for the place of one of a problem's origins: a place moves when other lines of its file change."""


@dataclass(frozen=True)
class SqlProblem:
    """A finding without its location: `offset` (0-based, in characters) is that of the part of the SQL that is wrong.

    All problems of one pass are of one text; what the other fields mean, `Finding` says. `origins` are the places for
    which each `ORIGIN` in `why` stands, in order.
    """

    offset: int
    code: str
    message: str
    why: str
    fix: str
    severity: Severity = Severity.ERROR
    origins: tuple[Where, ...] = ()

    def at(self, place: Place, origins: Iterable[str] = ()) -> Finding:
        """Returns the finding, where `place` is that of its offset, and `origins` are those places in words."""
        why = self.why
        for origin in origins:
            why = why.replace(ORIGIN, origin, 1)
        return Finding(self.code, self.message, why, self.fix, place.location, self.severity, place.calls)
