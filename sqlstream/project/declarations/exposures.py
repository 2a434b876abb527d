"""The exposures in YAML files, with the configuration of their folders in project.yml."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import ValidationError

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.configuration.config import ConfigPatch
from sqlstream.project.configuration.documents import ExposureConfig, ExposureProperties
from sqlstream.project.configuration.folder_config import (
    FolderConfig,
    Folders,
    Section,
    read_folder_config,
    unused_folders,
)
from sqlstream.project.configuration.properties import config_of
from sqlstream.project.configuration.reference_calls import read_call
from sqlstream.project.configuration.resources import Resources
from sqlstream.project.configuration.settings import Settings
from sqlstream.project.configuration.validate import Path, SeenNames
from sqlstream.project.declarations.models import folders_of
from sqlstream.project.values import Exposure, ExposureInput
from sqlstream.project.wording import quoted
from sqlstream.project.yaml import YamlMapping, entries_at, locate, plain

EXPOSURES = "exposures"
"""The key of exposures in YAML files, and of their configuration in project.yml."""


@dataclass(frozen=True)
class _Declared:
    """An exposure in a file, before the configuration of its folders is known."""

    properties: ExposureProperties
    node: YamlMapping
    written: YamlMapping
    path: Path

    @property
    def location(self) -> Location:
        return locate(self.node, (*self.path, "name"))

    @property
    def folders(self) -> Folders:
        return folders_of(self.location.path)


def build_exposures(resources: Resources, settings: Settings | None, findings: list[Finding]) -> tuple[Exposure, ...]:
    """Returns the enabled exposures, sorted by name. Without settings, those of project.yml do not apply."""
    names = SeenNames(EXPOSURES, in_spark=False)
    declared = [item for item in _declared(resources) if names.add(item.properties.name, item.location, findings)]
    folders = _folder_config(settings, declared, findings, complete=resources.complete)
    built = (_build(item, folders, findings) for item in declared)
    return tuple(sorted((item for item in built if item is not None), key=lambda exposure: exposure.name))


def _declared(resources: Resources) -> Iterable[_Declared]:
    for file, (document, node) in resources.documents.items():
        for index, properties in enumerate(document.exposures):
            yield _Declared(properties, node, resources.written[file], (EXPOSURES, index))


def _folder_config(
    settings: Settings | None, declared: Iterable[_Declared], findings: list[Finding], *, complete: bool
) -> FolderConfig:
    if settings is None:
        return FolderConfig({}, {}, {})
    known = [(*item.folders, item.properties.name) for item in declared]
    section = Section(settings.section(EXPOSURES), settings.written_section(EXPOSURES))
    config = read_folder_config(section, settings.document.name, known, ExposureConfig, findings)
    if complete:  # an unreadable file may declare the exposures of a folder
        findings.extend(unused_folders(config, known, EXPOSURES))
    return config


def _build(item: _Declared, folders: FolderConfig, findings: list[Finding]) -> Exposure | None:
    """Returns the exposure, None if it is disabled."""
    properties = item.properties
    inputs = [_input(text, item.node, (*item.path, "depends_on", at)) for at, text in enumerate(properties.depends_on)]
    findings.extend(found for found in inputs if isinstance(found, Finding))
    own = config_of(item.node, item.path, ExposureConfig)
    config = _config(_replaced(*folders.patches_for(item.folders, properties.name), own))
    if not config.enabled:
        return None
    written = _replaced(
        *folders.written_for(item.folders, properties.name), config_of(item.written, item.path, ExposureConfig)
    )
    return Exposure.model_construct(
        **{
            **vars(properties),
            "tags": tuple(dict.fromkeys([*properties.tags, *config.tags])),
            "meta": {**properties.meta, **config.meta},
            "inputs": tuple(found for found in inputs if isinstance(found, ExposureInput)),
            "owner_keys": {entry.key: plain(entry.value) for entry in entries_at(item.node, (*item.path, "owner"))},
            "location": item.location,
            "folders": item.folders,
            "written": {key: located.value for key, located in written.items()},
        }
    )


def _replaced(*patches: ConfigPatch) -> ConfigPatch:
    """Returns patches in ascending precedence as one. The last value wins, also of tags and meta, as in dbt."""
    return {key: located for patch in patches for key, located in patch.items() if located.value is not None}


def _config(patch: ConfigPatch) -> ExposureConfig:
    """Returns the configuration; the default one if a value is wrong, which is a finding of its file."""
    try:
        return ExposureConfig.model_validate({key: located.value for key, located in patch.items()})
    except ValidationError:
        return ExposureConfig()


def _input(text: str, node: YamlMapping, path: Path) -> ExposureInput | Finding:
    """Returns what an item of `depends_on` names, also if it is between {{ }}."""
    location = locate(node, path)
    call = read_call(text)
    return _invalid(text, location) if call is None else ExposureInput(call.kind, call.parts, location, call.version)


def _invalid(text: str, location: Location) -> Finding:
    return Finding(
        "invalid-value",
        f"`depends_on` cannot contain {quoted(text)}",
        "each entry is one call of ref() or source() with names in quotes, as in dbt",
        "for example, use `- ref('orders')` or `- source('shop', 'orders')`",
        location,
    )
