"""A target's overrides of sources and sinks: laid over the declared YAML before it is validated."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.nearest import did_you_mean
from sqlstream.project.wording import quoted
from sqlstream.project.yaml import YamlEntry, YamlMapping, YamlNode, YamlSequence, merge_nodes, plain


@dataclass(frozen=True)
class Overrides:
    """What the target replaces: `sources` by `source` (all of its tables) or `source.table`, `sinks` by name."""

    sources: YamlMapping
    sinks: YamlMapping


NO_OVERRIDES = Overrides(YamlMapping((), Location("")), YamlMapping((), Location("")))
"""Those of a target that replaces nothing."""


def apply_overrides(document: YamlMapping, overrides: Overrides) -> YamlMapping:
    """Returns the document with the overrides of its source tables and sinks merged in, mappings key by key."""
    changed = _map_items(document, "sources", lambda source: _override_source(source, overrides.sources))
    return _map_items(changed, "sinks", lambda sink: _laid_over(sink, overrides.sinks.get(_name(sink))))


def wrong_overrides(overrides: Overrides, tables: Iterable[tuple[str, str]], sinks: Iterable[str]) -> list[Finding]:
    """Returns a finding for each override of a source, table (as pairs of names) or sink that is not declared.

    An override that would rename what it overrides is a finding too.
    """
    pairs = list(tables)
    sources = list(dict.fromkeys([source for source, _ in pairs] + [f"{source}.{table}" for source, table in pairs]))
    findings = [_unknown(entry, "source", sources) for entry in overrides.sources.entries if entry.key not in sources]
    known = list(sinks)
    for entry in (*overrides.sources.entries, *overrides.sinks.entries):
        name = entry.value.entry("name") if isinstance(entry.value, YamlMapping) else None
        findings += [_renaming(name)] if name else []
    return findings + [_unknown(entry, "sink", known) for entry in overrides.sinks.entries if entry.key not in known]


def _override_source(source: YamlNode, overrides: YamlMapping) -> YamlNode:
    if not isinstance(source, YamlMapping):
        return source
    name = _name(source)

    def override(table: YamlNode) -> YamlNode:
        below = _laid_over(table, overrides.get(name))
        return _laid_over(below, overrides.get(f"{name}.{_name(table)}"))

    return _map_items(source, "tables", override)


def _map_items(node: YamlMapping, key: str, change: Callable[[YamlNode], YamlNode]) -> YamlMapping:
    """Returns the mapping with each item of the list at `key` changed."""
    entry = node.entry(key)
    if entry is None or not isinstance(entry.value, YamlSequence):
        return node
    items = YamlSequence(tuple(change(item) for item in entry.value.items), entry.value.location)
    entries = (each._replace(value=items) if each is entry else each for each in node.entries)
    return YamlMapping(tuple(entries), node.location)


def _laid_over(node: YamlNode, over: YamlNode | None) -> YamlNode:
    if not isinstance(over, YamlMapping) or not isinstance(node, YamlMapping):
        return node
    # A `name` is a finding of `wrong_overrides`; taking it over as well would only lead to others.
    entries = tuple(entry for entry in over.entries if entry.key != "name")
    return merge_nodes(node, YamlMapping(entries, over.location))


def _name(node: YamlNode) -> str:
    name = node.get("name") if isinstance(node, YamlMapping) else None
    return str(plain(name)) if name else ""


def _renaming(name: YamlEntry) -> Finding:
    return Finding(
        "unknown-key",
        "`name` cannot be overridden",
        "a target replaces how something declared is read or written, and models know it by its name",
        "delete the key, or declare another source or sink",
        name.key_location,
    )


def _unknown(entry: YamlEntry, kind: str, known: list[str]) -> Finding:
    return Finding(
        f"unknown-{kind}",
        f"the target overrides a {kind} {quoted(entry.key)}, which is not declared",
        f"a target replaces keys of {kind}s that are declared in YAML, by name",
        did_you_mean(entry.key, known),
        entry.key_location,
    )
