"""What is to be done with a model's SQL before it can run, as a value."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstream.compiler.compiled import Read
from sqlstream.compiler.sql.edits import Edit
from sqlstream.compiler.sql.problem import SqlProblem


@dataclass(frozen=True)
class Rewriting:
    """What is to be done with one text, as far as it is the text's own affair: the edits, the views that the edited
    text reads in order of first appearance, what is wrong, and the relations that are none of its views.
    """

    edits: tuple[Edit, ...]
    reads: tuple[Read, ...]
    problems: tuple[SqlProblem, ...] = ()
    bare_names: tuple[tuple[int, str], ...] = ()
