"""Finds the operators that keep state in Spark's optimized plan, and describes what their state depends on."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlstream.state.signature.expressions import (
    UNRESOLVED,
    conditions_in,
    conjuncts,
    expression_id,
    flattened,
    kinds_of,
    line_text,
    references,
    shown,
    text_of,
    type_text,
    value_text,
    without_results,
)
from sqlstream.state.signature.harmless import HARMLESS_OPERATORS, IGNORED_PLAN_FIELDS
from sqlstream.state.signature.signature import FORMAT, InputRows, StateOperator, is_numbered, shown_source
from sqlstream.state.signature.source_checks import COLUMNS, PARSERS, RECORD, STEP
from sqlstream.state.signature.trees import Tree, is_tree, quoted_name, read_tree
from sqlstream.state.signature.wider_types import Types, marked, marked_item, plain_types

SOURCE = "sourceIdentifyingName"
"""The field of a source with the name of its reader. Static tables have no such field, or no value in it."""

_COLUMN = re.compile("\ue000(.*?)\ue001(.*?)\ue002(.*?)\ue003")
"""A column of a source in a text: the source, the column, and its type, which is written only where rows come from."""

Names = Mapping[str, Mapping[str, str]]
"""Other names of columns, by source and name."""

STATIC = "static table"

WATERMARK = "watermark "
"""The start of the text of a watermark; its time and its delay follow, with a comma between."""

WHERE = "where "
"""The start of the text of a filter; ` and ` follows each condition but the last."""

CONDITION = "condition"
"""The part of a join with its conditions other than the keys, each a text."""


@dataclass(frozen=True)
class Rows:
    """The rows of a plan: where they come from, the texts of their columns by number, in order, whether they are a
    stream, and the kinds of expressions that compute or select them, in lower case.
    """

    origin: InputRows
    columns: Mapping[int, str]
    streaming: bool
    functions: frozenset[str] = frozenset()


class PlanReader:
    """Reads one plan. `operators`, `watermarks` and `functions` are what it has found; the last are the kinds of
    expressions that decide the state, in lower case. `has_unresolved`: it has a column that no input has.

    `form` is the format of the texts. `order` are the names of sources in an earlier signature: the branches of a union
    get the order that they have there, because it decides nothing but texts. `names` are the names that columns have
    there, where they differ; `types` the types that columns have there. Numbers of the sources in `texts` are texts,
    which a float does not have exactly.
    """

    def __init__(
        self,
        form: int = FORMAT,
        order: Sequence[str] = (),
        names: Names | None = None,
        types: Types | None = None,
        texts: Collection[str] = (),
    ) -> None:
        self._is_exact, self._order = form > 1, {name: index for index, name in enumerate(order)}
        self._names, self._types, self._texts = names or {}, types or {}, texts
        self.operators: list[StateOperator] = []
        self.functions: set[str] = set()
        self.has_unresolved = False
        self.watermarks: list[str] = []
        self._others = self._tables = 0

    def read(self, plan: Tree) -> None:
        """Finds the operators of `plan`. Raises: RecursionError if it is too deep."""
        self.rows_of(plan)

    @property
    def calls_python(self) -> bool:
        """Whether the state depends on functions of Python."""
        texts = (text for each in self.operators for part in each.parts.values() for text in part)
        lines = (line for each in self.operators for rows in each.inputs for line in rows.lines())
        return any(_PYTHON.search(text) for text in (*texts, *lines))

    def rows_of(self, node: Tree) -> Rows:
        """Returns the rows of `node`. Raises: RecursionError if it is too deep."""
        inputs = tuple(self.rows_of(child) for child in node.children)
        count = len(self.operators)
        rows = self._read(node, inputs)
        texts = (*rows.columns.values(), rows.origin.text)
        self.has_unresolved = self.has_unresolved or any(UNRESOLVED in text for text in texts)
        functions = rows.functions.union(_kinds(list(node.fields.values())), *(each.functions for each in inputs))
        # Everything below an operator with state decides what the state contains.
        if len(self.operators) > count:
            self.functions |= functions
        return replace(rows, functions=functions)

    def _read(self, node: Tree, inputs: tuple[Rows, ...]) -> Rows:
        if not inputs:
            return self._source(node) if node.fields.get(SOURCE) else self._table(node)
        readers: dict[str, Callable[[Tree, tuple[Rows, ...]], Rows]] = {
            "Project": self._project,
            "Filter": _filter,
            "EventTimeWatermark": self._watermark,
            "Aggregate": self._aggregate,
            "Join": self._join,
            "Union": self._union,
            "Deduplicate": self._deduplicate,
            "DeduplicateWithinWatermark": self._deduplicate,
            "GlobalLimit": self._limit,
            **dict.fromkeys(HARMLESS_OPERATORS, lambda _node, rows: rows[0]),
        }
        reader = readers.get(node.kind)
        if reader is not None:
            return reader(node, inputs)
        if node.kind in _PYTHON_STATES and inputs[0].streaming:
            return self._python_state(node, inputs)
        return self._other(node, inputs)

    def _source(self, node: Tree) -> Rows:
        source = shown_source(str(node.fields.get(SOURCE)))
        if self._names and source not in self._names and is_numbered(source):
            self.has_unresolved = True  # it can be the one whose columns have other names
        names = {quoted_name(new): quoted_name(old) for new, old in self._names.get(source, {}).items()}
        columns = {}
        for each in node.parts("output"):
            name = str(each.fields.get("name"))
            type_ = type_text(each.fields.get("dataType"))
            columns[expression_id(each)] = self._column(source, names.get(name, name), type_)
        return Rows(InputRows(f"\ue000{source}\ue001"), columns, streaming=True)

    def _column(self, source: str, name: str, type_: str) -> str:
        """Returns the text of a column, with both types if it is wider than in the earlier signature."""
        earlier = self._types.get(source, {}).get(name)
        text = f"\ue000{source}\ue001{name}\ue002{type_}\ue003"
        return marked(text, earlier, type_, exact=source not in self._texts and not is_numbered(source))

    def _project(self, node: Tree, inputs: tuple[Rows, ...]) -> Rows:
        (rows,) = inputs
        outputs = node.parts("projectList")
        columns = {
            expression_id(each): self._line(each, rows.columns) or text_of(each, rows.columns) for each in outputs
        }
        return Rows(rows.origin, columns, rows.streaming)

    def _line(self, alias: Tree, columns: Mapping[int, str]) -> str | None:
        """Returns the text of the parsed line of a file, of which each field is a column of the source, or of a step
        between the line and the record; None for any other expression.
        """
        name = str(alias.fields.get("name"))
        if alias.kind != "Alias" or (name != RECORD and not name.startswith(STEP)):
            return None
        line = next(text_of(each, columns) for each in alias.walk() if each.kind == "AttributeReference")
        if name != RECORD:
            return line
        source = line[line.index("\ue000") + 1 :].partition("\ue001")[0]
        parser = next(each for each in alias.walk() if each.kind in PARSERS)
        types: Mapping[str, str] = parser.fields[COLUMNS]
        return line_text({name: self._column(source, name, type_) for name, type_ in types.items()})

    def _table(self, node: Tree) -> Rows:
        """Returns the rows of a static table. Its number tells two tables with the same columns apart."""
        self._tables += 1
        name, outputs = f"{STATIC} {self._tables}", node.parts("output")
        is_local = self._is_exact and node.kind == "LocalRelation"
        columns = {
            expression_id(each): f"{name}[{index}]" if is_local else f"{name}.{each.fields.get('name')}"
            for index, each in enumerate(outputs)
        }
        types = ", ".join(type_text(each.fields.get("dataType")) for each in outputs)
        texts = ((field, value_text(value, {})) for field, value in node.fields.items() if field not in _NOT_CONTENT)
        details = ", ".join(f"{field} {text}" for field, text in texts if text)
        return Rows(InputRows(f"{name} ({types}): {node.kind.lower()} {details}"), columns, streaming=False)

    def _watermark(self, node: Tree, inputs: tuple[Rows, ...]) -> Rows:
        (rows,) = inputs
        time = node.part("eventTime")
        text = f"{WATERMARK}{text_of(time, rows.columns) if time else ''}, {node.fields.get('delay')}"
        self.watermarks.append(_plain(text))
        return Rows(InputRows(text, (rows.origin,)), rows.columns, rows.streaming)

    def _aggregate(self, node: Tree, inputs: tuple[Rows, ...]) -> Rows:
        (rows,) = inputs
        outputs = node.parts("aggregateExpressions")
        keys = tuple(shown(text_of(each, rows.columns)) for each in node.parts("groupingExpressions"))
        calls = [part for each in outputs for part in each.walk() if part.kind in ("AggregateExpression", "PythonUDAF")]
        found = dict.fromkeys(text_of(call, rows.columns) for call in calls)  # those that Spark computes once, once
        aggregates = tuple(map(without_results, found))
        columns = {expression_id(each): text_of(each, rows.columns) for each in outputs}
        text = f"aggregation by {_listed(keys)}: {_listed(aggregates)}"
        if not rows.streaming:
            return Rows(InputRows(text, (rows.origin,)), columns, streaming=False)
        self._add("aggregation", {"keys": keys, "aggregates": aggregates}, inputs)
        return Rows(InputRows(text, (rows.origin,)), columns, streaming=True)

    def _deduplicate(self, node: Tree, inputs: tuple[Rows, ...]) -> Rows:
        (rows,) = inputs
        keys = tuple(shown(text_of(each, rows.columns)) for each in node.parts("keys"))
        kind = "deduplication" if node.kind == "Deduplicate" else "deduplication within the watermark"
        if rows.streaming:
            self._add(kind, {"keys": keys}, inputs)
        return Rows(InputRows(f"{kind} by {_listed(keys)}", (rows.origin,)), rows.columns, rows.streaming)

    def _limit(self, node: Tree, inputs: tuple[Rows, ...]) -> Rows:
        (rows,) = inputs
        number = node.part("limitExpr")
        text = text_of(number, rows.columns) if number else ""
        if rows.streaming:
            self._add("limit", {"number of rows": (text,)}, inputs)
        return Rows(InputRows(f"limit {text}", (rows.origin,)), rows.columns, rows.streaming)

    def _join(self, node: Tree, inputs: tuple[Rows, ...]) -> Rows:
        left, right = inputs
        columns = {**left.columns, **right.columns}
        exists = _exists_column(node)
        kind = value_text(node.fields.get("joinType"), {}).split("{")[0] or str(node.fields.get("joinType"))
        condition = node.part("condition")
        keys, others = _join_condition(condition, left, right, columns)
        outputs = left.columns if kind in ("LeftSemi", "LeftAnti") or exists is not None else columns
        outputs = outputs if exists is None else {**outputs, exists: "exists"}
        # A join of a stream and a static table keeps no state.
        if left.streaming and right.streaming:
            sides = {"left columns": _texts(left), "right columns": _texts(right)}
            self._add("join", {"type": (kind,), "keys": keys, CONDITION: others, **sides}, inputs)
        origin = InputRows(f"{kind} join on {_listed(tuple(sorted((*keys, *others))))}", (left.origin, right.origin))
        return Rows(origin, outputs, left.streaming or right.streaming)

    def _union(self, _node: Tree, inputs: tuple[Rows, ...]) -> Rows:
        """Returns the rows of all inputs. Columns have the texts of the first one; each input lists its own."""
        ordered = tuple(sorted(inputs, key=self._position))
        branches = tuple(InputRows(f"select {_listed(_texts(rows))}", (rows.origin,)) for rows in ordered)
        columns = dict(zip(inputs[0].columns, ordered[0].columns.values(), strict=True))
        return Rows(InputRows("union", branches), columns, any(rows.streaming for rows in inputs))

    def _position(self, rows: Rows) -> int:
        """Returns where the first known source of `rows` is in the order of sources; unknown ones are last."""
        names = map(_plain, rows.origin.sources())
        return min((self._order[name] for name in names if name in self._order), default=len(self._order))

    def _python_state(self, node: Tree, inputs: tuple[Rows, ...]) -> Rows:
        rows = self._other(node, inputs)
        fields = (rows.origin.text, *(text for each in inputs for text in _texts(each)))
        self._add("Python state", {"definition": fields}, inputs)
        return rows

    def _other(self, node: Tree, inputs: tuple[Rows, ...]) -> Rows:
        """Returns the rows of any other operation, with all its fields."""
        scope = {number: text for rows in inputs for number, text in rows.columns.items()}
        fields = {name: value for name, value in node.fields.items() if name not in _NOT_CONTENT}
        if node.kind == "Expand" and self._is_exact:  # the grouping sets, whose order decides nothing
            fields["projections"] = sorted(fields["projections"], key=lambda value: value_text(value, scope))
        texts = ((name, value_text(value, scope)) for name, value in fields.items())
        # The number tells the columns of two operations of one kind apart.
        self._others += 1
        name = f"{node.kind.lower()} {self._others}"
        new = [each for field in _NEW_COLUMNS for each in _attributes(node, field) if expression_id(each) not in scope]
        columns = {**scope, **{expression_id(each): f"{name}[{index}]" for index, each in enumerate(new)}}
        generator = node.part("generator")
        if generator is not None and generator.kind in ("Explode", "PosExplode"):
            items = text_of(generator.children[0], scope)
            columns[expression_id(new[-1])] = marked_item(f"{name}[{len(new) - 1}]", items)
        if _attributes(node, "output"):
            numbers = [expression_id(each) for each in _attributes(node, "output")]
            columns = {number: columns[number] for number in numbers if number in columns}
        text = f"{name}: {', '.join(f'{field} {value}' for field, value in texts if value)}"
        return Rows(InputRows(text, tuple(r.origin for r in inputs)), columns, any(r.streaming for r in inputs))

    def _add(self, kind: str, parts: Mapping[str, tuple[str, ...]], inputs: tuple[Rows, ...]) -> None:
        used = {column for texts in parts.values() for text in texts for column in _COLUMN.findall(text)}
        lines = (line for rows in inputs for line in rows.origin.lines())
        used |= {
            column
            for line in lines
            if not (self._is_exact and line.lstrip().startswith(WATERMARK))  # its text has the column
            for column in _COLUMN.findall(line)
        }
        origins = tuple(_described(rows.origin, used) for rows in inputs)
        plain = {name: tuple(map(_plain, texts)) for name, texts in parts.items()}
        self.operators.append(StateOperator(kind, plain, origins))


def subquery_text(plan: Tree) -> str:
    """Returns the columns of a subquery, from its plan, and where their rows come from. Raises: RecursionError."""
    rows = PlanReader().rows_of(plan)
    columns, origin = (tuple(map(_plain, texts)) for texts in (_texts(rows), rows.origin.lines()))
    return f"({_listed(columns)} of {' of '.join(map(str.strip, origin))})"


_PYTHON_STATES = frozenset(
    {
        *("FlatMapGroupsWithState", "FlatMapGroupsInPandasWithState"),
        *("TransformWithState", "TransformWithStateInPySpark"),
    }
)


def _kinds(values: Iterable[object]) -> Iterator[str]:
    """Yields the kinds of all expressions in the fields of an operator, in lower case."""
    for value in values:
        if is_tree(value):
            for part in conditions_in(read_tree(value)):
                yield from kinds_of(part)
        elif isinstance(value, list):
            yield from _kinds(value)


def _filter(node: Tree, inputs: tuple[Rows, ...]) -> Rows:
    (rows,) = inputs
    condition = node.part("condition")
    texts = conjuncts(condition, rows.columns) if condition else ()
    if not texts:
        return rows
    return Rows(InputRows(WHERE + " and ".join(texts), (rows.origin,)), rows.columns, rows.streaming)


_NAMES = ("output", "generatorOutput", "outputAttrs", "resultAttrs")
_NEW_COLUMNS = (*_NAMES, "windowExpressions", "resultAttributes", "outputObjAttr")
_NOT_CONTENT = frozenset({*_NAMES, *IGNORED_PLAN_FIELDS})
_PYTHON = re.compile(r"\bPython |InPandas|InArrow|InPySpark|EvalPython", re.IGNORECASE)


def _attributes(node: Tree, name: str) -> tuple[Tree, ...]:
    value = node.fields.get(name)
    return (read_tree(value),) if is_tree(value) else node.parts(name) if isinstance(value, list) else ()


def _exists_column(node: Tree) -> int | None:
    """Returns the number of the column that an existence join adds, None for other joins."""
    kind = node.fields.get("joinType")
    value = kind.get("exists") if isinstance(kind, dict) else None
    return expression_id(read_tree(value)) if is_tree(value) else None


def _join_condition(
    condition: Tree | None, left: Rows, right: Rows, columns: Mapping[int, str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the keys of a join in their order, which decides the keys of the state, and the other conditions.

    As org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys.
    """
    keys, others = [], []
    for part in flattened(condition, "And") if condition else ():
        sides = _sides(part, left, right)
        if sides is None:
            others.append(shown(text_of(part, columns)))
        else:
            operator = "<=>" if part.kind == "EqualNullSafe" else "="
            keys.append(f"{text_of(sides[0], columns)} {operator} {text_of(sides[1], columns)}")
    return tuple(keys), tuple(sorted(others))


def _sides(part: Tree, left: Rows, right: Rows) -> tuple[Tree, Tree] | None:
    """Returns what an equality compares, the left side first, None if it is no key."""
    if part.kind not in ("EqualTo", "EqualNullSafe"):
        return None
    one, other = part.children
    for first, second in ((one, other), (other, one)):
        both = references(first), references(second)
        if both[0] and both[1] and both[0] <= left.columns.keys() and both[1] <= right.columns.keys():
            return first, second
    return None


def _texts(rows: Rows) -> tuple[str, ...]:
    return tuple(map(shown, rows.columns.values()))


def _listed(texts: Iterable[str]) -> str:
    return ", ".join(texts) or "nothing"


def _plain(text: str) -> str:
    """Returns a text with the names of its columns."""
    text = plain_types(without_results(text))
    text = _COLUMN.sub(lambda found: f"{found[1]}.{found[2]}", text).replace(UNRESOLVED, "?")
    return re.sub("\ue000(.*?)\ue001", r"\1", text)


def _described(origin: InputRows, used: set[tuple[str, str, str]]) -> InputRows:
    """Returns the origin of rows with plain texts. Each source lists the columns that the operator uses."""
    source = re.fullmatch("\ue000(.*?)\ue001", origin.text)
    if source is None:
        return InputRows(_plain(origin.text), tuple(_described(each, used) for each in origin.inputs))
    columns = sorted(f"{name} {type_}" for table, name, type_ in used if table == source[1])
    return InputRows(f"{source[1]}({', '.join(columns)})")
