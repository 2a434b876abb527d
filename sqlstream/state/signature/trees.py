"""Spark's plans and expressions as values, from the JSON of org.apache.spark.sql.catalyst.trees.TreeNode.toJSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

JsonNode = Mapping[str, Any]

_STRUCTURE = frozenset({"class", "num-children"})


@dataclass(frozen=True)
class Tree:
    """A node of a plan or an expression: the simple name of its class, the fields of its JSON, and its children."""

    kind: str
    fields: Mapping[str, Any]
    children: tuple[Tree, ...]

    def part(self, name: str) -> Tree | None:
        """Returns the expression in a field, None without one."""
        value = self.fields.get(name)
        return read_tree(value) if is_tree(value) else None

    def parts(self, name: str) -> tuple[Tree, ...]:
        """Returns the expressions in a field that has any number of them."""
        value = self.fields.get(name) or ()
        return tuple(read_tree(item) for item in value if is_tree(item))

    def walk(self) -> Iterator[Tree]:
        """Yields the node and all nodes below it."""
        yield self
        for child in self.children:
            yield from child.walk()


def is_tree(value: object) -> TypeGuard[list[JsonNode]]:
    """Returns whether a value in JSON is a tree: a list of nodes."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict) and "class" in value[0]


def read_tree(nodes: Sequence[JsonNode]) -> Tree:
    """Returns the tree of `nodes`, which are in preorder. Raises: RecursionError if it is too deep."""
    return _read(iter(nodes))


def _read(nodes: Iterator[JsonNode]) -> Tree:
    node = next(nodes)
    kind = simple_name(node["class"])
    fields = {name: value for name, value in node.items() if name not in _STRUCTURE}
    return Tree(kind, fields, tuple(_read(nodes) for _ in range(node["num-children"])))


def simple_name(class_name: str) -> str:
    """Returns the name of a class or a Scala object without its package."""
    return class_name.removesuffix("$").replace("$", ".").rpartition(".")[2]


def is_type(value: object) -> TypeGuard[JsonNode]:
    """Returns whether a value in JSON is a type with parts, or a field of one."""
    return isinstance(value, dict) and (value.get("type") in _NESTED or {"dataType", "name"} <= value.keys())


_NESTED = frozenset({"struct", "array", "map", "udt"})


def ddl_of(type_: object) -> str:
    """Returns a type in JSON (org.apache.spark.sql.types.DataType.json) as text in which all that it contains counts:
    names, nullability and the metadata of fields, where collations are.
    """
    if not isinstance(type_, Mapping):
        return str(type_)
    kind = type_.get("type")
    if kind == "struct":
        return f"struct<{', '.join(map(_field, type_['fields']))}>"
    if kind == "array":
        return f"array<{ddl_of(type_['elementType'])}{_required(type_['containsNull'])}>"
    if kind == "map":
        value = f"{ddl_of(type_['valueType'])}{_required(type_['valueContainsNull'])}"
        return f"map<{ddl_of(type_['keyType'])}, {value}>"
    return _field(type_) if "name" in type_ else json.dumps(type_, sort_keys=True)


def _field(field: JsonNode) -> str:
    metadata = {name: value for name, value in (field.get("metadata") or {}).items() if name != "comment"}
    more = f" {json.dumps(metadata, sort_keys=True)}" if metadata else ""
    type_ = ddl_of(field.get("type", field.get("dataType")))
    return f"{quoted_name(str(field['name']))} {type_}{_required(field.get('nullable', True))}{more}"


def _required(nullable: object) -> str:
    return "" if nullable else " not null"


def quoted_name(name: str) -> str:
    """Returns the name of a column or field, in backticks unless it is a plain word."""
    return name if _WORD.fullmatch(name) else f"`{name.replace('`', '``')}`"


def quoted(text: str) -> str:
    """Returns the text of a value, in quotes unless nothing in it could be taken for the text around it."""
    return text if _SIMPLE.fullmatch(text) else "'" + text.replace("'", "''") + "'"


_WORD = re.compile(r"\w+")
_SIMPLE = re.compile(r"[\w.:/+-]*")
