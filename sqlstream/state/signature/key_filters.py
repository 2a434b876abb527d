"""Filters that test only the keys of an operator: the state has rows of other keys, but nothing uses them any more."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlstream.state.signature.operators import WHERE
from sqlstream.state.signature.signature import InputRows, StateOperator

_KEY = "\ue010"
"""Starts what replaces a key in a condition; its number follows."""

_STRING = r"'(?:[^']|'')*'"
_TYPES = r"(?:byte|short|long|float|double|date|timestamp|decimal\([0-9]+,[0-9]+\))"
_CASED = rf"(?:upper|lower)\({_KEY}[0-9]+\)"
_OPERAND = (
    rf"(?:{_KEY}[0-9]+|{_CASED}|{_STRING}|{_TYPES} -?[0-9][-0-9.:E+]*(?: [0-9:.]+)?|-?[0-9]+|true|false|null [a-z]+)"
)
_POSITIONS = r"(?:, value [0-9]+, list \[[0-9, ]+\])?"
"""Which operands of IN are its list, as Spark adds it."""

_ITEM = rf"(?:{_STRING}|(?!-?0\.0\b)[\w.:/+-]*)"
"""A value of a long IN, which has no type here. Whether a hash set finds 0.0 for -0.0 is up to the set."""

_TESTS = (
    rf"is(?:not)?null\({_OPERAND}\)",
    rf"(?:in|startswith|endswith|contains)\({_OPERAND}(?:, {_OPERAND})+{_POSITIONS}\)",
    rf"inset\((?:{_KEY}[0-9]+|{_CASED}), hset \[{_ITEM}(?:, {_ITEM})*\]\)",
    rf"{_OPERAND} (?:=|<=>|<|<=|>|>=) {_OPERAND}",
)
_TRUTH = "\ue011"
_LOGIC = (rf"not\({_TRUTH}\)", rf"\({_TRUTH}\)", rf"{_TRUTH} (?:and|or) {_TRUTH}")
_STEP = re.compile("|".join((*_TESTS, *_LOGIC)))
"""A test of keys and literals, or a combination of such tests. Equal keys have the same result in each of them, also in
another letter case under a collation. That is not so for all functions: 0.0 and -0.0 are the same key, but different
strings.
"""

_PIECE = re.compile(rf"(?s){_STRING}| and |.")


def conditions_of(rows: InputRows) -> tuple[str, ...]:
    """Returns the conditions of a filter, those that AND combines; empty for other operations."""
    if not rows.text.startswith(WHERE):
        return ()
    found, depth = [""], 0
    for piece in _PIECE.findall(rows.text.removeprefix(WHERE)):
        depth += {"(": 1, ")": -1}.get(piece, 0)
        if piece == " and " and depth == 0:
            found.append("")
        else:
            found[-1] += piece
    return tuple(found)


def below_filter(rows: InputRows) -> InputRows:
    """Returns the rows that go into a filter, and other rows as they are."""
    return rows.inputs[0] if conditions_of(rows) else rows


def only_filters_keys(old: StateOperator, new: StateOperator) -> bool:
    """Returns whether `new` reads the rows of `old`, and filters them by more conditions that test only its keys.

    In a join, both sides must have the same new conditions, each on its own keys.
    """
    if dict(old.parts) != dict(new.parts):
        return False
    keys = new.parts.get("keys", ())
    if new.kind != "join":
        sides: tuple[Sequence[str], ...] = (keys,)
    else:
        pairs = [key.split(" = ") for key in keys]
        sides = tuple(zip(*pairs, strict=True)) if all(len(pair) == 2 for pair in pairs) else ()
    if len(sides) != len(new.inputs):
        return False
    added = [_added(*each) for each in zip(old.inputs, new.inputs, sides, strict=True)]
    return None not in added and all(each == added[0] for each in added)


def filters_keys(operator: StateOperator) -> bool:
    """Returns whether the rows of an operator are filtered by conditions that test only its keys.

    Its state may then have rows of other keys, from before `only_filters_keys` let the filter in.
    """
    keys = operator.parts.get("keys", ())
    return any(_test_of(condition, keys) for rows in operator.inputs for condition in conditions_of(rows))


def _added(old: InputRows, new: InputRows, keys: Sequence[str]) -> frozenset[str] | None:
    """Returns the conditions that only `new` has, with numbers for keys; None if it differs in anything else."""
    before, after = set(conditions_of(old)), set(conditions_of(new))
    if below_filter(old) != below_filter(new) or not before <= after:
        return None
    tests = [_test_of(condition, keys) for condition in after - before]
    return frozenset(test for test in tests if test is not None) if None not in tests else None


def _test_of(condition: str, keys: Sequence[str]) -> str | None:
    """Returns `condition` with numbers for `keys`, None if it depends on anything else."""
    names = {key: f"{_KEY}{number}" for number, key in enumerate(keys)}
    known = "|".join(map(re.escape, sorted(keys, key=len, reverse=True)))
    pattern = re.compile(rf"{_STRING}|(?<![\w.])(?:\((?:{known})\)|(?:{known}))(?![\w.\[(])")
    test = pattern.sub(lambda found: names.get(found[0]) or names.get(found[0][1:-1]) or found[0], condition)
    left, before = test, ""
    while left != before:
        left, before = _STEP.sub(_TRUTH, left), left
    return test if left == _TRUTH and known else None
