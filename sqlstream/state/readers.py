"""The streams that a query reads: one reader for each path from the query to a source, each with a stable name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.project.files.paths import join
from sqlstream.state.ledger import Ledger, SourceUse


def source_uses(compiled: CompiledProject, model: CompiledModel, ledger: Ledger | None = None) -> tuple[SourceUse, ...]:
    """Returns the readers of the query of `model`, in the order of first appearance in the flattened query. `ledger` is
    the ledger from which it resumes.

    Spark's checkpoint identifies a source only by its name, so a reader keeps its name when other references are added,
    removed or moved. A reader gets the name of the same path. If that is new, because a view was renamed, it gets the
    name of the only reader of the same table whose path no longer exists. New readers get unused names:
    `<source>__<table>`, then `__2`, `__3`. `unsure_tables` returns the tables for which this may be wrong.
    """
    found = list(_walk(compiled, model, ()))
    old = ledger.identity.sources if ledger else ()
    kept = _by_path(found, old)
    kept |= _by_table(
        [use for use in found if use.via not in kept], [use for use in old if use.name not in kept.values()]
    )
    taken = {use.name for use in old} | set(ledger.retired if ledger else ())
    named: list[SourceUse] = []
    for use in found:
        name = kept.get(use.via) or _new_name(use, taken)
        taken.add(name)
        named.append(replace(use, name=name))
    return tuple(named)


def unsure_tables(old: Sequence[SourceUse], new: Sequence[SourceUse]) -> tuple[str, ...]:
    """Returns the tables for which it is unknown which reader continues where an earlier one stopped.

    This happens if a table has lost readers and has new ones, and if one text has a different number of references to
    it than before, because only their order distinguishes them.
    """
    tables = dict.fromkeys(use.table for use in (*old, *new))
    return tuple(table for table in tables if _is_unsure(table, old, new))


def _is_unsure(table: str, old: Sequence[SourceUse], new: Sequence[SourceUse]) -> bool:
    before = {use.name for use in old if use.table == table}
    after = {use.name for use in new if use.table == table}
    if before - after and after - before:
        return True
    texts = [
        Counter(use.via.rpartition("/")[0] for use in uses if use.table == table and use.via) for uses in (old, new)
    ]
    return any(texts[0][text] != texts[1][text] for text in texts[0].keys() & texts[1].keys())


def _by_path(found: Sequence[SourceUse], old: Sequence[SourceUse]) -> dict[str, str]:
    names = {(use.table, use.via): use.name for use in old if use.via}
    return {use.via: names[use.table, use.via] for use in found if (use.table, use.via) in names}


def _by_table(found: Sequence[SourceUse], old: Sequence[SourceUse]) -> dict[str, str]:
    """Returns the names of readers that must be the same as before, by path. Ledgers without paths are in order."""
    kept: dict[str, str] = {}
    for table in {use.table for use in found}:
        here, before = [use for use in found if use.table == table], [use for use in old if use.table == table]
        without_paths = all(not use.via for use in before)
        if len(here) == len(before) and (len(here) == 1 or without_paths):
            kept |= {use.via: known.name for use, known in zip(here, before, strict=True)}
    return kept


def _new_name(use: SourceUse, taken: Collection[str]) -> str:
    base = use.table.replace(".", "__", 1)
    number = 1
    while (name := base if number == 1 else f"{base}__{number}") in taken:
        number += 1
    return name


def _walk(compiled: CompiledProject, model: CompiledModel, above: tuple[str, ...]) -> Iterator[SourceUse]:
    """Yields the readers without their names. `via` are the views from the query down to the source."""
    for read in model.reads:
        path = (*above, read.view)
        if read.node_id in compiled.models:
            yield from _walk(compiled, compiled.models[read.node_id], path)
        elif read.node_id in compiled.tables and compiled.tables[read.node_id].mode == "stream":
            table = compiled.tables[read.node_id]
            watermark = f"{table.watermark.column} {table.watermark.delay}" if table.watermark else None
            origin = table.table or table.python if table.path is None else join(str(compiled.project.root), table.path)
            is_stored = table.stored is not None
            yield SourceUse("", table.full_name, watermark, origin, "/".join(path), is_stored)
