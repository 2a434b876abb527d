"""What is known of a model: a summary, which the cache keeps, and its operators, which are built when needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.sql.edits import SqlProblem

if TYPE_CHECKING:
    from sqlstream.compiler.flow.nodes import Node


@dataclass(frozen=True)
class ModelSummary:
    """The columns of a model, the problems in its SQL, and whether sqlglot could parse it (`is_read`).

    If not, `unread_at` is the offset at which sqlglot stopped; None if it is unknown. If `is_doubtful`, sqlglot could
    parse it, but Spark may not, or it could not parse a data test or the expression of a constraint.
    """

    columns: tuple[Column, ...] | None
    problems: tuple[SqlProblem, ...]
    is_read: bool
    unread_at: int | None = None
    is_doubtful: bool = False


@dataclass(frozen=True)
class Analysis:
    """The analysis of one model. `tree` builds the operators on the first call."""

    found: ModelSummary
    tree: Callable[[], Node] = field(repr=False)

    @property
    def columns(self) -> tuple[Column, ...] | None:
        """The columns of the model; None if they are unknown."""
        return self.found.columns

    @property
    def problems(self) -> tuple[SqlProblem, ...]:
        """The problems in the model's own SQL."""
        return self.found.problems

    @property
    def is_read(self) -> bool:
        """Whether sqlglot could parse the model."""
        return self.found.is_read

    @property
    def node(self) -> Node:
        """The operators of the model, down to its sources."""
        return self.tree()
