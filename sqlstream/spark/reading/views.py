"""Creates the temp views of one query: all sources, seeds and models upstream of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from sqlstream.compiler.compiled import CompiledModel
from sqlstream.spark.reading.inputs import NodeReader
from sqlstream.state.ledger import SourceUse


@dataclass(frozen=True)
class ViewBuilder:
    """Registers views for one query, in its own session.

    With source evolution, each path from the query to a stream needs a separate reader with a stable name. A temp view
    keeps the plan that it was created from. Therefore each view is registered again, with new readers, just before
    Spark analyzes a text that reads it. `uses` are the readers; with `names_sources`, Spark gets their names.
    """

    inputs: NodeReader
    uses: Sequence[SourceUse]
    names_sources: bool

    def build(self, model: CompiledModel, above: tuple[str, ...] = ()) -> DataFrame:
        """Returns the analyzed DataFrame of `model`; `above` are the views on the path from the query to it.

        Raises: FindingsError, at the location in the model that Spark reports.
        """
        # open all inputs before the first is registered: views of their own inputs can have the same names
        opened = [self._open(read.node_id, (*above, read.view)) for read in model.reads]
        return self.inputs.analyse(model, opened)

    def _open(self, node_id: str, path: tuple[str, ...]) -> DataFrame:
        if node_id in self.inputs.compiled.models:
            return self.build(self.inputs.compiled.models[node_id], path)
        table = self.inputs.table(node_id)
        if table is None:
            return self.inputs.open_seed(node_id)
        has_name = self.names_sources and table.mode == "stream"
        return self.inputs.open_source(table, self._name(path) if has_name else None)

    def _name(self, path: tuple[str, ...]) -> str:
        return next(use.name for use in self.uses if use.via == "/".join(path))
