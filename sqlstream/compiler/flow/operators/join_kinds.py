"""Which kind of join a join is, in Spark's eyes."""

from __future__ import annotations

from typing import TypeGuard

from sqlglot import exp

from sqlstream.compiler.flow.text import Text

KINDS = {"": "inner", "left": "left", "right": "right", "full": "full"}
"""The side of a join, as sqlglot has it, and its kind."""


def join_kind(join: exp.Join, text: Text) -> str:
    """Returns what `Join.kind` says of a join: inner, left, right, full, left semi, left anti or cross."""
    side, kind = (join.side or "").lower(), (join.kind or "").lower()
    if kind in ("semi", "anti"):
        return f"left {kind}"
    return "cross" if kind == "cross" and _says_cross(join.this, text) else KINDS.get(side, "inner")


def _says_cross(relation: exp.Expr, text: Text) -> bool:
    """Whether CROSS JOIN stands before a relation: to sqlglot a comma is one, to Spark an inner join."""
    starts = [part.meta["start"] for part in relation.parts if "start" in part.meta] if _is_table(relation) else []
    alias = relation.args.get("alias")
    if isinstance(relation, exp.Subquery) and alias is not None and alias.this and "start" in alias.this.meta:
        end = text.token_at(alias.this.meta["start"]) or 0
        end -= 1 if text.tokens[end - 1].key == "AS" else 0
        starts = [text.tokens[opening].start for opening, after in text.after.items() if after == end]
    index = text.token_at(min(starts)) if starts else None
    while index is not None and index > 2 and text.tokens[index - 1].key == "(":
        index -= 1
    return index is not None and [token.key for token in text.tokens[max(index - 2, 0) : index]] == ["CROSS", "JOIN"]


def _is_table(relation: exp.Expr) -> TypeGuard[exp.Table]:
    return isinstance(relation, exp.Table) and isinstance(relation.this, exp.Identifier)
