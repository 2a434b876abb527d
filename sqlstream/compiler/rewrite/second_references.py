"""Gives further references to a streaming view within one text unique names.

Spark's source evolution needs one reader per reference (a second reader with the same name fails with
DUPLICATE_SOURCE_NAMES), so the second reference to `x` reads a view `x__2`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from sqlstream.compiler.sql.edits import Edit, spaced
from sqlstream.compiler.sql.names import quote_identifier
from sqlstream.compiler.sql.relations import SqlRelation
from sqlstream.compiler.sql.sql_text import SqlText


@dataclass(frozen=True)
class Occurrence:
    """One reference to `view`; `name_in_text` is its name in the edited text, without backquotes."""

    view: str
    name_in_text: str


def name_second_references(
    text: SqlText, repeated: Collection[str], taken: Collection[str] = ()
) -> tuple[tuple[Edit, ...], tuple[Occurrence, ...]]:
    """Returns the edits that rename second references, and all references to the views `repeated` in the order of the
    text. New names are different from those in `taken`.

    Names are compared without letter case, as in Spark. The first reference keeps the view's name. A renamed relation
    without an alias gets its old name as alias, so that its columns can be qualified as before. A CTE is defined once,
    so what it reads counts once; its name hides a view with the same name.
    """
    views = {view.lower(): view for view in repeated}
    used: set[str] = set()
    count: Counter[str] = Counter()
    edits: list[Edit] = []
    occurrences: list[Occurrence] = []
    for relation in text.relations:
        view = views.get((relation.name or "").lower())
        if view is None or relation.is_cte or relation.is_qualified:
            continue
        count[view] += 1
        if count[view] == 2 and not used:
            names = (token.name for token in text.tokens if token.is_name)
            used = {name.lower() for name in (*taken, *repeated, *names)}
        name = view if count[view] == 1 else _fresh_name(view, count[view], used)
        occurrences.append(Occurrence(view, name))
        if count[view] > 1:
            edits += _rename(text.sql, relation, name)
    return tuple(edits), tuple(occurrences)


def _fresh_name(view: str, number: int, used: set[str]) -> str:
    """Returns `view__number` with the first number from `number` that is free, and adds the name to `used`."""
    while f"{view}__{number}".lower() in used:
        number += 1
    used.add(f"{view}__{number}".lower())
    return f"{view}__{number}"


def _rename(sql: str, relation: SqlRelation, name: str) -> list[Edit]:
    written = sql[relation.name_start : relation.name_end]
    text = quote_identifier(name, always=written.startswith("`"))
    renamed = Edit(relation.name_start, relation.name_end, text)
    if relation.alias is not None or not relation.takes_clauses:
        return [renamed]
    return [renamed, Edit(relation.alias_at, relation.alias_at, spaced(sql, relation.alias_at, f" AS {written}"))]
