"""Builds the state signature of a prepared query from its optimized plan."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.digest import digest
from sqlstream.spark.jvm.gateway import (
    JVM_ERRORS,
    analyzed,
    has_current_time,
    java_class,
    optimized,
    plan_nodes,
    seq_items,
    unsafe_bytes,
)
from sqlstream.spark.jvm.internals import call_internal
from sqlstream.state.signature.expressions import RESULT_ONLY
from sqlstream.state.signature.harmless import OPERAND_FIELDS, RESULT_OPERANDS, UNREAD_FIELDS
from sqlstream.state.signature.operators import SOURCE, PlanReader, subquery_text
from sqlstream.state.signature.signature import FORMAT, StateSignature
from sqlstream.state.signature.source_checks import DECLARED, declare_types
from sqlstream.state.signature.trees import (
    JsonNode,
    Tree,
    ddl_of,
    is_tree,
    is_type,
    quoted,
    quoted_name,
    read_tree,
    simple_name,
)


def state_signature(
    compiled: CompiledProject,
    model: CompiledModel,
    frame: DataFrame,
    form: int = FORMAT,
    before: StateSignature | None = None,
    names: Mapping[str, Mapping[str, str]] | None = None,
    texts: Collection[str] | None = None,
) -> StateSignature | None:
    """Returns the signature of the stateful query `frame` of `model`, in the format `form`. None if Spark's plan is not
    available or cannot be compared. `before` is the signature to compare it with, if there is one; `names` are the
    names of columns there, by source and name, where they differ. With `texts`, the sources whose numbers are texts,
    columns have the types that they have there where a wider type makes no difference.
    """
    plan = read_optimized_plan(frame, has_try=_can_call_try(compiled, model), form=form)
    if plan is None:
        return None
    order = before.sources if before is not None else ()
    types = before.types if before is not None and texts is not None else {}
    reader = PlanReader(form, order, names, types, texts or ())
    try:
        reader.read(plan)
    except RecursionError:
        return None
    if not reader.operators:  # this Spark shows them in a way that is unknown here
        return None
    if form > 1 and reader.has_unresolved:
        return None
    return StateSignature(
        tuple(reader.operators),
        model.config.output_mode,
        tuple(sorted(reader.watermarks)),
        frame.sparkSession.version,
        reader.calls_python,
        form,
        tuple(sorted(reader.functions)),
    )


def _can_call_try(compiled: CompiledProject, model: CompiledModel) -> bool:
    nodes = compiled.upstream(model.unique_id) | {model.unique_id}
    parts = (compiled.models[node] for node in nodes if node in compiled.models)
    return any(part.file.is_python or "try_" in part.sql.lower() for part in parts)


# Reads the plan of a query as Spark's optimizer returns it, in one piece of JSON.
#
# TreeNode.toJSON leaves out the values of some fields (maps, sets, the mode of a cast), writes some literals
# ambiguously (an array as `[x,y,z]`, a time in the session's zone), and does not describe what a subquery reads.
# These are read one by one. A value that cannot be read completely makes the whole plan unreadable: nobody could tell
# that it is the same.

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

_EXPRESSIONS = ".expressions."
"""In the names of the classes of expressions, and not in those of plans."""

_PLAIN_TYPES = re.compile(
    r"string( collate .*)?|boolean|byte|short|integer|long|float|double|date|decimal\(.*\)|interval .+|time\(.*\)|void"
    r"|timestamp_ntz|(var)?char\(.*\)"
)
"""Types of which toJSON writes values exactly."""


def read_optimized_plan(frame: DataFrame, *, has_try: bool, form: int = FORMAT) -> Tree | None:
    """Returns the optimized plan of `frame`, None without access to it, or if it is too large to compare
    or depends on the time of its analysis.

    `has_try`: the query can contain functions whose name begins with `try_`. `form` is the format of the signature that
    the plan is for; the first one had the ambiguous texts of toJSON.
    """
    internal = _PlanReader(frame, frozenset() if has_try else _MODES, is_exact=form > 1).read
    return call_internal(frame.sparkSession, OPTIMIZED, internal, lambda: None)


def _json_size(text: str) -> int:
    """Returns about how large an expression is in JSON, from its own text."""
    depth = size = start = 0
    for found in re.finditer(r"\bCASE WHEN\b|\bEND\b", text):
        # each CASE around a text doubles it; 2 ** 40 is far too large already, and bounds the number
        size += (found.start() - start) << min(depth, 40)
        start, depth = found.start(), max(depth + (1 if found[0] != "END" else -1), 0)
    return size + len(text) - start


def _sources(plan: Any) -> tuple[dict[frozenset[int], int], dict[int, JsonNode]]:
    """Returns the position of each streaming source in the plan, by the numbers of its columns, and the metadata of
    columns that have a declared type, by their numbers. Before Spark 4.3, a checkpoint identifies sources by position.
    """
    leaves = [node for node in plan_nodes(plan) if node.isStreaming() and not node.children().size()]
    positions: dict[frozenset[int], int] = {}
    declared: dict[int, JsonNode] = {}
    for index, leaf in enumerate(leaves, start=1):
        numbers = [int(each.exprId().id()) for each in seq_items(leaf.output())]
        positions[frozenset(numbers)] = index
        schema = str(leaf.schema().json())
        if DECLARED in schema:
            fields = zip(numbers, json.loads(schema)["fields"], strict=True)
            declared |= {number: each["metadata"] for number, each in fields if DECLARED in each["metadata"]}
    return positions, declared


class _PlanReader:
    """Reads the plan of `frame`. `ignored` are the modes that are not read."""

    def __init__(self, frame: DataFrame, ignored: frozenset[str], *, is_exact: bool) -> None:
        self._frame, self._modes, self._is_exact = frame, ignored, is_exact
        self._sources: Mapping[frozenset[int], int] = {}
        self._declared: Mapping[int, JsonNode] = {}

    @property
    def _session(self) -> SparkSession:
        return self._frame.sparkSession

    def read(self) -> Tree | None:
        """Returns the plan, None if it cannot be compared. Raises: Spark's errors."""
        if has_current_time(self._frame):
            return None  # the optimizer writes the time itself into the plan
        plan = optimized(self._frame)
        self._sources, self._declared = _sources(analyzed(self._frame))
        with suppress(RecursionError, ValueError, StopIteration):
            return self._tree(plan)
        return None

    def _tree(self, plan: Any) -> Tree:
        """Raises: ValueError for what cannot be read completely; RecursionError, StopIteration."""
        nodes = list(plan_nodes(plan))
        if any(_json_size(str(each.toString())) > MOST_CHARACTERS for node in nodes for each in _expressions(node)):
            raise ValueError("the plan is too large")
        found: list[JsonNode] = json.loads(plan.toJSON())
        for node, text in zip(nodes, found, strict=True):
            self._fill(node, text)
        return read_tree(found)

    def _fill(self, node: Any, text: Any) -> None:
        """Adds the values that the JSON `text` of the plan `node` lacks."""
        roots = list(_roots(list(text.values())))
        for each in (part for items in roots for part in items):
            declare_types(each, self._declared)
        for items in roots if self._is_exact else ():
            _drop_free_zones(items)
        for each in [text, *(part for items in roots for part in items)] if self._is_exact else ():
            _write_exactly(each)
        if not text["num-children"]:
            numbers = frozenset(int(each[0]["exprId"]["id"]) for each in text.get("output") or () if is_tree(each))
            # a stream counts by its name in the checkpoint, not by what it reads
            if numbers in self._sources:
                text[SOURCE] = _source_name(node) or f"source {self._sources[numbers]}"
                return
            text["reads"] = self._static_table(node, text)
        self._fill_fields(node, text, UNREAD_FIELDS)
        # only these need calls of the JVM, each of which takes its time
        missing = [(root, index) for root, items in enumerate(roots) for index in self._incomplete(items)]
        if missing:
            expressions = _expressions(node)
            for root, index in missing:
                found = expressions[root].apply(index)
                if simple_name(str(found.getClass().getName())) != simple_name(roots[root][index]["class"]):
                    raise ValueError("the nodes of the JSON are in another order")
                self._fill_expression(found, roots[root][index])

    def _incomplete(self, nodes: list[Any]) -> Iterator[int]:
        """Yields the positions of nodes with fields without a value, or with an ambiguous one."""
        ignored = self._modes | UNREAD_FIELDS - {"options"}
        for index, node in enumerate(nodes):
            if any(value is None and name not in ignored for name, value in node.items()) or (
                self._is_exact and (_is_ambiguous(node) or is_tree(node.get("plan")))
            ):
                yield index

    def _fill_expression(self, node: Any, text: Any) -> None:
        if self._is_exact and is_tree(text.get("plan")):
            text["plan"] = subquery_text(self._tree(node.plan()))
        if self._is_exact and _is_ambiguous(text):
            text["exact"] = self._exact_literal(node, text)
        self._fill_fields(node, text, self._modes | UNREAD_FIELDS - {"options"})

    def _fill_fields(self, node: Any, text: Any, ignored: frozenset[str]) -> None:
        """Adds the values of the fields without one. Raises: ValueError for one that cannot be read."""
        for name in [name for name, value in text.items() if value is None and name not in ignored]:
            try:
                value = getattr(node, name)()
            except (TypeError, *JVM_ERRORS) as error:
                raise ValueError(f"{text['class']} does not show its field {name}") from error
            text[name] = None if value is None else self._value(name, value)

    def _value(self, name: str, value: Any) -> str | None:
        """Returns the text of a field. Of a mode, only whether errors become null."""
        text = _text(value)
        if name in _MODES:
            return "try" if "TRY" in text else None
        if self._is_exact:
            return self._exact_text(value)
        if name == "hset":  # a set has no order
            return ", ".join(sorted(text.partition("(")[2].removesuffix(")").split(", ")))
        return _OBJECT.sub("", text)

    def _exact_text(self, value: Any) -> str | None:
        """Returns the text of a value of any class, its parts in quotes; None for an empty one. Raises: ValueError if
        Java's text of it is an address.
        """
        if isinstance(value, bytes):
            return f"x'{value.hex()}'"
        if self._is_a(value, "scala.Tuple2"):
            return ": ".join(str(self._exact_text(getattr(value, name)())) for name in ("_1", "_2"))
        if self._is_a(value, "scala.collection.Iterable"):
            texts = [self._exact_text(item) or "" for item in seq_items(value.toSeq())]
            has_order = self._is_a(value, "scala.collection.Seq")
            return f"[{', '.join(texts if has_order else sorted(texts))}]" if texts else None
        if self._is_a(value, "org.apache.spark.sql.types.DataType"):
            return ddl_of(json.loads(value.json()))
        if self._is_a(value, "scala.Product") and value.productArity():
            parts = (value.productElement(index) for index in range(value.productArity()))
            return f"{value.productPrefix()}({', '.join(str(self._exact_text(part)) for part in parts)})"
        text = _text(value)
        if _OBJECT.search(text):
            raise ValueError(f"{text} does not show its content")
        return None if text == "None" else quoted(text)

    def _is_a(self, value: Any, name: str) -> bool:
        """Returns whether a value of the JVM is an instance of the class `name`; py4j converts numbers and texts."""
        is_object = hasattr(value, "getClass")
        return is_object and bool(java_class(self._session, "java.lang.Class").forName(name).isInstance(value))

    def _exact_literal(self, node: Any, text: JsonNode) -> str:
        """Returns the text of a literal that differs for each value of its type. Raises: ValueError."""
        if text["dataType"] == "timestamp":
            return f"timestamp {_utc(int(node.value()))}"
        value = node.value()
        if isinstance(value, bytes):
            return f"x'{value.hex()}'"
        if self._is_a(node.dataType(), "org.apache.spark.sql.types.ObjectType"):
            return str(self._exact_text(value))
        with suppress(*JVM_ERRORS):
            content = digest(unsafe_bytes(self._session, value, node.dataType()).hex())[:16]
            return f"{str(node.sql())[:_LONGEST]} [value {content}]"
        raise ValueError(f"a literal of the type {text['dataType']} does not show its value")

    def _static_table(self, leaf: Any, text: JsonNode) -> str:
        """Returns what a static table reads: its files, its rows, or its name in Spark's texts. Paths are cut, because
        a project can move; the ledger has those that are declared.
        """
        kind = simple_name(text["class"])
        if kind == "LocalRelation" and self._is_exact:
            package = "org.apache.spark.sql."
            rows = java_class(self._session, f"{package}catalyst.util.GenericArrayData")(leaf.data())
            type_ = java_class(self._session, f"{package}types.ArrayType")(leaf.schema(), True)
            return digest(unsafe_bytes(self._session, rows, type_).hex())
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


_LONGEST = 200
"""The characters to show of a literal."""

_UNQUOTED = frozenset({"class", "dataType", "value", "delay"})
"""Fields with text that is a type, or that of a literal, which has its type."""


def _drop_free_zones(nodes: list[Any]) -> None:
    """Removes the time zone from each sum of a time and an interval without days, which is the same in all zones."""
    for index, node in enumerate(nodes):
        if simple_name(node["class"]) == "TimestampAddInterval":
            waiting, end = 1, index + 1
            while waiting:  # the time, in preorder
                waiting += nodes[end]["num-children"] - 1
                end += 1
            if _is_below_a_day(nodes[end]):
                del node["timeZoneId"]


def _is_below_a_day(interval: Any) -> bool:
    value, type_ = str(interval.get("value")), str(interval.get("dataType"))
    if type_ == "interval":
        return _HOURS.fullmatch(value) is not None
    return type_ in _DAY_TIMES and value.lstrip("-").isdigit() and abs(int(value)) < _DAY


_DAY = 86_400_000_000
"""The microseconds of a day, which Spark adds on the calendar of the session's time zone."""

_DAY_TIMES = {
    f"interval {first}{f' to {last}' if last != first else ''}"
    for first in ("day", "hour", "minute", "second")
    for last in ("day", "hour", "minute", "second")
}
"""The names of Spark's types of intervals without months."""

_HOURS = re.compile(r"(?:-?[0-9.]+ (?:hours?|minutes?|seconds?) ?)+")


def _write_exactly(text: Any) -> None:
    """Replaces the values in the JSON of a node that other values could have, too: types as DDL, with all names, and
    texts and names in quotes.
    """
    for name in OPERAND_FIELDS & text.keys():
        del text[name]
    if simple_name(text["class"]) in RESULT_OPERANDS:
        text[RESULT_ONLY] = list(RESULT_OPERANDS[simple_name(text["class"])])
    for name, value in text.items():
        if is_type(value):
            text[name] = ddl_of(value)
        elif isinstance(value, str) and name not in _UNQUOTED:
            text[name] = quoted_name(value) if name == "name" else quoted(value)
        elif isinstance(value, list) and value and not is_tree(value):
            text[name] = [ddl_of(item) if is_type(item) else item for item in value]


def _is_ambiguous(node: JsonNode) -> bool:
    """Returns whether toJSON writes a literal in a text that several values have."""
    if simple_name(node["class"]) != "Literal" or node.get("value") is None:
        return False
    type_ = node.get("dataType")
    return not isinstance(type_, str) or _PLAIN_TYPES.fullmatch(type_) is None


def _utc(microseconds: int) -> str:
    """Returns a time as text in UTC; outside the calendar of Python, its microseconds since 1970."""
    try:
        time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    except OverflowError:
        return str(microseconds)
    return time.strftime("%Y-%m-%d %H:%M:%S") + (f".{time.microsecond:06}".rstrip("0") if time.microsecond else "")


def _expressions(node: Any) -> list[Any]:
    return seq_items(node.expressions())


def _source_name(leaf: Any) -> str | None:
    """Returns the name of a source in the checkpoint, None without one."""
    with suppress(AttributeError, TypeError, *JVM_ERRORS):  # Spark before 4.3
        found = _SOURCE_NAME.search(str(leaf.sourceIdentifyingName().toString()))
        return found[1] if found else None
    return None


def _text(value: Any) -> str:
    """Returns a value as text. py4j returns numbers and texts themselves, and other objects as references."""
    return str(value.toString()) if hasattr(value, "toString") else str(value)


def _roots(values: list[Any]) -> Iterator[list[Any]]:
    """Yields the expressions in the fields of a plan, in their order."""
    for value in values:
        if is_tree(value):
            if _EXPRESSIONS in value[0]["class"]:
                yield value
        elif isinstance(value, list):
            yield from _roots(value)
