"""The YAML files other than project.yml: found, rendered, merged with overrides of the target, and validated."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location
from sqlstream.project.configuration.config import ConfigPatch, combine_patches
from sqlstream.project.configuration.documents import ResourceDocument
from sqlstream.project.configuration.overrides import NO_OVERRIDES, Overrides, apply_overrides
from sqlstream.project.configuration.settings import Settings
from sqlstream.project.configuration.templates import KEPT_PATHS, RESOURCE_RULES, render_mapping, render_node
from sqlstream.project.configuration.validate import Path, boolean_words, is_template, validate_node
from sqlstream.project.files.files import ProjectFiles
from sqlstream.project.yaml import YamlMapping, YamlNode, entries_at, locate, parse_yaml, plain

COMMENT_START = "sqlstream:"
"""The start of a comment to sqlstream."""

YAML_SUFFIXES = (".yml", ".yaml")

RESOURCE_FILES = tuple(name + suffix for name in ("sources", "sinks") for suffix in YAML_SUFFIXES)
"""The files at the project's root that declare sources and sinks."""

RESOURCE_FOLDERS = ("sources", "sinks", "models", "seeds")
"""The folders whose YAML files, at any depth, declare sources and sinks and contain properties."""

_OPTION_PATHS = tuple(path for path in RESOURCE_RULES if path[-1] in ("options", "value_options"))

DESCRIBING = ("name", "previous_name", "description", "tags", "meta")
"""Keys that do not change how a source or sink is read or written. dbt ignores changes of them, too."""


def may_have_comments(text: str) -> bool:
    """Whether a file may contain a comment to sqlstream, possibly misspelled."""
    return COMMENT_START in text or "allow" in text.lower()


@dataclass(frozen=True)
class CommentedFile:
    """A YAML file with a comment to sqlstream."""

    path: str
    text: str


@dataclass(frozen=True)
class WrittenTests:
    """The `unit_tests` of one YAML file, unrendered and unvalidated until they run."""

    node: YamlNode
    location: Location


@dataclass(frozen=True)
class Resources:
    """The validated files with their nodes, by the path of the file. `complete`: none was left out. `written` are the
    same nodes before rendering and overrides. `tests` are their unit tests, which a run ignores. `commented` are the
    texts with a comment to sqlstream.
    """

    documents: Mapping[str, tuple[ResourceDocument, YamlMapping]]
    written: Mapping[str, YamlMapping]
    complete: bool
    tests: tuple[WrittenTests, ...] = ()
    commented: tuple[CommentedFile, ...] = ()


def load_resources(files: ProjectFiles, settings: Settings | None, findings: list[Finding]) -> Resources:
    """Returns all valid files, and adds the errors in the others to `findings`.

    Without settings, Jinja stays unrendered, and values with Jinja are not validated.
    """
    documents: dict[str, tuple[ResourceDocument, YamlMapping]] = {}
    written: dict[str, YamlMapping] = {}
    tests: list[WrittenTests] = []
    commented: list[CommentedFile] = []
    paths = _resource_paths(files, findings)
    for path in paths:
        loaded = _load(files, path, settings, findings, tests, commented)
        if loaded is not None:
            document, node, written[path] = loaded
            documents[path] = (document, node)
    return Resources(documents, written, len(documents) == len(paths), tuple(tests), tuple(commented))


def overrides_of(settings: Settings, target: str | None = None) -> Overrides:
    """Returns the overrides of a target, by default the one in use. The Jinja of an unused target is unrendered."""
    name = target or settings.target.name
    section = settings.section if name == settings.target.name else settings.written_section
    sources, sinks = section("targets", name, "sources"), section("targets", name, "sinks")
    return Overrides(sources, sinks) if sources.entries or sinks.entries else NO_OVERRIDES


def locations_of(node: YamlMapping, path: Path) -> dict[str, Location]:
    """Returns the location of each key with a value in the mapping at `path`, and of its options, such as `options.x`.

    A key without a value counts as absent: that is how an override removes a key.
    """
    places = {key: locate(node, (*path, key)) for key in _keys_at(node, path)}
    for key in ("options", "value_options"):
        places |= {f"{key}.{name}": locate(node, (*path, key, name)) for name in _keys_at(node, (*path, key))}
    return places


def _keys_at(node: YamlMapping, path: Path) -> list[str]:
    return [entry.key for entry in entries_at(node, path) if plain(entry.value) is not None]


def _resource_paths(files: ProjectFiles, findings: list[Finding]) -> list[str]:
    paths = [path for path in RESOURCE_FILES if files.exists(path)]
    for folder in RESOURCE_FOLDERS:
        listing = files.list_files(folder, *YAML_SUFFIXES)
        findings.extend(finding for finding in listing.findings if finding not in findings)
        paths.extend(listing.paths)
    return paths


def _load(
    files: ProjectFiles,
    path: str,
    settings: Settings | None,
    findings: list[Finding],
    tests: list[WrittenTests],
    commented: list[CommentedFile],
) -> tuple[ResourceDocument, YamlMapping, YamlMapping] | None:
    """The document, its node, and the node as written. Its unit tests are stored separately."""
    try:
        text = files.read_text(path)
        parsed = _without_tests(parse_yaml(text, path), tests)
    except FindingsError as error:
        findings.extend(error.findings)
        return None
    if may_have_comments(text):
        commented.append(CommentedFile(path, text))
    overrides = overrides_of(settings) if settings is not None else NO_OVERRIDES
    # Most files have no Jinja, and rendering one would visit all of its nodes for nothing.
    render = settings.render if settings and is_template(text) else None
    node = parsed
    if overrides != NO_OVERRIDES:
        node = apply_overrides(parsed, overrides, lambda value: render_node(value, render, {}, []))
    findings.extend(boolean_words(parsed, *_OPTION_PATHS))
    rendered = render_mapping(node, render, RESOURCE_RULES, findings)
    is_unchanged = node is parsed and render is None
    written = rendered if is_unchanged else render_mapping(parsed, None, RESOURCE_RULES, findings)
    document = validate_node(ResourceDocument, rendered, findings, KEPT_PATHS)
    return (document, rendered, written) if document is not None else None


def _without_tests(node: YamlMapping, tests: list[WrittenTests]) -> YamlMapping:
    entry = node.entry("unit_tests")
    if entry is None:
        return node
    tests.append(WrittenTests(entry.value, entry.key_location))
    return node.where(lambda other: other is not entry)


def written_config(*patches: ConfigPatch) -> Mapping[str, object]:
    """Returns the configuration from patches in ascending precedence."""
    return {key: located.value for key, located in combine_patches(patches).items()}


def written_keys(node: YamlMapping, path: Path, but: Collection[str] = DESCRIBING) -> dict[str, object]:
    """Returns the mapping at `path` without the keys `but`; empty if it does not exist."""
    values = ((entry.key, plain(entry.value)) for entry in entries_at(node, path) if entry.key not in but)
    return {key: value for key, value in values if value is not None}
