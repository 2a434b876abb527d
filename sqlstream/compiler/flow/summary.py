"""What is known of one model without its tree, as a value."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.sql.problem import SqlProblem


@dataclass(frozen=True)
class ModelSummary:
    """What is known of one model: its columns, what is wrong with names in its own text, and whether sqlglot could read
    it; where it could not, `unread_at` is the offset at which it gave up, None where that is not known.
    """

    columns: tuple[Column, ...] | None
    problems: tuple[SqlProblem, ...]
    is_read: bool
    unread_at: int | None = None
