"""The streams that a query reads: one reader for each way from the query to a source, each under a stable name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.node_ids import source_id
from sqlstream.project.paths import join
from sqlstream.state.ledger import SourceUse


def source_uses(
    compiled: CompiledProject, model: CompiledModel, old: Sequence[SourceUse] = ()
) -> tuple[SourceUse, ...]:
    """Returns the readers of the query of `model`, in the order of first appearance in the flattened query.

    `old` are those of the ledger on which it resumes. Spark's checkpoint knows a source by its name only, so a reader
    keeps the name it had when other references are added, dropped or moved: the one of its own way, or else, because a
    view on the way may have been renamed, one of the same table whose way is gone. New readers get new names:
    `<source>__<table>`, then `__2`, `__3`.
    """
    found = list(_walk(compiled, model, ()))
    names = _Names(old)
    kept = {use.via: names.take(use, use.via) for use in found}
    named = [replace(use, name=kept[use.via] or names.take(use, None) or "") for use in found]
    return tuple(use if use.name else replace(use, name=names.new(use)) for use in named)


def _walk(compiled: CompiledProject, model: CompiledModel, above: tuple[str, ...]) -> Iterator[SourceUse]:
    """The readers without their names: `via` are the views from the query down to the source."""
    streams = {
        source_id(compiled.project.name, table): table for table in compiled.project.sources if table.mode == "stream"
    }
    for read in model.reads:
        way = (*above, read.view)
        if read.node_id in compiled.models:
            yield from _walk(compiled, compiled.models[read.node_id], way)
        elif read.node_id in streams:
            table = streams[read.node_id]
            said = f"{table.watermark.column} {table.watermark.delay}" if table.watermark else None
            path = None if table.path is None else join(str(compiled.project.root), table.path)
            yield SourceUse("", table.full_name, said, path, "/".join(way))


@dataclass
class _Names:
    """The names of the ledger that are still free, and those that must not be given again."""

    old: Sequence[SourceUse]

    def __post_init__(self) -> None:
        self._free = list(self.old)
        self._taken = {use.name for use in self.old}

    def take(self, use: SourceUse, via: str | None) -> str | None:
        """Returns the first free name of the same table, of the way `via` where that is given."""
        for candidate in self._free:
            if candidate.table == use.table and via in (None, candidate.via):
                self._free.remove(candidate)
                return candidate.name
        return None

    def new(self, use: SourceUse) -> str:
        """Returns a name that no reader has or had."""
        base = use.table.replace(".", "__", 1)
        number = 1
        while (name := base if number == 1 else f"{base}__{number}") in self._taken:
            number += 1
        self._taken.add(name)
        return name
