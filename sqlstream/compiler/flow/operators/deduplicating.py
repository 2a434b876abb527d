"""The operator for the `deduplicate` configuration of a model."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstream.compiler.compiled import CompiledModel
from sqlstream.compiler.flow.columns import Columns
from sqlstream.compiler.flow.nodes import Deduplicate, Node
from sqlstream.compiler.flow.types.families import contains
from sqlstream.compiler.rewrite.deduplicate import key_columns, note_offset
from sqlstream.compiler.sql.edits import SqlProblem, Where
from sqlstream.compiler.sql.sql_text import quote_identifier
from sqlstream.project.wording import did_you_mean


def with_deduplication(model: CompiledModel, tree: Node) -> tuple[Node, tuple[SqlProblem, ...]]:
    """Returns `tree` with the operator of `deduplicate` on top, and the problems of its columns.

    Their place is the note in the compiled SQL that leads to the configuration.
    """
    if not model.config.deduplicate:
        return tree, ()
    here = Where(model.unique_id, note_offset(model.sql))
    keys = key_columns(model.config.deduplicate)
    node = Deduplicate(where=here, columns=tree.columns, children=(tree,), keys=keys, within=_within(tree.columns))
    return node, tuple(_problems(model, node))


def _within(columns: Columns | None) -> bool | None:
    if columns is None or (not any(item.event_time for item in columns) and any(item.may_carry for item in columns)):
        return None
    return any(item.event_time is not None for item in columns)


def _problems(model: CompiledModel, node: Deduplicate) -> Iterator[SqlProblem]:
    columns, offset = node.columns or (), node.where.offset
    types = {column.name.lower(): column.type for column in columns}
    compares_maps = node.streaming and node.within is not False  # as bytes, in the state store
    for key in node.keys if columns else ():
        if key.lower() not in types:
            what = f"`{model.name}` is deduplicated by `{key}`, which is not one of its columns"
            why = f"the columns of the model are {', '.join(f'`{column.name}`' for column in columns)}"
            fix = did_you_mean(key, [column.name for column in columns])
            yield SqlProblem(offset, "unknown-column", what, why, fix)
        elif not compares_maps and contains(types[key.lower()], "map"):
            what = f"`{model.name}` cannot be deduplicated by `{key}`, which is or contains a map"
            why = "map entries have no order, so Spark cannot compare maps"
            fix = f"select a text column, for example to_json({quote_identifier(key)}), and deduplicate by it"
            yield SqlProblem(offset, "type-mismatch", what, why, fix)
