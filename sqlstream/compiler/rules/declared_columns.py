"""Rules on the declared columns of models: they describe a model and enforce nothing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.flow.declared import as_read
from sqlstream.compiler.rules.rule import Problem, Problems, rule
from sqlstream.errors import Severity
from sqlstream.location import Location
from sqlstream.project.types.data_types import Array, DataType, Map, Primitive, Struct, Unknown
from sqlstream.project.types.ddl import TypeSyntaxError, parse_type
from sqlstream.project.wording import did_you_mean, quoted, quoted_list


@rule("declared-column", severity=Severity.WARNING)
def declared_columns(compiled: CompiledProject) -> Problems:
    """A properties file declares a column that the model does not have, or with another type."""
    for unique_id, model in compiled.models.items():
        columns = compiled.columns.get(unique_id)
        if columns is not None:
            yield from _wrong_columns(model, columns)


def _wrong_columns(model: CompiledModel, columns: Sequence[Column]) -> Problems:
    by_name = {column.name.lower(): column for column in columns} if model.file.columns else {}
    names = [column.name for column in columns]
    for declared in model.file.columns:
        column = by_name.get(declared.name.lower())
        if column is None:
            yield Problem(
                f"model {quoted(model.name)} has no column {quoted(declared.name)}",
                f"the columns of the model are {quoted_list(names, most=20)}",
                did_you_mean(declared.name, names),
                model.file.location_of_column(declared.name, "name"),
            )
        # Of two columns with the same name, nobody knows which one the declaration means.
        elif declared.data_type is not None and len(by_name) == len(columns):
            place = model.file.location_of_column(declared.name, "data_type")
            yield from _other_type(model, declared.data_type, column, place)


def _other_type(model: CompiledModel, ddl: str, column: Column, place: Location) -> Problems:
    try:
        wanted = _parsed(ddl)
    except TypeSyntaxError as error:
        yield Problem(error.message, error.why, error.fix, place)
        return
    if column.type is not None and not _may_be_same(wanted, column.type):
        yield Problem(
            f"column {quoted(column.name)} of {quoted(model.name)} is declared as {quoted(ddl)}, but its type "
            f"is {quoted(column.type)}",
            "declared types document a model; they do not convert its values",
            f"write data_type: {column.type}, or cast({column.in_sql} as {ddl}) in the model",
            place,
        )


@cache
def _parsed(ddl: str) -> DataType:
    """Returns the type of a text, cached because many columns have the same type. Raises: TypeSyntaxError."""
    return as_read(parse_type(ddl))


def _may_be_same(declared: DataType, given: DataType) -> bool:
    """Returns whether two types may be the same; nullability and collations that are not declared do not count."""
    if isinstance(declared, Unknown) or isinstance(given, Unknown):
        return True
    if isinstance(declared, Primitive) and isinstance(given, Primitive):
        same_collation = declared.collation in (None, given.collation)
        return (declared.name, declared.parameters) == (given.name, given.parameters) and same_collation
    if isinstance(declared, Array) and isinstance(given, Array):
        return _may_be_same(declared.element, given.element)
    if isinstance(declared, Map) and isinstance(given, Map):
        return _may_be_same(declared.key, given.key) and _may_be_same(declared.value, given.value)
    if isinstance(declared, Struct) and isinstance(given, Struct):
        names = [[field.name.lower() for field in kind.fields] for kind in (declared, given)]
        pairs = zip(declared.fields, given.fields, strict=False)
        return names[0] == names[1] and all(_may_be_same(one.type, other.type) for one, other in pairs)
    return declared == given
