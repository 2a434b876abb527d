"""Reads the keys of a selector's definition; each wrong value is a finding at its own location."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.nearest import did_you_mean
from sqlstream.project.wording import alternatives, given, quoted, quoted_list
from sqlstream.project.yaml import YamlEntry, YamlMapping, YamlNode, YamlScalar, YamlSequence, plain

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
