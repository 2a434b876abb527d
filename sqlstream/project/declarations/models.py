"""The files under models/ and macros/, the groups of models, the checks on the names of all files, and what of a dbt
project sqlstream does not read.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from sqlstream.errors import Finding, Severity
from sqlstream.location import Location
from sqlstream.numbers import plural
from sqlstream.project.configuration.config import ConfigPatch
from sqlstream.project.configuration.fields import is_name
from sqlstream.project.configuration.folder_config import FolderConfig, Folders
from sqlstream.project.configuration.properties import NO_PROPERTIES, Properties
from sqlstream.project.configuration.resources import Resources, written_config
from sqlstream.project.configuration.validate import SeenNames
from sqlstream.project.files.files import DBT_PROJECT_FILE, ProjectFiles
from sqlstream.project.values import Group, MacroFile, ModelFile
from sqlstream.project.wording import quoted
from sqlstream.project.yaml import locate

MODELS, SEEDS, MACROS, GENERIC_TESTS = "models", "seeds", "macros", "tests/generic"
"""The project's folders."""

_ENDINGS = {MODELS: (".sql", ".py"), SEEDS: (".csv",), MACROS: (".sql",), GENERIC_TESTS: (".sql",)}


def find_files(files: ProjectFiles, folder: str, suffix: str, findings: list[Finding]) -> tuple[str, ...]:
    """Returns the paths of the files below a folder. A link out of the project is a finding, once."""
    listing = files.list_files(folder, suffix)
    findings.extend(finding for finding in listing.findings if finding not in findings)
    return listing.paths


def file_name(path: str) -> str:
    """Returns the name of the model or seed in a file: the file's name without its suffix."""
    return posixpath.splitext(posixpath.basename(path))[0]


def folders_of(path: str) -> Folders:
    """Returns the folders of a file below models/ or seeds/, outermost first."""
    return tuple(path.split("/")[1:-1])


def check_suffixes(files: ProjectFiles, findings: list[Finding]) -> None:
    """Adds a finding for each file with the suffix of its folder in capitals."""
    for folder, ending in ((folder, ending) for folder, endings in _ENDINGS.items() for ending in endings):
        paths = files.list_files(folder, "").paths
        findings.extend(
            _capital_ending(path, folder, ending)
            for path in paths
            if path.lower().endswith(ending) and not path.endswith(ending)
        )


def load_models(
    files: ProjectFiles,
    paths: tuple[str, ...],
    folders: FolderConfig,
    properties: Mapping[str, Properties],
    findings: list[Finding],
) -> tuple[ModelFile, ...]:
    """Returns the readable models, sorted by name."""
    models = [
        _build_model(path, text, folders, properties.get(file_name(path), NO_PROPERTIES))
        for path in paths
        if (text := files.try_read(path, findings)) is not None
    ]
    return tuple(sorted(models, key=lambda model: model.name))


def load_macros(files: ProjectFiles, findings: list[Finding]) -> tuple[MacroFile, ...]:
    """Returns the readable macro files, sorted by path, and after them those of generic tests."""
    paths = [path for folder in (MACROS, GENERIC_TESTS) for path in find_files(files, folder, ".sql", findings)]
    texts = ((path, files.try_read(path, findings)) for path in paths)
    return tuple(MacroFile(path, text) for path, text in texts if text is not None)


def check_names(
    models: tuple[str, ...], seeds: tuple[str, ...], others: Mapping[str, Location], findings: list[Finding]
) -> None:
    """Adds a finding for each file whose name cannot be a view's name, or is already used by another model or seed. It
    also checks the `others`, the models without a file.
    """
    names = SeenNames("models or seeds")
    for path in (*models, *seeds):
        name = file_name(path)
        names.add(name, Location(path), findings)
        if not is_name(name):
            findings.append(_not_a_name(name, path))
    for name, location in others.items():
        names.add(name, location, findings)


def build_groups(resources: Resources, findings: list[Finding]) -> tuple[Group, ...]:
    """Returns the declared groups, sorted by name."""
    names, groups = SeenNames("groups", in_spark=False), []
    for document, node in resources.documents.values():
        for index, declared in enumerate(document.groups):
            location = locate(node, ("groups", index, "name"))
            if names.add(declared.name, location, findings):
                groups.append(Group.model_construct(**{**vars(declared), "location": location}))
    return tuple(sorted(groups, key=lambda group: group.name))


def _build_model(path: str, text: str, folders: FolderConfig, properties: Properties) -> ModelFile:
    below, name = folders_of(path), file_name(path)
    configs: tuple[ConfigPatch, ...] = folders.patches_for(below, name)
    if properties.config:
        configs = (*configs, properties.config)
    written = (*folders.written_for(below, name), properties.written)
    return ModelFile(
        name=name,
        path=path,
        text=text,
        folders=below,
        description=properties.description,
        columns=properties.columns,
        configs=configs,
        properties_location=properties.location,
        column_locations=properties.column_locations,
        constraints=properties.constraints,
        written=written_config(*written),
        data_tests=properties.data_tests,
        deprecated=properties.deprecated,
        version=properties.version,
    )


def _capital_ending(path: str, folder: str, ending: str) -> Finding:
    kind = folder.removesuffix("s")
    renamed = path[: -len(ending)] + ending
    return Finding(
        "unsupported-file",
        f"{quoted(path)} is not read as a {kind}",
        f"the extension of a {kind} file must be `{ending}` in lowercase",
        f"rename the file to {quoted(renamed)}",
        Location(path),
    )


def _not_a_name(name: str, path: str) -> Finding:
    return Finding(
        "invalid-value",
        f"a file here cannot have the name {quoted(name)}",
        "its name becomes the name of a view in Spark",
        "rename the file, using only letters, digits and `_`",
        Location(path),
    )


_SNAPSHOTS = "sqlstream has no snapshots: read the changes as a stream and write them to a sink"
_ANALYSES = "use a model without a sink, or show its rows with `sqlstream show --inline`"
_PACKAGES = "sqlstream has no packages: copy the macros that you need into macros/"
_TESTS = "sqlstream has no singular tests: use `data_tests:` of a model, also with a {% test %} block in tests/generic/"

_ROOT_ENTRIES = {
    "analyses/": _ANALYSES,
    "analysis/": _ANALYSES,
    DBT_PROJECT_FILE: "move its settings to project.yml, whose `targets:` also replace profiles.yml",
    "dependencies.yml": _PACKAGES,
    "packages.yml": _PACKAGES,
    "profiles.yml": "define each of its outputs in `targets:` of project.yml",
    "snapshots/": _SNAPSHOTS,
}
"""The replacements for files and folders at the root of a dbt project."""


def unread_files(files: ProjectFiles) -> list[Finding]:
    """Returns a warning for each file or folder that only dbt reads, one for a folder of tests."""
    found = [_unread(path, fix) for path, fix in _ROOT_ENTRIES.items() if files.exists(path.rstrip("/"))]
    tests = [path for path in files.files_in("tests") if path.endswith(".sql")]
    others = (
        f", and neither {'is' if len(tests) == 2 else 'are'} {plural(len(tests) - 1, 'other file')} in the same folder"
        if len(tests) > 1
        else ""
    )
    return found + ([_unread(tests[0], _TESTS, others)] if tests else [])


def _unread(path: str, fix: str, others: str = "") -> Finding:
    return Finding(
        "dbt-file",
        f"`{path}` is not read{others}",
        "it is a part of dbt that sqlstream does not have",
        fix,
        Location(path.rstrip("/")),
        Severity.WARNING,
    )
