"""The value of ref(), source() and this: a temp view's name."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstream.compiler.sql.names import quote_identifier


@dataclass(frozen=True)
class Relation:
    """A temp view. In a template's text it is the view's name, quoted where Spark needs it; `identifier` is the bare
    name, and so is `name`, as in dbt.
    """

    identifier: str

    @property
    def name(self) -> str:
        """The view's name, unquoted."""
        return self.identifier

    def __str__(self) -> str:
        return quote_identifier(self.identifier)

    __repr__ = __str__
