"""`sqlstream contract import`: writes a document of the Open Data Contract Standard as properties of models."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from sqlstream.app.contract.export import VIOLATIONS
from sqlstream.app.loading.atomic_writes import write_file
from sqlstream.app.loading.load import try_load
from sqlstream.app.request import ProjectRequest
from sqlstream.errors import Finding, FindingsError, UsageError
from sqlstream.location import Location
from sqlstream.project.configuration.fields import is_name
from sqlstream.project.files.files import find_project_root
from sqlstream.project.types.data_types import Field, Struct, type_ddl
from sqlstream.project.types.ddl import TypeSyntaxError, known_type, parse_type
from sqlstream.project.values import Project
from sqlstream.project.wording import quoted
from sqlstream.project.yaml import locate, parse_yaml, plain
from sqlstream.project.yaml.writing import block_text

SPARK_TYPES = {
    "string": "string",
    "integer": "bigint",
    "number": "double",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamp",
    "time": "time(6)",
}
"""The types of Spark for the standard's names of types, for columns without a physical type of Spark."""

_BEFORE, _AFTER = (re.escape(part) for part in VIOLATIONS.format(expression="\0").split("\0"))
_CHECK = re.compile(f"(?is){_BEFORE}(?P<expression>.+){_AFTER}")
_TARGET = re.compile(r"(?P<model>[\w-]+)\.(?P<column>[^./]+)")


@dataclass(frozen=True)
class ImportedContract:
    """The written files, relative to the project, and what of the contract has no equal in them."""

    files: tuple[str, ...]
    notes: tuple[str, ...]


def import_contract(request: ProjectRequest, file: Path) -> ImportedContract:
    """Writes the properties of a model for each object of the contract in `file`: with an enforced contract, beside the
    file of the model, or in models/.

    Raises: FindingsError if the file is no contract; UsageError, before anything is written, if a file or properties
    of a model exist already.
    """
    root = find_project_root(request.folder)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {file}: {error}") from error
    node = parse_yaml(text, str(file))
    contract: Any = plain(node)
    objects = _objects(contract, Location(str(file)), lambda index: locate(node, ("schema", index)))
    loaded = try_load(request).loaded
    project = None if loaded is None else loaded.compiled.project
    reader = _Reader(contract, project)
    written = {_path_of(name, project): reader.properties(name, item) for name, item in objects.items()}
    for path in written:
        if (root / path).exists():
            raise UsageError(f"{path} already exists; rename it, or merge the contract by hand")
    for path, document in written.items():
        write_file(str(root / path), block_text(document, is_template=True).encode())
    return ImportedContract(tuple(written), tuple(reader.notes))


def _objects(contract: Any, place: Location, locate_object: Any) -> dict[str, Mapping[str, Any]]:
    """Returns the objects of the schema by the names of their models. Raises: FindingsError."""
    if not isinstance(contract, dict) or contract.get("kind") != "DataContract":
        why = "it has no `kind: DataContract`, which the Open Data Contract Standard needs"
        raise FindingsError(
            [
                _invalid(
                    "this file is not a data contract",
                    why,
                    "give a file of this standard, such as `sqlstream contract export` prints",
                    place,
                )
            ]
        )
    objects = contract.get("schema")
    if not isinstance(objects, list) or not objects:
        why = "`schema` lists the tables of the contract"
        raise FindingsError([_invalid("the contract has no `schema`", why, "add the tables to the contract", place)])
    found: dict[str, Mapping[str, Any]] = {}
    for index, item in enumerate(objects):
        name = item.get("name") if isinstance(item, dict) else None
        if not isinstance(name, str) or not is_name(name) or name in found:
            why = "the name of an object becomes the name of a model: letters, digits and `_`, each once"
            fix = "give the object another name in the contract"
            raise FindingsError(
                [_invalid(f"a model cannot have the name {quoted(name)}", why, fix, locate_object(index))]
            )
        if not isinstance(item.get("properties"), list):
            why = "`properties` lists the columns of an object"
            raise FindingsError(
                [_invalid(f"{quoted(name)} has no `properties`", why, "add the columns", locate_object(index))]
            )
        found[name] = item
    return found


def _invalid(message: str, why: str, fix: str, location: Location) -> Finding:
    return Finding("invalid-value", message, why, fix, location)


def _path_of(name: str, project: Project | None) -> str:
    """Returns the path of the new file. Raises: UsageError if the model has properties already."""
    model = next((model for model in project.models if model.name == name), None) if project else None
    if model is None:
        return f"models/{name}.yml"
    if model.properties_location is not None:
        raise UsageError(f"`{name}` already has properties, at {model.properties_location}; merge the contract by hand")
    return str(PurePosixPath(model.path).with_name(f"{name}.yml"))


class _Reader:
    """Makes properties of models from a contract, and collects in `notes` what it leaves out."""

    def __init__(self, contract: Mapping[str, Any], project: Project | None) -> None:
        self._contract = contract
        self._groups = {group.name for group in project.groups} if project else set()
        self.notes: list[str] = []

    def properties(self, name: str, item: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the YAML of a file with the properties of the model `name`."""
        model: dict[str, Any] = {"name": name}
        if _text(item.get("description")):
            model["description"] = _text(item["description"])
        config: dict[str, Any] = {"contract": {"enforced": True}}
        if isinstance(item.get("tags"), list):
            config["tags"] = [str(tag) for tag in item["tags"]]
        document: dict[str, Any] = {"version": 2}
        team = self._contract.get("team")
        group = _text(team.get("name")) if isinstance(team, dict) else None
        if group and isinstance(team, dict):
            config["group"] = group
            if group not in self._groups:
                self._groups.add(group)
                document["groups"] = [{"name": group, "owner": _owner(team)}]
        model["config"] = config
        properties = [each for each in item["properties"] if isinstance(each, dict) and _text(each.get("name"))]
        keys = sorted((each for each in properties if each.get("primaryKey") is True), key=_key_position)
        model["columns"] = [self._column(name, each, is_key=len(keys) == 1 and each is keys[0]) for each in properties]
        constraints = [{"type": "primary_key", "columns": [each["name"] for each in keys]}] if len(keys) > 1 else []
        constraints += self._checks(name, item)
        if constraints:
            model["constraints"] = constraints
        return {**document, "models": [model]}

    def _column(self, model: str, item: Mapping[str, Any], *, is_key: bool) -> dict[str, Any]:
        column: dict[str, Any] = {"name": item["name"]}
        type_ = _spark_type(item)
        if type_ is None:
            given = item.get("physicalType") or item.get("logicalType") or "none"
            self.notes.append(f"{model}.{item['name']}: add the data_type; Spark has no type for {quoted(given)}")
        else:
            column["data_type"] = type_
        if _text(item.get("description")):
            column["description"] = _text(item["description"])
        if isinstance(item.get("tags"), list):
            column["tags"] = [str(tag) for tag in item["tags"]]
        constraints = [{"type": "primary_key"}] if is_key else []
        constraints += [{"type": "not_null"}] if item.get("required") is True and not is_key else []
        constraints += [{"type": "unique"}] if item.get("unique") is True and not is_key else []
        constraints += list(self._foreign_keys(item))
        if constraints:
            column["constraints"] = constraints
        for each in item.get("quality") or ():
            self._skip(f"{model}.{item['name']}", each)
        return column

    def _foreign_keys(self, item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        for each in item.get("relationships") or ():
            target = _TARGET.fullmatch(str(each.get("to"))) if isinstance(each, dict) else None
            if target is not None:
                yield {"type": "foreign_key", "to": f"ref('{target['model']}')", "to_columns": [target["column"]]}

    def _checks(self, model: str, item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        for each in item.get("quality") or ():
            query = _CHECK.fullmatch(str(each.get("query")).strip()) if isinstance(each, dict) else None
            if query is None or each.get("mustBe") != 0:
                self._skip(model, each)
                continue
            named = {"name": each["name"]} if _text(each.get("name")) else {}
            yield {"type": "check", **named, "expression": query["expression"]}

    def _skip(self, where: str, rule: Any) -> None:
        what = (
            next((rule.get(key) for key in ("name", "metric", "description") if rule.get(key)), rule.get("type"))
            if isinstance(rule, dict)
            else rule
        )
        self.notes.append(f"{where}: the quality rule {quoted(what)} is not imported")


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _key_position(item: Mapping[str, Any]) -> int:
    position = item.get("primaryKeyPosition")
    return position if isinstance(position, int) else 0


def _owner(team: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the owner of a group: the owner of the team, or its first member, or the team itself."""
    members = [each for each in team.get("members") or () if isinstance(each, dict) and _text(each.get("username"))]
    first = next((each for each in members if each.get("role") == "owner"), next(iter(members), None))
    if first is None:
        return {"name": team["name"]}
    name = _text(first.get("name"))
    if "@" not in first["username"]:
        return {"name": name or first["username"]}
    return {**({"name": name} if name else {}), "email": first["username"]}


def _spark_type(item: Mapping[str, Any]) -> str | None:
    """Returns the type of a property: the physical one if it is one of Spark, otherwise one for the logical type."""
    physical = _text(item.get("physicalType"))
    if physical is not None:
        try:
            parse_type(physical)
        except TypeSyntaxError:
            pass
        else:
            return physical if "<" in physical else physical.lower()
    logical, options = item.get("logicalType"), item.get("logicalTypeOptions") or {}
    if logical == "array":
        items = _spark_type(item["items"]) if isinstance(item.get("items"), dict) else None
        return None if items is None else f"array<{items}>"
    if logical == "object":
        fields = [each for each in item.get("properties") or () if isinstance(each, dict) and _text(each.get("name"))]
        types = [_spark_type(each) for each in fields]
        known = [Field(each["name"], known_type(ddl)) for each, ddl in zip(fields, types, strict=True) if ddl]
        return type_ddl(Struct(tuple(known))) if fields and None not in types else None
    if isinstance(options, dict) and logical == "timestamp" and options.get("timezone") is False:
        return "timestamp_ntz"
    if isinstance(options, dict) and logical == "string" and options.get("format") in ("binary", "byte"):
        return "binary"
    return SPARK_TYPES.get(str(logical))
