"""The definitions of selectors.yml as selections, every mistake in them a finding at its own place.

The forms are dbt's (dbt/graph/cli.py of dbt-core 1.11): text, `method: value`, `method:` and `value:` with the graph
operators as keys, and `union:`, `intersection:` and `exclude:` with lists of those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sqlstream.compiler.selection.criteria import Criterion, Operators, SelectorError, build_criterion, parse_criterion
from sqlstream.compiler.selection.keys import KeyReader
from sqlstream.compiler.selection.methods import check_criterion
from sqlstream.compiler.selection.sets import Difference, Intersection, Selection, Union
from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.values import Selector
from sqlstream.project.wording import given, quoted_list
from sqlstream.project.yaml import YamlEntry, YamlMapping, YamlNode, YamlScalar, plain

SETS = ("union", "intersection")
INDIRECT = ("eager", "cautious", "buildable", "empty")
"""What dbt takes for `indirect_selection`: which tests are selected along. It changes nothing else."""

KEYS = (
    "method", "value", "parents", "parents_depth", "children", "children_depth", "childrens_parents", "exclude",
    "indirect_selection",
)  # fmt: skip
"""The keys of a criterion that is written in full."""

FORMS = "write a criterion as text, `method: value`, or `union:` or `intersection:` with a list"
NOTHING = Union(())


def read_definitions(selectors: Sequence[Selector], findings: list[Finding]) -> Mapping[str, Selection]:
    """Returns the selections by name, after adding to `findings` what is wrong with their definitions.

    Where a definition is wrong, its part there selects nothing.
    """
    reader = _Reader(findings)
    return {selector.name: reader.read(selector.definition) for selector in selectors}


def criterion_finding(error: SelectorError, location: Location | None = None) -> Finding:
    """Returns the finding for a criterion that cannot be read."""
    return Finding(
        "unknown-selector",
        f"the selector `{error.criterion}` cannot be parsed",
        error.problem,
        f"did you mean {quoted_list(error.nearest)}?"
        if error.nearest
        else "for example, use tag:hourly or source:shop",
        location,
    )


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
        """A union or an intersection, less what the one `exclude` among its items finds."""
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
        """`method: value`."""
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
        """How many edges `parents` or `children` goes: none where it is not true, all where no depth is given."""
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
    """The `exclude:` that an item of a list is, where it is that and nothing else."""
    is_exclusion = isinstance(node, YamlMapping) and [entry.key for entry in node.entries] == ["exclude"]
    return node.entries[0] if isinstance(node, YamlMapping) and is_exclusion else None
