"""Which expressions behind the last operator with state leave its state alone.

Spark's optimizer removes an aggregate function, or a stored column, if it finds out that an expression does not need
it: `coalesce(count(*), max(v))` is `count(*)`. So only expressions are known that keep all of their columns.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from sqlstream.compiler.comparison.relations import Relation
from sqlstream.compiler.comparison.terms import CAST, FILTER, Kind, Term, compared

_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_STORED = frozenset({Kind.CALL, Kind.SIDE})
_ARITHMETIC = frozenset({"+", "-", "*", "/", "%"})
_OF_ONE = frozenset({"round", "abs", "floor", "ceil", "upper", "lower", "sqrt", "negative", "date", "trim", "length"})
"""Functions that need their first argument; others are literals."""

_FIRST = frozenset({"coalesce", "ifnull", "nvl"})


def keeps_all(term: Term) -> bool:
    """Returns whether Spark needs all stored columns and results of aggregations in an expression."""
    return not _uses_stored(term) or _is_kept(term)


def _uses_stored(term: Term) -> bool:
    return any(part.kind in _STORED for part in term.walk())


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
