"""The sources and views between the sources of a query and its model, in the order in which rows pass through them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.project.values import SourceTable


@dataclass(frozen=True)
class Part:
    """A streaming source (`table`) or view (`view`) of a query. `path` are the views from the query down to it."""

    unique_id: str
    path: tuple[str, ...]
    table: SourceTable | None = None
    view: CompiledModel | None = None

    @property
    def name(self) -> str:
        """The name of the source as `<namespace>.<table>`, or of the view."""
        if self.table is not None:
            return self.table.full_name
        return self.view.name if self.view is not None else ""

    @property
    def via(self) -> str:
        """The path in the form of the ledger's readers."""
        return "/".join(self.path)


def parts_of(compiled: CompiledProject, model: CompiledModel) -> tuple[Part, ...]:
    """Returns the streaming sources and views of `model`: sources first, then the views, parents first. Each is there
    once, with the first path to it.
    """
    # reversed, so that the first path to a node wins
    found = {part.unique_id: part for part in reversed(list(_walk(compiled, model, ())))}
    ordered = [found[node] for node in dict.fromkeys(part.unique_id for part in _walk(compiled, model, ()))]
    return tuple(sorted(ordered, key=lambda part: part.table is None))


def static_names(compiled: CompiledProject, model: CompiledModel) -> list[str]:
    """Returns the names of the static tables that the query of `model` reads."""
    return [table.full_name for table in compiled.tables_of(model.unique_id) if table.mode != "stream"]


def _walk(compiled: CompiledProject, model: CompiledModel, above: tuple[str, ...]) -> Iterator[Part]:
    for read in model.reads:
        path = (*above, read.view)
        view, table = compiled.models.get(read.node_id), compiled.tables.get(read.node_id)
        if view is not None:
            yield from _walk(compiled, view, path)
            if view.streaming:
                yield Part(read.node_id, path, view=view)
        elif table is not None and table.mode == "stream":
            yield Part(read.node_id, path, table=table)
