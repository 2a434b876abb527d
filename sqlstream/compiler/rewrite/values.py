"""The changes to a model's SQL before it can run, as a value that the cache can store."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstream.compiler.compiled import ViewReference
from sqlstream.compiler.sql.edits import Edit, SqlProblem


@dataclass(frozen=True)
class Rewriting:
    """The edits of one text, the views that the edited text reads in order of first appearance, the errors in it, and
    the relations that are not its views: the offset and name of each.
    """

    edits: tuple[Edit, ...]
    reads: tuple[ViewReference, ...]
    problems: tuple[SqlProblem, ...] = ()
    bare_names: tuple[tuple[int, str], ...] = ()
