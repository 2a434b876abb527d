"""Spark's expressions as text that is the same for expressions with the same meaning.

Names of columns and aliases have no part in it: a column is the text of its expression over the columns of sources.
Operands whose order does not matter are sorted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlstream.compiler.comparison.terms import CAST, FILTER, Kind, Term, operation
from sqlstream.state.signature.harmless import IGNORED_FIELDS
from sqlstream.state.signature.source_checks import COLUMNS, TIMES, TRANSPARENT, is_check, value_read
from sqlstream.state.signature.trees import Tree, is_tree, quoted_name, read_tree, simple_name
from sqlstream.state.signature.wider_types import (
    as_earlier,
    as_earlier_element_field,
    as_earlier_if_same_type,
    as_earlier_if_same_values,
    as_earlier_in_cast,
    as_earlier_in_sum,
    compared_type,
    marked_item,
)

Scope = Mapping[int, str]
"""The texts of columns, by Spark's number of an attribute."""

UNRESOLVED = "\ue009?"
"""Starts the text of a column that no input has."""

_OPERATORS = {
    "Add": "+",
    "Subtract": "-",
    "Multiply": "*",
    "Divide": "/",
    "Remainder": "%",
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "And": "and",
    "Or": "or",
}
"""Operators between two operands, which need parentheses within other expressions."""

_COMPARISONS = frozenset(
    {"EqualTo", "EqualNullSafe", "LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual"}
)

_ZONELESS = frozenset({"boolean", "byte", "short", "integer", "long", "float", "double", "binary"})
"""Types to which a cast is the same in all time zones."""

RESULT_ONLY = "resultOnly"
"""A field with the positions of operands that an aggregate function reads only for its result, not for its state."""


def text_of(tree: Tree, scope: Scope) -> str:
    """Returns the text of an expression over columns with the texts in `scope`.

    Operators are in parentheses, so that the text of a column can be a part of any other expression.
    """
    text = _text(tree, scope)
    return f"({text})" if tree.kind in _OPERATORS else text


def shown(text: str) -> str:
    """Returns the text of an expression without the parentheses around all of it."""
    if not text.startswith("(") or not text.endswith(")"):
        return text
    depth = 0
    for index, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            return text[1:-1] if index == len(text) - 1 else text
    return text


def _text(tree: Tree, scope: Scope) -> str:
    tree = value_read(tree)
    kind = tree.kind
    if kind in ("AttributeReference", "NamedLambdaVariable"):
        return scope.get(expression_id(tree), f"{UNRESOLVED}{tree.fields.get('name')}")
    if kind == "LambdaFunction":
        return _lambda(tree, scope)
    if kind == "Literal":
        return _literal(tree)
    if kind in TRANSPARENT:
        return text_of(tree.children[0], scope)
    if kind in _OPERATORS:
        parts = flattened(tree, kind) if kind in ("And", "Or") else tree.children
        texts = [text_of(part, scope) for part in parts]
        texts = _compared(parts, texts) if kind in _COMPARISONS else texts
        term = operation(_OPERATORS[kind], *map(_term, parts, texts))
        return f"{term.shown}{_details(tree, scope, ())}"
    window = _window(tree, scope) if kind == "CreateNamedStruct" else None
    return window or _called(tree, scope)


def _compared(parts: Sequence[Tree], texts: list[str]) -> list[str]:
    """Returns the texts of operands that are compared with each other. If all but one are literals of its type, and the
    type is wider than in an earlier signature, they have the earlier one.
    """
    literals = [part.kind == "Literal" for part in parts]
    if literals.count(False) != 1:
        return texts
    index = literals.index(False)
    types = {type_text(part.fields.get("dataType")) for part in parts if part.kind == "Literal"}
    earlier = compared_type(texts[index], types.pop()) if len(types) == 1 else None
    if earlier is None:
        return texts
    return [
        as_earlier(text) if at == index else _literal(replace(part, fields={**part.fields, "dataType": earlier}))
        for at, (part, text) in enumerate(zip(parts, texts, strict=True))
    ]


def _term(tree: Tree, text: str) -> Term:
    return Term(text, kind=Kind.LITERAL if tree.kind == "Literal" else Kind.COLUMN)


def kinds_of(tree: Tree) -> Iterator[str]:
    """Yields the kinds of the expressions that compute a value, in lower case; a time window is `timewindow`."""
    tree = value_read(tree)
    if tree.kind == "CreateNamedStruct" and _window(tree, {}) is not None:
        yield "timewindow"
        # Above the time, the expression has only arithmetic of the window, which reads no setting.
        tree = next(each for each in tree.walk() if each.fields.get("toType") == "long").children[0]
    yield tree.kind.lower()
    for child in tree.children:
        yield from kinds_of(child)


def _called(tree: Tree, scope: Scope) -> str:
    kind = tree.kind
    operands = [shown(text_of(child, scope)) for child in tree.children]
    # Marked, so that `without_results` can leave them out of what the state depends on.
    for index in tree.fields.get(RESULT_ONLY) or ():
        operands[index] = f"{_START}{operands[index]}{_END}"
    if kind == "Cast":
        return _cast(tree, operands[0], scope)
    if kind == "GetStructField" and operands[0].startswith(_LINE):
        columns = json.loads(operands[0].removeprefix(_LINE))
        name = str(tree.fields.get("name"))
        return str(columns[name if name in columns else quoted_name(name)])
    if kind == "GetStructField":
        return as_earlier_if_same_type(f"{operands[0]}.{tree.fields.get('name') or tree.fields.get('ordinal')}")
    if kind == "AggregateExpression":
        distinct = "distinct " if tree.fields.get("isDistinct") else ""
        call = Term(FILTER, tuple(map(_term, tree.children, operands))).text if len(operands) > 1 else operands[0]
        return f"{distinct}{call}"
    if kind == "In":
        operands = _compared(tree.children, operands)
        operands = [part.text for part in operation("in", *map(_term, tree.children, operands)).parts]
    items = operands[0] if kind in _ITEMS else ""
    tree, operands = _without_types(tree, operands)
    details = _details(tree, scope, ())
    if kind in _NAMED_FUNCTIONS:
        return f"Python {tree.fields.get('name')}({', '.join(operands)}{details})"
    return marked_item(f"{_NAMES.get(kind, kind.lower())}({', '.join(operands)}{details})", items)


def _without_types(tree: Tree, operands: list[str]) -> tuple[Tree, list[str]]:
    """Returns a call and its operands. Those whose wider type makes no difference have the earlier type."""
    kind = tree.kind
    if kind == "GetArrayStructFields":
        operands[0], earlier = as_earlier_element_field(operands[0], str(tree.fields.get("field")))
        tree = replace(tree, fields={**tree.fields, **earlier})
    elif kind in _ITEMS:
        operands[0] = as_earlier(operands[0])
    elif kind in _AS_EARLIER:
        operands = [_AS_EARLIER[kind](operand) for operand in operands]
    return tree, operands


_ITEMS = frozenset({"GetArrayItem", "GetMapValue", "ElementAt"})
"""Expressions that return an item of their first operand."""

_AS_EARLIER: Mapping[str, Callable[[str], str]] = {
    **dict.fromkeys(("IsNull", "IsNotNull", "Count", "Size", "Explode", "PosExplode"), as_earlier),
    **dict.fromkeys(("Sum", "Average"), as_earlier_in_sum),
    "InSet": as_earlier_if_same_values,
}
"""What the type of an operand means for the state, where an earlier signature has another one."""

_LINE = "\ue007"
"""The start of the text of a line."""


def line_text(columns: Mapping[str, str]) -> str:
    """Returns the text of a parsed line of a source, whose fields are the columns with these texts."""
    return _LINE + json.dumps(columns)


def _lambda(tree: Tree, scope: Scope) -> str:
    body, *variables = tree.children
    # Names of variables do not count. Those of the functions around this one are in the scope.
    depth = sum(1 for text in scope.values() if text.startswith(_VARIABLE))
    names = {expression_id(each): f"{_VARIABLE}{depth + index}" for index, each in enumerate(variables)}
    return f"({', '.join(names.values())}) -> {text_of(body, {**scope, **names})}"


_VARIABLE = "variable_"


_START, _END = "\ue005", "\ue006"
"""Around the text of such an operand."""

_RESULT = re.compile(rf"(?:, )?{_START}[^{_END}]*{_END}")


def without_results(text: str) -> str:
    """Returns the text of an aggregate function without the operands that have no part in its state."""
    return _RESULT.sub("", text)


_NAMED_FUNCTIONS = frozenset({"PythonUDF", "PythonUDAF", "PythonUDTF"})
"""Functions of Python, which the project defines."""

_NAMES = {"Average": "avg", "CreateNamedStruct": "struct"}


def conditions_in(tree: Tree) -> list[Tree]:
    """Returns the conditions that AND combines, without checks of records."""
    return [part for part in flattened(tree, "And") if not is_check(part)]


def conjuncts(tree: Tree, scope: Scope) -> tuple[str, ...]:
    """Returns the texts of the conditions that AND combines, sorted, without checks of records."""
    return tuple(sorted({shown(text_of(part, scope)) for part in conditions_in(tree)}))


def flattened(tree: Tree, kind: str) -> list[Tree]:
    """Returns the operands of a chain of the same operator, in their order."""
    found, waiting = [], [tree]
    while waiting:
        node = waiting.pop()
        if node.kind == kind:
            waiting += reversed(node.children)
        else:
            found.append(node)
    return found


def expression_id(tree: Tree) -> int:
    """Returns Spark's number of an attribute or alias, -1 without one."""
    number = tree.fields.get("exprId")
    return int(number["id"]) if isinstance(number, dict) else -1


def references(tree: Tree) -> set[int]:
    """Returns the numbers of the attributes in an expression."""
    return {expression_id(node) for node in tree.walk() if node.kind == "AttributeReference"}


def _literal(tree: Tree) -> str:
    value, type_ = tree.fields.get("value"), tree.fields.get("dataType")
    if "exact" in tree.fields:
        return str(tree.fields["exact"])
    if value is None:
        return f"null {type_text(type_)}"
    if type_ == "string":
        return "'" + str(value).replace("'", "''") + "'"
    return str(value) if type_ in ("integer", "boolean") else f"{type_text(type_)} {value}"


def _cast(tree: Tree, operand: str, scope: Scope) -> str:
    type_ = tree.fields.get("dataType")
    ignored = ("dataType", "timeZoneId") if type_ in _ZONELESS else ("dataType",)
    operand = as_earlier_in_cast(operand, type_text(type_))
    return Term(f"{CAST}{type_text(type_)}{_details(tree, scope, ignored)}", (_term(tree, operand),)).text


def type_text(type_: object) -> str:
    """Returns the text of a data type in JSON."""
    return type_ if isinstance(type_, str) else str(type_)


def _details(tree: Tree, scope: Scope, ignored: tuple[str, ...]) -> str:
    """Returns the other fields of an expression, such as the time zone of a cast."""
    names = [name for name in tree.fields if name not in {*IGNORED_FIELDS, *ignored, RESULT_ONLY, TIMES, COLUMNS}]
    texts = ((name, value_text(tree.fields[name], scope)) for name in names)
    return "".join(f", {name} {text}" for name, text in texts if text)


def value_text(value: Any, scope: Scope) -> str:
    """Returns the text of a field's value; empty for values without JSON."""
    if value is None or value == []:
        return ""
    if is_tree(value):
        return text_of(read_tree(value), scope)
    if isinstance(value, list):
        return "[" + ", ".join(value_text(item, scope) for item in value) + "]"
    if isinstance(value, dict):
        if "object" in value:
            return simple_name(str(value["object"]))
        items = ((name, item) for name, item in value.items() if name not in IGNORED_FIELDS and name != "product-class")
        return "{" + ", ".join(f"{name} {value_text(item, scope)}" for name, item in items) + "}"
    return str(value)


def _window(tree: Tree, scope: Scope) -> str | None:
    """Returns the text of a time window, for which Spark computes the start and the end (TimeWindowing of Spark)."""
    names = [child.fields.get("value") for child in tree.children[::2]]
    times = [node for node in tree.walk() if node.kind == "PreciseTimestampConversion"]
    times = [node for node in times if node.fields.get("toType") == "long"]
    if names != ["start", "end"] or not times:
        return None
    time = text_of(times[0].children[0], scope)
    if any(text_of(node.children[0], scope) != time for node in times):
        return None
    # The time is an expression of the user, whose literals are not those of the window.
    within = {id(node) for found in times for node in found.walk()}
    literals = [node for node in tree.walk() if node.kind == "Literal" and id(node) not in within]
    numbers = [int(node.fields["value"]) for node in literals if node.fields.get("dataType") == "long"]
    if len(set(numbers) - {0}) == 1:  # windows that do not overlap, from the first second of 1970
        numbers = [max(numbers)]
    return f"window({time}, {', '.join(map(_duration, numbers))})"


def _duration(microseconds: int) -> str:
    for unit, length in (("hours", 3_600_000_000), ("minutes", 60_000_000), ("seconds", 1_000_000)):
        if microseconds and microseconds % length == 0:
            return f"{microseconds // length} {unit}"
    return f"{microseconds} microseconds" if microseconds else "0"
