"""Loads all files of a project into one `Project`, and collects the errors of every file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.configuration.config import ModelConfig, SeedConfig
from sqlstream.project.configuration.docs_blocks import load_docs_blocks
from sqlstream.project.configuration.folder_config import (
    FolderConfig,
    Folders,
    Section,
    read_folder_config,
    unused_folders,
)
from sqlstream.project.configuration.generic_tests import GenericTest, find_generic_tests
from sqlstream.project.configuration.overrides import wrong_keys, wrong_overrides
from sqlstream.project.configuration.properties import collect_properties, unused_properties
from sqlstream.project.configuration.resources import (
    Resources,
    load_resources,
    overrides_of,
)
from sqlstream.project.configuration.selectors import load_selectors
from sqlstream.project.configuration.settings import Settings, load_settings, written_section
from sqlstream.project.configuration.target import DEFAULT_TARGET, RequestedTarget, Target
from sqlstream.project.configuration.templates import MakeRenderYaml
from sqlstream.project.configuration.validate import SeenNames
from sqlstream.project.declarations.exposures import build_exposures
from sqlstream.project.declarations.models import (
    MODELS,
    SEEDS,
    build_groups,
    check_names,
    check_suffixes,
    file_name,
    find_files,
    folders_of,
    load_macros,
    load_models,
    unread_files,
)
from sqlstream.project.declarations.on_corrupt import quarantine_models, quarantine_names
from sqlstream.project.declarations.seeds import load_seeds
from sqlstream.project.declarations.source_tests import tested_names, tested_sources
from sqlstream.project.declarations.sources import build_sinks, build_sources
from sqlstream.project.files.files import PROJECT_FILE, ProjectFiles, is_inside
from sqlstream.project.files.paths import folder_of_pattern, is_absolute, join
from sqlstream.project.files.python_files import (
    DECORATORS,
    PythonFunction,
    PythonModule,
    PythonName,
    find_name,
    load_python,
)
from sqlstream.project.values import ModelFile, Project, Seed, Sink, SourceTable
from sqlstream.project.wording import quoted
from sqlstream.project.yaml import locate


@dataclass(frozen=True)
class LoadResult:
    """The result of loading: `project` is None if any finding is an error. Findings are sorted by location.

    `partial` is then the readable part of the project, with all of its models, so that their templates can be checked
    too. `knows_variables`: its variables and its target are correct.
    """

    project: Project | None
    findings: tuple[Finding, ...]
    partial: Project | None = None
    knows_variables: bool = False


def load_project(
    root: Path,
    *,
    make_render: MakeRenderYaml,
    target: str | None,
    cli_vars: Mapping[str, object],
    target_named_by: str = "--target",
) -> LoadResult:
    """Returns the project in the folder `root`, or the findings that prevent it.

    `target` is the name of the target, None for the project's default, and `target_named_by` is the origin of the name.
    `cli_vars` override all variables of the files. If project.yml is invalid, the other files are still checked as far
    as possible without its variables.
    """
    findings: list[Finding] = []
    files = ProjectFiles(root.resolve())
    settings = load_settings(files, make_render, RequestedTarget(target, target_named_by), cli_vars, findings)
    if settings is None and any(finding.code == "project-not-found" for finding in findings):
        return LoadResult(None, tuple(findings))
    project = _load(files, settings, cli_vars, findings)
    ordered = tuple(sorted(findings, key=_by_place))
    if settings is None or any(finding.is_error for finding in ordered):
        return LoadResult(None, ordered, project, knows_variables=settings is not None)
    return LoadResult(project, ordered)


def _load(
    files: ProjectFiles, settings: Settings | None, cli_vars: Mapping[str, object], findings: list[Finding]
) -> Project:
    """Returns the project with the contents of all other files than project.yml. Without settings, with its models and
    macros alone.
    """
    docs = load_docs_blocks(files, findings)
    described = settings and replace(settings, render=settings.render.with_docs(docs))
    resources = load_resources(files, described, findings)
    model_paths = tuple(path for ending in (".sql", ".py") for path in find_files(files, MODELS, ending, findings))
    seed_paths = find_files(files, SEEDS, ".csv", findings)
    check_suffixes(files, findings)
    findings.extend(unread_files(files))
    sources = build_sources(resources, files, findings)
    check_names(model_paths, seed_paths, {**quarantine_names(sources), **tested_names(sources)}, findings)
    sinks = build_sinks(resources, findings)
    data = _data_paths(files.root, settings, sources, sinks)
    python = tuple(replace(module, data=data) for module in load_python(files, findings))
    seeds = _load_seeds(files, settings, resources, seed_paths, findings)
    macros = load_macros(files, findings)
    generic = find_generic_tests(((macro.path, macro.text) for macro in macros), findings)
    if settings is not None:  # in dbt, a test can also have the name of its package
        generic = {**generic, **{f"{settings.document.name}.{name}": test for name, test in generic.items()}}
    models = _load_models(files, settings, resources, model_paths, sources, findings, generic)
    selectors = load_selectors(files, settings, findings)
    exposures = build_exposures(resources, settings, findings)
    groups = build_groups(resources, findings)
    if settings is None:
        target = Target.model_construct(name=DEFAULT_TARGET, location=Location(PROJECT_FILE))
        return Project(files.root, "project", "", target, (), cli_vars, (), (), (), models, macros)
    if resources.complete:
        pairs = [(table.source, table.name) for table in sources]
        for target_name in settings.target_names:
            overrides = overrides_of(settings, target_name)
            findings.extend(wrong_overrides(overrides, pairs, [sink.name for sink in sinks]))
            findings.extend([] if target_name == settings.target.name else wrong_keys(overrides))
    return Project(
        root=files.root,
        name=settings.document.name,
        version=settings.document.version,
        target=settings.target,
        target_names=settings.target_names,
        default_target=settings.default_target,
        vars=settings.vars,
        sources=sources,
        sinks=sinks,
        seeds=seeds,
        models=models,
        macros=macros,
        rules=settings.document.rules,
        written_vars=settings.written_vars,
        selectors=selectors,
        python=python,
        functions=build_functions(settings, python, findings),
        tests=resources.tests,
        commented=resources.commented,
        docs=docs,
        exposures=exposures,
        groups=groups,
        data=data,
    )


def _data_paths(
    root: Path, settings: Settings | None, sources: Sequence[SourceTable], sinks: Sequence[Sink]
) -> frozenset[str]:
    """Returns the field `data` of the project."""
    read = [table.path for table in sources] + [table.options.get("path") for table in sources]
    written = [sink.path.partition("{")[0] for sink in sinks if sink.path is not None]
    outputs = [path for path in written if is_absolute(path)]  # others are in the storage
    storage = [settings.target.storage] if settings is not None else []
    paths = [path for path in (*read, *outputs, *storage) if isinstance(path, str)]
    found = {folder_of_pattern(join(str(root), path), str(root), os.path.exists) for path in paths}
    return frozenset(path for path in found if not is_inside(root, Path(path)))


def _load_models(
    files: ProjectFiles,
    settings: Settings | None,
    resources: Resources,
    paths: tuple[str, ...],
    sources: tuple[SourceTable, ...],
    findings: list[Finding],
    generic: Mapping[str, GenericTest],
) -> tuple[ModelFile, ...]:
    folders = _folder_config(files, settings, MODELS, paths, findings)
    names = [*map(file_name, paths), *quarantine_names(sources)]
    properties = collect_properties(resources, MODELS, names, findings, generic)
    if resources.complete:  # an unreadable table may declare the model of a quarantine
        findings.extend(unused_properties(properties.values(), names, MODELS))
    models = load_models(files, paths, folders, properties, findings)
    declared = (
        *quarantine_models(sources, folders, properties),
        *tested_sources(resources, sources, findings, generic),
    )
    return tuple(sorted((*models, *declared), key=lambda model: model.name))


def _load_seeds(
    files: ProjectFiles,
    settings: Settings | None,
    resources: Resources,
    paths: tuple[str, ...],
    findings: list[Finding],
) -> tuple[Seed, ...]:
    folders = _folder_config(files, settings, SEEDS, paths, findings)
    names = [file_name(path) for path in paths]
    properties = collect_properties(resources, SEEDS, names, findings)
    findings.extend(unused_properties(properties.values(), names, SEEDS))
    configured = settings is not None and resources.complete
    return load_seeds(files, paths, folders, properties, findings, configured=configured)


def _folder_config(
    files: ProjectFiles, settings: Settings | None, kind: str, paths: tuple[str, ...], findings: list[Finding]
) -> FolderConfig:
    known: list[Folders] = [(*folders_of(path), file_name(path)) for path in paths]
    model = ModelConfig if kind == MODELS else SeedConfig
    if settings is None:
        written, name = written_section(files, kind)
        read_folder_config(Section(written, written), name, known, model, findings)
        return FolderConfig({}, {}, {})
    section = Section(settings.section(kind), settings.written_section(kind))
    config = read_folder_config(section, settings.document.name, known, model, findings)
    findings.extend(unused_folders(config, known, kind))
    return config


def _by_place(finding: Finding) -> tuple[str, int, int]:
    location = finding.location
    return (location.path, location.line, location.column) if location else ("", 0, 0)


def build_functions(
    settings: Settings, modules: tuple[PythonModule, ...], findings: list[Finding]
) -> tuple[PythonFunction, ...]:
    """Returns the declared functions, in the order of the file."""
    names = SeenNames("functions")
    functions: list[PythonFunction] = []
    for index, reference in enumerate(settings.document.functions):
        location = locate(settings.node, ("functions", index))
        found = find_name(modules, reference, location)
        if isinstance(found, PythonName) and found.kind not in (*DECORATORS, "value"):
            found = _not_decorated(reference, found, location)
        if isinstance(found, Finding):
            findings.append(found)
        elif names.add(found.name, location, findings):
            digest = next(item.digest for item in modules if item.module == reference.partition(":")[0])
            functions.append(PythonFunction(found.name, reference, location, _type_of(found), digest))
    return tuple(functions)


def _type_of(found: PythonName) -> str | None:
    """The type of a call in an expression. A table function has columns instead."""
    return None if found.kind.endswith("udtf") else found.returns


def _not_decorated(reference: str, found: PythonName, location: Location) -> Finding:
    return Finding(
        "python-name",
        f"{quoted(reference)} is a plain {found.kind}, which SQL cannot call",
        "Spark needs to know its return type",
        'decorate it with @udf("int"), @pandas_udf("int") or @udtf(returnType="a int") of pyspark.sql.functions',
        location,
    )
