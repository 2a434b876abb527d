"""Reads the definitions of selectors.yml as selections; each error in them is a finding at its own location.

The forms are dbt's (dbt/graph/cli.py of dbt-core 1.11): text, `method: value`, `method:` and `value:` with the graph
operators as keys, and `union:`, `intersection:` and `exclude:` with lists of those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter

from sqlstream.compiler.selection.criteria import (
    Criterion,
    Difference,
    Intersection,
    Operators,
    Selection,
    SelectorError,
    Union,
    build_criterion,
    criteria_of,
    parse_criterion,
)
from sqlstream.compiler.selection.methods import SELECTOR, check_criterion, named_selectors
from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.configuration.selectors import Selector
from sqlstream.project.wording import alternatives, did_you_mean, given, quoted, quoted_list
from sqlstream.project.yaml import YamlEntry, YamlMapping, YamlNode, YamlScalar, YamlSequence, plain

SETS = ("union", "intersection")
INDIRECT = ("eager", "cautious", "buildable", "empty")
"""dbt's values of `indirect_selection`, which selects tests. sqlstream only checks the value."""

KEYS = (
    "method", "value", "parents", "parents_depth", "children", "children_depth", "childrens_parents", "exclude",
    "indirect_selection",
)  # fmt: skip
"""The keys of a criterion in its full form."""

FORMS = "write a criterion as text, `method: value`, or `union:` or `intersection:` with a list"
NOTHING = Union(())


def read_definitions(selectors: Sequence[Selector], findings: list[Finding]) -> Mapping[str, Selection]:
    """Returns the selections by name, and adds the errors in their definitions to `findings`.

    A part with an error selects nothing.
    """
    reader = _Reader(findings)
    definitions = {selector.name: reader.read(selector.definition) for selector in selectors}
    _check_names(selectors, definitions, findings)
    return definitions


def criterion_finding(error: SelectorError, location: Location | None = None) -> Finding:
    """Returns the finding for a criterion that cannot be parsed."""
    example = "for example, use tag:hourly or source:shop"
    fix = f"did you mean {quoted_list(error.nearest)}?" if error.nearest else example
    message = f"the selector `{error.criterion}` cannot be parsed"
    return Finding("unknown-selector", message, error.problem, fix, location)


class _Reader:
    def __init__(self, findings: list[Finding]) -> None:
        self._findings = findings
        self._keys = KeyReader(findings)

    def read(self, node: YamlNode) -> Selection:
        if isinstance(node, YamlScalar) and isinstance(node.value, str):
            text = node.value
            return self._criterion(lambda: replace(parse_criterion(text), location=node.location), node.location)
        if not isinstance(node, YamlMapping) or not node.entries:
            self._keys.wrong(f"a definition cannot be {given(plain(node))}", FORMS, node.location)
            return NOTHING
        return self._read_mapping(node)

    def _read_mapping(self, node: YamlMapping) -> Selection:
        keys = [entry.key for entry in node.entries]
        sets = [entry for entry in node.entries if entry.key in SETS]
        if sets:
            self._keys.refuse_others(node, sets[0])
            return self._read_set(sets[0])
        if len(keys) > 1 or keys[0] in KEYS:
            return self._read_full(node)
        return self._read_pair(node.entries[0])

    def _read_set(self, entry: YamlEntry) -> Selection:
        """Reads a union or an intersection, minus the one `exclude` among its items."""
        items = self._keys.items(entry)
        exclusions = [exclusion for item in items if (exclusion := _exclusion(item)) is not None]
        parts = tuple(self.read(item) for item in items if _exclusion(item) is None)
        if items and not parts:
            fix = "also list what to include; `fqn: '*'` includes all models and seeds"
            self._keys.wrong(f"`{entry.key}` contains only an exclusion", fix, entry.key_location)
        for second in exclusions[1:]:
            fix = "combine all exclusions in one list"
            self._keys.wrong(f"`{entry.key}` has a second `exclude`", fix, second.key_location)
        base = Union(parts) if entry.key == "union" else Intersection(parts)
        return self._without(base, exclusions[0]) if exclusions else base

    def _read_pair(self, entry: YamlEntry) -> Selection:
        """Reads `method: value`."""
        value = self._keys.text(entry)
        if value is None:
            return NOTHING
        location = entry.key_location
        return self._criterion(lambda: build_criterion(entry.key, value, location, Operators()), location)

    def _read_full(self, node: YamlMapping) -> Selection:
        entries = self._keys.known(node, KEYS)
        method, value = (self._keys.required(node, key) for key in ("method", "value"))
        operators = Operators(
            self._depth(entries, "parents"),
            self._depth(entries, "children"),
            self._keys.switch(entries.get("childrens_parents")),
        )
        self._keys.one_of(entries.get("indirect_selection"), INDIRECT)
        exclusion = entries.get("exclude")
        if method is None or value is None:
            return NOTHING
        location = entries["method"].value.location
        found = self._criterion(lambda: build_criterion(method, value, location, operators), location)
        return self._without(found, exclusion) if exclusion else found

    def _depth(self, entries: Mapping[str, YamlEntry], side: str) -> int | None:
        """Returns the depth of `parents` or `children`: 0 if it is not true, None (any depth) without a number."""
        switched = self._keys.switch(entries.get(side))
        depth = entries.get(f"{side}_depth")
        if depth is not None and not switched:
            fix = f"add `{side}: true`"
            self._keys.wrong(f"`{depth.key}` has no effect without `{side}: true`", fix, depth.key_location)
        return self._keys.count(depth) if switched else 0

    def _without(self, base: Selection, exclusion: YamlEntry) -> Selection:
        return Difference(base, Union(tuple(self.read(item) for item in self._keys.items(exclusion))))

    def _criterion(self, make: Callable[[], Criterion], location: Location) -> Selection:
        try:
            criterion = make()
            check_criterion(criterion)
        except SelectorError as error:
            self._findings.append(criterion_finding(error, location))
            return NOTHING
        return criterion


def _exclusion(node: YamlNode) -> YamlEntry | None:
    """Returns the `exclude:` of an item that has no other key, otherwise None."""
    entries = node.entries if isinstance(node, YamlMapping) else ()
    return entries[0] if [entry.key for entry in entries] == ["exclude"] else None


def _check_names(selectors: Sequence[Selector], selections: Mapping[str, Selection], findings: list[Finding]) -> None:
    """Adds a finding for each unknown name in a definition, and one if selectors depend on each other in a cycle."""
    known = len(findings)
    edges: dict[str, list[str]] = {name: [] for name in selections}
    criteria = ((name, each) for name, selection in selections.items() for each in criteria_of(selection))
    for name, criterion in criteria:
        if criterion.method == SELECTOR:
            edges[name] += _names_in(criterion, selections, findings)
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        if len(findings) == known:
            findings.append(_cycle(error.args[1], selectors))


def _names_in(criterion: Criterion, names: Iterable[str], findings: list[Finding]) -> tuple[str, ...]:
    try:
        return named_selectors(criterion, names)
    except SelectorError as error:
        findings.append(criterion_finding(error, criterion.location))
        return ()


def _cycle(names: Sequence[str], selectors: Sequence[Selector]) -> Finding:
    places = {selector.name: selector.location for selector in selectors}
    # CycleError lists each name before the one that refers to it.
    cycle = list(reversed(names))
    return Finding(
        "cycle",
        f"selectors refer to each other in a cycle: {' -> '.join(cycle)}",
        "a selector cannot depend on itself",
        f"remove `selector: {cycle[1]}` from `{cycle[0]}`, or one of the others",
        places[cycle[0]],
    )


_WHY = "a selector consists of criteria, unions and intersections, minus the results of `exclude`"


class KeyReader:
    """Reads keys, and adds errors to `findings`."""

    def __init__(self, findings: list[Finding]) -> None:
        self._findings = findings

    def known(self, node: YamlMapping, keys: Sequence[str]) -> Mapping[str, YamlEntry]:
        """Returns the entries with one of `keys`, by key."""
        for entry in node.entries:
            if entry.key not in keys:
                why = f"the keys of a criterion are {quoted_list(keys, most=20)}"
                self._unknown(entry, why, did_you_mean(entry.key, keys))
        return {entry.key: entry for entry in node.entries if entry.key in keys}

    def refuse_others(self, node: YamlMapping, alone: YamlEntry) -> None:
        """Adds a finding for every key except `alone`."""
        for entry in node.entries:
            if entry is not alone:
                fix = "remove it, or make it an entry of the list, for example `- exclude: [...]`"
                self._unknown(entry, f"`{alone.key}` must be the only key", fix)

    def required(self, node: YamlMapping, key: str) -> str | None:
        """Returns the text of a required key."""
        entry = node.entry(key)
        if entry is not None:
            return self.text(entry)
        why = "the full form of a criterion has a method and a value"
        place = node.entries[0].key_location
        self._findings.append(
            Finding("missing-key", f"a criterion needs the key `{key}`", why, f"add `{key}:` to it", place)
        )
        return None

    def text(self, entry: YamlEntry) -> str | None:
        """Returns a scalar as it is written in the file, also `true` and `010`."""
        if isinstance(entry.value, YamlScalar) and entry.value.value is not None:
            return entry.value.value if isinstance(entry.value.value, str) else entry.value.text
        problem = f"`{entry.key}` must be a single value, but is {given(plain(entry.value))}"
        self.wrong(problem, "write one value, or a `union:` of several", entry.key_location)
        return None

    def items(self, entry: YamlEntry) -> tuple[YamlNode, ...]:
        """Returns the items of a list that must not be empty."""
        if isinstance(entry.value, YamlSequence) and entry.value.items:
            return entry.value.items
        shown = "empty" if isinstance(entry.value, YamlSequence) else given(plain(entry.value))
        problem = f"`{entry.key}` must be a non-empty list, but is {shown}"
        self.wrong(problem, "start each entry with `- `", entry.key_location)
        return ()

    def switch(self, entry: YamlEntry | None) -> bool:
        """Returns whether a key is true; a missing key is false."""
        value = False if entry is None else plain(entry.value)
        if entry is not None and not isinstance(value, bool):
            self.wrong(f"`{entry.key}` must be true or false, but is {given(value)}", "use `true` or `false`", entry)
        return value is True

    def count(self, entry: YamlEntry | None) -> int | None:
        """Returns a whole number above zero; None if the key is missing."""
        value = None if entry is None else plain(entry.value)
        if entry is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
            return value if isinstance(value, int) else None
        problem = f"`{entry.key}` must be a whole number of at least 1, but is {given(value)}"
        self.wrong(problem, "set the number of steps, or remove the key for all steps", entry)
        return None

    def one_of(self, entry: YamlEntry | None, values: Sequence[str]) -> None:
        """Checks that the value of a key is one of `values`."""
        if entry is not None and plain(entry.value) not in values:
            self.wrong(f"`{entry.key}` cannot be {given(plain(entry.value))}", f"use {alternatives(values)}", entry)

    def wrong(self, message: str, fix: str, place: YamlEntry | Location) -> None:
        """Adds a finding for a wrong value."""
        location = place.value.location if isinstance(place, YamlEntry) else place
        self._findings.append(Finding("invalid-value", message, _WHY, fix, location))

    def _unknown(self, entry: YamlEntry, why: str, fix: str) -> None:
        message = f"{quoted(entry.key)} is not allowed here in a selector definition"
        self._findings.append(Finding("unknown-key", message, why, fix, entry.key_location))
