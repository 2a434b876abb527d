"""What sqlstream's readers of sources add to a plan, and a signature leaves out: they check each record, and read the
timestamps of JSON as text. What decides their results are the keys of the source, which the ledger has.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlstream.state.signature.trees import JsonNode, Tree, ddl_of, quoted_name, simple_name

CORRUPT = "_sqlstream_corrupt"
"""The column with the text of a corrupt record; models do not see it."""

RECORD = "_sqlstream_record"
"""The column with the parsed line of a file; models do not see it."""

STEP = "_sqlstream_step_"
"""The start of the names of the columns with which a line becomes a record; models do not see them."""

GOOD = "_sqlstream_good"
"""A text in each condition that keeps the records without a reason to be corrupt."""

DECLARED = "sqlstream.type"
"""The metadata of a column that is read as text: its declared type, in Spark's JSON."""

TIMES = "times"
"""A field of a parser of JSON with the positions of such columns."""

COLUMNS = "columns"
"""A field of a parser of JSON or CSV with the types of its columns by name."""

PARSERS = frozenset({"JsonToStructs", "CsvToStructs"})
"""The expressions that parse a line."""

TRANSPARENT = frozenset({"Alias", "KnownNullable", "KnownNotNull", "KnownFloatingPointNormalized"})
"""Expressions with the value of their only child."""


def declare_types(node: dict[str, Any], metadata: Mapping[int, JsonNode]) -> None:
    """Gives the columns that a node of a plan in JSON reads as text their declared types. `metadata` is that of columns
    of sources by their number; the JSON of plans lacks it.
    """
    number = node.get("exprId")
    if simple_name(node["class"]) == "AttributeReference" and isinstance(number, dict) and number["id"] in metadata:
        node["metadata"] = metadata[number["id"]]
        node["dataType"] = json.loads(node["metadata"][DECLARED])
    schema = node.get("schema")
    if simple_name(node["class"]) in PARSERS and isinstance(schema, dict) and schema["type"] == "struct":
        marks = [each["metadata"].pop(DECLARED, None) for each in schema["fields"]]
        node[TIMES] = [position for position, mark in enumerate(marks) if mark]
        for position in node[TIMES]:
            schema["fields"][position]["type"] = json.loads(marks[position])
        node[COLUMNS] = {quoted_name(each["name"]): ddl_of(each["type"]) for each in schema["fields"]}


def is_check(condition: Tree) -> bool:
    """Returns whether a condition of a filter keeps the records that are not corrupt."""
    return any(
        node.fields.get("name") == CORRUPT if node.kind == "AttributeReference" else node.fields.get("value") == GOOD
        for node in condition.walk()
        if node.kind in ("AttributeReference", "Literal")
    )


def value_read(tree: Tree) -> Tree:
    """Returns what an expression reads, without the checks and conversions around it."""
    tree = _column_of_line(_unless_failed(tree))
    source = _text_of_times(tree)
    return source if source is not None and _is_marked(source) else tree


def is_record(tree: Tree) -> bool:
    """Returns whether an expression is the parsed line of a file."""
    return tree.kind == "AttributeReference" and tree.fields.get("name") == RECORD


def _column_of_line(tree: Tree) -> Tree:
    """Returns the column of the reader that an expression is: its value is that of a folder, otherwise that of a field
    of the line.
    """
    is_pair = tree.kind == "Coalesce" and len(tree.children) == 2 and tree.children[1].kind == "GetStructField"
    return tree.children[0] if is_pair and is_record(tree.children[1].children[0]) else tree


def _unless_failed(tree: Tree) -> Tree:
    """Returns the value of an expression that otherwise fails the query, as sources check the times of their rows."""
    parts = tree.children
    if tree.kind == "CaseWhen":
        # The children of CaseWhen are pairs of a condition and a value, and then the value of ELSE.
        while len(parts) > 2 and _fails(parts[1]):
            parts = parts[2:]
    elif tree.kind == "If" and _fails(parts[1]):
        parts = parts[2:]
    return _unless_failed(parts[0]) if len(parts) == 1 and parts is not tree.children else tree


def _fails(tree: Tree) -> bool:
    return tree.kind == "RaiseError" or (tree.kind in ("Cast", *TRANSPARENT) and _fails(tree.children[0]))


def _text_of_times(tree: Tree) -> Tree | None:
    """Returns the value that an expression reads times from, and otherwise returns as it is; None for any other one."""
    tree = _column_of_line(_unless_failed(tree))
    kind, children = tree.kind, tree.children
    if kind == "Cast" and tree.fields.get("dataType") == "timestamp":
        return _column_of_line(children[0])
    # from_json(to_json(struct(text))): the text is the value in the struct.
    if kind == "GetStructField" and [each.kind for each in children[0].walk()][:3] == _PARSED:
        return _column_of_line(children[0].children[0].children[0].children[1])
    # A struct, unless it is null, whose fields are read one by one.
    if kind in ("If", "CaseWhen") and children[0].kind == "IsNotNull" and children[1].kind == "CreateNamedStruct":
        whole, values = children[0].children[0], children[1].children[1::2]
        sources = [_text_of_times(value) or value for value in values]
        is_whole = all(each.kind == "GetStructField" and each.children == (whole,) for each in sources)
        reads_times = any(source is not value for source, value in zip(sources, values, strict=True))
        return whole if is_whole and reads_times else None
    # An array or a map whose values are read one by one.
    if kind in ("ArrayTransform", "TransformValues"):
        body, *variables = children[1].children
        return children[0] if _text_of_times(body) == variables[-1] else None
    return None


_PARSED = ["JsonToStructs", "StructsToJson", "CreateNamedStruct"]
"""A time that Spark's parser of JSON reads from a text."""


def _is_marked(tree: Tree) -> bool:
    """Returns whether a value is that of a column that is read as text."""
    position = None
    while tree.kind in ("GetStructField", "If", "CaseWhen"):  # the parser of a message is within a condition
        position = tree.fields.get("ordinal", position)
        tree = tree.children[0 if tree.kind == "GetStructField" else 1]
    if tree.kind == "JsonToStructs":
        return position in (tree.fields.get(TIMES) or ())
    return tree.kind == "AttributeReference" and DECLARED in (tree.fields.get("metadata") or {})
