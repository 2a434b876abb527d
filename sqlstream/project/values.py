"""The project as frozen values: the validated contents of its files, with locations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from sqlstream.location import Location
from sqlstream.project.alerts import NO_ALERTS, Alerts
from sqlstream.project.messages.message_format import MessageFormat
from sqlstream.project.metrics import MetricsSink
from sqlstream.project.secrets import OptionValue

if TYPE_CHECKING:  # the readers of YAML and of files import this module
    from sqlstream.project.files.python_files import PythonFunction, PythonModule
    from sqlstream.project.yaml import YamlNode


@dataclass(frozen=True)
class RepositoryAddress:
    """A Maven repository of a target: an http(s) URL or a folder, and the user and password for it."""

    url: OptionValue
    username: OptionValue = ""
    password: OptionValue = ""

    def values(self) -> tuple[OptionValue, ...]:
        """Returns all parts, any of which can name secrets."""
        return (self.url, self.username, self.password)


@dataclass(frozen=True)
class Target:
    """Where Spark runs, and where data and checkpoints are stored. `threads` is the number of queries that run at once
    if they end by themselves. `max_streams` is the greatest number of other queries that can start together.
    `metrics` is the sink for the metrics of runs, `alerts` are the alerts of the project.
    """

    name: str
    master: str
    storage: str
    spark: Mapping[str, OptionValue]
    packages: tuple[str, ...]
    location: Location
    remote: str | None = None
    threads: int = 4
    max_streams: int = 100
    repositories: tuple[RepositoryAddress, ...] = ()
    metrics: MetricsSink | None = None
    alerts: Alerts = NO_ALERTS

    @property
    def resolves_in_spark(self) -> bool:
        """Whether Spark itself resolves `packages`, because `spark` configures its Ivy."""
        return any(name.startswith(("spark.jars.ivy", "spark.jars.repo", "spark.jars.excl")) for name in self.spark)

    @property
    def is_local(self) -> bool:
        """Whether all of Spark runs on this machine: `local`, `local[4]`, or the workers of `local-cluster[2,1,1024]`.
        Only for targets without `remote`.
        """
        return re.match(r"local($|\[|-cluster\[)", self.master) is not None


PERIOD_SECONDS = {"minute": 60, "hour": 3600, "day": 86_400}
"""dbt's periods, in seconds."""


@dataclass(frozen=True)
class Threshold:
    """An age of the newest data, such as 12 hours. `period` is a key of `PERIOD_SECONDS`."""

    count: int
    period: str

    @property
    def seconds(self) -> int:
        """The age in seconds."""
        return self.count * PERIOD_SECONDS[self.period]

    @property
    def text(self) -> str:
        """The age in words: `12 hours`."""
        return f"{self.count} {self.period}{'' if self.count == 1 else 's'}"


@dataclass(frozen=True)
class Expression:
    """SQL over the columns of a source, with its location."""

    sql: str
    location: Location


@dataclass(frozen=True)
class Freshness:
    """How old the newest data of a table can be, with at least one threshold.

    `loaded_at_field` is the time of a row, None for the time that the source itself records: of files, commits or
    records. `filter` selects the rows that count. `location` is that of the nearest `freshness:`.
    """

    warn_after: Threshold | None
    error_after: Threshold | None
    location: Location
    loaded_at_field: Expression | None = None
    filter: Expression | None = None

    @property
    def criteria(self) -> dict[str, object]:
        """The thresholds and the filter in the form of dbt's artifacts."""
        return {
            "warn_after": _criterion(self.warn_after),
            "error_after": _criterion(self.error_after),
            "filter": None if self.filter is None else self.filter.sql,
        }


def _criterion(threshold: Threshold | None) -> dict[str, object]:
    return {
        "count": None if threshold is None else threshold.count,
        "period": None if threshold is None else threshold.period,
    }


@dataclass(frozen=True)
class StoredOutput:
    """The output of the model `model` as a table. `exists`: it is known to exist. Without that, it reads no rows."""

    model: str
    exists: bool = False


@dataclass(frozen=True)
class ExposureInput:
    """One item of `depends_on`: a call of ref() or source() with its names, and its location."""

    kind: Literal["ref", "source"]
    parts: tuple[str, ...]
    location: Location


@dataclass(frozen=True)
class Exposure:
    """A declared use of the project's outputs. `owner` has the keys of YAML. `folders` are the folders of its file
    below models/ (or the other folder of its file). `written` is its configuration with Jinja unrendered.
    """

    name: str
    type: str
    owner: Mapping[str, object]
    inputs: tuple[ExposureInput, ...]
    location: Location
    label: str | None = None
    maturity: str | None = None
    url: str | None = None
    description: str = ""
    tags: tuple[str, ...] = ()
    meta: Mapping[str, object] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    written: Mapping[str, object] = field(default_factory=dict)

    @property
    def config(self) -> dict[str, object]:
        """The configuration of an exposure that is part of the project."""
        return {"enabled": True, "tags": list(self.tags), "meta": dict(self.meta)}


FOLDERS = ("models", "seeds", "macros", "sources", "sinks")
"""The folders whose Markdown files, at any depth, can contain docs blocks: as in dbt, those with resources."""

OVERVIEW = "__overview__"
"""The block that dbt shows on the first page of its documentation."""


@dataclass(frozen=True)
class DocsBlock:
    """One `{% docs name %}` block: its text without the white space around it, and the location of its tag."""

    name: str
    text: str
    location: Location


@dataclass(frozen=True)
class Located:
    """A value from YAML or config() (str, int, float, bool, None, list, dict), with its location."""

    value: object
    location: Location


ConfigPatch = Mapping[str, Located]
"""The configuration keys that one place sets (a folder in project.yml, a properties file, config())."""


@dataclass(frozen=True)
class DeclaredColumn:
    """A declared column. `data_type` is Spark DDL, None for a column with only a description. `places` has the
    locations of `name` and `data_type` for columns of models and seeds.
    """

    name: str
    data_type: str | None
    description: str = ""
    places: Mapping[str, Location] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Schema:
    """A declared schema: either Spark DDL or the JSON of a Spark `StructType`."""

    location: Location
    ddl: str | None = None
    json: str | None = None


@dataclass(frozen=True)
class Watermark:
    """An event-time column and the allowed lateness of its rows (`delay` is a Spark interval such as `10 minutes`)."""

    column: str
    delay: str
    location: Location


@dataclass(frozen=True)
class SourceTable:
    """One table of a source: a stream (`mode` "stream") or static (`mode` "batch").

    `places` has the location of each key (`format`, `options.x`). `written` are the keys that describe how to read it:
    Jinja unrendered, without overrides of a target. `table` is the name in Spark's catalog, `python` the `module:Class`
    of python/. `on_corrupt` is the action for unreadable records. `refresh` is when streams read a static table:
    `batch` or `run`. `corrupt_of` is the table whose corrupt records this one contains. `mask` are the columns that
    recorded tests must not show. `messages` are the formats of a Kafka source with a `value_format`; `schema` then has
    all columns. `stored` is the output it reads. `freshness` is how old its newest data can be. `previous_name` is the
    former full name of a renamed table. `timestamp_unit` is the unit of numbers in the timestamps of JSON, and
    `max_event_time` how far event times can be ahead of the time of their file or message.
    """

    source: str
    name: str
    format: str
    path: str | None
    schema: Schema | None
    mode: str
    options: Mapping[str, OptionValue]
    watermark: Watermark | None
    columns: tuple[DeclaredColumn, ...]
    description: str
    tags: tuple[str, ...]
    meta: Mapping[str, object]
    location: Location
    places: Mapping[str, Location] = field(default_factory=dict)
    written: Mapping[str, object] = field(default_factory=dict)
    table: str | None = None
    python: str | None = None
    on_corrupt: str | None = None
    quarantine_sink: str | None = None
    refresh: str | None = None
    corrupt_of: SourceTable | None = None
    mask: tuple[str, ...] = ()
    messages: MessageFormat | None = None
    stored: StoredOutput | None = None
    freshness: Freshness | None = None
    previous_name: str | None = None
    timestamp_unit: str | None = None
    max_event_time: str | None = None

    @property
    def full_name(self) -> str:
        """The name: `aws.cloudtrail_logs`, or that of the model of a stored output."""
        return self.name if self.stored else f"{self.source}.{self.name}"

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


@dataclass(frozen=True)
class Sink:
    """A declared output.

    `path`, `table` and `options` can contain Jinja over `model`, so they are rendered later for each model. `places`,
    `written` and `table` are as in `SourceTable`. `python` is the `module:name` of python/ that gets the rows for the
    format `python`. `record` is for the format `kafka`.
    """

    name: str
    format: str
    path: Located | None
    partition_by: tuple[str, ...]
    options: Mapping[str, Located]
    description: str
    tags: tuple[str, ...]
    meta: Mapping[str, object]
    location: Location
    places: Mapping[str, Location] = field(default_factory=dict)
    written: Mapping[str, object] = field(default_factory=dict)
    table: Located | None = None
    python: str | None = None
    record: RecordFormat = NO_RECORD


@dataclass(frozen=True)
class Seed:
    """A CSV file in seeds/. `columns` are the columns with a declared type, `header` the names of all. `checksum` is
    the checksum of the file's text. `written` is the configuration as in the files, with Jinja unrendered.
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

    @property
    def delimiter(self) -> str:
        """The character between two values."""
        located = self.config.get("delimiter")
        return str(located.value) if located else ","


@dataclass(frozen=True)
class ModelFile:
    """A file under models/: its text, and its YAML.

    `folders` are the folders below models/, outermost first. `configs` are the patches from YAML in ascending
    precedence: the folders of project.yml, outermost first, then the properties file. `written` is their combination
    with Jinja unrendered. `declared_at` is the location that declares a model without a file. `rows_of` is the model
    whose rows this one writes to another sink.
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

    @property
    def location(self) -> Location:
        """The file's first character, or the location that declares the model."""
        return self.declared_at or Location(self.path)

    @property
    def is_python(self) -> bool:
        """Whether the model is a Python function."""
        return self.path.endswith(".py")


@dataclass(frozen=True)
class MacroFile:
    """A `.sql` file under macros/."""

    path: str
    text: str


COMMENT_START = "sqlstream:"
"""The start of a comment to sqlstream."""


def may_have_comments(text: str) -> bool:
    """Whether a file may contain a comment to sqlstream, possibly misspelled."""
    return COMMENT_START in text or "allow" in text.lower()


@dataclass(frozen=True)
class CommentedFile:
    """A YAML file with a comment to sqlstream."""

    path: str
    text: str


@dataclass(frozen=True)
class Selector:
    """A selection of selectors.yml. `is_default`: it applies if none is given. `definition` has its criteria."""

    name: str
    description: str
    is_default: bool
    definition: YamlNode
    location: Location


@dataclass(frozen=True)
class WrittenTests:
    """The `unit_tests` of one YAML file, unrendered and unvalidated until they run."""

    node: YamlNode
    location: Location


@dataclass(frozen=True)
class Project:
    """A whole project, as in its files. Tuples are sorted by name (macros: by path).

    `vars` are the effective variables: those of project.yml, then the target, then the command line. `written_vars` are
    those of project.yml, with Jinja unrendered. `rules` maps codes of findings to lower severities: `warn`, `info`,
    `ignore` or `off`. `selectors` are in the order of the file. `python` are the modules below python/, `functions`
    those that SQL can call. `tests` are the unit tests of the files of models/. `commented` are the YAML files with
    comments to sqlstream. `docs` are the docs blocks of Markdown files. `exposures` are the enabled ones. `data` are
    the absolute paths of what streams read and write: of sources, sinks and the target's storage.
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
    rules: Mapping[str, str] = field(default_factory=dict)
    written_vars: Mapping[str, object] = field(default_factory=dict)
    selectors: tuple[Selector, ...] = ()
    python: tuple[PythonModule, ...] = ()
    functions: tuple[PythonFunction, ...] = ()
    tests: tuple[WrittenTests, ...] = ()
    commented: tuple[CommentedFile, ...] = ()
    docs: tuple[DocsBlock, ...] = ()
    exposures: tuple[Exposure, ...] = ()
    data: frozenset[str] = frozenset()


class RenderYaml(Protocol):
    """Renders one YAML string with Jinja. The caller of the loader provides it, because jinja2 is used only in
    compiler/render.
    """

    def __call__(self, text: str, location: Location, *, secrets: bool) -> object:
        """Returns the rendered text, or the value of the expression if the whole text is one `{{ }}`.

        With `secrets`, an environment variable whose name starts with `SECRET_PREFIX` becomes a `SecretText`; without,
        it is a finding. Raises: FindingsError.
        """

    def with_docs(self, blocks: Sequence[DocsBlock]) -> RenderYaml:
        """Returns a renderer whose texts can also include `blocks`, with doc()."""


class MakeRenderYaml(Protocol):
    """Creates a `RenderYaml` once the variables are known."""

    def __call__(self, variables: Mapping[str, object], target: str | None) -> RenderYaml:
        """Returns a renderer that uses `variables` for var() and `target` for `target.name`."""
