"""Spark's plans and expressions as values, from the JSON of org.apache.spark.sql.catalyst.trees.TreeNode.toJSON."""

from __future__ import annotations

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
