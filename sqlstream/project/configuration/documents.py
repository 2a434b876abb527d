"""What the YAML files may hold, as pydantic models: what validation, docs and JSON Schema come from."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, SkipValidation

from sqlstream.project.configuration.config import ModelConfig, SeedConfig
from sqlstream.project.configuration.fields import (
    Definition,
    Delay,
    Document,
    Format,
    Identifier,
    Lowered,
    Name,
    Names,
    Options,
    Text,
)
from sqlstream.project.unit_tests.documents import UnitTestDocument

_TAGS = "Words to select by; tags of all places count together."
_META = "Anything of your own; it stands in the manifest."
_DESCRIPTION = "What it is, for its readers."


class WatermarkDocument(Document):
    """A source's own event time."""

    called: ClassVar[str] = "a watermark"

    column: Text = Field(description="The event-time column, of type timestamp.")
    delay: Delay = Field(description="How late rows may be and still count, for example 10 minutes.")


class ColumnDocument(Document):
    """One column of a source table, a model or a seed."""

    called: ClassVar[str] = "a column"

    name: Text = Field(description="The column's name.")
    data_type: Text | None = Field(None, description="Its type in Spark's DDL, for example decimal(10,2).")
    description: Text = Field("", description=_DESCRIPTION)
    tags: Names = Field((), description=_TAGS)
    meta: dict[str, Any] = Field(default_factory=dict, description=_META)


class TableDocument(Document):
    """One table of a source."""

    called: ClassVar[str] = "a source table"

    name: Name = Field(description="The table's name in source('source', 'table').")
    description: Text = Field("", description=_DESCRIPTION)
    format: Format | None = Field(None, description="Spark's reader, such as json, csv, rate, socket or table.")
    path: Text | None = Field(None, description="Where the files lie; a relative path is under the project.")
    table: Text | None = Field(None, description="With `format: table`, the table's name in Spark's catalog.")
    class_: Text | None = Field(
        None, alias="class", description="With `format: python`, a DataSource of python/, as `module:Class`."
    )
    schema_: Text | None = Field(
        None, alias="schema", description="The columns as Spark DDL: `id bigint, at timestamp`."
    )
    schema_file: Text | None = Field(
        None, description="A file of the project with Spark DDL, or with Spark's JSON schema."
    )
    columns: tuple[ColumnDocument, ...] = Field(
        (), description="The columns; with data_type each, they are the schema."
    )
    options: Options = Field(default_factory=dict, description="Options of Spark's reader.")
    mode: Literal["stream", "batch"] = Field("stream", description="Read as a stream, or as a static table (batch).")
    watermark: WatermarkDocument | None = Field(None, description="The table's event time, where it has one itself.")
    on_corrupt: Literal["fail", "drop", "quarantine"] | None = Field(
        None, description="With json, csv and xml, what becomes of records that cannot be read; fail by default."
    )
    quarantine_sink: Text | None = Field(
        None, description="With `on_corrupt: quarantine`, the sink that such records are written to."
    )
    mask: Names = Field((), description="Columns whose values `sqlstream test --record` does not write down.")
    tags: Names = Field((), description=_TAGS)
    meta: dict[str, Any] = Field(default_factory=dict, description=_META)


class SourceDocument(Document):
    """A source: a named group of tables."""

    called: ClassVar[str] = "a source"

    name: Name = Field(description="The source's name in source('source', 'table').")
    description: Text = Field("", description=_DESCRIPTION)
    format: Format | None = Field(None, description="The format of all of its tables that name none.")
    options: Options = Field(default_factory=dict, description="Options of all of its tables, under their own.")
    tags: Names = Field((), description=_TAGS)
    meta: dict[str, Any] = Field(default_factory=dict, description=_META)
    tables: tuple[TableDocument, ...] = Field((), description="Its tables.")


class SinkDocument(Document):
    """A declared output."""

    called: ClassVar[str] = "a sink"

    name: Name = Field(description="The name that a model's configuration gives as `sink`.")
    description: Text = Field("", description=_DESCRIPTION)
    format: Format = Field(description="Spark's writer, such as parquet, json, table or console.")
    path: Text | None = Field(
        None, description="Where the output lies, under the target's storage if relative; may use {{ model.name }}."
    )
    table: Text | None = Field(
        None, description="With `format: table`, the table's name in Spark's catalog; may use {{ model.name }}."
    )
    function: Text | None = Field(
        None, description="With `format: python`, a function or class of python/, as `module:name`."
    )
    partition_by: Names = Field((), description="Columns that the output's folders are split by.")
    options: Options = Field(default_factory=dict, description="Options of Spark's writer; may use {{ model.name }}.")
    tags: Names = Field((), description=_TAGS)
    meta: dict[str, Any] = Field(default_factory=dict, description=_META)


class ModelProperties(Document):
    """What a properties file says of one model."""

    called: ClassVar[str] = "a model's properties"

    name: Name = Field(description="The model's name, which is its file's name without the ending.")
    description: Text = Field("", description=_DESCRIPTION)
    columns: tuple[ColumnDocument, ...] = Field((), description="Its columns.")
    config: ModelConfig | None = Field(None, description="Its configuration; config() in the model goes before it.")
    tags: Names = Field((), description=_TAGS)
    meta: dict[str, Any] = Field(default_factory=dict, description=_META)


class SeedProperties(Document):
    """What a properties file says of one seed."""

    called: ClassVar[str] = "a seed's properties"

    name: Name = Field(description="The seed's name, which is its file's name without the ending.")
    description: Text = Field("", description=_DESCRIPTION)
    columns: tuple[ColumnDocument, ...] = Field((), description="Its columns; types that none declares are inferred.")
    config: SeedConfig | None = Field(None, description="Its configuration.")
    tags: Names = Field((), description=_TAGS)
    meta: dict[str, Any] = Field(default_factory=dict, description=_META)


class ResourceDocument(Document):
    """A YAML file of sources, sinks and properties, wherever it lies."""

    called: ClassVar[str] = "a file of sources, sinks, models and seeds"

    version: Literal[2] = Field(2, description="The version of this format, as dbt numbers it.")
    sources: tuple[SourceDocument, ...] = Field((), description="Declared inputs.")
    sinks: tuple[SinkDocument, ...] = Field((), description="Declared outputs.")
    models: tuple[ModelProperties, ...] = Field((), description="Properties of models.")
    seeds: tuple[SeedProperties, ...] = Field((), description="Properties of seeds.")
    unit_tests: tuple[SkipValidation[UnitTestDocument], ...] = Field((), description="Unit tests of models.")


class SelectorDocument(Document):
    """A named selection."""

    called: ClassVar[str] = "a selector"

    name: Text = Field(description="The name that --selector and selector: take.")
    description: Text = Field("", description=_DESCRIPTION)
    default: bool = Field(False, description="Whether it holds where a command is given no selection of its own.")
    definition: Definition = Field(description="What it takes: a criterion, or a union or intersection of several.")


class SelectorsDocument(Document):
    """The file selectors.yml."""

    called: ClassVar[str] = "selectors.yml"

    version: Literal[2] = Field(2, description="The version of this format, as dbt numbers it.")
    selectors: tuple[SelectorDocument, ...] = Field((), description="Named selections.")


class TargetDocument(Document):
    """An environment: where Spark runs and where data and checkpoints live."""

    called: ClassVar[str] = "a target"

    master: Text | None = Field(
        None, description="Spark's master: local[*] by default, spark://..., yarn or k8s://...."
    )
    remote: Text | None = Field(None, description="A Spark Connect server instead of a master: sc://host:15002.")
    storage: Text | None = Field(
        None, description="Where sinks, checkpoints and ledgers live: .sqlstream/<target> by default."
    )
    spark: Options = Field(default_factory=dict, description="Any Spark configuration.")
    packages: tuple[Text, ...] = Field((), description="Maven coordinates, group:artifact:version.")
    threads: int = Field(4, ge=1, description="How many queries that end by themselves run at once.")
    max_streams: int = Field(
        100, ge=1, description="How many queries that do not end by themselves may be started together."
    )
    vars: dict[str, Any] = Field(default_factory=dict, description="Variables over those of the project.")
    sources: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="Keys to replace in source tables, by `source.table` or `source`."
    )
    sinks: dict[str, dict[str, Any]] = Field(default_factory=dict, description="Keys to replace in sinks, by name.")


class ProjectDocument(Document):
    """The file project.yml."""

    called: ClassVar[str] = "project.yml"

    name: Identifier = Field(description="The project's name.")
    version: Text = Field("1.0.0", description="The project's own version.")
    require_sqlstream: Text = Field("", description="The versions of sqlstream it works with, for example `>=0.1,<1`.")
    default_target: Text | None = Field(None, description="The target that is used unless --target names another.")
    vars: dict[str, Any] = Field(default_factory=dict, description="Variables, read with var('name').")
    targets: dict[str, TargetDocument] = Field(default_factory=dict, description="Environments by name.")
    functions: Names = Field((), description="Functions of python/ that SQL may call, as `module:name`.")
    rules: dict[str, Lowered] = Field(
        default_factory=dict, description="Findings to lower, by their codes: to `warn`, `info` or `ignore` (`off`)."
    )
    models: dict[str, Any] = Field(default_factory=dict, description="Configuration of models by folder, keys with +.")
    seeds: dict[str, Any] = Field(default_factory=dict, description="Configuration of seeds by folder, keys with +.")
