"""Compares two state signatures: what of the state in a checkpoint does not fit a changed query."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from sqlstream.compiler.flow.functions import FUNCTIONS
from sqlstream.state.signature.operators import CONDITION, WATERMARK, WHERE
from sqlstream.state.signature.signature import InputRows, StateOperator, StateSignature
from sqlstream.state.signature.source_checks import CORRUPT

_EFFECTS = {
    "keys": "rows would be added to the state of other keys",
    "aggregates": "new rows would be added to results of the old expressions",
    "number of rows": "the rows that it has let through so far count toward the new limit",
    "type": "the state lacks rows that the new join needs, or has rows that it would return wrongly",
    "condition": "the state has rows of the old condition",
    "left columns": "the rows in the state have the old columns",
    "right columns": "the rows in the state have the old columns",
    "definition": "the state has the values of the old definition",
}
OPERATORS, NO_OPERATORS = "the list of operators with state", "none"
"""The part of a difference with which Spark refuses to start, unless the checkpoint has no state at all."""

KEPT_ROWS = "the state keeps the rows that the old query selected"

METRICS = "collectmetrics "
"""The start of the text of a counter of rows, which early signatures have."""


@dataclass(frozen=True)
class StateDifference:
    """Something that state depends on: what it is, its values before and after (empty: none), and what would happen if
    the changed query used the state.
    """

    part: str
    before: str
    after: str
    effect: str

    def __str__(self) -> str:
        before, after = map(_cut, _shown(self.before, self.after))
        if before and after:
            change = f"changed from `{before}` to `{after}`"
        else:
            have = "have" if self.part.split(" of ")[0].endswith("s") else "has"
            change = f"no longer {have} `{before}`" if before else f"now {have} `{after}`"
        return f"{self.part} {change}"

    @property
    def is_readable(self) -> bool:
        """Whether both values have only what SQL has, and not Spark's own form of an expression."""
        return max(map(len, _shown(self.before, self.after))) <= _LONGEST and not self.has_inner_forms

    @property
    def has_inner_forms(self) -> bool:
        """Whether a value has Spark's own form of an expression, which no user can read."""
        texts = [_TEXTS.sub("''", text) for text in _shown(self.before, self.after)]
        calls = {name for text in texts for name in _CALL.findall(text)}
        return not FUNCTIONS.keys() >= calls or any(map(_INNER.search, texts))


_LONGEST = 160
"""The characters of a value that one reads at a glance."""

_CALL = re.compile(r"(?<![\w.])([a-z_]\w*)\((?![^()]* (?:string|integer|long|double|timestamp|date|boolean)\b)")
"""A function in a value; a source with the types of its columns is none."""

_TEXTS = re.compile(r"'(?:[^']|'')*'")
"""Literals of text."""

_FIELD = r", (?!(?:byte|short|long|float|double) )[a-z]\w* (?:[0-9]+(?![-\w.])|\[[0-9]+(?:, [0-9]+)*\])(?=[,)\]])"
"""A field of an expression that is a number or a list of numbers, mostly the positions of operands."""

_INNER = re.compile(
    rf"\bexpand\b|\b[a-z]+ [0-9]+(?:: |\[)|isnotnull\(|\?|, [a-z]+[A-Z]\w* |\b[A-Z]\w*[a-z]\w*\(|"
    rf", [a-z]\w* (?:true\b|false\b|[\[{{])|{_FIELD}"
)
"""An operator that has no name in SQL, a condition that Spark has added, a field of an expression, a class of Spark."""

_DETAILS = (
    (re.compile(r" \[value [0-9a-f]+\]"), ""),
    (re.compile(r"\b(?:byte|short|long|float|double|decimal\([0-9,]+\)) (?=-?[0-9])"), ""),
    (re.compile(r", timeZoneId [\w/+:-]+"), ""),
    (re.compile(rf"('(?:[^']|'')*')|{_FIELD}"), r"\1"),
)
"""Parts of values that few need to see: digests of literals, types of numbers, the time zone of a cast, the positions
of operands.
"""


def _shown(before: str, after: str) -> tuple[str, str]:
    """Returns both texts without their details, but with those by which alone they differ."""
    for pattern, short in _DETAILS:
        shorter = (pattern.sub(short, before), pattern.sub(short, after))
        before, after = shorter if shorter[0] != shorter[1] else (before, after)
    return (_ZONE.sub(r" in \1", before), _ZONE.sub(r" in \1", after))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


_ZONE = re.compile(r", timeZoneId ([\w/+:-]+)")
"""The session time zone in a cast."""


def state_differences(
    old: StateSignature, new: StateSignature, known_sources: Collection[str]
) -> tuple[StateDifference, ...]:
    """Returns the differences that make the state of `old` wrong for `new`; empty if it is right.

    `known_sources` are the sources that the old query has read, as the signature names them.
    """
    old, new = _without_checks(_without(old, METRICS)), _without_checks(new)
    if old.output_mode == new.output_mode == "complete":
        old, new = _without_limits(old), _without_limits(new)
    if old.watermarks != new.watermarks and not (_uses_time(old) or _uses_time(new)):
        old, new = (replace(_without(each, WATERMARK), watermarks=()) for each in (old, new))
    # Spark finds the state of an operator by its position in the plan, so with another list of operators there is
    # nothing to compare.
    kinds = [[operator.kind for operator in each.operators] for each in (old, new)]
    if kinds[0] != kinds[1]:
        return (_operators(*kinds),)
    found = [*_mode(old, new), *_watermarks(old, new)]
    for index, (before, after) in enumerate(zip(old.operators, new.operators, strict=True)):
        if _leaves_other_keys_unused(before, after, new) or _returns_nothing(before, after):
            continue
        found += _operator(before, after, _name(old, index), set(known_sources) if not new.watermarks else None)
    return tuple(found)


def _without_limits(signature: StateSignature) -> StateSignature:
    """Returns a signature in complete mode without its limits: Spark takes the first of all rows again in each batch,
    and keeps no count.
    """
    return replace(signature, operators=tuple(each for each in signature.operators if each.kind != "limit"))


def _uses_time(signature: StateSignature) -> bool:
    """Returns whether a watermark can decide which rows an operator drops or keeps. An aggregation drops rows and
    groups only if one of its keys has the time of the watermark (StateStoreSaveExec).
    """
    times = [text.removeprefix(WATERMARK).rpartition(",")[0] for text in signature.watermarks]
    is_free = signature.output_mode in ("update", "complete")
    is_free = is_free and all(each.kind == "aggregation" for each in signature.operators)
    keys = [key for each in signature.operators for key in each.parts.get("keys", ())]
    return not is_free or any(time in key for time in times for key in keys)


def _without(signature: StateSignature, start: str) -> StateSignature:
    """Returns a signature without the operations with texts that begin with `start`, which change no rows."""
    operators = (
        replace(each, inputs=tuple(_below(rows, start) for rows in each.inputs)) for each in signature.operators
    )
    return replace(signature, operators=tuple(operators))


def _below(rows: InputRows, start: str) -> InputRows:
    if rows.text.startswith(start):
        return _below(rows.inputs[0], start)
    return replace(rows, inputs=tuple(_below(each, start) for each in rows.inputs))


def _without_checks(signature: StateSignature) -> StateSignature:
    """Returns a signature without the checks of records at its sources, which earlier ones have."""
    operators = (replace(each, inputs=tuple(map(_unchecked, each.inputs))) for each in signature.operators)
    return replace(signature, operators=tuple(operators))


def _unchecked(rows: InputRows) -> InputRows:
    if not rows.inputs:
        return replace(rows, text=rows.text.replace(f"{CORRUPT} string, ", "").replace(f"{CORRUPT} string", ""))
    inputs = tuple(map(_unchecked, rows.inputs))
    conditions = conditions_of(rows)
    kept = [each for each in conditions if not _CHECK.search(each)]
    if conditions and not kept:
        return inputs[0]
    return InputRows(WHERE + " and ".join(kept) if conditions else rows.text, inputs)


_CHECK = re.compile(
    rf"^arrayexists\(createarray\(struct\(.*\.{CORRUPT}\)|^isnull\((?:coalesce\()?casewhen\(.*, (?:concat\()?"
    r"'(?:the (?:key|value) |`[^']*` is (?:the number |'')?'|, more than )"
)
"""A condition that keeps the records without a reason to be corrupt."""


def _operators(before: Sequence[str], after: Sequence[str]) -> StateDifference:
    old, new = (", ".join(each) or NO_OPERATORS for each in (before, after))
    effect = "Spark would find the state of another operator, or none"
    return StateDifference(OPERATORS, old, new, effect)


def _mode(old: StateSignature, new: StateSignature) -> Iterator[StateDifference]:
    if old.output_mode == new.output_mode or not new.operators:
        return
    effect = "Spark has removed or returned groups of the state as the old mode needs it"
    keeps_all = {"update", "complete"}
    if {old.output_mode, new.output_mode} == keeps_all and not (old.watermarks or new.watermarks):
        if new.output_mode == "update" or not any(map(filters_keys, old.operators)):
            return  # both keep all groups
        effect = "the state can have groups of keys that the query now filters out, and complete mode returns them"
    yield StateDifference("the output mode", old.output_mode, new.output_mode, effect)


def _watermarks(old: StateSignature, new: StateSignature) -> Iterator[StateDifference]:
    if new.operators and old.watermarks != new.watermarks:
        before, after = (", ".join(each.watermarks).replace(WATERMARK, "") or "none" for each in (old, new))
        effect = "the checkpoint has the old watermark, so rows would be dropped, or groups be closed, at other times"
        yield StateDifference("the watermark", before, after, effect)


def _leaves_other_keys_unused(old: StateOperator, new: StateOperator, query: StateSignature) -> bool:
    """Returns whether the state of `old` has all rows that `new` needs, and otherwise only rows of keys that `new` no
    longer reads. In complete mode Spark would return them, too. With a watermark, filtered rows may have moved it.
    """
    is_quiet = (
        # These return a row only when a new row has its key, so rows of keys that are filtered out stay unseen.
        new.kind == "deduplication"
        or (new.kind == "aggregation" and query.output_mode == "update")
        or new.parts.get("type") == ("Inner",)
    )
    return is_quiet and not query.watermarks and only_filters_keys(old, new)


def _returns_nothing(old: StateOperator, new: StateOperator) -> bool:
    """Returns whether `new` is an inner join with the stored rows of `old`, and Spark found that its conditions exclude
    each other.
    """
    stored = ({**each.parts, CONDITION: ()} for each in (old, new))
    is_empty = any("false" in conditions_of(rows) for rows in new.inputs)
    return new.parts.get("type") == ("Inner",) and is_empty and next(stored) == next(stored)


def _operator(
    old: StateOperator, new: StateOperator, name: str, known_sources: Collection[str] | None
) -> Iterator[StateDifference]:
    is_inner = old.parts.get("type") == new.parts.get("type") == ("Inner",)
    for part in dict.fromkeys((*old.parts, *new.parts)):
        before, after = old.parts.get(part, ()), new.parts.get(part, ())
        is_narrower = is_inner and part == CONDITION and _only_narrows(before, after)
        if before != after and not is_narrower:
            yield _changed(f"the {part} of {name}", before, after, _EFFECTS.get(part, KEPT_ROWS))
    for before_rows, after_rows in zip(old.inputs, new.inputs, strict=True):
        only_more = not filters_keys(old) and _only_adds_sources(before_rows, after_rows, old.kind, known_sources)
        if before_rows != after_rows and not only_more:
            yield _changed(f"the input of {name}", list(_lines(before_rows)), list(_lines(after_rows)), KEPT_ROWS)


def _changed(part: str, before: Sequence[str], after: Sequence[str], effect: str) -> StateDifference:
    """Returns the difference between two lists of texts, with only those that differ."""
    if sorted(before) == sorted(after):
        return StateDifference(f"the order of {part.removeprefix('the ')}", _listed(before), _listed(after), effect)
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    changes = [each for each in matcher.get_opcodes() if each[0] != "equal"]
    removed = [text for _, start, end, _, _ in changes for text in before[start:end]]
    added = [text for _, _, _, start, end in changes for text in after[start:end]]
    return StateDifference(part, _listed(removed), _listed(added), effect)


def _listed(texts: Sequence[str]) -> str:
    return ", ".join(texts)


def _lines(rows: InputRows) -> Iterator[str]:
    """Yields the operations of an input, each condition of a filter on its own."""
    conditions = conditions_of(rows)
    yield from (WHERE + condition for condition in conditions)
    if not conditions:
        yield rows.text
    for each in rows.inputs:
        yield from _lines(each)


def _only_narrows(before: Sequence[str], after: Sequence[str]) -> bool:
    """Returns whether the conditions `after` hold only for rows for which `before` hold. An inner join checks them
    again for the rows in its state, and has not removed any that it still needs.
    """
    return all(any(condition == other or _is_within(condition, other) for other in after) for condition in before)


def _is_within(before: str, after: str) -> bool:
    """Returns whether a bound in time has only become tighter: `a <= b + interval` with another interval."""
    for bound, is_upper in ((_UPPER, True), (_LOWER, False)):
        one, other = bound.fullmatch(before), bound.fullmatch(after)
        if one and other and one.group("start", "end") == other.group("start", "end"):
            old, new = int(one["span"]), int(other["span"])
            return new <= old if is_upper else new >= old
    return False


_SUM = r"(?:timestampaddinterval|timeadd)\([^()]*, interval "
_SPAN = r"(?:day|hour|minute|second) (?P<span>-?[0-9]+)"
_UPPER = re.compile(rf"(?P<start>[^()]* <=? {_SUM}){_SPAN}(?P<end>[^()]*\))")
_LOWER = re.compile(rf"(?P<start>{_SUM}){_SPAN}(?P<end>[^()]*\) <=? [^()]*)")
"""A plain bound of a time: a column, and a column with an interval of a fixed length, in microseconds."""


def _only_adds_sources(old: InputRows, new: InputRows, kind: str, known_sources: Collection[str] | None) -> bool:
    """Returns whether `new` has the rows of `old` and those of sources that the old query has not read. An aggregation
    then has the same state as if it had read them from the start. With a watermark (`known_sources` None), some of
    their rows would be late.
    """
    if kind != "aggregation" or known_sources is None:
        return False
    if old.text == new.text and len(old.inputs) == len(new.inputs) and old.text != "union":
        pairs = zip(old.inputs, new.inputs, strict=True)
        return all(one == other or _only_adds_sources(one, other, kind, known_sources) for one, other in pairs)
    # A branch of a union is a `select` of the columns of its rows (`PlanReader._union`), so what is below it counts.
    if new.text != "union":
        return False
    count = len(old.inputs) if old.text == "union" else 1
    kept = new.inputs[:count] == old.inputs if old.text == "union" else new.inputs[0].inputs == (old,)
    return kept and all(_reads_only_new(each, known_sources) for each in new.inputs[count:])


def _reads_only_new(rows: InputRows, known_sources: Collection[str]) -> bool:
    names = set(rows.sources())
    return not names & set(known_sources)


def _name(signature: StateSignature, index: int) -> str:
    """Returns the name of an operator in messages: `the aggregation`, or `aggregation 2` if there are several."""
    kind = signature.operators[index].kind
    same = [at for at, operator in enumerate(signature.operators) if operator.kind == kind]
    return f"the {kind}" if len(same) == 1 else f"{kind} {same.index(index) + 1}"


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
    # A literal is one piece, so ` and ` within it separates nothing.
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
    # The longest first, because one key can be the start of another.
    known = "|".join(map(re.escape, sorted(keys, key=len, reverse=True)))
    pattern = re.compile(rf"{_STRING}|(?<![\w.])(?:\((?:{known})\)|(?:{known}))(?![\w.\[(])")
    test = pattern.sub(lambda found: names.get(found[0]) or names.get(found[0][1:-1]) or found[0], condition)
    # Replace tests, then combinations of tests, until nothing but one truth is left or something else remains.
    left, before = test, ""
    while left != before:
        left, before = _STEP.sub(_TRUTH, left), left
    return test if left == _TRUTH and known else None
