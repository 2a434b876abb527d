"""Reads the plan of a query as Spark's optimizer returns it, in one piece of JSON.

TreeNode.toJSON leaves out the values of some fields (maps, sets, the mode of a cast); they are read one by one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from pyspark.sql import DataFrame

from sqlstream.compiler.cache.digest import digest
from sqlstream.spark.jvm.gateway import JVM_ERRORS, analyzed, has_current_time, optimized, seq_items
from sqlstream.spark.jvm.internals import call_internal
from sqlstream.spark.running.plans import plan_nodes
from sqlstream.state.signature.operators import SOURCE
from sqlstream.state.signature.trees import JsonNode, Tree, is_tree, read_tree, simple_name

OPTIMIZED = "optimized plan"

MOST_CHARACTERS = 4_000_000
"""The largest expression to read. toJSON writes each branch of a CASE twice, so nested ones double with each level."""

_SOURCE_NAME = re.compile(r'name="(.*?)"')
_NUMBER = re.compile(r"#[0-9]+L?")
"""Spark's number of an attribute."""

_OBJECT = re.compile(r"@[0-9a-f]+\b")
"""The address of an object in Java's default text."""

_MODES = frozenset({"evalMode", "evalContext"})
"""Fields that tell whether an expression returns null for an error. Otherwise, Spark's settings decide."""

_UNREAD = frozenset(
    {
        *("func", "dataSource", "relation", "rdd", "session", "catalog", "catalogTable", "identifier", "queryContext"),
        *("origin", "resultId", "nodeId", "dedupSpec", "hint", "stats", "source", "sourceProvider", "provider"),
        *("table", "scan", "data", "options", "extraOptions", "keyOrdering", "pythonRunnerConf", "timeoutConf"),
    }
)
"""Fields of plans that have no part in their meaning, or that the ledger describes in another way."""


def read_optimized_plan(frame: DataFrame, *, has_try: bool) -> Tree | None:
    """Returns the optimized plan of `frame`, None without access to it, or if it is too large to compare
    or depends on the time of its analysis.

    `has_try`: the query can contain functions whose name begins with `try_`.
    """
    return call_internal(frame.sparkSession, OPTIMIZED, lambda: _read(frame, has_try=has_try), lambda: None)


def _read(frame: DataFrame, *, has_try: bool) -> Tree | None:
    if has_current_time(frame):
        return None  # the optimizer writes the time itself into the plan
    plan = optimized(frame)
    nodes = list(plan_nodes(plan))
    if any(_json_size(str(each.toString())) > MOST_CHARACTERS for node in nodes for each in _expressions(node)):
        return None
    found: list[JsonNode] = json.loads(plan.toJSON())
    sources = _source_numbers(analyzed(frame))
    modes = frozenset() if has_try else _MODES
    try:
        for node, text in zip(nodes, found, strict=True):
            _fill(node, text, modes, sources)
        return read_tree(found)
    except (RecursionError, ValueError, StopIteration):
        return None


def _json_size(text: str) -> int:
    """Returns about how large an expression is in JSON, from its own text."""
    depth = size = start = 0
    for found in re.finditer(r"\bCASE WHEN\b|\bEND\b", text):
        size += (found.start() - start) << min(depth, 40)
        start, depth = found.start(), max(depth + (1 if found[0] != "END" else -1), 0)
    return size + len(text) - start


def _source_numbers(plan: Any) -> dict[frozenset[int], int]:
    """Returns the position of each streaming source in the plan, by the numbers of its columns. Before Spark 4.3, a
    checkpoint identifies sources by it.
    """
    leaves = [node for node in plan_nodes(plan) if node.isStreaming() and not node.children().size()]
    numbers = (frozenset(int(each.exprId().id()) for each in seq_items(leaf.output())) for leaf in leaves)
    return {found: index for index, found in enumerate(numbers, start=1)}


def _expressions(node: Any) -> list[Any]:
    return seq_items(node.expressions())


def _fill(node: Any, text: Any, modes: frozenset[str], sources: dict[frozenset[int], int]) -> None:
    """Adds the values that the JSON `text` of the plan `node` lacks."""
    if not text["num-children"]:
        numbers = frozenset(int(each[0]["exprId"]["id"]) for each in text.get("output") or () if is_tree(each))
        if numbers in sources:
            text[SOURCE] = _source_name(node) or f"source {sources[numbers]}"
            return
        text["reads"] = _static_table(node, text)
    _fill_fields(node, text, _UNREAD)
    roots = list(_roots(text))
    missing = [(root, index) for root, items in enumerate(roots) for index in _incomplete(items, modes)]
    if missing:
        expressions = _expressions(node)
        for root, index in missing:
            found = expressions[root].apply(index)
            if simple_name(str(found.getClass().getName())) != simple_name(roots[root][index]["class"]):
                raise ValueError("the nodes of the JSON are in another order")
            _fill_fields(found, roots[root][index], modes | _UNREAD - {"options"})


def _static_table(leaf: Any, text: JsonNode) -> str:
    """Returns what a static table reads: its files, its rows, or its name in Spark's texts. Paths are cut, because a
    project can move; the ledger has those that are declared.
    """
    kind = simple_name(text["class"])
    if kind == "LocalRelation":
        return digest(_OBJECT.sub("", str(leaf.data().toString())))
    if kind == "LogicalRelation":
        relation = leaf.relation()
        if simple_name(str(relation.getClass().getName())) != "HadoopFsRelation":
            return _OBJECT.sub("", str(relation.toString()))
        paths = (str(path.toString()) for path in seq_items(relation.location().rootPaths()))
        return ", ".join(sorted("/".join(path.split("/")[-2:]) for path in paths))
    pushed = f" {leaf.scan().description()}" if "scan" in text else ""  # filters that the optimizer has moved there
    return _OBJECT.sub("", _NUMBER.sub("", str(leaf.simpleString(1000)) + pushed))


def _source_name(leaf: Any) -> str | None:
    """Returns the name of a source in the checkpoint, None without one."""
    with suppress(AttributeError, TypeError, *JVM_ERRORS):  # Spark before 4.3
        found = _SOURCE_NAME.search(str(leaf.sourceIdentifyingName().toString()))
        return found[1] if found else None
    return None


def _incomplete(nodes: list[Any], modes: frozenset[str]) -> Iterator[int]:
    """Yields the positions of nodes with fields without a value."""
    ignored = modes | _UNREAD - {"options"}
    for index, node in enumerate(nodes):
        if any(value is None and name not in ignored for name, value in node.items()):
            yield index


def _fill_fields(node: Any, text: Any, ignored: frozenset[str]) -> None:
    """Adds the values of the fields without one. Raises: ValueError for a private field, which may differ unseen."""
    for name in [name for name, value in text.items() if value is None and name not in ignored]:
        try:
            value = getattr(node, name)()
        except (TypeError, *JVM_ERRORS) as error:
            raise ValueError(f"{text['class']} does not show its field {name}") from error
        text[name] = None if value is None else _value(name, _text(value))


def _text(value: Any) -> str:
    """Returns a value as text. py4j returns numbers and texts themselves, and other objects as references."""
    return str(value.toString()) if hasattr(value, "toString") else str(value)


def _value(name: str, text: str) -> str | None:
    """Returns the text of a field. Of a mode, only whether errors become null."""
    if name in _MODES:
        return "try" if "TRY" in text else None
    if name == "hset":  # a set has no order
        return ", ".join(sorted(text.partition("(")[2].removesuffix(")").split(", ")))
    return _OBJECT.sub("", text)


def _roots(text: JsonNode) -> Iterator[list[Any]]:
    """Yields the expressions in the fields of a plan, in their order."""
    for value in text.values():
        if is_tree(value) and ".expressions." in value[0]["class"]:
            yield value
        elif isinstance(value, list):
            yield from (item for item in value if is_tree(item) and ".expressions." in item[0]["class"])
