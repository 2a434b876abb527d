"""Compares two manifests for dbt's `state:` method (StateSelectorMethod of dbt-core 1.11).

The comparison uses unrendered files, so manifests from different environments are comparable. It ignores formatting.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from sqlstream.compiler.graph import closure_of
from sqlstream.compiler.manifest.template_words import TemplateWords, read_macros, read_template
from sqlstream.compiler.node_ids import EXPOSURE, MODEL, SEED, SOURCE, kind_of
from sqlstream.project.configuration.validate import is_template

Manifest = Mapping[str, Any]
"""The result of `build_manifest`, new or read from a file."""

Entry = Mapping[str, Any]
"""One node or source of a manifest."""

NOT_COMPARED = ("tags",)
"""Configuration keys whose changes dbt ignores, except those of exposures."""

_COMPARED: Mapping[str, tuple[str, ...]] = {
    MODEL: ("path",),
    SEED: ("path",),
    EXPOSURE: ("fqn", "type", "owner", "maturity", "url", "description", "label", "depends_on"),
}
"""Keys of entries whose change modifies a node, besides its text and configuration. Those of exposures are dbt's."""


def find_states(old: Manifest, new: Manifest) -> Mapping[str, frozenset[str]]:
    """Returns the words of `state:` that match each model, seed, source and exposure of `new`, by unique id.

    New nodes are also modified. A model is modified if its template, configuration or path changes, the definition of
    its sink, a macro that it uses, the Python module of a function that its SQL calls, or a variable of project.yml
    that any of these read. A seed is modified if its text, configuration or path changes, a source if its reading
    changes, an exposure if anything of it but its own `tags` and `meta` changes. Other tags and descriptions do not
    count.
    """
    comparison = _Comparison(old, json.loads(json.dumps(new, default=str)))
    return {node: frozenset(comparison.states(node)) for node in comparison.new_entries}


class _Comparison:
    """The differences between two manifests. Costly ones are computed on first use."""

    def __init__(self, old: Manifest, new: Manifest) -> None:
        self._old, self._new = old, new
        self._old_entries: Mapping[str, Entry] = {**old["nodes"], **old["sources"], **old.get("exposures", {})}
        self.new_entries: Mapping[str, Entry] = {**new["nodes"], **new["sources"], **new["exposures"]}

    def states(self, node: str) -> Iterator[str]:
        old, new = self._old_entries.get(node), self.new_entries[node]
        template = self._template(node)
        parts = {
            "modified.body": kind_of(node) in (MODEL, SEED) and (old is None or self._body_changed(old, new, template)),
            "modified.macros": template is not None and self._code_changed(template),
            "modified.configs": old is None or self._configs_changed(old, new, template),
        }
        yield "new" if old is None else "old"
        yield from (part for part, changed in parts.items() if changed)
        keys = _COMPARED.get(kind_of(node), ())
        differs = old is not None and any(_value(old, key) != _value(new, key) for key in keys)
        yield "modified" if differs or any(parts.values()) else "unmodified"

    def _template(self, node: str) -> TemplateWords | None:
        """The words of a model's template; None for nodes without a template and for models without any change."""
        if kind_of(node) != MODEL or str(self.new_entries[node].get("path")).endswith(".py"):
            return None
        old, new = self._old_entries.get(node), self.new_entries[node]
        same = old is not None and all(old.get(key) == new.get(key) for key in ("raw_code", "unrendered_config"))
        needed = not same or self._changed_macros or self._changed_variables or self._changed_functions
        return read_template(str(new.get("raw_code"))) if needed else None

    def _body_changed(self, old: Entry, new: Entry, template: TemplateWords | None) -> bool:
        if template is None:
            return bool(old.get("checksum") != new.get("checksum"))
        before = read_template(str(old.get("raw_code")))
        return before.words != template.words or self._reads_changed(template.variables)

    def _code_changed(self, template: TemplateWords) -> bool:
        """Whether a macro that the template uses has changed, or a function that it or one of its macros calls."""
        macros = closure_of(self._macro_calls, self._macro_calls.keys() & template.names)
        parts = [template, *(part for name in macros for part in self._macros.get(name, ()))]
        called = {word.lower() for part in parts for word in part.words} if self._changed_functions else set()
        return not self._changed_macros.isdisjoint(macros) or not self._changed_functions.isdisjoint(called)

    def _configs_changed(self, old: Entry, new: Entry, template: TemplateWords | None) -> bool:
        set_before = read_template(str(old.get("raw_code"))).config if template is not None else {}
        set_now = template.config if template is not None else {}
        before, now = _configured(old, set_before), _configured(new, set_now)
        return before != now or self._text_reads_changed(now) or self._sink_changed(new)

    def _sink_changed(self, new: Entry) -> bool:
        name = new.get("config", {}).get("sink")
        before, now = (
            [entry.get("unrendered_config") for entry in manifest["sinks"].values() if entry.get("name") == name]
            for manifest in (self._old, self._new)
        )
        return name is not None and (before != now or self._text_reads_changed(now))

    @cached_property
    def _changed_variables(self) -> frozenset[str]:
        """The variables of project.yml that have changed, directly or through variables that they read."""
        new = self._new["vars"]
        changed = _differing(self._old["vars"], new)
        while more := {name for name in new if name not in changed and _reads(new[name], changed)}:
            changed |= more
        return frozenset(changed)

    def _reads_changed(self, variables: frozenset[str] | None) -> bool:
        changed = self._changed_variables
        return bool(changed) and (variables is None or not changed.isdisjoint(variables))

    def _text_reads_changed(self, value: object) -> bool:
        return bool(self._changed_variables) and _reads(value, self._changed_variables)

    @cached_property
    def _changed_functions(self) -> frozenset[str]:
        """The project's Python functions whose module has changed, in lower case."""
        now = self._new["functions"]
        before = self._old.get("functions", now)  # earlier versions did not store them
        return frozenset(name.lower() for name in _differing(before, now))

    @cached_property
    def _changed_macros(self) -> frozenset[str]:
        """The macros that are new, deleted or modified, or that read a changed variable."""
        if self._old["macro_files"] == self._new["macro_files"] and not self._changed_variables:
            return frozenset()
        macros = (read_macros(self._old["macro_files"].values()), self._macros)
        before, now = ({name: [part.words for part in parts] for name, parts in each.items()} for each in macros)
        reading = {name for name, parts in macros[1].items() if any(self._reads_changed(p.variables) for p in parts)}
        return frozenset(_differing(before, now) | reading)

    @cached_property
    def _macros(self) -> Mapping[str, tuple[TemplateWords, ...]]:
        return read_macros(self._new["macro_files"].values())

    @cached_property
    def _macro_calls(self) -> Mapping[str, list[str]]:
        """The macros that each macro uses, including deleted macros."""
        known = {**dict.fromkeys(self._changed_macros, ()), **self._macros}
        return {name: [used for part in parts for used in part.names if used in known] for name, parts in known.items()}


def _value(entry: Entry, key: str) -> object:
    """Returns the value of a key; for what an exposure depends on, without order."""
    return sorted(entry["depends_on"]["nodes"]) if key == "depends_on" else entry.get(key)


def _differing(before: Mapping[str, object], now: Mapping[str, object]) -> set[str]:
    """Returns the keys that only one mapping has, or whose values differ."""
    return {key for key in {**before, **now} if key not in before or key not in now or before[key] != now[key]}


def _configured(entry: Entry, called: Mapping[str, tuple[str, ...]]) -> Mapping[str, object]:
    """Returns the unrendered values of YAML and config(), which overrides YAML. A schema becomes its words."""
    config: dict[str, object] = {**entry.get("unrendered_config", {}), **called}
    if entry.get("resource_type") == SOURCE and isinstance(config.get("schema"), str):
        config["schema"] = read_template(str(config["schema"])).words
    compares_tags = entry.get("resource_type") == EXPOSURE
    return {key: value for key, value in config.items() if compares_tags or key not in NOT_COMPARED}


def _reads(value: object, variables: Iterable[str]) -> bool:
    if isinstance(value, Mapping):
        return any(_reads(item, variables) for item in value.values())
    if isinstance(value, list | tuple):
        return any(_reads(item, variables) for item in value)
    if not is_template(value):
        return False
    read = read_template(str(value)).variables
    return read is None or not read.isdisjoint(variables)
