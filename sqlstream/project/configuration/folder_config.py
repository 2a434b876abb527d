"""Configuration by folder in project.yml, with dbt's `+` before its keys."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from sqlstream.errors import Finding, Severity
from sqlstream.location import Location
from sqlstream.project.configuration.config import ConfigPatch, check_patch
from sqlstream.project.configuration.fields import Document
from sqlstream.project.configuration.templates import as_written
from sqlstream.project.configuration.validate import allowed_keys, with_dbt_hint
from sqlstream.project.wording import did_you_mean, quoted, quoted_list
from sqlstream.project.yaml import Located, YamlEntry, YamlMapping, plain

Folders = tuple[str, ...]
"""Folders below models/ or seeds/, outermost first. The last can also be a file's name without suffix, as in dbt."""


@dataclass(frozen=True)
class FolderConfig:
    """The patches of each folder, in ascending precedence, and the location of each folder in project.yml. `written`
    are the same patches with Jinja unrendered.
    """

    patches: Mapping[Folders, tuple[ConfigPatch, ...]]
    locations: Mapping[Folders, Location]
    written: Mapping[Folders, tuple[ConfigPatch, ...]]

    def patches_for(self, folders: Folders, name: str) -> tuple[ConfigPatch, ...]:
        """Returns the patches that apply to a file, from the outermost folder inwards."""
        return _patches_along(self.patches, (*folders, name))

    def written_for(self, folders: Folders, name: str) -> tuple[ConfigPatch, ...]:
        """Returns the patches that apply to a file, in the order of `patches_for`, with Jinja unrendered."""
        return _patches_along(self.written, (*folders, name))


@dataclass(frozen=True)
class Section:
    """The part of project.yml that configures one kind of file, rendered and as written."""

    rendered: YamlMapping
    written: YamlMapping


def read_folder_config(
    section: Section, project_name: str, known: Collection[Folders], model: type[Document], findings: list[Finding]
) -> FolderConfig:
    """Returns the configuration in a section (`models` or `seeds`) of project.yml, and adds its errors to `findings`.

    `known` are the files' paths as `Folders`. As in dbt, the project's name can be above the folders, unless a folder
    has this name.
    """
    folders = _with_parents(known)
    reader = _Reader(model, folders, findings)
    patches = _read_section(reader, section.rendered, project_name)
    written = _read_section(_Reader(model, folders, []), section.written, project_name)
    return FolderConfig(patches, reader.locations, written)


def _read_section(
    reader: _Reader, section: YamlMapping, project_name: str
) -> Mapping[Folders, tuple[ConfigPatch, ...]]:
    for entry in section.entries:
        is_project = entry.key == project_name and (entry.key,) not in reader.folders
        if is_project and isinstance(entry.value, YamlMapping):
            reader.read((), entry.value)
    # dbt reads the keys beside the project's name first, so they have less precedence
    inner = dict(reader.patches)
    reader.patches = {}
    reader.read((), YamlMapping(_without_project(section, project_name, reader.folders), section.location))
    return {path: (*reader.patches.get(path, ()), *inner.get(path, ())) for path in {**reader.patches, **inner}}


def _patches_along(patches: Mapping[Folders, tuple[ConfigPatch, ...]], path: Folders) -> tuple[ConfigPatch, ...]:
    return tuple(patch for depth in range(len(path) + 1) for patch in patches.get(path[:depth], ()))


def unused_folders(config: FolderConfig, known: Iterable[Folders], kind: str) -> list[Finding]:
    """Returns a warning for each outermost folder of the configuration that matches no file."""
    used = _with_parents(known)
    unused = [path for path in config.locations if path not in used and (path[:-1] in used or not path[:-1])]
    return [_unused(path, kind, used, config.locations[path]) for path in unused]


class _Reader:
    """Reads one section, and adds to `patches` and `places`."""

    def __init__(self, model: type[Document], folders: Collection[Folders], findings: list[Finding]) -> None:
        self.patches: dict[Folders, tuple[ConfigPatch, ...]] = {}
        self.locations: dict[Folders, Location] = {}
        self.folders = folders
        self._model = model
        self._keys = allowed_keys(model)
        self._findings = findings

    def read(self, path: Folders, node: YamlMapping) -> None:
        patch: dict[str, Located] = {}
        for entry in node.entries:
            key = entry.key.removeprefix("+")
            if isinstance(entry.value, YamlMapping) and key == entry.key:
                below = (*path, key)
                self.locations.setdefault(below, entry.key_location)
                self.read(below, entry.value)
            elif key not in self._keys:
                self._findings.append(self._unknown(entry))
            else:
                patch[key] = _located(entry, key)
        if patch:
            self._findings.extend(check_patch(patch, self._model))
            self.patches[path] = (*self.patches.get(path, ()), patch)

    def _unknown(self, entry: YamlEntry) -> Finding:
        key = entry.key.removeprefix("+")
        why = f"keys with + are configuration ({quoted_list(self._keys, most=20)}); a folder is a key with a mapping"
        found = Finding(
            "unknown-key",
            f"{quoted(entry.key)} is not a key of {self._model.called}",
            why,
            did_you_mean(key, self._keys),
            entry.key_location,
        )
        return with_dbt_hint(found, self._model, key)


def _located(entry: YamlEntry, key: str) -> Located:
    value = as_written(entry.value) if key == "options" else entry.value
    location = entry.key_location if isinstance(value, YamlMapping) else value.location
    return Located(plain(value), location)


def _without_project(section: YamlMapping, name: str, folders: Collection[Folders]) -> tuple[YamlEntry, ...]:
    if (name,) in folders:
        return section.entries
    return tuple(entry for entry in section.entries if entry.key != name or not isinstance(entry.value, YamlMapping))


def _with_parents(paths: Iterable[Folders]) -> set[Folders]:
    return {path[:depth] for path in paths for depth in range(1, len(path) + 1)}


def _unused(path: Folders, kind: str, used: Collection[Folders], location: Location) -> Finding:
    beside = sorted(folders[-1] for folders in used if folders[:-1] == path[:-1])
    why = f"{kind}/ has no folder or file with that name there"
    if kind == "exposures":
        why = "no exposure has that name there, and no folder with that name has files that declare exposures"
    return Finding(
        "unused-config",
        f"the configuration of {quoted('/'.join(path))} applies to no {kind.removesuffix('s')}",
        why,
        did_you_mean(path[-1], beside) if beside else "fix the name, or remove the configuration",
        location,
        Severity.WARNING,
    )
