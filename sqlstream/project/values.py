"""The project as frozen values: the validated contents of its files, with locations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import ConfigDict

from sqlstream.location import Location
from sqlstream.project.configuration.columns import Schema
from sqlstream.project.configuration.config import ConfigPatch
from sqlstream.project.configuration.docs_blocks import DocsBlock
from sqlstream.project.configuration.documents import (
    DeclaredColumn,
    ExposureProperties,
    GroupDocument,
    SinkDocument,
    TableDocument,
)
from sqlstream.project.configuration.properties import Constraint, ModelVersion
from sqlstream.project.configuration.resources import CommentedFile, WrittenTests
from sqlstream.project.configuration.selectors import Selector
from sqlstream.project.configuration.target import Target
from sqlstream.project.files.python_files import PythonFunction, PythonModule
from sqlstream.project.formats.file_options import CHANGE_FEED
from sqlstream.project.messages.message_format import MessageFormat
from sqlstream.project.yaml import Located

if TYPE_CHECKING:
    from sqlstream.project.configuration.data_tests import DataTest


@dataclass(frozen=True)
class StoredOutput:
    """The output of the model `model` as a table. `exists`: it is known to exist. Without that, it reads no rows."""

    model: str
    exists: bool = False


@dataclass(frozen=True)
class ExposureInput:
    """One item of `depends_on`: a call of ref() or source() with its names, its location, and perhaps a version."""

    kind: Literal["ref", "source"]
    parts: tuple[str, ...]
    location: Location
    version: str | None = None


class Exposure(ExposureProperties):
    """A declared use of the project's outputs. `tags` and `meta` include those of its configuration and its folders.
    `inputs` are the items of `depends_on`. `owner_keys` are the keys of `owner` in YAML. `folders` are the folders of
    its file below models/ (or the other folder of its file). `written` is its configuration with Jinja unrendered.
    """

    model_config = ConfigDict(defer_build=True)

    inputs: tuple[ExposureInput, ...]
    owner_keys: Mapping[str, object]
    location: Location
    folders: tuple[str, ...] = ()
    written: Mapping[str, object] = {}

    @property
    def plain_config(self) -> dict[str, object]:
        """The configuration of an exposure that is part of the project."""
        return {"enabled": True, "tags": list(self.tags), "meta": dict(self.meta)}


class Group(GroupDocument):
    """A declared group of models, and where it is declared."""

    model_config = ConfigDict(defer_build=True)

    location: Location


class SourceTable(TableDocument):
    """One table of a source: a stream (`mode` "stream") or static (`mode` "batch"). Its keys are those of its YAML,
    with those that it inherits from its source: `format`, `options`, `tags`, `meta`, `freshness`, `loaded_at_field`.
    `previous_name` is the former full name.

    `spark_schema` has all columns, from any key that declares them. `messages` are the formats of a Kafka source with a
    `value_format`. `corrupt_of` is the table whose corrupt records this one contains. `stored` is the output it reads.
    `places` has the location of each key (`format`, `options.x`). `written` are the keys that describe how to read it:
    Jinja unrendered, without overrides of a target.
    """

    model_config = ConfigDict(defer_build=True)

    source: str
    format: str
    location: Location
    locations: Mapping[str, Location] = {}
    written: Mapping[str, object] = {}
    spark_schema: Schema | None = None
    messages: MessageFormat | None = None
    corrupt_of: SourceTable | None = None
    stored: StoredOutput | None = None

    @property
    def full_name(self) -> str:
        """The name: `aws.cloudtrail_logs`, or that of the model of a stored output."""
        return self.name if self.stored else f"{self.source}.{self.name}"

    @property
    def reads_changes(self) -> bool:
        """Whether its rows are the changes of a table of Delta Lake, by `changes` or by the option that it sets."""
        given = {name.lower(): str(value).lower() for name, value in self.options.items()}
        return self.format == "delta" and any(given.get(name.lower()) == "true" for name in CHANGE_FEED)

    @property
    def described(self) -> str:
        """What the table is, for messages."""
        return f"the stored output of `{self.name}`" if self.stored else f"source `{self.full_name}`"


@dataclass(frozen=True)
class RecordFormat:
    """How a Kafka sink makes a record of a row. `value_format` is `json`, `avro` or `raw`, None if the columns decide.
    `key` and `headers` are columns.
    """

    value_format: str | None = None
    key: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()


NO_RECORD = RecordFormat()
"""The record of a sink that declares nothing about it."""


class Sink(SinkDocument):
    """A declared output. `path`, `table` and `options` can contain Jinja over `model`, so they are rendered later for
    each model. `places` and `written` are as in `SourceTable`.
    """

    model_config = ConfigDict(defer_build=True)

    location: Location
    locations: Mapping[str, Location] = {}
    written: Mapping[str, object] = {}

    @property
    def record(self) -> RecordFormat:
        """How a Kafka sink makes a record of a row."""
        return RecordFormat(self.value_format, self.key, self.headers)

    def located(self, key: str, value: object) -> Located:
        """Returns the value of a key, such as `path` or `options.x`, with its location."""
        return Located(value, self.locations.get(key, self.location))


@dataclass(frozen=True)
class Seed:
    """A CSV file in seeds/. `columns` are the columns with a declared type, `header` the names of all. `checksum` is
    the checksum of the file's text. `written` is the configuration as in the files, with Jinja unrendered.
    `column_locations` has the locations of `name` and `data_type` of each declared column.
    """

    name: str
    path: str
    description: str
    columns: tuple[DeclaredColumn, ...]
    config: ConfigPatch
    location: Location
    properties_location: Location | None = None
    header: tuple[str, ...] = ()
    checksum: str = ""
    written: Mapping[str, object] = field(default_factory=dict)
    column_locations: Mapping[str, Mapping[str, Location]] = field(default_factory=dict, compare=False)

    def location_of_column(self, column: str, key: str) -> Location | None:
        """Returns the location of `name` or `data_type` of a declared column, or else of the seed's properties."""
        return self.column_locations.get(column, {}).get(key, self.properties_location)

    @property
    def delimiter(self) -> str:
        """The character between two values."""
        located = self.config.get("delimiter")
        return str(located.value) if located else ","


INLINE = "inline"
"""The path of an inline query in locations: `inline:1:8`."""


@dataclass(frozen=True)
class ModelFile:
    """A file under models/: its text, and its YAML.

    `folders` are the folders below models/, outermost first. `configs` are the patches from YAML in ascending
    precedence: the folders of project.yml, outermost first, then the properties file. `written` is their combination
    with Jinja unrendered. `declared_at` is the location that declares a model without a file. `rows_of` is the model
    whose rows this one writes to another sink. `tests` is the source whose data tests this view checks, as `a.b`: the
    models that read the source read the view. `column_locations` is as in `Seed`. `constraints` are those of the
    columns, then those of the model.
    """

    name: str
    path: str
    text: str
    folders: tuple[str, ...]
    description: str
    columns: tuple[DeclaredColumn, ...]
    configs: tuple[ConfigPatch, ...]
    properties_location: Location | None = None
    written: Mapping[str, object] = field(default_factory=dict)
    declared_at: Location | None = None
    rows_of: str | None = None
    tests: str | None = None
    column_locations: Mapping[str, Mapping[str, Location]] = field(default_factory=dict, compare=False)
    constraints: tuple[Constraint, ...] = ()
    data_tests: tuple[DataTest, ...] = ()
    deprecated: Located | None = None
    version: ModelVersion | None = None

    @property
    def row_tests(self) -> tuple[DataTest, ...]:
        """The data tests that a query checks while rows flow."""
        return tuple(test for test in self.data_tests if not test.is_of_table)

    @property
    def location(self) -> Location:
        """The file's first character, or the location that declares the model."""
        return self.declared_at or Location(self.path)

    @property
    def name_words(self) -> tuple[str, ...]:
        """The end of dbt's dotted name: the name, or the model and `v1` for a version of a model."""
        return (self.name,) if self.version is None else (self.version.name, f"v{self.version.v}")

    def location_of_column(self, column: str, key: str) -> Location:
        """Returns the location of `name` or `data_type` of a declared column, or else of the model."""
        return self.column_locations.get(column, {}).get(key, self.location)

    @property
    def has_corrupt_records(self) -> bool:
        """Whether the query of the model writes the corrupt records of a source."""
        return self.declared_at is not None and self.rows_of is None and self.tests is None

    @property
    def is_inline(self) -> bool:
        """Whether the model is the query of `show --inline`, which has no file."""
        return self.path == INLINE

    @property
    def is_python(self) -> bool:
        """Whether the model is a Python function."""
        return self.path.endswith(".py")


@dataclass(frozen=True)
class ModelVersions:
    """The files of the versions of a model by version, and the name of the `latest` one; None if it has no file."""

    latest: str | None
    files: Mapping[str, str]


@dataclass(frozen=True)
class MacroFile:
    """A `.sql` file under macros/."""

    path: str
    text: str


@dataclass(frozen=True)
class Project:
    """A whole project, as in its files. Tuples are sorted by name (macros: by path).

    `vars` are the effective variables: those of project.yml, then the target, then the command line. `written_vars` are
    those of project.yml, with Jinja unrendered. `rules` maps codes of findings to lower severities: `warn`, `info`,
    `ignore` or `off`. `selectors` are in the order of the file. `python` are the modules below python/, `functions`
    those that SQL can call. `tests` are the unit tests of the files of models/. `commented` are the YAML files with
    comments to sqlstream. `docs` are the docs blocks of Markdown files. `exposures` are the enabled ones. `groups` are
    the declared groups of models. `data` are the absolute paths of what streams read and write: of sources, sinks and
    the target's storage.
    """

    root: Path
    name: str
    version: str
    target: Target
    target_names: tuple[str, ...]
    vars: Mapping[str, object]
    sources: tuple[SourceTable, ...]
    sinks: tuple[Sink, ...]
    seeds: tuple[Seed, ...]
    models: tuple[ModelFile, ...]
    macros: tuple[MacroFile, ...]
    default_target: str = ""
    rules: Mapping[str, str] = field(default_factory=dict)
    written_vars: Mapping[str, object] = field(default_factory=dict)
    selectors: tuple[Selector, ...] = ()
    python: tuple[PythonModule, ...] = ()
    functions: tuple[PythonFunction, ...] = ()
    tests: tuple[WrittenTests, ...] = ()
    commented: tuple[CommentedFile, ...] = ()
    docs: tuple[DocsBlock, ...] = ()
    exposures: tuple[Exposure, ...] = ()
    groups: tuple[Group, ...] = ()
    data: frozenset[str] = frozenset()

    @cached_property
    def tested_sources(self) -> Mapping[str, str]:
        """The names of the views that check the data tests of sources, by the full names of these."""
        return {model.tests: model.name for model in self.models if model.tests is not None}

    @cached_property
    def versions(self) -> Mapping[str, ModelVersions]:
        """The versions of each model that has some, by the name of the model."""
        found: dict[str, ModelVersions] = {}
        for version, file in ((file.version, file.name) for file in self.models):
            if version is not None:
                known = found.get(version.name, ModelVersions(None, {}))
                latest = file if version.is_latest else known.latest
                found[version.name] = ModelVersions(latest, {**known.files, version.v: file})
        return found
