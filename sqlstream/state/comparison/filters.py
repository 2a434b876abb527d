"""Tells whether two queries certainly differ: by an example row that only one of two filters selects, or by forms that
the optimizer keeps.

Spark's optimizer rewrites conditions, but keeps their meaning. So no rewriting can make two filters equal if a row
passes only one of them. Only conditions that test columns with literals are compared: each column gets the values
around all literals with which it is compared.
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import ceil, floor, prod

from sqlstream.compiler.comparison.queries import Relation, Step
from sqlstream.compiler.comparison.terms import FILTER, NULL, Kind, Term, compared
from sqlstream.compiler.flow.expressions.column import WINDOWS
from sqlstream.state.comparison.forms import FormOperator, QueryForm

_Value = int | float | str | bool | Fraction | None
_Row = Mapping[str, _Value]

_MOST_ROWS = 20_000
"""The most rows to try."""

_STEPS = frozenset({Step.SOURCE, Step.SELECT, Step.FILTER, Step.WATERMARK})
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_NUMBER, _TEXT = re.compile(r"-?\d{1,15}(?:\.\d{1,6})?"), re.compile(r"'[ -&(-~]*'")
_START = re.compile(r"'[a-zA-Z0-9 ]+%'")
_COMPARISONS: dict[str, Callable[..., bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class _NotPlainError(Exception):
    """A condition is not a plain one."""


def select_other_rows(before: QueryForm, after: QueryForm, *, keeps_groups: bool, has_nulls: bool) -> bool:
    """Returns whether the only difference between two queries with state is a filter of a source, and the states have
    different rows because of it.

    `keeps_groups`: the state may have other keys than those that the query reads now. `has_nulls`: any column can be
    null, which Spark otherwise knows to be impossible.
    """
    if not (before.is_simple and after.is_simple and len(before.operators) == len(after.operators) == 1):
        return False
    (old,), (new,) = before.operators, after.operators
    one, other = old.state, new.state
    is_same = (one.kind, one.parts, before.watermarks) == (other.kind, other.parts, after.watermarks)
    keys = [term for term in new.terms if term.kind is not Kind.CALL]
    if not is_same or not keys or other.kind not in ("aggregation", "deduplication"):
        return False  # without keys a filter can leave the state as it is
    try:
        conditions = _conditions(old), _conditions(new)
        return _Filters(_types(old) | _types(new), has_nulls=has_nulls).differ(
            *conditions, keys if keeps_groups else None
        )
    except _NotPlainError:
        return False


def _conditions(operator: FormOperator) -> list[Term]:
    """Returns all conditions on the rows of an operator. Raises: _NotPlainError if its input is not a plain source."""
    chain = chain_below(operator.relation)
    if any(node.step not in _STEPS for node in chain[1:]):
        raise _NotPlainError
    return [*operator.filters, *(term for node in chain if node.step is Step.FILTER for term in node.terms)]


def _types(operator: FormOperator) -> dict[str, str]:
    return {text: kind for node in chain_below(operator.relation) for text, kind in node.types.items()}


class _Filters:
    """Compares filters of rows with columns of the `types`."""

    def __init__(self, types: Mapping[str, str], *, has_nulls: bool) -> None:
        self._types, self._has_nulls = types, has_nulls

    def differ(self, old: Sequence[Term], new: Sequence[Term], keys: Sequence[Term] | None) -> bool:
        """Returns whether a row passes only one filter. With `keys`, `new` may select fewer keys than `old`.

        Raises: _NotPlainError.
        """
        columns = {part.text for each in (*old, *new) for part in each.walk() if part.kind is Kind.COLUMN}
        values = {column: self._values(column, (*old, *new)) for column in sorted(columns)}
        if prod(map(len, values.values())) > _MOST_ROWS:
            raise _NotPlainError
        shown = [key.text for key in keys or () if key.text in values]
        selected: dict[tuple[_Value, ...], set[bool]] = {}
        found = False
        for each in product(*values.values()):
            row = dict(zip(values, each, strict=True))
            before, after = (all(self._holds(term, row) is True for term in terms) for terms in (old, new))
            found = found or before != after
            if keys is None and found:
                return True
            if after and not before:
                return True
            if before:
                selected.setdefault(tuple(row[name] for name in shown), set()).add(after)
        return found and any(len(each) > 1 for each in selected.values())

    def _values(self, column: str, conditions: Sequence[Term]) -> list[_Value]:
        """Returns values of a column that make each comparison with a literal true and false."""
        literals = [value for term in conditions for value in _literals(column, term)]
        kind = self._types.get(column, "")
        found: set[_Value] = set()
        if kind in _BITS and all(isinstance(each, Fraction) for each in literals):
            most = 2 ** (_BITS[kind] - 1)
            around = {n + i for each in literals for n in (floor(each), ceil(each)) for i in (-1, 0, 1)}  # type: ignore[arg-type]
            found = {each for each in (*around, 0) if -most <= each < most}
        elif kind == "double" and all(isinstance(each, Fraction) for each in literals):
            found = {float(each) + i for each in literals for i in (-0.5, 0.0, 0.5)} | {0.0}  # type: ignore[arg-type]
        elif kind == "string" and all(isinstance(each, str) for each in literals):
            found.update(("", "~"), *((str(each), f"{each}a", str(each)[:-1]) for each in literals))
        elif kind == "boolean" and all(isinstance(each, bool) for each in literals):
            found = {True, False}
        else:
            raise _NotPlainError
        return [*sorted(found, key=str), *((None,) if self._has_nulls else ())]

    def _holds(self, term: Term, row: _Row) -> bool | None:
        """Returns the value of a condition, None for null. Raises: _NotPlainError."""
        if term.head in ("and", "or") and term.kind is Kind.OPERATION:
            found = [self._holds(part, row) for part in term.parts]
            decisive = term.head == "or"
            return decisive if decisive in found else None if None in found else not decisive
        if term.head == "not":
            inner = self._holds(term.parts[0], row)
            return None if inner is None else not inner
        if term.kind is Kind.OPERATION:
            return _test(term, [_operand(part, row) for part in term.parts])
        value = _operand(term, row)
        if value is not None and not isinstance(value, bool):
            raise _NotPlainError
        return value


def _operand(term: Term, row: _Row) -> _Value:
    if term.kind not in (Kind.COLUMN, Kind.LITERAL):
        raise _NotPlainError
    return row[term.text] if term.kind is Kind.COLUMN else _literal(term)


def _test(term: Term, values: Sequence[_Value]) -> bool | None:
    """Returns the result of a test of one column with literals. Raises: _NotPlainError."""
    if sum(part.kind is Kind.COLUMN for part in term.parts) != 1:
        raise _NotPlainError
    first, *others = values
    if isinstance(first, float):  # Spark casts the literals to doubles
        others = [float(other) if isinstance(other, Fraction) else other for other in others]
    if term.head == "is" and term.parts[1] == NULL:
        return first is None
    if term.head == "in":
        equal = [None if None in (first, other) else first == other for other in others]
        return True if True in equal else None if None in equal else False
    if term.head == "like" and len(others) == 1 and isinstance(others[0], str) and _START.fullmatch(f"'{others[0]}'"):
        return None if first is None else str(first).startswith(others[0][:-1])
    if term.head == "<=>":
        return first == others[0]
    if term.head not in _COMPARISONS:
        raise _NotPlainError
    return None if None in (first, others[0]) else _COMPARISONS[term.head](first, others[0])


def _literals(column: str, condition: Term) -> Iterator[_Value]:
    """Yields the literals other than null with which a condition compares a column. Raises: _NotPlainError."""
    for part in condition.walk():
        if any(each.text == column for each in part.parts):
            values = (_literal(each) for each in part.parts if each.kind is Kind.LITERAL)
            yield from ((str(value)[:-1] if part.head == "like" else value) for value in values if value is not None)


def _literal(term: Term) -> _Value:
    text = term.head
    if text in ("true", "false", NULL.head):
        return {"true": True, "false": False}.get(text)
    if _NUMBER.fullmatch(text):
        return Fraction(text)
    if _TEXT.fullmatch(text):
        return text[1:-1]
    raise _NotPlainError


# Tells for which queries a difference of their forms is certain to be one for Spark, too.
#
# Spark's optimizer changes many expressions, so two that differ here can be the same for it: `v + 0.0` and `v + 0`,
# or `count(v)` and `count(*)` where `v` is never null. Only plain expressions are known to stay as they are.

_FUNCTIONS = frozenset({"upper", "lower", "length"})
_AGGREGATES = frozenset({"sum", "max", "min", "avg"})
_OF_CONDITIONS = frozenset({"bool_or", "bool_and", "count_if"})
_ARITHMETIC = frozenset({"+", "*", "%"})
_SMALL, _WHOLE = re.compile(r"[2-9]|[1-9]\d"), re.compile(r"[2-9]|[1-9]\d{1,4}")
_FRACTION = re.compile(r"\d{1,4}\.\d{0,3}[1-9]")
_EXACT_TEXT, _EXACT_START = re.compile(r"'[^']+'"), re.compile(r"'[a-zA-Z0-9]+%'")
_NUMBERS, _WHOLE_NUMBERS = frozenset({"int", "bigint", "double", "float"}), frozenset({"int", "bigint"})
_TEXTS = frozenset({"string"})


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
        if operator.state.kind not in ("aggregation", "deduplication"):
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
            pattern, counts = (_EXACT_START, (1,)) if condition.head == "like" else (_EXACT_TEXT, range(2, 10))
            are_texts = self._is_typed(column, _TEXTS) and all(_is_literal(each, pattern) for each in literals)
            return frozenset({column}) if are_texts and len(literals) in counts else frozenset()
        pair = compared(condition)
        if pair is None or (condition.head == "not" and condition.parts[0].head != "="):
            return frozenset()
        column, value = pair
        is_known = (
            (self._is_typed(column, _NUMBERS) and _is_literal(value, _SMALL))
            or (self._is_typed(column, frozenset({"double"})) and _is_literal(value, _FRACTION))
            or (self._is_typed(column, _TEXTS) and _is_literal(value, _EXACT_TEXT))
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
