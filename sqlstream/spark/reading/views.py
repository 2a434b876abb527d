"""The temp views of one query: every source, seed and model below it, each analysed where its own errors belong."""

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

    Under source evolution each way from the query to a stream needs a reader of its own, with its own stable name. A
    temp view keeps the plan it was made from, so every view is registered anew, over fresh readers, just before each
    text that reads it is analysed. `uses` are the readers; `names_sources` says whether Spark is told their names.
    """

    inputs: NodeReader
    uses: Sequence[SourceUse]
    names_sources: bool

    def build(self, model: CompiledModel, above: tuple[str, ...] = ()) -> DataFrame:
        """Returns the analysed rows of `model`, to which the views `above` lead from the query.

        Raises: FindingsError, with the place in the model that Spark named.
        """
        # all are opened before any is registered: what one of them reads may have the view name of another
        opened = [self._open(read.node_id, (*above, read.view)) for read in model.reads]
        return self.inputs.analyse(model, opened)

    def _open(self, node_id: str, way: tuple[str, ...]) -> DataFrame:
        if node_id in self.inputs.compiled.models:
            return self.build(self.inputs.compiled.models[node_id], way)
        table = self.inputs.table(node_id)
        if table is None:
            return self.inputs.open_seed(node_id)
        named = self.names_sources and table.mode == "stream"
        return self.inputs.open_source(table, self._name(way) if named else None)

    def _name(self, way: tuple[str, ...]) -> str:
        return next(use.name for use in self.uses if use.via == "/".join(way))
