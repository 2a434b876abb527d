"""A target's overrides of sources and sinks, merged into the declared YAML before validation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.configuration.documents import SinkDocument, TableDocument
from sqlstream.project.configuration.validate import validate_node
from sqlstream.project.wording import did_you_mean, quoted
from sqlstream.project.yaml import YamlEntry, YamlMapping, YamlNode, YamlSequence, merge_nodes, plain

MESSAGE_KEYS = frozenset({"value_format", "value_options", "key_format", "key_columns", "schema_registry"})
"""Keys for the messages of Kafka."""

SOURCE_FORMAT_KEYS = MESSAGE_KEYS | {
    *("path", "table", "class", "options", "on_corrupt", "quarantine_sink", "refresh"),
    *("changes", "timestamp_unit", "max_event_time", "schema_changes"),
}
SINK_FORMAT_KEYS = frozenset(
    {"path", "table", "function", "options", "partition_by", "files_per_batch", "value_format", "key", "headers"}
)
"""Keys that belong to the format. An override with another format drops their declared values."""

SCHEMA_KEYS = frozenset({"schema", "schema_file", "columns"})
"""Keys that declare a schema. An override with one of them replaces the declared schema, in any of these keys."""

RenderText = Callable[[YamlNode], YamlNode]
"""Renders a value as far as possible."""


@dataclass(frozen=True)
class Overrides:
    """The overrides of a target: `sources` by `source` (all of its tables) or `source.table`, `sinks` by name."""

    sources: YamlMapping
    sinks: YamlMapping


NO_OVERRIDES = Overrides(YamlMapping((), Location("")), YamlMapping((), Location("")))
"""The overrides of a target without any."""


def apply_overrides(document: YamlMapping, overrides: Overrides, render: RenderText) -> YamlMapping:
    """Returns the document with the overrides of its source tables and sinks merged in, mappings key by key.

    An override with another format also replaces the keys of the declared format.
    """
    merger = _OverrideMerger(render)
    changed = _map_items(document, "sources", lambda source: merger.override_source(source, overrides.sources))
    return _map_items(changed, "sinks", lambda sink: merger.override_sink(sink, overrides.sinks.get(_name(sink))))


def wrong_keys(overrides: Overrides) -> list[Finding]:
    """Returns the errors in the keys and values of overrides of an unused target.

    Those of the used target are validated together with the declarations that they override.
    """
    problems: list[Finding] = []
    for section, model, kept in ((overrides.sources, TableDocument, ()), (overrides.sinks, SinkDocument, _KEPT)):
        for node in (entry.value for entry in section.entries if isinstance(entry.value, YamlMapping)):
            validate_node(model, node, problems, kept)
    return [problem for problem in problems if problem.code != "missing-key"]


_KEPT = (("options",), ("path",), ("table",))
"""The paths at which the Jinja of a sink stays text until a model is known."""


def wrong_overrides(overrides: Overrides, tables: Iterable[tuple[str, str]], sinks: Iterable[str]) -> list[Finding]:
    """Returns a finding for each override of an undeclared source, table (as pairs of names) or sink.

    An override that would rename its declaration is a finding too.
    """
    pairs = list(tables)
    sources = list(dict.fromkeys([source for source, _ in pairs] + [f"{source}.{table}" for source, table in pairs]))
    findings = [_unknown(entry, "source", sources) for entry in overrides.sources.entries if entry.key not in sources]
    known = list(sinks)
    for entry in (*overrides.sources.entries, *overrides.sinks.entries):
        name = entry.value.entry("name") if isinstance(entry.value, YamlMapping) else None
        findings += [_renamed(name)] if name else []
    return findings + [_unknown(entry, "sink", known) for entry in overrides.sinks.entries if entry.key not in known]


class _OverrideMerger:
    """Merges overrides into declarations. Formats are compared after rendering."""

    def __init__(self, render: RenderText) -> None:
        self._render = render

    def override_source(self, source: YamlNode, overrides: YamlMapping) -> YamlNode:
        """Returns a source with the overrides of each of its tables."""
        name = _name(source)
        tables = source.get("tables") if isinstance(source, YamlMapping) else None
        names = [_name(table) for table in tables.items] if isinstance(tables, YamlSequence) else []
        if not isinstance(source, YamlMapping) or not any(
            overrides.get(key) for key in (name, *(f"{name}.{table}" for table in names))
        ):
            return source
        inherited = source.where(lambda entry: entry.key in _INHERITED)

        def override(table: YamlNode) -> YamlNode:
            declared = merge_nodes(inherited, table) if isinstance(table, YamlMapping) else table
            below = self._merge(declared, overrides.get(name), SOURCE_FORMAT_KEYS)
            return self._merge(below, overrides.get(f"{name}.{_name(table)}"), SOURCE_FORMAT_KEYS)

        return _map_items(source.where(lambda entry: entry.key not in _INHERITED), "tables", override)

    def override_sink(self, sink: YamlNode, over: YamlNode | None) -> YamlNode:
        """Returns a sink with its override."""
        return self._merge(sink, over, SINK_FORMAT_KEYS)

    def _merge(self, node: YamlNode, over: YamlNode | None, of_format: frozenset[str]) -> YamlNode:
        if not isinstance(over, YamlMapping) or not isinstance(node, YamlMapping):
            return node
        # `wrong_overrides` reports a `name`; using it here would only cause follow-up errors.
        over = over.where(lambda entry: entry.key != "name")
        replaced: set[str] = set()
        if self._has_other_format(node, over):
            replaced |= of_format
            node = _map_items(node, "columns", _not_required)
        if any(_declares_schema(entry) for entry in over.entries):
            replaced |= SCHEMA_KEYS
        return merge_nodes(node.where(lambda entry: entry.key not in replaced), over)

    def _has_other_format(self, node: YamlMapping, over: YamlMapping) -> bool:
        formats = [plain(self._render(found)) for found in (node.get("format"), over.get("format")) if found]
        return len(formats) == 2 and str(formats[0]).lower() != str(formats[1]).lower()


def _not_required(column: YamlNode) -> YamlNode:
    """Returns a column without `required`, which belongs to the format as `on_corrupt` does."""
    return column.where(lambda entry: entry.key != "required") if isinstance(column, YamlMapping) else column


_INHERITED = ("format", "options")
"""Keys of a source that its tables inherit, with their names in tables."""


def _declares_schema(entry: YamlEntry) -> bool:
    """Whether a key of an override is a schema. `columns` without types are only descriptions."""
    if entry.key != "columns" or not isinstance(entry.value, YamlSequence):
        return entry.key in SCHEMA_KEYS
    return any(isinstance(item, YamlMapping) and item.get("data_type") is not None for item in entry.value.items)


def _map_items(node: YamlMapping, key: str, change: Callable[[YamlNode], YamlNode]) -> YamlMapping:
    """Returns the mapping with each item of the list at `key` changed."""
    entry = node.entry(key)
    if entry is None or not isinstance(entry.value, YamlSequence):
        return node
    items = YamlSequence(tuple(change(item) for item in entry.value.items), entry.value.location)
    entries = (each._replace(value=items) if each is entry else each for each in node.entries)
    return YamlMapping(tuple(entries), node.location)


def _name(node: YamlNode) -> str:
    name = node.get("name") if isinstance(node, YamlMapping) else None
    return str(plain(name)) if name else ""


def _renamed(name: YamlEntry) -> Finding:
    return Finding(
        "unknown-key",
        "`name` cannot be overridden",
        "a target overrides how a source or sink is read or written, but models refer to it by name",
        "remove the key, or declare another source or sink",
        name.key_location,
    )


def _unknown(entry: YamlEntry, kind: str, known: list[str]) -> Finding:
    return Finding(
        f"unknown-{kind}",
        f"the target overrides a {kind} {quoted(entry.key)}, which is not declared",
        f"a target can override only {kind}s that are declared in YAML, by name",
        did_you_mean(entry.key, known),
        entry.key_location,
    )
