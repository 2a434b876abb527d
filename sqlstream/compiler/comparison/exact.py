"""Tells for which queries a difference of their forms is certain to be one for Spark, too.

Spark's optimizer changes many expressions, so two that differ here can be the same for it: `v + 0.0` and `v + 0`, or
`count(v)` and `count(*)` where `v` is never null. Only plain expressions are known to stay as they are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from sqlstream.compiler.comparison.expressions import WINDOWS
from sqlstream.compiler.comparison.forms import FormOperator, QueryForm
from sqlstream.compiler.comparison.relations import Relation, Step
from sqlstream.compiler.comparison.terms import FILTER, Kind, Term, compared

_FUNCTIONS = frozenset({"upper", "lower", "length"})
_AGGREGATES = frozenset({"sum", "max", "min", "avg"})
_OF_CONDITIONS = frozenset({"bool_or", "bool_and", "count_if"})
_ARITHMETIC = frozenset({"+", "*", "%"})
_SMALL, _WHOLE = re.compile(r"[2-9]|[1-9]\d"), re.compile(r"[2-9]|[1-9]\d{1,4}")
_FRACTION = re.compile(r"\d{1,4}\.\d{0,3}[1-9]")
_TEXT, _START = re.compile(r"'[^']+'"), re.compile(r"'[a-zA-Z0-9]+%'")
_NUMBERS, _WHOLE_NUMBERS = frozenset({"int", "bigint", "double", "float"}), frozenset({"int", "bigint"})
_TEXTS = frozenset({"string"})
_STEPS = frozenset({Step.SOURCE, Step.SELECT, Step.FILTER, Step.WATERMARK})


def is_exact(form: QueryForm) -> bool:
    """Returns whether each difference to another exact form means that the state has other content."""
    if not form.operators:
        return True
    return form.is_simple and len(form.operators) == 1 and _Plain(form.operators[0]).is_plain


class _Plain:
    """Tells whether Spark leaves all expressions of an operator as they are. `types` are the types of columns."""

    def __init__(self, operator: FormOperator) -> None:
        self._operator = operator
        self._chain = chain_below(operator.relation)
        self._types = {text: kind for node in self._chain for text, kind in node.types.items()}

    @property
    def is_plain(self) -> bool:
        """Whether the operator is over one source, with plain keys, aggregates and conditions."""
        operator = self._operator
        if operator.kind not in ("aggregation", "deduplication"):
            return False
        if any(node.step not in _STEPS for node in self._chain[1:]) or len({*operator.terms}) < len(operator.terms):
            return False  # Spark removes a repeated key
        filters = (node.terms for node in self._chain if node.step is Step.FILTER)
        conditions = [*operator.filters, *(term for terms in filters for term in terms)]
        inner = dict.fromkeys(part for term in operator.terms for part in _conditions_in(term))
        return all(map(self._is_plain, operator.terms)) and self._are_apart(conditions, list(inner))

    def _is_plain(self, term: Term) -> bool:
        """Returns whether Spark leaves a key or an aggregate as it is."""
        if term.kind is Kind.CALL:
            (function,) = term.parts
            function = function.parts[0] if function.head == FILTER else function
            if function.head in _OF_CONDITIONS:
                return True  # see `_are_apart`
            if function.head == "count":
                return function.parts[0].text == "1"
            return function.head in _AGGREGATES and len(function.parts) == 1 and self._is_operand(function.parts[0])
        if term.head in WINDOWS:
            return term.parts[0].kind is Kind.COLUMN and all(part.kind is Kind.LITERAL for part in term.parts[1:])
        if term.head in _FUNCTIONS:
            return len(term.parts) == 1 and self._is_typed(term.parts[0], _TEXTS)
        return self._is_operand(term)

    def _is_operand(self, term: Term) -> bool:
        if term.kind is Kind.COLUMN:
            return True
        if term.head not in _ARITHMETIC or len(term.parts) != 2:
            return False
        first, second = sorted(term.parts, key=lambda part: part.kind is Kind.LITERAL)
        is_last = term.head != "%" or second is term.parts[1]
        return is_last and self._is_typed(first, _WHOLE_NUMBERS) and _is_literal(second, _WHOLE)

    def _is_typed(self, term: Term, wanted: frozenset[str]) -> bool:
        return term.kind is Kind.COLUMN and self._types.get(term.text) in wanted

    def _are_apart(self, conditions: Sequence[Term], inner: Sequence[Term]) -> bool:
        """Returns whether Spark can conclude nothing from conditions, not even from several together. `inner` are those
        in aggregate functions, which it does not combine with each other.
        """
        columns = [self._columns(each) for each in conditions]
        others = [self._columns(each) for each in inner]
        if not all(columns) or not all(others):
            return False
        found = Counter(column for each in columns for column in each)
        ranges = [column for column, count in found.items() if count > 1]
        are_ranges = all(self._is_range([each for each in conditions if column in each.parts]) for column in ranges)
        return are_ranges and not found.keys() & {column for each in others for column in each}

    def _columns(self, condition: Term) -> frozenset[Term]:
        """Returns the columns that a condition compares with literals; none for other conditions."""
        if condition.head == "or":
            found = [self._columns(each) for each in condition.parts]
            columns = frozenset[Term]().union(*found)
            return columns if all(found) and len(columns) == len(found) else frozenset()
        if condition.head in ("in", "like"):
            column, *literals = condition.parts
            pattern, counts = (_START, (1,)) if condition.head == "like" else (_TEXT, range(2, 10))
            are_texts = self._is_typed(column, _TEXTS) and all(_is_literal(each, pattern) for each in literals)
            return frozenset({column}) if are_texts and len(literals) in counts else frozenset()
        pair = compared(condition)
        if pair is None or (condition.head == "not" and condition.parts[0].head != "="):
            return frozenset()
        column, value = pair
        is_known = (
            (self._is_typed(column, _NUMBERS) and _is_literal(value, _SMALL))
            or (self._is_typed(column, frozenset({"double"})) and _is_literal(value, _FRACTION))
            or (self._is_typed(column, _TEXTS) and _is_literal(value, _TEXT))
        )
        return frozenset({column}) if is_known else frozenset()

    def _is_range(self, conditions: Sequence[Term]) -> bool:
        """Returns whether conditions on one column are those of `between` with different numbers."""
        bounds = {each.head: each.parts[1].head for each in conditions if each.head in ("<=", ">=")}
        are_numbers = len(conditions) == len(bounds) == 2 and all(map(_SMALL.fullmatch, bounds.values()))
        return are_numbers and int(bounds[">="]) < int(bounds["<="])


def _is_literal(term: Term, pattern: re.Pattern[str]) -> bool:
    return term.kind is Kind.LITERAL and pattern.fullmatch(term.head) is not None


def _conditions_in(term: Term) -> Iterator[Term]:
    """Yields the conditions in an aggregate function."""
    for part in term.walk():
        if part.head == FILTER:
            yield part.parts[1]
        elif part.head in _OF_CONDITIONS:
            yield from part.parts


def chain_below(relation: Relation) -> list[Relation]:
    """Returns the relation and those below it, up to one with several inputs or none."""
    found = [relation]
    while len(found[-1].inputs) == 1:
        found += found[-1].inputs
    return found
