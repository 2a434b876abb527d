"""The columns of a query's inputs, now and when its ledger was written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlstream.compiler.comparison.expressions import NotComparableError
from sqlstream.compiler.comparison.queries import InputTable
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.graph import seed_id, source_id
from sqlstream.project.types.parser import TypeSyntaxError, parse_schema
from sqlstream.project.types.types import Field, Primitive, Struct, type_name
from sqlstream.state.contents import reads_by_position, same_seed
from sqlstream.state.ledger import QueryIdentity
from sqlstream.state.signature.signature import shown_source

InputColumns = Mapping[str, tuple[tuple[str, str], ...]]
"""The names and types of the columns of inputs, by the full name of a source table or the name of a seed."""


def input_columns(compiled: CompiledProject, model: CompiledModel) -> InputColumns:
    """Returns the columns of all inputs of the query of `model` that the compiler knows, without stored outputs, whose
    columns another query decides.
    """
    nodes = {
        table.full_name: source_id(compiled.project.name, table)
        for table in compiled.tables_of(model.unique_id)
        if table.stored is None
    }
    seeds = {seed.name: seed_id(compiled.project.name, seed.name) for seed in compiled.project.seeds}
    upstream = compiled.upstream(model.unique_id)
    nodes |= {name: node for name, node in seeds.items() if node in upstream}
    found = ((name, compiled.known_columns(node)) for name, node in nodes.items())
    return {name: _texts(columns) for name, columns in found if columns is not None}


def _texts(columns: tuple[Field, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((column.name, _type(column)) for column in columns)


def _type(column: Field) -> str:
    """Returns the type of a column with all that values depend on: names of fields, digits, collation."""
    return type_name(column.type) if column.type == Primitive(type_name(column.type)) else str(column.type)


@dataclass(frozen=True)
class Inputs:
    """The inputs of one version of a query. `new` is the current version, with the columns that `columns` has."""

    identity: QueryIdentity
    new: QueryIdentity
    columns: InputColumns

    def find(self, path: tuple[str, ...]) -> InputTable:
        """Returns the table at the end of a path of views. Raises: NotComparableError if its columns are unknown."""
        via = "/".join(path)
        for use in self.identity.sources:
            if use.via == via and not use.stored:
                time, _, delay = (use.watermark or "").partition(" ")
                watermark = (time, delay) if use.watermark else None
                columns = self._columns(use.table)
                return InputTable(shown_source(use.name), columns, True, watermark)
        for name in self.columns:
            if name.replace(".", "__", 1) == path[-1] and name not in {use.table for use in self.identity.sources}:
                return InputTable(name, self._columns(name), streaming=False)
        raise NotComparableError(f"`{path[-1]}` is unknown")

    def _columns(self, name: str) -> tuple[tuple[str, str], ...]:
        then, now = self.identity.schemas.get(name), self.new.schemas.get(name)
        if then != now and reads_by_position(self.new, name):
            raise NotComparableError(f"the columns of `{name}` are read by their position")
        contents = [each.contents.get(name) for each in (self.identity, self.new)]
        is_same = contents[0] == contents[1] is not None or same_seed(self.identity, self.new, name)
        if name in self.columns and then == now and (then is not None or is_same):
            return self.columns[name]
        if then is None:
            raise NotComparableError(f"the columns of `{name}` are unknown")
        try:
            schema = parse_schema(then)
        except TypeSyntaxError as error:
            raise NotComparableError(f"the columns of `{name}` are unknown") from error
        if not isinstance(schema, Struct):
            raise NotComparableError(f"the columns of `{name}` are unknown")
        return _texts(schema.fields)
