"""Properties of models and seeds in YAML files, by name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cmp_to_key
from typing import TYPE_CHECKING, Literal

from sqlstream.errors import Finding, Severity
from sqlstream.location import Location
from sqlstream.project.configuration.columns import check_names
from sqlstream.project.configuration.config import ConfigPatch, ModelConfig, SeedConfig, combine_patches
from sqlstream.project.configuration.documents import (
    ConstraintDocument,
    DeclaredColumn,
    ModelProperties,
    SeedProperties,
    VersionColumn,
    VersionDocument,
)
from sqlstream.project.configuration.fields import Document
from sqlstream.project.configuration.resources import Resources
from sqlstream.project.configuration.validate import Path, SeenNames, allowed_keys
from sqlstream.project.wording import did_you_mean, quoted, quoted_list
from sqlstream.project.yaml import Located, YamlMapping, entries_at, locate, plain

if TYPE_CHECKING:
    from sqlstream.project.configuration.data_tests import DataTest
    from sqlstream.project.configuration.generic_tests import GenericTest


@dataclass(frozen=True)
class Constraint:
    """A constraint on the rows of a model, and its `columns`. `warns`: it is a warning if nothing enforces it.

    The other fields are as in `ConstraintDocument`.
    """

    type: str
    columns: tuple[str, ...]
    expression: str | None
    name: str | None
    to: str | None
    to_columns: tuple[str, ...]
    warns: bool
    location: Location


@dataclass(frozen=True)
class ModelVersion:
    """The version `v` of the model `name`, in a separate file. `release` is how it compares with the latest
    version, which `ref('name')` reads.
    """

    name: str
    v: str
    release: Literal["old", "latest", "prerelease"]

    @property
    def is_latest(self) -> bool:
        """Whether `ref('name')` reads this version."""
        return self.release == "latest"


@dataclass(frozen=True)
class Properties:
    """The YAML of one model or seed. `written` is its configuration before Jinja is rendered. `column_locations` says
    where `name` and `data_type` of each column are. `deprecated` is the deprecation date, a `datetime`.
    """

    name: str
    description: str
    columns: tuple[DeclaredColumn, ...]
    column_locations: Mapping[str, Mapping[str, Location]]
    config: ConfigPatch
    written: ConfigPatch
    location: Location | None
    constraints: tuple[Constraint, ...] = ()
    data_tests: tuple[DataTest, ...] = ()
    deprecated: Located | None = None
    version: ModelVersion | None = None
    path: Path = ()


NO_PROPERTIES = Properties("", "", (), {}, {}, {}, None)
"""The properties of a model or seed without an entry in YAML."""


def collect_properties(
    resources: Resources,
    kind: str,
    files: Collection[str],
    findings: list[Finding],
    generic: Mapping[str, GenericTest] = {},
) -> Mapping[str, Properties]:
    """Returns the properties of all models or seeds (`kind`, a key of the resources) by name: those of `files`, the
    names of their files. `generic` are the data tests that the project defines.

    A second entry for one name is a finding, as in dbt.
    """
    names = SeenNames(f"`{kind}:` entries")
    collected: dict[str, Properties] = {}
    for file, (document, node) in resources.documents.items():
        entries: Sequence[ModelProperties | SeedProperties] = document.models if kind == "models" else document.seeds
        written = resources.written[file]
        for index, entry in enumerate(entries):
            location = locate(node, (kind, index, "name"))
            properties = _read(entry, node, written, (kind, index), location, findings, generic)
            versions = entry.versions if isinstance(entry, ModelProperties) else ()
            for each in (
                _versions(entry, properties, node, written, files, findings, generic) if versions else (properties,)
            ):
                if names.add(each.name, each.location or location, findings):
                    collected[each.name] = each
    return collected


def _versions(
    entry: ModelProperties | SeedProperties,
    whole: Properties,
    node: YamlMapping,
    written: YamlMapping,
    files: Collection[str],
    findings: list[Finding],
    generic: Mapping[str, GenericTest],
) -> Iterator[Properties]:
    """Yields the properties of each version of a model, which begin with those of the `whole` model, as in dbt."""
    if not isinstance(entry, ModelProperties):
        return
    path = whole.path
    latest = entry.latest_version or max((each.v for each in entry.versions), key=cmp_to_key(_compare))
    if latest not in {each.v for each in entry.versions}:
        findings.append(_no_latest(entry, latest, locate(node, (*path, "latest_version"))))
    seen = SeenNames(f"versions of {quoted(entry.name)}", in_spark=False)
    for index, version in enumerate(entry.versions):
        at = (*path, "versions", index)
        if not seen.add(version.v, locate(node, (*at, "v")), findings):
            continue
        name = version.defined_in or f"{entry.name}_v{version.v}"
        if version.defined_in is None and version.v == latest and name not in files and entry.name in files:
            name = entry.name
        own = {column.name.lower(): column for column in version.columns if column.name}
        chosen = [column for column in version.columns if not column.name]
        kept = [column for column in entry.columns if all(_includes(each, column.name) for each in chosen)]
        known = {column.name.lower() for column in kept}
        columns = [own.get(column.name.lower(), column) for column in kept]
        columns += [column for column in own.values() if column.name.lower() not in known]
        names = {column.name.lower() for column in columns}
        inherited = [
            each for each in whole.constraints if {name.lower() for name in each.columns} <= names - own.keys()
        ]  # fmt: skip
        places = {
            column.name: _Locations(node, (*at, "columns", place)) for place, column in enumerate(version.columns)
        }
        tests = [each for each in whole.data_tests if each.column is None or each.column.lower() in names - own.keys()]
        yield replace(
            whole,
            name=name,
            description=whole.description if version.description is None else version.description,
            columns=tuple(columns),
            column_locations={**whole.column_locations, **places},
            config=combine_patches([whole.config, _patch(node, at, ("access",)), config_of(node, at, ModelConfig)]),
            written=combine_patches([whole.written, config_of(written, at, ModelConfig)]),
            location=locate(node, (*at, "v")),
            constraints=(*inherited, *_constraints(version, node, at)),
            data_tests=(*tests, *_tests_of(name, version, node, at, findings, generic)),
            deprecated=_deprecated(version, node, at) or whole.deprecated,
            version=ModelVersion(entry.name, version.v, _release(version.v, latest)),
        )


def _release(v: str, latest: str) -> Literal["old", "latest", "prerelease"]:
    if v == latest:
        return "latest"
    return "prerelease" if _compare(v, latest) > 0 else "old"


def _compare(v: str, other: str) -> int:
    """Compares versions as dbt does: as numbers if both are, otherwise as texts."""
    try:
        return int(float(v) > float(other)) - int(float(v) < float(other))
    except ValueError:
        return int(v > other) - int(v < other)


def _includes(chosen: VersionColumn, name: str) -> bool:
    included, excluded = ({each.lower() for each in names} for names in (chosen.include or ("all",), chosen.exclude))
    return (not {"*", "all", name.lower()}.isdisjoint(included)) and name.lower() not in excluded


def _no_latest(entry: ModelProperties, latest: str, location: Location) -> Finding:
    versions = [version.v for version in entry.versions]
    return Finding(
        "invalid-value",
        f"{quoted(entry.name)} has no version {quoted(latest)}",
        f"`latest_version` is one of its `versions`, which are {quoted_list(versions)}",
        did_you_mean(latest, versions),
        location,
    )


def unused_properties(properties: Iterable[Properties], names: Collection[str], kind: str) -> list[Finding]:
    """Returns a warning for each entry whose model or seed does not exist."""
    known = frozenset(names)
    return [_unused(entry, names, kind) for entry in properties if entry.name not in known]


_TOP_LEVEL = ("tags", "meta", "access", "group")
"""Keys of an entry that are part of its configuration, as in dbt."""


def _read(
    entry: ModelProperties | SeedProperties,
    node: YamlMapping,
    written: YamlMapping,
    path: Path,
    location: Location,
    findings: list[Finding],
    generic: Mapping[str, GenericTest],
) -> Properties:
    check_names(entry.columns, node, path, findings)
    is_seed = isinstance(entry, SeedProperties)
    model: type[Document] = SeedConfig if is_seed else ModelConfig
    config = configuration_of(node, path, model)
    return Properties(
        path=path,
        name=entry.name,
        description=entry.description,
        columns=entry.columns,
        column_locations={
            column.name: _Locations(node, (*path, "columns", index)) for index, column in enumerate(entry.columns)
        },
        constraints=() if is_seed else tuple(_constraints(entry, node, path)),
        config=config,
        written=config if written is node else configuration_of(written, path, model),
        location=location,
        data_tests=_data_tests(entry, node, path, findings, generic),
        deprecated=_deprecated(entry, node, path),
    )


def _deprecated(
    entry: ModelProperties | VersionDocument | SeedProperties, node: YamlMapping, path: Path
) -> Located | None:
    date = None if isinstance(entry, SeedProperties) else entry.deprecation_date
    return None if date is None else Located(date, locate(node, (*path, "deprecation_date")))


def _constraints(
    entry: ModelProperties | VersionDocument | SeedProperties, node: YamlMapping, path: Path
) -> Iterator[Constraint]:
    """Yields the constraints of the columns, then those of the model."""

    def read(found: ConstraintDocument, columns: tuple[str, ...], place: Path) -> Constraint:
        warns = found.warn_unenforced and found.warn_unsupported
        named = found.expression, found.name, found.to, found.to_columns
        return Constraint(found.type, columns, *named, warns, locate(node, (*path, *place)))

    if not isinstance(entry, SeedProperties):
        for at, column in enumerate(entry.columns):
            for index, found in enumerate(column.constraints):
                yield read(found, (column.name,), ("columns", at, "constraints", index))
        for index, found in enumerate(entry.constraints):
            yield read(found, found.columns, ("constraints", index))


def _data_tests(
    entry: ModelProperties | SeedProperties,
    node: YamlMapping,
    path: Path,
    findings: list[Finding],
    generic: Mapping[str, GenericTest],
) -> tuple[DataTest, ...]:
    if isinstance(entry, SeedProperties) or not (entry.data_tests or any(each.data_tests for each in entry.columns)):
        return ()
    return _tests_of(entry.name, entry, node, path, findings, generic)


def _tests_of(
    name: str,
    entry: ModelProperties | VersionDocument,
    node: YamlMapping,
    path: Path,
    findings: list[Finding],
    generic: Mapping[str, GenericTest],
) -> tuple[DataTest, ...]:
    if not any(column.data_tests for column in entry.columns) and isinstance(entry, VersionDocument):
        return ()
    from sqlstream.project.configuration.data_tests import read_data_tests  # few projects need its documents

    return read_data_tests(name, [column.name for column in entry.columns], node, path, findings, generic)


@dataclass(frozen=True)
class _Locations(Mapping[str, Location]):
    """The locations of a column's name and type, which are looked up on demand: few are ever needed."""

    node: YamlMapping
    path: Path

    def __getitem__(self, key: str) -> Location:
        if key not in self:
            raise KeyError(key)
        return locate(self.node, (*self.path, key))

    def __contains__(self, key: object) -> bool:
        return key in ("name", "data_type")

    def __iter__(self) -> Iterator[str]:
        return iter(("name", "data_type"))

    def __len__(self) -> int:
        return 2


def configuration_of(node: YamlMapping, path: Path, model: type[Document]) -> ConfigPatch:
    """Returns what the entry at `path` configures, at its top level and in its `config`, whose keys are in `model`."""
    return combine_patches([_patch(node, path, _TOP_LEVEL), config_of(node, path, model)])


def config_of(node: YamlMapping, path: Path, model: type[Document]) -> ConfigPatch:
    """Returns the `config` of the entry at `path`."""
    return _patch(node, (*path, "config"), allowed_keys(model))


def _patch(node: YamlMapping, path: Path, keys: Collection[str]) -> ConfigPatch:
    """Returns those of `keys` that the mapping at `path` sets."""
    entries = [entry for entry in entries_at(node, path) if entry.key in keys]
    return {entry.key: Located(plain(entry.value), locate(node, (*path, entry.key))) for entry in entries}


def _unused(entry: Properties, names: Collection[str], kind: str) -> Finding:
    return Finding(
        "unused-config",
        f"there is no {kind.removesuffix('s')} {quoted(entry.name)} for these properties",
        f"the name of a {kind.removesuffix('s')} is its file name in {kind}/, without the extension",
        did_you_mean(entry.name, names),
        entry.location,
        Severity.WARNING,
    )
