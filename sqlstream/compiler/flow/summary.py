"""What the compiler knows about one model without its tree."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.sql.problem import SqlProblem


@dataclass(frozen=True)
class ModelSummary:
    """The columns of a model, the problems in its SQL, and whether sqlglot could parse it (`is_read`).

    If not, `unread_at` is the offset at which sqlglot stopped; None if it is unknown. If `is_doubtful`, sqlglot could
    parse it, but Spark may not.
    """

    columns: tuple[Column, ...] | None
    problems: tuple[SqlProblem, ...]
    is_read: bool
    unread_at: int | None = None
    is_doubtful: bool = False
