"""The contents of YAML files as pydantic models: the base of validation, docs and JSON Schemas."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from sqlstream.project.configuration.alerts import AlertsDocument
from sqlstream.project.configuration.config import ModelConfig, SeedConfig
from sqlstream.project.configuration.fields import (
    Definition,
    Delay,
    Document,
    Format,
    Identifier,
    Interval,
    Listed,
    Lowered,
    Moment,
    Name,
    Names,
    Options,
    OptionText,
    Text,
)
from sqlstream.project.configuration.freshness import (
    FRESHNESS,
    LOADED_AT,
    Freshness,
    SourceConfigDocument,
)
from sqlstream.project.configuration.trigger import interval_seconds, invalid
from sqlstream.project.secret_text import OptionValue
from sqlstream.project.wording import given

_TAGS = "Tags for selection; tags from all places are combined."
_META = "Any values; sqlstream copies them to the manifest."
_DESCRIPTION = "A description for readers."
_DATA_TESTS = "Rules on the rows, and what happens to a row that violates one."
_SOURCE_CONFIG = "Another place for `freshness` and `loaded_at_field`, as in dbt 1.10."


class Watermark(Document):
    """The event time of a source table."""

    called: ClassVar[str] = "a watermark"

    column: Text = Field(description="The event-time column; its type must be timestamp.")
    delay: Delay = Field(description="How late rows can be and still count, for example 10 minutes.")


class DeclaredColumn(Document):
    """One column of a source table, a model or a seed."""

    called: ClassVar[str] = "a column"

    name: Text = Field(description="The column's name.")
    data_type: Text | None = Field(None, description="The type in Spark's DDL, for example decimal(10,2).")
    description: Text = Field("", description=_DESCRIPTION)
    tags: Names = Field((), description=_TAGS)
    meta: dict[str, Any] = Field(default_factory=dict, description=_META)


class SourceColumn(DeclaredColumn):
    """One column of a source table."""

    required: bool = Field(
        False, description="For json, csv, xml and Kafka's messages: whether a record without a value is corrupt."
    )
    data_tests: Listed = Field((), description=_DATA_TESTS)


class SchemaRegistry(Document):
    """The registry with the Avro schemas of a topic."""

    called: ClassVar[str] = "a schema registry"

    url: OptionText = Field(description="The address, such as https://registry.example.com.")
    username: OptionText = Field("", description="The user, for basic authentication.")
    password: OptionText = Field("", description="The password; use a secret.")
    token: OptionText = Field("", description="A bearer token instead of a user; use a secret.")
    subject: Text | None = Field(None, description="The subject of the values (default: the topic and `-value`).")
    key_subject: Text | None = Field(None, description="The subject of the keys (default: the topic and `-key`).")

    @property
    def subjects(self) -> tuple[str, ...]:
        """The subjects that the source uses."""
        return tuple(subject for subject in (self.subject, self.key_subject) if subject is not None)


class TableDocument(Document):
    """One table of a source."""

    called: ClassVar[str] = "a source table"

    name: Name = Field(description="The table's name in `source('source', 'table')`.")
    description: Text = Field("", description=_DESCRIPTION)
    format: Format | None = Field(
        None, description="The Spark format to read, such as json, csv, rate, socket or table."
    )
    path: Text | None = Field(None, description="The path of the files; relative to the project.")
    table: Text | None = Field(
        None, description="With `format: table`, delta or iceberg, the table's name in Spark's catalog."
    )
    python: Text | None = Field(
        None, alias="class", description="With `format: python`, a DataSource in python/, as `module:Class`."
    )
    schema_: Text | None = Field(
        None, alias="schema", description="The columns as Spark DDL: `id bigint, at timestamp`."
    )
    schema_file: Text | None = Field(
        None,
        description="A project file with Spark DDL, Spark's JSON schema, or for `value_format: avro` Avro's.",
    )
    columns: tuple[SourceColumn, ...] = Field(
        (), description="The columns. If all have a data_type, they are the schema."
    )
    data_tests: Listed = Field((), description=_DATA_TESTS)
    options: Options = Field(default_factory=dict, description="Options for Spark's reader.")
    mode: Literal["stream", "batch"] = Field(
        "stream", description="Whether to read it as a stream, or as a static table (batch)."
    )
    changes: bool = Field(
        False,
        description="For delta: read the changes of the rows, with `_change_type`, `_commit_version` and "
        "`_commit_timestamp`.",
    )
    watermark: Watermark | None = Field(None, description="The table's event time and its delay.")
    value_format: Literal["json", "avro", "protobuf", "debezium", "text", "raw"] | None = Field(
        None, description="With `format: kafka`, the format of the values of messages."
    )
    value_options: Options = Field(
        default_factory=dict, description="Options for the parser of the values, such as timestampFormat."
    )
    key_format: Literal["json", "avro", "text", "raw"] | None = Field(
        None, description="With `value_format`, the format of the keys of messages (default: raw)."
    )
    key_columns: tuple[DeclaredColumn, ...] = Field(
        (), description="The columns of the keys, for a `key_format` with columns."
    )
    schema_registry: SchemaRegistry | None = Field(
        None, description="The registry with the schemas of a format avro, which `sqlstream source schema` pins."
    )
    on_corrupt: Literal["fail", "drop", "quarantine"] | None = Field(
        None, description="For json, csv, xml and Kafka's messages: what to do with corrupt records (default: fail)."
    )
    quarantine_sink: Text | None = Field(
        None, description="For `on_corrupt: quarantine`: the sink for corrupt records."
    )
    schema_changes: Literal["ignore", "fail", "rescue", "evolve"] | None = Field(
        None,
        description="For JSON and CSV files, and JSON, Avro and Debezium messages: what to do with undeclared fields: "
        "count them, end the query, keep them in the column `_rescued_data`, or also write the declaration that has "
        "them. Default: they are not looked for.",
    )
    timestamp_unit: Literal["seconds", "milliseconds", "microseconds"] | None = Field(
        None, description="For json: the unit of numbers in timestamp columns, counted from 1970."
    )
    max_event_time: Delay | None = Field(
        None,
        description="For json, csv, xml and Kafka's messages: how far event times can be ahead of the time of the "
        "file or message, such as 1 hour; later ones are corrupt.",
    )
    refresh: Literal["batch", "run"] | None = Field(
        None,
        description="For a static table of files or jdbc: read it in each batch (default), or once in a run.",
    )
    mask: Names = Field((), description="Columns whose values `sqlstream test --record` replaces.")
    previous_name: Name | None = Field(
        None, description="The table's former name; after a rename queries continue where they stopped reading it."
    )
    freshness: Freshness | None = Field(None, description=FRESHNESS)
    loaded_at_field: Text | None = Field(None, description=LOADED_AT)
    config: SourceConfigDocument | None = Field(None, description=_SOURCE_CONFIG)
    tags: Names = Field((), description=_TAGS)
    meta: dict[str, Any] = Field(default_factory=dict, description=_META)


class SourceDocument(Document):
    """A source: a named group of tables."""

    called: ClassVar[str] = "a source"

    name: Name = Field(description="The source's name in `source('source', 'table')`.")
    description: Text = Field("", description=_DESCRIPTION)
    format: Format | None = Field(None, description="The default format of its tables.")
    options: Options = Field(
        default_factory=dict, description="Options for all its tables; a table's own options take precedence."
    )
    freshness: Freshness | None = Field(None, description=f"For all its tables. {FRESHNESS}")
    loaded_at_field: Text | None = Field(None, description=f"For all its tables. {LOADED_AT}")
    config: SourceConfigDocument | None = Field(None, description=_SOURCE_CONFIG)
    tags: Names = Field((), description=_TAGS)
    meta: dict[str, Any] = Field(default_factory=dict, description=_META)
    previous_name: Name | None = Field(
        None, description="The source's former name; after a rename queries continue where they stopped reading it."
    )
    tables: tuple[TableDocument, ...] = Field((), description="The tables.")


class SinkDocument(Document):
    """A declared output."""

    called: ClassVar[str] = "a sink"

    name: Name = Field(description="The name for `sink` in a model's configuration.")
    description: Text = Field("", description=_DESCRIPTION)
    format: Format = Field(description="The Spark format to write, such as parquet, json, table or console.")
    path: Text | None = Field(
        None, description="The path of the output; relative to the target's storage; can use {{ model.name }}."
    )
    table: Text | None = Field(
        None,
        description="With `format: table`, delta or iceberg, its name in Spark's catalog; can use {{ model.name }}.",
    )
    function: Text | None = Field(
        None, description="With `format: python`, a function or class in python/, as `module:name`."
    )
    value_format: Literal["json", "avro", "raw"] | None = Field(
        None,
        description="With `format: kafka`, the format of the values; raw writes the column `value` (default: raw if "
        "the model has a string or binary column `value`, otherwise json).",
    )
    key: Names = Field((), description="With `format: kafka`, the columns of the key, instead of the `unique_key`.")
    headers: Names = Field((), description="With `format: kafka`, columns to write as headers, not in the value.")
    partition_by: Names = Field((), description="Columns to partition the output by.")
    files_per_batch: int | None = Field(
        None,
        ge=1,
        description="The most files that a batch adds to the output, and with `partition_by` to each of its folders.",
    )
    options: Options = Field(default_factory=dict, description="Options of Spark's writer; can use {{ model.name }}.")
    tags: Names = Field((), description=_TAGS)
    meta: dict[str, Any] = Field(default_factory=dict, description=_META)


ConstraintType = Literal["not_null", "primary_key", "unique", "check", "foreign_key", "custom"]


class ConstraintDocument(Document):
    """A constraint on the rows of a model, which needs an enforced contract."""

    called: ClassVar[str] = "a constraint"

    type: ConstraintType = Field(
        description="What it demands: not_null, primary_key, unique, check, foreign_key or custom."
    )
    columns: Names = Field((), description="For a constraint of a model: its columns.")
    expression: Text | None = Field(
        None, description="For check: a SQL condition that no row may make false. For foreign_key and custom: any text."
    )
    name: Text | None = Field(None, description="A name for messages.")
    to: Text | None = Field(None, description="For foreign_key: the model that has the key, as `ref('name')`.")
    to_columns: Names = Field((), description="For foreign_key: the columns of the key.")
    warn_unenforced: bool = Field(True, description="Whether to warn if nothing enforces it.")
    warn_unsupported: bool = Field(True, description="The same as `warn_unenforced`.")

    @model_validator(mode="after")
    def _has_an_expression(self) -> ConstraintDocument:
        if self.type in ("check", "custom") and not self.expression:
            raise invalid(f"of type {self.type} needs an `expression`", "for example, use `expression: amount >= 0`")
        return self


class ModelColumn(DeclaredColumn):
    """One column of a model."""

    called: ClassVar[str] = "a column of a model"

    constraints: tuple[ConstraintDocument, ...] = Field((), description="Constraints on its values.")
    data_tests: Listed = Field((), description=_DATA_TESTS)


def _parse_version(value: object) -> str:
    if isinstance(value, str | int | float) and not isinstance(value, bool) and re.fullmatch(r"[\w.-]+", str(value)):
        return str(value)
    raise invalid(f"cannot be {given(value)}", "use a number such as 2, or a short text")


Version = Annotated[str, BeforeValidator(_parse_version), WithJsonSchema({"type": ["string", "number"]})]


class VersionColumn(ModelColumn):
    """A column of one version of a model, or which columns of the model it has."""

    called: ClassVar[str] = "a column of a version"

    name: Text = Field(
        "", description="The column's name; without it, `include` and `exclude` choose columns of the model."
    )
    include: Names | None = Field(
        None, description="The columns of the model that the version has (default: `all`, or `*`)."
    )
    exclude: Names = Field((), description="The columns of the model that the version does not have.")


class VersionDocument(Document):
    """One version of a model."""

    called: ClassVar[str] = "a version of a model"

    v: Version = Field(description="The version in `ref('model', v=1)`.")
    defined_in: Name | None = Field(None, description="The file, without its extension (default: the model and `_v1`).")
    description: Text | None = Field(None, description="A description, instead of that of the model.")
    columns: tuple[VersionColumn, ...] = Field((), description="How its columns differ from those of the model.")
    constraints: tuple[ConstraintDocument, ...] = Field((), description="More constraints on its rows.")
    config: ModelConfig | None = Field(None, description="Its configuration; it takes precedence over the model's.")
    access: Literal["private", "protected", "public"] | None = Field(
        None, description="Instead of `access` of the model."
    )
    deprecation_date: Moment | None = Field(None, description="Instead of `deprecation_date` of the model.")


class ModelProperties(Document):
    """The properties of one model."""

    called: ClassVar[str] = "a model's properties"

    name: Name = Field(description="The model's name: its file name without the extension.")
    description: Text = Field("", description=_DESCRIPTION)
    columns: tuple[ModelColumn, ...] = Field((), description="The columns.")
    constraints: tuple[ConstraintDocument, ...] = Field((), description="Constraints on several columns of a row.")
    data_tests: Listed = Field((), description=_DATA_TESTS)
    config: ModelConfig | None = Field(None, description="The configuration; `config()` in the model takes precedence.")
    access: Literal["private", "protected", "public"] | None = Field(
        None, description="Another place for `access` of the configuration."
    )
    group: Text | None = Field(None, description="Another place for `group` of the configuration.")
    deprecation_date: Moment | None = Field(
        None, description="The date from which other models should no longer read it; in UTC unless it has a time zone."
    )
    versions: tuple[VersionDocument, ...] = Field((), description="Versions of the model, each in its own file.")
    latest_version: Version | None = Field(
        None, description="The version that `ref('model')` reads (default: the highest one)."
    )
    tags: Names = Field((), description=_TAGS)
    meta: dict[str, Any] = Field(default_factory=dict, description=_META)


class SeedProperties(Document):
    """The properties of one seed."""

    called: ClassVar[str] = "a seed's properties"

    name: Name = Field(description="The seed's name: its file name without the extension.")
    description: Text = Field("", description=_DESCRIPTION)
    columns: tuple[DeclaredColumn, ...] = Field((), description="The columns; Spark infers undeclared types.")
    config: SeedConfig | None = Field(None, description="The configuration.")
    tags: Names = Field((), description=_TAGS)
    meta: dict[str, Any] = Field(default_factory=dict, description=_META)


_EXPOSURE_NAME = re.compile(r"\w[\w-]*")


def _parse_exposure_name(value: object) -> str:
    if isinstance(value, str) and _EXPOSURE_NAME.fullmatch(value):
        return value
    raise invalid(f"cannot be {given(value)}", "use only letters, digits and `_`; put other text in `label`")


_ExposureName = Annotated[
    str, BeforeValidator(_parse_exposure_name), WithJsonSchema({"type": "string", "pattern": r"^\w[\w-]*$"})
]

_EXPOSURE_TAGS = "Tags for selection, besides those of `config`."
_EXPOSURE_CONFIG_TAGS = "Tags for selection. They replace those of folders."


class OwnerDocument(Document):
    """Who is responsible for an exposure or a group. Other keys are allowed, as in dbt."""

    model_config = ConfigDict(frozen=True, extra="allow")

    called: ClassVar[str] = "an owner"

    name: Text | None = Field(None, description="The owner's name.")
    email: Names = Field((), description="The owner's email address, or several.")

    @model_validator(mode="after")
    def _has_a_name(self) -> OwnerDocument:
        if self.name is None and not self.email:
            raise invalid("needs a `name` or an `email`", "for example, use `owner: {email: data@example.com}`")
        return self


class ExposureConfig(Document):
    """The keys of an exposure that `config` and the folders of project.yml can set."""

    called: ClassVar[str] = "an exposure's configuration"

    enabled: bool = Field(True, description="Whether the exposure is part of the project.")
    tags: Names = Field((), description=_EXPOSURE_CONFIG_TAGS)
    meta: dict[str, Any] = Field(default_factory=dict, description=_META)


class ExposureProperties(Document):
    """An exposure: a dashboard, an application or another use of the project's outputs."""

    called: ClassVar[str] = "an exposure"

    name: _ExposureName = Field(description="The name for the selector `exposure:name`.")
    label: Text | None = Field(None, description="A title for readers, with any characters.")
    type: Literal["dashboard", "notebook", "analysis", "ml", "application"] = Field(
        description="What it is: dashboard, notebook, analysis, ml or application."
    )
    maturity: Literal["high", "medium", "low"] | None = Field(
        None, description="How much its users rely on it: high, medium or low."
    )
    url: Text | None = Field(None, description="Its address.")
    description: Text = Field("", description="A description for readers.")
    owner: OwnerDocument = Field(description="Who is responsible for it.")
    depends_on: tuple[Text, ...] = Field(
        (), description="What it reads: a list of `ref('model')` and `source('source', 'table')`."
    )
    tags: Names = Field((), description=_EXPOSURE_TAGS)
    meta: dict[str, Any] = Field(default_factory=dict, description=_META)
    config: ExposureConfig | None = Field(None, description="The configuration.")


class GroupConfig(Document):
    """The configuration of a group."""

    called: ClassVar[str] = "a group's configuration"

    meta: dict[str, Any] = Field(default_factory=dict, description=_META)


class GroupDocument(Document):
    """A group: the models that one owner is responsible for."""

    called: ClassVar[str] = "a group"

    name: Text = Field(description="The name for `group` of models.")
    owner: OwnerDocument = Field(description="Who is responsible for its models.")
    description: Text = Field("", description=_DESCRIPTION)
    config: GroupConfig | None = Field(None, description="The configuration.")


class ResourceDocument(Document):
    """A YAML file of sources, sinks and properties, in any of their folders."""

    called: ClassVar[str] = "a file of sources, sinks, models and seeds"

    version: Literal[2] = Field(2, description="The version of the format, as in dbt.")
    sources: tuple[SourceDocument, ...] = Field((), description="Sources.")
    sinks: tuple[SinkDocument, ...] = Field((), description="Sinks.")
    models: tuple[ModelProperties, ...] = Field((), description="Properties of models.")
    seeds: tuple[SeedProperties, ...] = Field((), description="Properties of seeds.")
    exposures: tuple[ExposureProperties, ...] = Field((), description="Exposures: what uses the outputs.")
    groups: tuple[GroupDocument, ...] = Field((), description="Groups: who is responsible for models.")
    unit_tests: tuple[Any, ...] = Field((), description="Unit tests of models.")


class SelectorDocument(Document):
    """A named selection."""

    called: ClassVar[str] = "a selector"

    name: Text = Field(description="The name for `--selector` and `selector:`.")
    description: Text = Field("", description=_DESCRIPTION)
    default: bool = Field(False, description="Whether commands without a selection use it.")
    definition: Definition = Field(description="A criterion, or a union or intersection of several.")


class SelectorsDocument(Document):
    """The file selectors.yml."""

    called: ClassVar[str] = "selectors.yml"

    version: Literal[2] = Field(2, description="The version of the format, as in dbt.")
    selectors: tuple[SelectorDocument, ...] = Field((), description="Selectors.")


class Repository(Document):
    """A Maven repository, or a folder with jars."""

    called: ClassVar[str] = "a repository"

    url: OptionText = Field(description="The address, such as https://nexus.example.com/maven, or a folder.")
    username: OptionText = Field("", description="The user, for a repository that needs one.")
    password: OptionText = Field("", description="The password; use a secret.")

    def values(self) -> tuple[OptionValue, ...]:
        """Returns all parts, any of which can name secrets."""
        return (self.url, self.username, self.password)


class MetricsDocument(Document):
    """Where runs write a row for every batch."""

    called: ClassVar[str] = "metrics"

    sink: Name = Field(description="A sink for the rows; `{{ model.name }}` in it becomes `sqlstream_metrics`.")
    interval: Interval = Field("1 minute", description="How often to write the rows of all queries.")

    @property
    def interval_seconds(self) -> float:
        """The interval in seconds."""
        return interval_seconds(self.interval)


class TargetDocument(Document):
    """An environment: where Spark runs, and where data and checkpoints are stored."""

    called: ClassVar[str] = "a target"

    master: Text | None = Field(
        None, description="Spark's master: `local[*]`, `spark://...`, `yarn` or `k8s://...` (default: `local[*]`)."
    )
    remote: OptionText | None = Field(
        None, description="A Spark Connect server to use instead of a master: sc://host:15002. A token can be a secret."
    )
    storage: Text | None = Field(
        None, description="The path for sinks, checkpoints and ledgers (default: `.sqlstream/<target>`)."
    )
    spark: Options = Field(default_factory=dict, description="Spark configuration.")
    packages: tuple[Text, ...] = Field((), description="Maven packages to load: group:artifact:version.")
    repositories: tuple[Repository, ...] = Field(
        (), description="Maven repositories or folders to fetch jars from, in this order (default: Maven Central)."
    )
    metrics: MetricsDocument | None = Field(None, description="Replaces `metrics` of the project.")
    alerts: AlertsDocument | None = Field(None, description="Replaces `alerts` of the project.")
    ui_url: Text | None = Field(
        None,
        description="The URL of this target's page, such as `https://streams.example.com`: alerts and the "
        "documentation site link to it.",
    )
    threads: int = Field(4, ge=1, description="How many queries that end by themselves can run at the same time.")
    max_streams: int = Field(100, ge=1, description="How many queries that do not end by themselves a run can start.")
    vars: dict[str, Any] = Field(default_factory=dict, description="Variables; they override those of the project.")
    sources: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="Overrides of source tables, by `source.table` or `source`."
    )
    sinks: dict[str, dict[str, Any]] = Field(default_factory=dict, description="Overrides of sinks, by name.")


class ProjectDocument(Document):
    """The file project.yml."""

    called: ClassVar[str] = "project.yml"

    name: Identifier = Field(description="The project's name.")
    version: Text = Field("1.0.0", description="The version of the project.")
    require_sqlstream: Text = Field(
        "", description="The versions of sqlstream that the project works with, for example `>=0.1,<1`."
    )
    default_target: Text | None = Field(None, description="The target to use without `--target`.")
    vars: dict[str, Any] = Field(default_factory=dict, description="Variables for `var('name')`.")
    targets: dict[str, TargetDocument] = Field(default_factory=dict, description="Targets by name.")
    metrics: MetricsDocument | None = Field(None, description="A sink for the metrics of runs.")
    alerts: AlertsDocument | None = Field(None, description="When queries raise alerts, and where these go.")
    functions: Names = Field((), description="Functions in python/ that SQL can call, as `module:name`.")
    rules: dict[str, Lowered] = Field(
        default_factory=dict, description="Findings to lower, by code: to `info`, or `ignore` (`off`)."
    )
    models: dict[str, Any] = Field(
        default_factory=dict, description="Configuration of models by folder; prefix the keys with +."
    )
    seeds: dict[str, Any] = Field(
        default_factory=dict, description="Configuration of seeds by folder; prefix the keys with +."
    )
    exposures: dict[str, Any] = Field(
        default_factory=dict, description="Configuration of exposures by folder; prefix the keys with +."
    )
