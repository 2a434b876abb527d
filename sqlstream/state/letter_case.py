"""Edits of only letter case that can change the results of a query.

The fingerprints of SQL ignore letter case, because Spark compares names of columns without it.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlstream.compiler.sql.letter_case import CaseChange, Names, case_change, names_in
from sqlstream.compiler.sql.sql_text import PYTHON
from sqlstream.project.formats.formats import format_of
from sqlstream.state.ledger import QueryIdentity
from sqlstream.state.settings import CASE_SENSITIVE
from sqlstream.state.signature.signature import shown_source

_SHOW_NAMES = ("kafka", "csv", "python")
"""Sinks whose rows contain the names of columns, as they are written. JSON refuses another spelling."""


def case_changes(old: QueryIdentity, new: QueryIdentity) -> Iterator[tuple[str | None, CaseChange]]:
    """Yields each model whose SQL differs from before only in letter case, in a place where this can change results,
    with the first word that differs. The name is None for a column of the output.
    """
    renamed = {new.model if name == old.model else name: name for name in old.models}
    same = [
        (name, old.models[renamed[name]])
        for name, text in new.models.items()
        if name in renamed and new.fingerprints.get(name) == old.fingerprints.get(renamed[name])
        if text != old.models[renamed[name]]
    ]
    if not same:
        return
    names = _names(old, new)
    found = [(name, case_change(before, new.models[name], names)) for name, before in same]
    yield from ((name, change) for name, change in found if change is not None)
    if any(format_of(each.sink_format).name in _SHOW_NAMES for each in new.by_sink):
        pairs = zip(old.columns or (), new.columns or (), strict=False)
        spelled = [(one.name, other.name) for one, other in pairs if one.name.lower() == other.name.lower()]
        yield from ((None, CaseChange(0, one, other)) for one, other in spelled if one != other)


def _names(old: QueryIdentity, new: QueryIdentity) -> Names:
    """Returns the names in both versions of a query."""
    are_known = all(each.schemas.keys() >= set(_inputs(each)) for each in (old, new))
    declared = (text for each in (old, new) for text in each.schemas.values())
    found = names_in((*old.models.values(), *new.models.values()), declared if are_known else None)
    code = any(":" in name or text.startswith(PYTHON) for name, text in new.fingerprints.items())
    nested = any("<" in column.type for each in (old, new) for column in each.columns or ())
    is_exact = new.settings.get(CASE_SENSITIVE) == "true"
    return Names(None if is_exact else found.columns, found.are_shown or code or nested or is_exact)


def _inputs(identity: QueryIdentity) -> Iterator[str]:
    """Yields the inputs of a query whose columns can be maps: all but seeds."""
    yield from (use.table for use in identity.sources)
    streams = {shown_source(use.name) for use in identity.sources}
    static = ((name, text) for name, text in identity.contents.items() if name not in streams)
    yield from (name for name, text in static if not text.startswith("seed "))
