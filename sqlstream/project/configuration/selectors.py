"""The file selectors.yml: named selections, as in dbt."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location
from sqlstream.project.configuration.documents import SelectorsDocument
from sqlstream.project.configuration.resources import YAML_SUFFIXES
from sqlstream.project.configuration.settings import Settings
from sqlstream.project.configuration.templates import render_mapping
from sqlstream.project.configuration.validate import SeenNames, validate_node
from sqlstream.project.files.files import ProjectFiles
from sqlstream.project.wording import quoted
from sqlstream.project.yaml import YamlMapping, YamlNode, follow, locate, parse_yaml

SELECTOR_FILES = tuple(f"selectors{suffix}" for suffix in YAML_SUFFIXES)
"""The files at the project's root that define selectors."""


@dataclass(frozen=True)
class Selector:
    """A selection of selectors.yml. `is_default`: it applies if none is given. `definition` has its criteria."""

    name: str
    description: str
    is_default: bool
    definition: YamlNode
    location: Location


def load_selectors(files: ProjectFiles, settings: Settings | None, findings: list[Finding]) -> tuple[Selector, ...]:
    """Returns the selectors in the order of the file, and adds their errors to `findings`.

    Their definitions are not validated here. Without settings, their Jinja stays unrendered.
    """
    names = SeenNames("selectors")
    found = [
        selector
        for path in SELECTOR_FILES
        if files.exists(path)
        for selector in _load(files, path, settings, findings)
        if names.add(selector.name, selector.location, findings)
    ]
    defaults = [selector for selector in found if selector.is_default]
    findings.extend(_second_default(selector, defaults[0]) for selector in defaults[1:])
    return tuple(found)


def _load(files: ProjectFiles, path: str, settings: Settings | None, findings: list[Finding]) -> list[Selector]:
    try:
        node = parse_yaml(files.read_text(path), path)
    except FindingsError as error:
        findings.extend(error.findings)
        return []
    node = render_mapping(node, settings.render if settings else None, {}, findings)
    document = validate_node(SelectorsDocument, node, findings)
    entries = enumerate(document.selectors) if document else ()
    return [
        Selector(
            name=entry.name,
            description=entry.description,
            is_default=entry.default,
            definition=follow(node, ("selectors", index, "definition")) or YamlMapping((), Location(path)),
            location=locate(node, ("selectors", index, "name")),
        )
        for index, entry in entries
    ]


def _second_default(selector: Selector, first: Selector) -> Finding:
    return Finding(
        "invalid-value",
        f"the selector {quoted(selector.name)} is a second default",
        f"{first.location.path}:{first.location.line} already makes {quoted(first.name)} the default",
        "set `default: false` for one of them, or Jinja that is true for one target: \"{{ target.name == 'prod' }}\"",
        selector.location,
    )
