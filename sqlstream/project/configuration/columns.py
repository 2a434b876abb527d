"""Declared columns and schemas: DDL, typed columns, or a file of the project, and the types that Spark would refuse."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlstream.errors import Finding
from sqlstream.location import Location, location_at
from sqlstream.project.configuration.documents import DeclaredColumn, TableDocument
from sqlstream.project.configuration.validate import Path, SeenNames, is_template
from sqlstream.project.files.files import ProjectFiles
from sqlstream.project.types.data_types import ALIASES, Field, Struct, columns_ddl, read_json_schema
from sqlstream.project.types.ddl import TypeSyntaxError, parse_schema, parse_type
from sqlstream.project.wording import alternatives, quoted
from sqlstream.project.yaml import YamlMapping, locate, locate_in_scalar


@dataclass(frozen=True)
class Schema:
    """A declared schema: either Spark DDL or the JSON of a Spark `StructType`."""

    location: Location
    ddl: str | None = None
    json: str | None = None


def fields_of(schema: Schema | None) -> tuple[Field, ...]:
    """Returns the columns of a schema; none without a schema, or if only Spark can read it."""
    if schema is None:
        return ()
    try:
        found = read_json_schema(schema.json) if schema.json is not None else parse_schema(schema.ddl or "")
    except TypeSyntaxError:
        return ()
    return found.fields if isinstance(found, Struct) else ()


def with_columns(schema: Schema, added: Sequence[Field]) -> Schema:
    """Returns `schema` with those columns of `added` that it does not have, at its end."""
    known = {field.name.casefold() for field in fields_of(schema)}
    missing = [field for field in added if field.name.casefold() not in known]
    if not missing:
        return schema
    if schema.json is None:
        comma = "\n, " if "--" in (schema.ddl or "") else ", "  # a comment ends with its line
        return replace(schema, ddl=f"{schema.ddl}{comma}{columns_ddl(missing)}")
    struct = json.loads(schema.json)
    names = {name: alias for alias, name in ALIASES.items() if alias in ("integer", "long")}  # as Spark's JSON has them
    fields = [
        {"name": each.name, "type": names.get(str(each.type), str(each.type)), "nullable": True, "metadata": {}}
        for each in missing
    ]
    return replace(schema, json=json.dumps({**struct, "fields": [*struct["fields"], *fields]}))


def build_schema(
    table: TableDocument, node: YamlMapping, path: Path, files: ProjectFiles, findings: list[Finding]
) -> Schema | None:
    """Returns the table's schema, or None if it declares none or an error is added to `findings`."""
    typed = any(column.data_type for column in table.columns)
    declared = {"schema": table.schema_, "schema_file": table.schema_file, "columns": typed}
    keys = [key for key, value in declared.items() if value]
    if len(keys) > 1:
        findings.append(_several(keys, locate(node, (*path, keys[-1]))))
        return None
    if table.schema_file is not None:
        return _read_schema(table.schema_file, files, locate(node, (*path, "schema_file")), findings)
    if table.schema_ is not None:
        problem = schema_problem(table.schema_, node, (*path, "schema"), files)
        return _ddl(table.schema_, locate(node, (*path, "schema")), problem, findings)
    return schema_of_columns(table.columns, node, path, files, findings)


def schema_of_columns(
    columns: Sequence[DeclaredColumn],
    node: YamlMapping,
    path: Path,
    files: ProjectFiles,
    findings: list[Finding],
    key: str = "columns",
) -> Schema | None:
    """Returns the schema in the list of columns at `key` of the mapping at `path`.

    Returns None if no column has a type, or an error is added to `findings`.
    """
    findings.extend(column_problems(columns, node, (*path, key), files))
    typed = any(column.data_type for column in columns)
    return _from_columns(columns, node, (*path, key), findings) if typed else None


def check_names(columns: Sequence[DeclaredColumn], node: YamlMapping, path: Path, findings: list[Finding]) -> None:
    """Adds a finding for each repeated name among the columns of the mapping at `path`."""
    # Locating a name costs more than everything else here, and few names are repeated.
    if len({column.name.casefold() for column in columns}) < len(columns):
        names = SeenNames("columns")
        for index, column in enumerate(columns):
            names.add(column.name, locate(node, (*path, "columns", index, "name")), findings)


def _from_columns(
    columns: Sequence[DeclaredColumn], node: YamlMapping, path: Path, findings: list[Finding]
) -> Schema | None:
    untyped = [index for index, column in enumerate(columns) if not column.data_type]
    findings.extend(_untyped(columns[at].name, locate(node, (*path, at, "name"))) for at in untyped)
    if untyped:
        return None
    ddl = ", ".join(f"`{column.name.replace('`', '``')}` {column.data_type}" for column in columns)
    return Schema(locate(node, path), ddl=ddl)


def _read_schema(name: str, files: ProjectFiles, named_at: Location, findings: list[Finding]) -> Schema | None:
    text = files.try_read(name, findings, named_at)
    if text is None:
        return None
    if not name.endswith(".json"):
        return _ddl(text, Location(name), schema_file_problem(text, name), findings)
    problem = _struct_problem(text, name)
    if problem is not None:
        findings.append(problem)
        return None
    return Schema(Location(name), json=text)


def _ddl(text: str, location: Location, problem: Finding | None, findings: list[Finding]) -> Schema | None:
    if text.strip() and problem is None:
        return Schema(location, ddl=text.strip())
    findings.append(problem if problem is not None and text.strip() else _empty(location))
    return None


def _empty(location: Location) -> Finding:
    return Finding(
        "invalid-value",
        "the schema is empty",
        "a schema lists columns with their types as Spark DDL",
        "for example, use `id bigint, at timestamp`",
        location,
    )


def _struct_problem(text: str, name: str) -> Finding | None:
    """Returns the finding for JSON that is not a Spark StructType, which has the form `{"type": "struct", "fields":
    [...]}`.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        return _not_struct(f"the JSON is not valid: {error.msg.lower()}", location_at(name, text, error.pos))
    except RecursionError:
        return _not_struct("the JSON is nested too deeply", Location(name))
    if isinstance(value, dict) and value.get("type") == "struct" and isinstance(value.get("fields"), list):
        return None
    return _not_struct("it has no `type` of `struct` with a list of `fields`", Location(name))


def _not_struct(why: str, location: Location) -> Finding:
    return Finding(
        "invalid-value",
        f"{quoted(location.path)} is not the JSON of a Spark schema",
        why,
        "use the output of `df.schema.json()`, or another extension than .json for DDL",
        location,
    )


def _several(keys: Sequence[str], location: Location) -> Finding:
    return Finding(
        "invalid-value",
        f"the schema is declared more than once, by {alternatives(keys).replace(' or ', ' and ')}",
        "a table has one schema: `schema`, `schema_file`, or `columns` with a data_type each",
        "keep one of them; to keep the descriptions in `columns`, remove its data_type keys",
        location,
    )


def _untyped(name: str, location: Location) -> Finding:
    return Finding(
        "missing-key",
        f"the column {quoted(name)} needs the key `data_type`",
        "other columns of the table have one, so they form the schema, and Spark reads only columns in the schema",
        "add `data_type:` here, or remove it from all columns",
        location,
    )


_COLUMN = "c "
"""A name before the type of one column. Clauses after a type, such as NOT NULL, belong to a column."""


def schema_problem(ddl: str, node: YamlMapping, path: Path, files: ProjectFiles) -> Finding | None:
    """Returns the error in the DDL of the YAML text at `path`, None if Spark may accept it."""
    return _problem(ddl, lambda offset: _written(ddl, offset, locate(node, path), files))


def schema_file_problem(text: str, name: str) -> Finding | None:
    """Returns the error in a file of DDL, None if Spark may accept it."""
    return _problem(text, lambda offset: location_at(name, text, offset))


def type_problem(ddl: str, place: Location, files: ProjectFiles) -> Finding | None:
    """Returns the error in one type, which is in YAML at `place`, None if Spark may accept it."""
    return _problem(ddl, lambda offset: _written(ddl, offset, place, files), parse_type)


def column_problems(
    columns: Sequence[DeclaredColumn], node: YamlMapping, path: Path, files: ProjectFiles
) -> list[Finding]:
    """Returns the errors in the types of the list of columns at `path`."""
    # many columns share a type, and few types are wrong
    types = {column.data_type for column in columns if column.data_type}
    wrong = {ddl for ddl in types if _problem(_COLUMN + ddl, lambda _: Location("")) is not None}
    findings: list[Finding] = []
    for index, column in enumerate(columns):
        if column.data_type in wrong:
            place = locate(node, (*path, index, "data_type"))
            findings += _column_problem(column.data_type, place, files)
    return findings


def _column_problem(ddl: str, place: Location, files: ProjectFiles) -> list[Finding]:
    found = _problem(_COLUMN + ddl, lambda offset: _written(ddl, offset - len(_COLUMN), place, files))
    return [found] if found else []


def _problem(
    ddl: str, place: Callable[[int], Location], parse: Callable[[str], object] = parse_schema
) -> Finding | None:
    if is_template(ddl):
        return None  # its rendering has failed, which is another finding
    try:
        parse(ddl)
    except TypeSyntaxError as error:
        return Finding("invalid-value", error.message, error.why, error.fix, place(error.offset))
    return None


def _written(ddl: str, offset: int, scalar: Location, files: ProjectFiles) -> Location:
    return locate_in_scalar(files.read_text(scalar.path), scalar, ddl, max(offset, 0))
