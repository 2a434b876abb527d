"""The value of ref(), source() and this: the name of a temp view."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstream.compiler.sql.names import quote_identifier


@dataclass(frozen=True)
class Relation:
    """A temp view. Its text is the view's name, quoted if Spark needs it. `identifier` and `name` are the bare name, as
    in dbt.
    """

    identifier: str

    @property
    def name(self) -> str:
        """The view's name, unquoted."""
        return self.identifier

    def __str__(self) -> str:
        return quote_identifier(self.identifier)

    __repr__ = __str__
