"""Properties of models and seeds in YAML files, by name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlstream.errors import Finding, Severity
from sqlstream.location import Location
from sqlstream.project.configuration.columns import check_names
from sqlstream.project.configuration.config import ConfigPatch, ModelConfig, SeedConfig, combine_patches
from sqlstream.project.configuration.documents import (
    ConstraintDocument,
    DeclaredColumn,
    ModelProperties,
    SeedProperties,
)
from sqlstream.project.configuration.fields import Document
from sqlstream.project.configuration.resources import Resources
from sqlstream.project.configuration.validate import Path, SeenNames, allowed_keys
from sqlstream.project.wording import did_you_mean, quoted
from sqlstream.project.yaml import Located, YamlMapping, entries_at, locate, plain

if TYPE_CHECKING:
    from sqlstream.project.configuration.data_tests import DataTest


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


NO_PROPERTIES = Properties("", "", (), {}, {}, {}, None)
"""The properties of a model or seed without an entry in YAML."""


def collect_properties(resources: Resources, kind: str, findings: list[Finding]) -> Mapping[str, Properties]:
    """Returns the properties of all models or seeds (`kind`, a key of the files) by name.

    A second entry for one name is a finding, as in dbt.
    """
    names = SeenNames(f"`{kind}:` entries")
    collected: dict[str, Properties] = {}
    for file, (document, node) in resources.documents.items():
        entries: Sequence[ModelProperties | SeedProperties] = document.models if kind == "models" else document.seeds
        written = resources.written[file]
        for index, entry in enumerate(entries):
            location = locate(node, (kind, index, "name"))
            properties = _read(entry, node, written, (kind, index), location, findings)
            if names.add(entry.name, location, findings):
                collected[entry.name] = properties
    return collected


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
) -> Properties:
    check_names(entry.columns, node, path, findings)
    is_seed = isinstance(entry, SeedProperties)
    model: type[Document] = SeedConfig if is_seed else ModelConfig
    config = configuration_of(node, path, model)
    return Properties(
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
        data_tests=_data_tests(entry, node, path, findings),
        deprecated=_deprecated(entry, node, path),
    )


def _deprecated(entry: ModelProperties | SeedProperties, node: YamlMapping, path: Path) -> Located | None:
    date = None if isinstance(entry, SeedProperties) else entry.deprecation_date
    return None if date is None else Located(date, locate(node, (*path, "deprecation_date")))


def _constraints(entry: ModelProperties | SeedProperties, node: YamlMapping, path: Path) -> Iterator[Constraint]:
    """Yields the constraints of the columns, then those of the model."""

    def read(found: ConstraintDocument, columns: tuple[str, ...], place: Path) -> Constraint:
        warns = found.warn_unenforced and found.warn_unsupported
        named = found.expression, found.name, found.to, found.to_columns
        return Constraint(found.type, columns, *named, warns, locate(node, (*path, *place)))

    if isinstance(entry, ModelProperties):
        for at, column in enumerate(entry.columns):
            for index, found in enumerate(column.constraints):
                yield read(found, (column.name,), ("columns", at, "constraints", index))
        for index, found in enumerate(entry.constraints):
            yield read(found, found.columns, ("constraints", index))


def _data_tests(
    entry: ModelProperties | SeedProperties, node: YamlMapping, path: Path, findings: list[Finding]
) -> tuple[DataTest, ...]:
    if isinstance(entry, SeedProperties) or not (entry.data_tests or any(each.data_tests for each in entry.columns)):
        return ()
    from sqlstream.project.configuration.data_tests import read_data_tests  # few projects need its documents

    return read_data_tests(entry.name, [column.name for column in entry.columns], node, path, findings)


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
