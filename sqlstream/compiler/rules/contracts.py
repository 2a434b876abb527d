"""Rules on the declared columns of models, and on their constraints. An enforced contract makes each difference an
error; without one, the columns describe a model, and a difference is a warning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cache

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.flow.declared import as_read
from sqlstream.compiler.rules.rule import Problem, Problems, rule
from sqlstream.compiler.sql.clauses import select_items
from sqlstream.errors import Finding, Severity
from sqlstream.project.configuration.properties import Constraint
from sqlstream.project.formats.formats import format_of
from sqlstream.project.types.data_types import Array, DataType, Map, Primitive, Struct, Unknown, type_ddl
from sqlstream.project.types.ddl import TypeSyntaxError, parse_type
from sqlstream.project.wording import did_you_mean, nearest, quoted, quoted_list
from sqlstream.project.yaml import Located

NOT_NULL = ("not_null", "primary_key")
"""The types of constraints that allow no null."""

CONTRACT = "contract"
"""The code of findings about columns that an enforced contract does not allow."""


@rule("declared-column", severity=Severity.WARNING)
def declared_columns(compiled: CompiledProject) -> Problems:
    """A properties file declares a column that the model does not have, or with another type."""
    for unique_id, model in compiled.models.items():
        columns = compiled.columns.get(unique_id)
        if columns is not None and model.file.columns and not model.has_contract:
            yield from _wrong_columns(compiled, model, columns)


@rule(CONTRACT)
def enforced_contracts(compiled: CompiledProject) -> Problems:
    """A model with an enforced contract must have exactly the columns that its properties declare, each with a type,
    in the same order. Spark checks columns that the compiler does not know.
    """
    for unique_id, model in compiled.models.items():
        if model.has_contract:
            yield from contract_problems(compiled, model, compiled.columns.get(unique_id))


@rule(CONTRACT)
def columns_of_constraints(compiled: CompiledProject) -> Problems:
    """Each constraint names columns of the model that its contract declares."""
    for model in compiled.models.values():
        if not (model.has_contract and model.file.constraints):
            continue
        names = [column.name for column in model.file.columns]
        known = {name.lower() for name in names}
        for constraint in model.file.constraints:
            for column in constraint.columns:
                if column.lower() not in known:
                    yield Problem(
                        f"a {constraint.type} constraint of `{model.name}` names {quoted(column)}, which is not a "
                        "declared column",
                        "a contract declares each column in `columns:`",
                        did_you_mean(column, names),
                        constraint.location,
                    )
            if not constraint.columns and constraint.type not in ("check", "custom"):
                yield Problem(
                    f"a {constraint.type} constraint of `{model.name}` names no columns",
                    "a constraint of a model applies to the columns in its `columns`",
                    f"add its columns, for example `{{type: {constraint.type}, columns: [id]}}`",
                    constraint.location,
                )


@rule("unenforced-constraint", severity=Severity.WARNING)
def unenforced_constraints(compiled: CompiledProject) -> Problems:
    """A query enforces `not_null` and `check` constraints of its model. The sink enforces `primary_key` and `unique` if
    the model has the same `unique_key`. Nothing enforces other constraints, and those of models without a contract or a
    sink.
    """
    for model in compiled.models.values():
        for constraint in model.file.constraints if model.file.rows_of is None else ():
            is_complete = constraint.columns or constraint.type in ("check", "custom")
            reasons = unenforced(model, constraint) if constraint.warns and is_complete else None
            if reasons is not None:
                why, fix = reasons
                yield Problem(
                    f"nothing enforces the {constraint.type} constraint of `{model.name}`",
                    why,
                    f"{fix}, or set `warn_unenforced: false` to keep it as a description",
                    constraint.location,
                )


def unenforced(model: CompiledModel, constraint: Constraint) -> tuple[str, str] | None:
    """Returns why nothing enforces a constraint, and what to do; None if the query or each sink enforces it."""
    if not model.has_contract:
        return "constraints have no effect without a contract", "add `contract: {enforced: true}` to `config:`"
    if model.output is None:
        return "the model has no sink, so it stores no rows", "move it to the models that read it and have a sink"
    if constraint.type in ("not_null", "check"):
        return None
    if constraint.type not in ("primary_key", "unique"):
        return f"sqlstream passes no {constraint.type} constraints to sinks", "remove it"
    also = "; only nulls are refused" if constraint.type == "primary_key" else ""
    keys = {name.lower() for name in model.config.unique_key}
    if {name.lower() for name in constraint.columns} != keys:
        why = f"a sink finds rows with the same values only by the `unique_key` of the model{also}"
        return why, "remove it" if keys else f"set `unique_key: [{', '.join(constraint.columns)}]`"
    if model.config.history:
        return f"the table has several versions of each key, because of `history`{also}", "remove it"
    replaces = not model.streaming or model.config.output_mode == "complete"
    for output in model.outputs:
        facts = format_of(output.format)
        if not facts.is_database and (replaces or not facts.updates_by_key):
            return f"sink `{output.sink}` of format {output.format} adds rows without looking for their key{also}", (
                "write to a table of a database"
                if replaces
                else "write to a table: format delta, iceberg, jdbc or sqlite"
            )
    return None


@rule("deprecated-model", severity=Severity.WARNING)
def deprecated_models(compiled: CompiledProject) -> Problems:
    """The deprecation date of a model has passed."""
    for unique_id, model in compiled.models.items():
        deprecated = model.file.deprecated
        if deprecated is None or not isinstance(deprecated.value, datetime):
            continue
        if deprecated.value <= compiled.options.run_started_at:
            children = compiled.graph.children[unique_id]
            readers = [f"`{compiled.models[node].name}`" for node in children if node in compiled.models]
            readers += [
                f"exposure `{compiled.exposures[node].name}`" for node in children if node in compiled.exposures
            ]
            read = "nothing in the project reads it" if not readers else f"it is read by {' and '.join(readers)}"
            yield Problem(
                f"`{model.name}` has been deprecated since {deprecated.value:%Y-%m-%d}",
                read,
                "disable or delete the model"
                if not readers
                else "let its readers use another model, and then delete it",
                deprecated.location,
            )


def required_columns(model: CompiledModel) -> frozenset[str]:
    """Returns the columns in which the contract of `model` allows no null, in lower case."""
    found = (constraint.columns for constraint in model.constraints if constraint.type in NOT_NULL)
    return frozenset(name.lower() for columns in found for name in columns)


def contract_findings(compiled: CompiledProject, model: CompiledModel, columns: Sequence[Column]) -> list[Finding]:
    """Returns the differences between the enforced contract of `model` and the `columns` that Spark finds; none without
    a contract.
    """
    problems = contract_problems(compiled, model, columns) if model.has_contract else ()
    return [Finding(CONTRACT, each.message, each.why, each.fix, each.location) for each in problems]


def contract_problems(
    compiled: CompiledProject, model: CompiledModel, columns: Sequence[Column] | None
) -> Iterator[Problem]:
    """Yields each difference between the enforced contract of `model` and its `columns`; if these are unknown, only
    what the contract lacks.
    """
    declared = model.file.columns
    if not declared:
        listed = [] if columns is None else [_entry(column) for column in columns]
        yield Problem(
            f"the contract of `{model.name}` is enforced, but no columns are declared",
            "a contract lists every column of the model with its type",
            f"add to the properties of the model: columns: [{', '.join(listed) or '{name: ..., data_type: ...}, ...'}]",
            model.location_of("contract"),
        )
        return
    types = {column.name.lower(): column.type for column in columns or ()}
    for column in declared:
        if column.data_type is None:
            type_ = types.get(column.name.lower())
            yield Problem(
                f"column {quoted(column.name)} of `{model.name}` has no `data_type`",
                "a contract lists every column of the model with its type",
                "add its type, for example data_type: string"
                if type_ is None
                else f"add data_type: {_yaml(type_ddl(type_))}",
                model.file.location_of_column(column.name, "name"),
            )
    if columns is None:
        yield from _wrong_types(model)
        return
    yield from _wrong_columns(compiled, model, columns)
    yield from _undeclared(compiled, model, columns)
    yield from _other_order(model, columns)


def _wrong_types(model: CompiledModel) -> Iterator[Problem]:
    """Yields a problem for each declared type that is not a type of Spark."""
    for column in model.file.columns:
        try:
            _parsed(column.data_type or "string")
        except TypeSyntaxError as error:
            place = model.file.location_of_column(column.name, "data_type")
            yield Problem(error.message, error.why, error.fix, place)


def _wrong_columns(compiled: CompiledProject, model: CompiledModel, columns: Sequence[Column]) -> Iterator[Problem]:
    """Yields the declared columns that the model does not have, and those of another type."""
    by_name = {column.name.lower(): column for column in columns}
    names = [column.name for column in columns]
    for declared in model.file.columns:
        column = by_name.get(declared.name.lower())
        if column is None:
            if any(each.may_be_called(declared.name) for each in columns):
                continue  # Spark generates the name
            is_close = bool(nearest(declared.name, names))
            yield Problem(
                f"model {quoted(model.name)} has no column {quoted(declared.name)}",
                f"the columns of the model are {quoted_list(names, most=20)}",
                did_you_mean(declared.name, names)
                if is_close
                else "add the column to the model, or remove it from `columns:`",
                model.file.location_of_column(declared.name, "name"),
            )
        # Of two columns with the same name, nobody knows which one the declaration means.
        elif declared.data_type is not None and len(by_name) == len(columns):
            place = model.file.location_of_column(declared.name, "data_type")
            yield from _other_type(compiled, model, Located(declared.data_type, place), columns, column)


def _other_type(
    compiled: CompiledProject, model: CompiledModel, declared: Located, columns: Sequence[Column], column: Column
) -> Iterator[Problem]:
    ddl = str(declared.value)
    try:
        wanted = _parsed(ddl)
    except TypeSyntaxError as error:
        yield Problem(error.message, error.why, error.fix, declared.location)
        return
    if column.type is None or _may_be_same(wanted, column.type):
        return
    why = "declared types document a model; they do not convert its values"
    if model.has_contract:
        why = f"the contract of the model is enforced{_selected_at(compiled, model, columns, column)}"
    yield Problem(
        f"column {quoted(column.name)} of {quoted(model.name)} is declared as {quoted(ddl)}, but its type is "
        f"{quoted(column.type)}",
        why,
        f"write data_type: {_yaml(type_ddl(column.type))}, or cast({column.in_sql} as {ddl}) in the model",
        declared.location,
    )


def _undeclared(compiled: CompiledProject, model: CompiledModel, columns: Sequence[Column]) -> Iterator[Problem]:
    """Yields the columns of the model that its contract does not list, and those that it has twice."""
    listed = [column.name for column in model.file.columns]
    known = {name.lower() for name in listed}
    open_names = [name for name in listed if name.lower() not in {column.name.lower() for column in columns}]
    seen: set[str] = set()
    for column in columns:
        name = column.name.lower()
        if name in known and name not in seen:
            seen.add(name)
        elif not any(column.may_be_called(other) for other in open_names):
            again = name in seen
            yield Problem(
                f"column {quoted(column.name)} of `{model.name}` {'occurs twice' if again else 'is not declared'}",
                f"an enforced contract lists every column once{_selected_at(compiled, model, columns, column)}",
                f"give the column another name with `as`, and declare it: {_entry(column)}"
                if again
                else f"add {_entry(column)} to `columns:`, or remove the column from the model",
                model.file.properties_location or model.location_of("contract"),
            )


def _other_order(model: CompiledModel, columns: Sequence[Column]) -> Iterator[Problem]:
    """Yields a problem if the columns that both sides have are in another order."""
    given = list(dict.fromkeys(column.name.lower() for column in columns))
    declared = [column.name for column in model.file.columns if column.name.lower() in given]
    known = {name.lower() for name in declared}
    given = [name for name in given if name in known]
    for wanted, name in zip(declared, given, strict=True):
        if wanted.lower() != name:
            shown = {column.name.lower(): column.name for column in columns}
            yield Problem(
                f"the columns of `{model.name}` are not in the order of its contract",
                f"declared: {', '.join(declared)}; in the model: {', '.join(shown[name] for name in given)}",
                "select the columns in the declared order, or change the order in `columns:`",
                model.file.location_of_column(wanted, "name"),
            )
            return


def _selected_at(compiled: CompiledProject, model: CompiledModel, columns: Sequence[Column], column: Column) -> str:
    """Returns where the model selects a column, as the end of a sentence; empty if that is unknown."""
    items = () if model.file.is_python else select_items(model.sql)
    if len(items) != len(columns):
        return ""
    position = next(at for at, each in enumerate(columns) if each is column)
    return f"; the model selects the column at {compiled.locate(model.unique_id, items[position]).location}"


def _entry(column: Column) -> str:
    type_ = "..." if column.type is None else _yaml(type_ddl(column.type))
    return f"{{name: {_yaml(column.name)}, data_type: {type_}}}"


def _yaml(text: str) -> str:
    """Returns a text as YAML inside { }."""
    return text if text.isidentifier() else "'" + text.replace("'", "''") + "'"


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
