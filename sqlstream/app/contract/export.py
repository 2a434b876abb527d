"""`sqlstream contract export`: the contracts of models as a document of the Open Data Contract Standard 3.1
(https://bitol-io.github.io/open-data-contract-standard/v3.1.0/).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlstream.app.loading.load import Loaded, load_for_reading
from sqlstream.app.request import ProjectRequest
from sqlstream.app.session.target_storage import sink_path
from sqlstream.compiler.compiled import CompiledModel, Output
from sqlstream.compiler.rules.contracts import required_columns
from sqlstream.errors import UsageError
from sqlstream.project.configuration.documents import DeclaredColumn
from sqlstream.project.configuration.properties import Constraint
from sqlstream.project.files.files import is_inside
from sqlstream.project.formats.formats import format_of
from sqlstream.project.types.data_types import Array, DataType, Decimal, Field, Primitive, Struct, Unknown, type_ddl
from sqlstream.project.types.ddl import known_type
from sqlstream.project.wording import did_you_mean
from sqlstream.project.yaml.writing import block_text

API_VERSION = "v3.1.0"

LOGICAL_TYPES = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), "integer"),
    **dict.fromkeys(("float", "double"), "number"),
    **dict.fromkeys(("string", "char", "varchar", "binary"), "string"),
    **dict.fromkeys(("timestamp", "timestamp_ntz"), "timestamp"),
    **{name: name for name in ("boolean", "date", "time")},
}
"""The standard's names of types without parts, by Spark's. It has none for intervals and the like."""

VIOLATIONS = "SELECT COUNT(*) FROM {{object}} WHERE NOT ({expression})"
"""The query of the standard for the rows that break a check constraint."""

REFERENCE = re.compile(r"\s*ref\(\s*['\"](?P<name>[\w-]+)['\"]\s*\)\s*")
"""What `to` of a foreign key names."""

_DATABASE = re.compile(
    r"jdbc:(?P<kind>postgresql|mysql|mariadb)://(?P<host>[\w.-]+)(?::(?P<port>\d+))?/(?P<name>[\w.-]+)"
)
_SCHEMES = {"s3": "s3", "s3a": "s3", "s3n": "s3", "abfs": "azure", "abfss": "azure", "wasbs": "azure", "az": "azure"}


def export_contract(request: ProjectRequest, name: str | None) -> dict[str, Any]:
    """Returns the contract of the model `name`, or one with all models that have an enforced contract.

    Raises: FindingsError; UsageError for an unknown model, one whose columns are unknown, and without any contract.
    """
    loaded = load_for_reading(request)
    models = loaded.compiled.models.values()
    model = None if name is None else loaded.compiled.model_named(name)
    if name is not None and model is None:
        raise UsageError(f"there is no model `{name}`; {did_you_mean(name, [each.name for each in models])}")
    name = model.name if model is not None else None
    chosen = [model] if model is not None else [each for each in models if each.has_contract]
    if not chosen:
        raise UsageError("no model has an enforced contract; name a model, or add `contract: {enforced: true}` to one")
    project, version = loaded.compiled.project, chosen[0].file.version
    found: dict[str, Any] = {
        "apiVersion": API_VERSION,
        "kind": "DataContract",
        "id": project.name if name is None else f"{project.name}.{name}",
        "name": name or project.name,
        "version": project.version if len(chosen) > 1 or version is None else version.v,
        "status": "active" if all(each.has_contract for each in chosen) else "draft",
    }
    if name is not None and chosen[0].file.description:
        found["description"] = {"purpose": chosen[0].file.description}
    if name is not None and chosen[0].config.tags:
        found["tags"] = list(chosen[0].config.tags)
    found["schema"] = [_object(loaded, model) for model in chosen]
    team = _team(loaded, {model.config.group for model in chosen})
    servers = list(_servers(loaded, chosen))
    return found | ({"servers": servers} if servers else {}) | ({"team": team} if team else {})


def contract_yaml(contract: Mapping[str, Any]) -> str:
    """Returns a contract as YAML."""
    return block_text(contract)


def contract_json(contract: Mapping[str, Any]) -> str:
    """Returns a contract as one JSON object."""
    return json.dumps(contract, indent=2)


def _team(loaded: Loaded, names: set[str | None]) -> dict[str, Any] | None:
    """Returns the only group of the models, with its owner."""
    group = next((each for each in loaded.compiled.project.groups if names == {each.name}), None)
    if group is None:
        return None
    owner = group.owner
    members = [
        {"username": email, **({"name": owner.name} if owner.name else {}), "role": "owner"} for email in owner.email
    ] or [{"username": owner.name or group.name, "role": "owner"}]
    return {"name": group.name, **({"description": group.description} if group.description else {}), "members": members}


def _object(loaded: Loaded, model: CompiledModel) -> dict[str, Any]:
    """Returns a model as an object of the schema. Raises: UsageError if its columns are unknown."""
    declared = {column.name.lower(): column for column in model.file.columns}
    known = loaded.compiled.known_columns(model.unique_id)
    if known is None:
        known = tuple(Field(column.name, known_type(column.data_type or "")) for column in model.file.columns)
    if not known:
        raise UsageError(f"only Spark knows the columns of `{model.name}`: declare them with their types in `columns:`")
    keys = [name for each in model.constraints if each.type == "primary_key" for name in each.columns]
    output = model.output
    properties = []
    for field in known:
        column = declared.get(field.name.lower())
        if column is not None and column.data_type and isinstance(field.type, Unknown):
            field = Field(field.name, known_type(column.data_type))
        properties.append(_column(model, field, column, keys or list(model.config.unique_key)))
    found: dict[str, Any] = {"name": model.name}
    if output is not None:
        found["physicalName"] = _physical_name(output)
        found["physicalType"] = (
            "topic" if output.format == "kafka" else "file" if format_of(output.format).writes_files else "table"
        )
    found["logicalType"] = "object"
    if model.file.description:
        found["description"] = model.file.description
    if model.config.tags:
        found["tags"] = list(model.config.tags)
    checks = [_check(each) for each in model.constraints if each.type == "check"]
    return found | {"properties": properties} | ({"quality": checks} if checks else {})


def _column(model: CompiledModel, field: Field, column: DeclaredColumn | None, keys: Sequence[str]) -> dict[str, Any]:
    name = field.name.lower()
    found: dict[str, Any] = {"name": field.name, **_type(field.type)}
    if column is not None and column.description:
        found["description"] = column.description
    if column is not None and column.tags:
        found["tags"] = list(column.tags)
    found["required"] = name in required_columns(model)
    lowered = [key.lower() for key in keys]
    alone = [each.columns[0].lower() for each in model.constraints if each.type == "unique" and len(each.columns) == 1]
    if name in alone:
        found["unique"] = True
    if name in lowered:
        found |= {"primaryKey": True, "primaryKeyPosition": lowered.index(name) + 1}
    partitions = [each.lower() for each in (model.output.partition_by if model.output else ())]
    if name in partitions:
        found |= {"partitioned": True, "partitionKeyPosition": partitions.index(name) + 1}
    relationships = list(_relationships(model.constraints, name))
    return found | ({"relationships": relationships} if relationships else {})


def _type(type_: DataType) -> dict[str, Any]:
    """Returns the keys of a property or of the items of an array that describe its type."""
    if isinstance(type_, Unknown):
        return {}
    physical = {"physicalType": type_ddl(type_)}
    if isinstance(type_, Array):
        return {"logicalType": "array", **physical, "items": _type(type_.element)}
    if isinstance(type_, Struct):
        return {
            "logicalType": "object",
            **physical,
            "properties": [{"name": each.name, **_type(each.type)} for each in type_.fields],
        }
    if isinstance(type_, Decimal):
        return {"logicalType": "number", **physical}
    if not isinstance(type_, Primitive):
        return {"logicalType": "object", **physical}  # a map
    logical = LOGICAL_TYPES.get(type_.name)
    options = (
        {"format": "binary"}
        if type_.name == "binary"
        else {"timezone": False}
        if type_.name == "timestamp_ntz"
        else None
    )
    found = {"logicalType": logical} if logical else {}
    return {**found, **physical, **({"logicalTypeOptions": options} if options else {})}


def _check(constraint: Constraint) -> dict[str, Any]:
    """Returns a check constraint as a rule on the quality of the rows."""
    query = VIOLATIONS.format(expression=constraint.expression)
    named = {"name": constraint.name} if constraint.name else {}
    return {"type": "sql", **named, "description": f"each row: {constraint.expression}", "query": query, "mustBe": 0}


def _relationships(constraints: Sequence[Constraint], column: str) -> Iterator[dict[str, Any]]:
    """Yields the foreign keys of one column that name another model."""
    for each in constraints:
        reference = REFERENCE.fullmatch(each.to or "") if each.type == "foreign_key" else None
        if reference and [name.lower() for name in each.columns] == [column] and len(each.to_columns) == 1:
            yield {"type": "foreignKey", "to": f"{reference['name']}.{each.to_columns[0]}"}


def _physical_name(output: Output) -> str:
    """Returns the name of the table, the topic or the last folder."""
    table = output.table or output.database_table
    return table or output.address or (output.sink_path or output.sink).rstrip("/").rpartition("/")[2]


def _servers(loaded: Loaded, models: Sequence[CompiledModel]) -> Iterator[dict[str, Any]]:
    """Yields the servers of all sinks of the models. A sink that has another place for each model is one for each."""
    known: dict[str, dict[str, Any]] = {}
    for model in models:
        for output in model.outputs:
            server = _server(loaded, output)
            if server is None or known.setdefault(output.sink, server) is server:
                yield from () if server is None else (server,)
            elif known[output.sink] != server:
                yield {**server, "server": f"{output.sink}_{model.name}"}


def _server(loaded: Loaded, output: Output) -> dict[str, Any] | None:
    """Returns where a sink stores its rows, without secrets; None for a sink that the standard has no name for."""
    found = {"server": output.sink, "environment": loaded.compiled.project.target.name}
    options = {name.lower(): value for name, value in output.options.items() if isinstance(value, str)}
    if output.format == "kafka":
        host = options.get("kafka.bootstrap.servers")
        format_name = output.record.value_format or "json"
        return None if host is None else {**found, "type": "kafka", "host": host, "format": format_name}
    database = _DATABASE.match(options.get("url", "")) if output.format == "jdbc" else None
    if database is not None:
        is_postgres = database["kind"] == "postgresql"
        place = {"host": database["host"], "port": int(database["port"] or (5432 if is_postgres else 3306))}
        place["database"] = database["name"]
        schema = (output.database_table or "").rpartition(".")[0].strip('"') or "public"
        if is_postgres:
            return {**found, "type": "postgres", **place, "schema": schema}
        return {**found, "type": "mysql", **place}
    if output.path is None or not isinstance(output.path, str):
        return None
    path = sink_path(loaded, output.path)
    scheme, colon, rest = path.partition("://")
    if colon and scheme != "file":
        kind = _SCHEMES.get(scheme, "custom")
        location = f"s3://{rest}" if kind == "s3" else path
        return {**found, "type": kind, "location": location, "format": output.format}
    local, root = Path(rest if colon else path), loaded.compiled.project.root
    shown = local.relative_to(root) if is_inside(local, root) else local
    return {**found, "type": "local", "path": shown.as_posix(), "format": output.format}
