"""What decides the state of a query, as texts: two queries with the same texts have the same state. What is behind the
state does not count.

Columns that nothing uses, names, and select lists between other operations have no part in it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from sqlstream.compiler.comparison.queries import Relation, Step
from sqlstream.compiler.comparison.terms import CAST, FILTER, Kind, NotComparableError, Term, compared, owned
from sqlstream.state.signature.operators import CONDITION, STATIC, WATERMARK, WHERE
from sqlstream.state.signature.signature import InputRows, StateOperator


@dataclass(frozen=True)
class FormOperator:
    """An operator that keeps state: what a state signature has of it, and its relation. `terms` are its keys and
    aggregates, and `filters` the conditions on its keys, which Spark moves below.
    """

    state: StateOperator
    relation: Relation
    terms: tuple[Term, ...]
    filters: tuple[Term, ...] = ()


@dataclass(frozen=True)
class QueryForm:
    """What decides the state of a query: the `rows` up to the last operator with state, the `operators` in it, and
    `watermarks`. `behind` is what comes after it. `is_simple`: Spark's optimizer can remove nothing of the state
    because of what is behind.
    """

    rows: InputRows
    operators: tuple[FormOperator, ...]
    watermarks: tuple[str, ...]
    behind: tuple[str, ...]
    is_simple: bool

    def has_state_of(self, other: QueryForm) -> bool:
        """Returns whether the state of both queries has the same content."""
        same = self.rows == other.rows and self.watermarks == other.watermarks
        return same and (self.behind == other.behind or (self.is_simple and other.is_simple))


@dataclass(frozen=True)
class _Used:
    """A term that something above a relation uses. Spark can push a filter down, so its columns may not be stored."""

    term: Term
    in_filter: bool = False


def form_of(query: Relation) -> QueryForm:
    """Returns the form of a query. Raises: NotComparableError."""
    return _FormWriter().write(query)


class _FormWriter:
    def __init__(self) -> None:
        self._operators: list[FormOperator] = []
        self._watermarks: list[str] = []

    def write(self, query: Relation) -> QueryForm:
        outputs = list(query.columns)
        last, conditions = _below(query)
        below, behind = list(conditions), list[Term]()
        is_simple = last.keeps_state
        if last.step is Step.AGGREGATION:
            calls = set(owned(outputs + below, last.number)) & set(last.calls)
            below = [each for each in conditions if not calls & set(each.walk())]
            behind = [each for each in conditions if calls & set(each.walk())]
            is_simple = is_simple and keeps_groups(behind, calls, last) and all(keeps_all(each) for each in outputs)
        elif last.step is Step.DEDUPLICATION:
            below, behind = [], conditions
            is_simple = is_simple and keeps_rows(conditions, last) and not _has_state_below(last)
        else:
            is_simple = is_simple and all(keeps_all(each) for each in outputs)
        if not is_simple:
            below = list(conditions)
            behind = []
        used = [_Used(term) for term in outputs] + [_Used(term, in_filter=True) for term in conditions]
        if is_simple and last.step is Step.DEDUPLICATION and not _has_state_below(last):
            used = []  # its state has only the keys
        _check_order(query, is_output=True)
        rows = self._rows(last, used, below)
        texts = (*(term.shown for term in outputs), *(WHERE + text for text in _sorted(behind)))
        return QueryForm(rows, tuple(self._operators), tuple(self._watermarks), texts, is_simple)

    def _rows(self, relation: Relation, used: Sequence[_Used], above: Sequence[Term] = ()) -> InputRows:
        """Returns the text of a relation, of whose columns `used` is used above, with the conditions `above` it."""
        node, conditions = _below(relation)
        if node is not relation:
            _check_order(relation)
        used = [*used, *(_Used(term, in_filter=True) for term in conditions)]
        conditions += above
        lower = _movable(node, conditions)
        writers = {
            Step.SOURCE: self._source,
            Step.TABLE: self._source,
            Step.WATERMARK: self._watermark,
            Step.AGGREGATION: self._aggregation,
            Step.DEDUPLICATION: self._deduplication,
            Step.JOIN: self._join,
            Step.UNION: self._union,
        }
        rows = writers[node.step](node, used, lower)
        return _filter(rows, node, [each for each in conditions if each not in lower])

    def _source(self, node: Relation, used: Sequence[_Used], _lower: Sequence[Term]) -> InputRows:
        found = sorted({term.text for term in owned((each.term for each in used), node.number)})
        prefix = "" if node.step is Step.SOURCE else f"{STATIC} "
        names = ", ".join(f"{text.removeprefix(node.detail + '.')} {node.types[text]}" for text in found)
        return InputRows(f"{prefix}{node.detail}({names})")

    def _watermark(self, node: Relation, used: Sequence[_Used], lower: Sequence[Term]) -> InputRows:
        (time,) = node.terms
        text = f"{WATERMARK}{time.text}, {node.detail}"
        self._watermarks.append(text)
        return InputRows(text, (self._rows(node.inputs[0], used, lower),))

    def _aggregation(self, node: Relation, used: Sequence[_Used], lower: Sequence[Term]) -> InputRows:
        wanted = set(owned((each.term for each in used), node.number))
        calls = tuple(call for call in node.calls if call in wanted)
        values = [_Used(term) for term in (*node.terms, *(call.parts[0] for call in calls))]
        rows = self._rows(node.inputs[0], [*values, *(_Used(term, in_filter=True) for term in lower)], lower)
        parts = {"keys": _shown(node.terms), "aggregates": _shown(calls)}
        if node.keeps_state:
            state = StateOperator("aggregation", parts, (rows,))
            self._operators.append(FormOperator(state, node, (*node.terms, *calls), tuple(lower)))
        return InputRows(f"aggregation by {_listed(parts['keys'])}: {_listed(parts['aggregates'])}", (rows,))

    def _deduplication(self, node: Relation, used: Sequence[_Used], _lower: Sequence[Term]) -> InputRows:
        rows = self._rows(node.inputs[0], [*used, *map(_Used, node.terms)])
        keys = _shown(node.terms)
        if node.keeps_state:
            state = StateOperator("deduplication", {"keys": keys}, (rows,))
            self._operators.append(FormOperator(state, node, node.terms))
        return InputRows(f"deduplication by {_listed(keys)} {node.detail}", (rows,))

    def _join(self, node: Relation, used: Sequence[_Used], _lower: Sequence[Term]) -> InputRows:
        inputs, parts = [], {"type": (node.detail,), CONDITION: _shown(node.terms)}
        filters = [*(each.term for each in used if each.in_filter), *node.terms]
        values = [each.term for each in used if not each.in_filter]
        for name, rows in zip(("left", "right"), node.inputs, strict=True):
            stored, compared = (_side(terms, rows, node.number) for terms in (values, filters))
            if len(set(compared) - set(stored)) > 1:
                raise NotComparableError("a join stores columns of which only conditions decide the order")
            parts[f"{name} columns"] = _shown(term.parts[0] for term in stored)
            below = [_Used(term.parts[0]) for term in dict.fromkeys((*stored, *compared))]
            inputs.append(self._rows(rows, below))
        if node.keeps_state:
            self._operators.append(FormOperator(StateOperator("join", parts, tuple(inputs)), node, node.terms))
        described = "; ".join(f"{name}: {_listed(texts)}" for name, texts in parts.items())
        return InputRows(f"join with {described}", tuple(inputs))

    def _union(self, node: Relation, used: Sequence[_Used], _lower: Sequence[Term]) -> InputRows:
        wanted = set(owned((each.term for each in used), node.number))
        terms = [each for each in node.columns if each in wanted]
        branches = []
        for index, rows in enumerate(node.inputs):
            selected = [term.parts[index] for term in terms]
            below = self._rows(rows, list(map(_Used, selected)))
            branches.append(InputRows(f"select {_listed(_shown(selected))}", (below,)))
        return InputRows("union", tuple(branches))


def _has_state_below(node: Relation) -> bool:
    """Returns whether an operator below keeps state, which then depends on what is above it."""
    return any(each.keeps_state for rows in node.inputs for each in rows.walk())


def _below(relation: Relation) -> tuple[Relation, list[Term]]:
    """Returns the first relation that is neither a select list nor a filter, and the conditions above it."""
    conditions: list[Term] = []
    while relation.step in (Step.SELECT, Step.FILTER):
        conditions = [*(relation.terms if relation.step is Step.FILTER else ()), *conditions]
        (relation,) = relation.inputs
    return relation, conditions


def _check_order(relation: Relation, *, is_output: bool = False) -> None:
    """Raises: NotComparableError if select lists above an aggregation name its results in different orders, or one of
    them again and again. Spark combines select lists, and removes columns that nothing uses, but not always, so the
    order in which it stores the results is unknown. A single list for the output is as written.
    """
    layers = []
    while relation.step in (Step.SELECT, Step.FILTER):
        layers += [relation.calls] if relation.step is Step.SELECT else []
        (relation,) = relation.inputs
    if relation.step is not Step.AGGREGATION or (is_output and len(layers) == 1):
        return
    places = {call: index for index, call in enumerate(relation.calls)}
    for layer in layers:
        parts = (part for term in layer for part in term.walk())
        order = [places[part] for part in parts if part.owner == relation.number and part in places]
        if order != sorted(order):
            raise NotComparableError("select lists with the results of an aggregation in different orders")


def _filter(rows: InputRows, node: Relation, conditions: Sequence[Term]) -> InputRows:
    """Returns rows with a filter. Above a join of streams the order of conditions can decide that of its keys."""
    if not conditions:
        return rows
    texts = _shown(conditions) if _is_ordered(node) else _sorted(conditions)
    return InputRows(WHERE + " and ".join(texts), (rows,))


def _movable(node: Relation, conditions: Sequence[Term]) -> list[Term]:
    """Returns the conditions above a relation that Spark moves below it: those on the keys of an aggregation, and those
    on other columns than the time of a watermark. Above a join of streams, their order then decides that of its keys.
    """
    if _is_ordered(node) or node.step not in (Step.AGGREGATION, Step.WATERMARK):
        return []
    if node.step is Step.WATERMARK:
        _check_time(node, conditions)
    own = {*node.terms} if node.step is Step.WATERMARK else {*node.calls}
    return [each for each in conditions if not own & set(each.walk()) and each.has_columns]


def _check_time(node: Relation, conditions: Sequence[Term]) -> None:
    """Raises: NotComparableError if a condition uses the time of a watermark, and it is not certain that it means this
    column: Spark moves a filter on another column with the same value below the watermark.
    """
    (time,) = node.terms
    is_used = any(time in each.walk() for each in conditions)
    if is_used and (time.kind is not Kind.COLUMN or node.inputs[0].columns.count(time) > 1):
        raise NotComparableError("a condition on the time of a watermark, which is not one plain column")


def _is_ordered(node: Relation) -> bool:
    return any(each.step is Step.JOIN and each.keeps_state for each in node.walk())


def _side(terms: Iterable[Term], rows: Relation, number: int) -> list[Term]:
    """Returns the columns of one side of a join that `terms` use, in their order in the rows of the side."""
    wanted = set(owned(terms, number))
    return [each for each in rows.columns if each in wanted]


def _sorted(terms: Iterable[Term]) -> list[str]:
    return sorted({term.shown for term in terms})


def _shown(terms: Iterable[Term]) -> tuple[str, ...]:
    return tuple(term.shown for term in terms)


def _listed(texts: Iterable[str]) -> str:
    return ", ".join(texts) or "nothing"


# Which expressions behind the last operator with state leave its state alone.
#
# Spark's optimizer removes an aggregate function, or a stored column, if it finds out that an expression does not
# need it: `coalesce(count(*), max(v))` is `count(*)`. So only expressions are known that keep all of their columns.

_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_STORED = frozenset({Kind.CALL, Kind.SIDE})
_ARITHMETIC = frozenset({"+", "-", "*", "/", "%"})
_OF_ONE = frozenset({"round", "abs", "floor", "ceil", "upper", "lower", "sqrt", "negative", "date", "trim", "length"})
"""Functions that need their first argument; others are literals."""

_FIRST = frozenset({"coalesce", "ifnull", "nvl"})


def keeps_all(term: Term) -> bool:
    """Returns whether Spark needs all stored columns and results of aggregations in an expression."""
    return not any(part.kind in _STORED for part in term.walk()) or _is_kept(term)


def _is_kept(term: Term) -> bool:
    if term.kind in _STORED:
        return True
    if term.kind is not Kind.OPERATION:
        return False
    if term.head in _ARITHMETIC:
        return all(_is_number(part) or _is_kept(part) for part in term.parts) and len(set(term.parts)) > 1
    if term.head.startswith(CAST):
        return _is_kept(term.parts[0])
    if term.head in _FIRST or term.head in _OF_ONE:
        allows_null = term.head in _FIRST
        others = term.parts[1:]
        return _is_kept(term.parts[0]) and all(
            _is_number(part) or (allows_null and part.kind is Kind.LITERAL) for part in others
        )
    return False


def _is_number(term: Term) -> bool:
    """Returns whether a term is a number. Of a text without a number Spark can make null, which needs no column."""
    return term.kind is Kind.LITERAL and _NUMBER.fullmatch(term.head) is not None


def keeps_groups(conditions: Sequence[Term], calls: Collection[Term], aggregation: Relation) -> bool:
    """Returns whether conditions on the results of an aggregation are comparisons with literals about which Spark's
    optimizer can find out nothing, not even together.
    """
    types = _types(aggregation)
    pairs = [each for each in map(compared, conditions) if each is not None]
    known = {call for call, value in pairs if call in calls and _is_open(call, value.head, types)}
    return len(known) == len(conditions)


def keeps_rows(conditions: Sequence[Term], deduplication: Relation) -> bool:
    """Returns whether conditions behind a deduplication are such comparisons, with columns that are no keys."""
    types = _types(deduplication)
    keys = {part for key in deduplication.terms for part in key.walk()}
    pairs = [each for each in map(compared, conditions) if each is not None]
    known = {term for term, value in pairs if term not in keys and _is_in_range(types.get(term.text), value.head)}
    return len(known) == len(conditions)


def _types(relation: Relation) -> dict[str, str]:
    return {text: kind for each in relation.walk() for text, kind in each.types.items()}


_NUMBER, _TEXT = re.compile(r"-?\d{1,9}(\.\d{1,3})?"), re.compile(r"'.*'")
_NUMERIC = frozenset({"int", "bigint", "double", "float"})


def _is_open(call: Term, value: str, types: dict[str, str]) -> bool:
    """Returns whether an aggregate function can return values on both sides of a literal: Spark finds out if a literal
    is not in the range of its type.
    """
    if call.kind is not Kind.CALL:
        return False
    function = call.parts[0]
    if function.head == FILTER:
        function = function.parts[0]
    if function.head in ("count", "count_if", "sum"):
        return _NUMBER.fullmatch(value) is not None
    if function.head not in ("max", "min", "avg"):
        return False
    kind = types.get(function.parts[0].text)
    return _is_in_range(kind, value) and not (kind == "string" and function.head == "avg")


def _is_in_range(kind: str | None, value: str) -> bool:
    """Returns whether columns of a type can have values on both sides of a literal."""
    pattern = _TEXT if kind == "string" else _NUMBER if kind in _NUMERIC else None
    return pattern is not None and pattern.fullmatch(value) is not None
