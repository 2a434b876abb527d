"""The YAML of sources and sinks before Jinja is rendered and a target overrides it: the same in every environment."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlstream.project.configuration.config import combine_patches
from sqlstream.project.configuration.validate import Path
from sqlstream.project.values import ConfigPatch, Schema
from sqlstream.project.yaml import YamlMapping, entries_at, plain

DESCRIBING = ("name", "previous_name", "description", "tags", "meta")
"""Keys that do not change how a source or sink is read or written. dbt ignores changes of them, too."""

_INHERITED = ("format", "options", "freshness", "loaded_at_field", "config")
"""Keys of a source that its tables inherit. dbt counts a change of freshness as a change, too."""


def written_config(*patches: ConfigPatch) -> Mapping[str, object]:
    """Returns the configuration from patches in ascending precedence."""
    return {key: located.value for key, located in combine_patches(patches).items()}


def written_keys(node: YamlMapping, path: Path, but: Collection[str] = DESCRIBING) -> dict[str, object]:
    """Returns the mapping at `path` without the keys `but`; empty if it does not exist."""
    values = ((entry.key, plain(entry.value)) for entry in entries_at(node, path) if entry.key not in but)
    return {key: value for key, value in values if value is not None}


def written_table(node: YamlMapping, path: Path, schema: Schema | None) -> Mapping[str, object]:
    """Returns the YAML of the source table at `path`, with the keys that it inherits from its source.

    A schema counts as its text, in a file or not, and columns as their names and types.
    """
    table, source = written_keys(node, path), written_keys(node, path[:2], (*DESCRIBING, "tables"))
    taken = {key: value for key, value in source.items() if key in _INHERITED}
    written = {**taken, **table}
    inherited, own = source.get("options"), table.get("options")
    if isinstance(inherited, dict) and isinstance(own, dict):
        written["options"] = inherited | own
    if written.pop("schema_file", None) is not None and schema is not None:
        written["schema"] = schema.ddl or schema.json
    columns = _typed_columns(written.pop("columns", None))
    return {**written, "columns": columns} if columns else written


def _typed_columns(columns: object) -> list[object]:
    """The names and types of columns that have a type."""
    entries = columns if isinstance(columns, list) else []
    return [
        [entry.get("name"), entry["data_type"]]
        for entry in entries
        if isinstance(entry, dict) and entry.get("data_type") is not None
    ]
