"""A name of its own for every further reference to a streaming view within one text.

Spark's source evolution needs one reader per reference (a second one under the same name fails with
DUPLICATE_SOURCE_NAMES), so the second `x` is read through a view `x__2`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from sqlstream.compiler.sql.edits import Edit, spaced
from sqlstream.compiler.sql.names import quote_identifier
from sqlstream.compiler.sql.relations import SqlRelation
from sqlstream.compiler.sql.sql_text import SqlText
from sqlstream.compiler.sql.tokens import Tokens


@dataclass(frozen=True)
class Occurrence:
    """One reference to `view`, which the edited text reads under `name_in_text` (without backquotes)."""

    view: str
    name_in_text: str


def name_second_references(
    text: SqlText, repeated: Collection[str], taken: Collection[str] = ()
) -> tuple[tuple[Edit, ...], tuple[Occurrence, ...]]:
    """Returns the edits that rename second references, and all references to `repeated` in the order of the text.

    `repeated` are the names of the views to watch, `taken` those that no new name may be.
    Names are compared as Spark does, without regard to case. The first reference keeps the view's own name. A renamed
    relation without an alias gets its old name as one, so that its columns can be qualified as before. A CTE is defined
    once however often it is used, so what it reads counts once; its name hides a view of the same name.
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
            used = {name.lower() for name in (*taken, *repeated, *_names(text.tokens))}
        name = view if count[view] == 1 else _fresh_name(view, count[view], used)
        occurrences.append(Occurrence(view, name))
        if count[view] > 1:
            edits += _rename(text.sql, relation, name)
    return tuple(edits), tuple(occurrences)


def _names(tokens: Tokens) -> Iterator[str]:
    return (token.name for token in tokens if token.is_name)


def _fresh_name(view: str, number: int, used: set[str]) -> str:
    """Returns `view__number`, or the same with the next number that is free, and notes it in `used`."""
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
