"""Two manifests compared: what is new and what is modified, whatever the environments that they were made in.

What counts is what the files say, before any Jinja is rendered, apart from how it looks. The words are those of dbt's
`state:` method (StateSelectorMethod of dbt-core 1.11).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from sqlstream.compiler.graph import closure_of
from sqlstream.compiler.manifest.macro_words import read_macros
from sqlstream.compiler.manifest.template_words import TemplateWords, read_template
from sqlstream.compiler.node_ids import MODEL, SEED, SOURCE, kind_of
from sqlstream.project.configuration.validate import is_template

Manifest = Mapping[str, Any]
"""What `build_manifest` returns, or the same read from a file."""

Entry = Mapping[str, Any]
"""One entry of a manifest."""

NOT_COMPARED = ("tags",)
"""Keys of a configuration in which dbt sees no modification."""


def find_states(old: Manifest, new: Manifest) -> Mapping[str, frozenset[str]]:
    """Returns, for each model, seed and source of `new`, which words of `state:` hold for it.

    New nodes are modified, too. A model is modified by its template, the macros that it uses, the modules of the
    project's Python whose functions its SQL calls, its configuration with
    the definition of its sink, the variables of project.yml that any of these read, and its path; a seed by its file's
    text, its configuration and its path; a source by how it is read. Tags and descriptions modify nothing.
    """
    comparison = _Comparison(old, json.loads(json.dumps(new, default=str)))
    return {node: frozenset(comparison.states(node)) for node in comparison.new_entries}


class _Comparison:
    """Finds what has changed between two manifests; all that is costly is done when it is first needed."""

    def __init__(self, old: Manifest, new: Manifest) -> None:
        self._old, self._new = old, new
        self._old_entries = _entries(old)
        self.new_entries = _entries(new)

    def states(self, node: str) -> Iterator[str]:
        old, new = self._old_entries.get(node), self.new_entries[node]
        template = self._template(node)
        parts = {
            "modified.body": kind_of(node) != SOURCE and (old is None or self._body_changed(old, new, template)),
            "modified.macros": template is not None and self._code_changed(template),
            "modified.configs": old is None or self._configs_changed(old, new, template),
        }
        yield "new" if old is None else "old"
        yield from (part for part, changed in parts.items() if changed)
        moved = old is not None and kind_of(node) in (MODEL, SEED) and old.get("path") != new.get("path")
        yield "modified" if moved or any(parts.values()) else "unmodified"

    def _template(self, node: str) -> TemplateWords | None:
        """What a model's template says, None for what is no template, and where there is nothing to compare."""
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
        """Whether a macro has changed that the template uses, or a function that it or one of its macros calls."""
        macros = self._macros_of(template.names)
        parts = [template, *(part for name in macros for part in self._macros.get(name, ()))]
        called = {word.lower() for part in parts for word in part.words} if self._changed_functions else set()
        return not self._changed_macros.isdisjoint(macros) or not self._changed_functions.isdisjoint(called)

    def _configs_changed(self, old: Entry, new: Entry, template: TemplateWords | None) -> bool:
        set_before = read_template(str(old.get("raw_code"))).config if template is not None else {}
        set_now = template.config if template is not None else {}
        before, now = _configured(old, set_before), _configured(new, set_now)
        return before != now or self._text_reads_changed(now) or self._sink_changed(new)

    def _sink_changed(self, new: Entry) -> bool:
        """Whether the sink that a model names is not defined as it was."""
        name = new.get("config", {}).get("sink")
        before, now = (
            [entry.get("unrendered_config") for entry in manifest["sinks"].values() if entry.get("name") == name]
            for manifest in (self._old, self._new)
        )
        return name is not None and (before != now or self._text_reads_changed(now))

    @cached_property
    def _changed_variables(self) -> frozenset[str]:
        """The variables of project.yml whose value is written differently, or read from one of which that is so."""
        old, new = self._old["vars"], self._new["vars"]
        changed = {name for name in {**old, **new} if name not in old or name not in new or old[name] != new[name]}
        while True:
            more = {name for name in new if name not in changed and _reads(new[name], changed)}
            if not more:
                return frozenset(changed)
            changed |= more

    def _reads_changed(self, variables: frozenset[str] | None) -> bool:
        changed = self._changed_variables
        return bool(changed) and (variables is None or not changed.isdisjoint(variables))

    def _text_reads_changed(self, value: object) -> bool:
        return bool(self._changed_variables) and _reads(value, self._changed_variables)

    @cached_property
    def _changed_functions(self) -> frozenset[str]:
        """The functions of the project's Python whose module is not what it was, by their names in lower case."""
        now = self._new["functions"]
        before = self._old.get("functions", now)  # earlier versions did not keep them
        return frozenset(name.lower() for name in {**before, **now} if before.get(name) != now.get(name))

    @cached_property
    def _changed_macros(self) -> frozenset[str]:
        """The macros that are new or gone, or do not say what they said, or read a variable that has changed."""
        if self._old["macro_files"] == self._new["macro_files"] and not self._changed_variables:
            return frozenset()
        old, new = read_macros(self._old["macro_files"].values()), self._macros
        differing = {name for name in {**old, **new} if _words(old.get(name)) != _words(new.get(name))}
        reading = {name for name, parts in new.items() if any(self._reads_changed(part.variables) for part in parts)}
        return frozenset(differing | reading)

    @cached_property
    def _macros(self) -> Mapping[str, tuple[TemplateWords, ...]]:
        return read_macros(self._new["macro_files"].values())

    def _macros_of(self, names: Iterable[str]) -> frozenset[str]:
        """Those of `names` that are macros, and the macros that those use, directly or not; deleted macros too."""
        return frozenset(closure_of(self._macro_calls, self._macro_calls.keys() & names))

    @cached_property
    def _macro_calls(self) -> Mapping[str, list[str]]:
        """The macros that each macro uses."""
        known = {**dict.fromkeys(self._changed_macros, ()), **self._macros}
        return {name: [used for part in parts for used in part.names if used in known] for name, parts in known.items()}


def _entries(manifest: Manifest) -> Mapping[str, Entry]:
    return {**manifest["nodes"], **manifest["sources"]}


def _configured(entry: Entry, called: Mapping[str, tuple[str, ...]]) -> Mapping[str, object]:
    """What YAML and config() set, as written; config() goes before YAML. A schema counts by its words."""
    config: dict[str, object] = {**entry.get("unrendered_config", {}), **called}
    if entry.get("resource_type") == SOURCE and isinstance(config.get("schema"), str):
        config["schema"] = read_template(str(config["schema"])).words
    return {key: value for key, value in config.items() if key not in NOT_COMPARED}


def _words(parts: tuple[TemplateWords, ...] | None) -> tuple[tuple[str, ...], ...] | None:
    return None if parts is None else tuple(part.words for part in parts)


def _reads(value: object, variables: Iterable[str]) -> bool:
    """Whether any text in `value` reads one of `variables`."""
    if isinstance(value, Mapping):
        return any(_reads(item, variables) for item in value.values())
    if isinstance(value, list | tuple):
        return any(_reads(item, variables) for item in value)
    if not is_template(value):
        return False
    read = read_template(str(value)).variables
    return read is None or not read.isdisjoint(variables)
