"""What is wrong at one place of a model's SQL, before that place is traced back to the user's file."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstream.errors import Finding, Severity
from sqlstream.location import Place


@dataclass(frozen=True)
class SqlProblem:
    """A finding without its location: `offset` (0-based, in characters) is that of the part of the SQL that is wrong.

    All problems of one pass are of one text; what the other fields mean, `Finding` says.
    """

    offset: int
    code: str
    message: str
    why: str
    fix: str
    severity: Severity = Severity.ERROR

    def at(self, place: Place) -> Finding:
        """Returns the finding, where `place` is that of its offset."""
        return Finding(self.code, self.message, self.why, self.fix, place.location, self.severity, place.calls)
