"""The columns of each model, with the columns of its own inputs as origins.

`analyse.py` follows columns through all models to the sources. This is one step of that way: the lineage from model to
model, which documentation shows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.flow.nodes import Node, Scan
from sqlstream.compiler.flow.types.values import read_type
from sqlstream.compiler.graph import MODEL, STORED, kind_of, model_id
from sqlstream.compiler.sql.edits import Where

Origins = frozenset[tuple[str, str]]


def direct_origins(compiled: CompiledProject, chosen: Collection[str]) -> Mapping[str, Mapping[str, Origins]]:
    """Returns, by unique id and column, the (node id, column) of the inputs from which the models `chosen` compute it.

    A stored output counts as its model. Models whose columns are unknown have none.
    """
    return {
        unique_id: _origins(compiled, model)
        for unique_id, model in compiled.models.items()
        if unique_id in chosen and compiled.columns.get(unique_id) is not None
    }


def _origins(compiled: CompiledProject, model: CompiledModel) -> Mapping[str, Origins]:
    known = compiled.columns[model.unique_id] or ()
    if not any(kind_of(read.node_id) in (MODEL, STORED) for read in model.reads):
        return {column.name: column.origins for column in known}  # its inputs are the sources themselves
    found = None if model.file.is_python else _columns_over_inputs(compiled, model)
    names = {column.name for column in known}
    return {column.name: column.origins for column in found or () if column.name in names}


def _columns_over_inputs(compiled: CompiledProject, model: CompiledModel) -> tuple[Column, ...] | None:
    from sqlstream.compiler.flow.operators.build import Builder
    from sqlstream.compiler.flow.operators.relations import TooManyJoinsError
    from sqlstream.compiler.flow.text import Text
    from sqlstream.compiler.sql.parse import parse_text

    functions = {function.name.lower(): read_type(function.returns) for function in compiled.project.functions}
    text = Text(model.unique_id, model.sql)
    try:
        tree = Builder(text, parse_text(text.read), knows_functions=False, functions=functions).build(
            {read.view.lower(): _input(compiled, read.node_id) for read in model.reads}
        )
    except (RecursionError, TooManyJoinsError):  # hundreds of combined queries
        return None
    finally:
        text.release()
    return tree.columns


def _input(compiled: CompiledProject, node_id: str) -> Node:
    """Returns the rows of an input as a leaf, whose columns have themselves as origin."""
    node = model_id(compiled.project.name, node_id.split(".")[-1]) if kind_of(node_id) == STORED else node_id
    fields = compiled.known_columns(node_id)
    marks = {column.name: column for column in compiled.columns.get(node) or ()}
    columns = None
    if fields is not None:
        empty = Column("")
        columns = tuple(
            replace(
                marks.get(field.name, empty), name=field.name, type=field.type, origins=frozenset({(node, field.name)})
            )
            for field in fields
        )
    return Scan(where=Where(node, 0), columns=columns, node_id=node, stream=True)
