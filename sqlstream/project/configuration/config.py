"""The configuration of models and seeds: its keys, and how patches from several places are combined."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import Field, ValidationError
from pydantic_core import ErrorDetails

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.configuration.alerts import AlertRulesDocument
from sqlstream.project.configuration.fields import (
    Delimiter,
    Document,
    Interval,
    Name,
    Names,
    Options,
    RetriesField,
    SinksField,
    Text,
    TriggerField,
)
from sqlstream.project.configuration.trigger import Retries, Trigger
from sqlstream.project.configuration.validate import Path, is_template, to_finding
from sqlstream.project.yaml import Located

ConfigPatch = Mapping[str, Located]
"""The configuration keys that one place sets (a folder in project.yml, a properties file, config())."""


__all__ = [
    "ContractDocument",
    "MergedConfig",
    "ModelConfig",
    "SeedConfig",
    "check_patch",
    "combine_patches",
    "merge_configs",
]

COLLECTED_KEYS = ("tags",)
"""Keys that collect the values of all patches, as in dbt (https://docs.getdbt.com/reference/define-configs)."""

MERGED_KEYS = ("meta", "options", "alerts")
"""Keys whose mappings are merged entry by entry, as dbt does with `meta`."""


class ContractDocument(Document):
    """Whether a model must have exactly the columns that its properties declare."""

    called: ClassVar[str] = "a contract"

    enforced: bool = Field(
        False,
        description="Whether the model must have exactly the declared `columns`, with their types, in this order.",
    )


class ModelConfig(Document):
    """The keys of a model that `config()`, properties files and the folders of project.yml can set."""

    called: ClassVar[str] = "a model's configuration"

    sink: SinksField | None = Field(
        None, description="The sink for the model's rows, or several; a model without one is a view."
    )
    fan_out: Literal["separate", "shared"] = Field(
        "separate",
        description="With several sinks: `separate` runs a query for each, `shared` one query that writes each batch "
        "to all of them.",
    )
    materialized: Literal["view", "stored"] = Field(
        "view",
        description="What other models read: `view` computes the model in each query that reads it, `stored` reads the "
        "rows that its own query has written to its sink.",
    )
    output_mode: Literal["append", "update", "complete"] = Field(
        "append", description="Which rows each batch writes: append, update or complete."
    )
    trigger: TriggerField = Field(
        Trigger(),
        description="When batches start: an interval, available_now, once, {continuous: interval} or {real_time: "
        "interval}.",
    )
    retries: RetriesField = Field(
        Retries(),
        description="How often to restart a failed query: a number, or {attempts, first_delay, "
        "longest_delay, window}. The delay doubles each time; after a run of length `window` the count starts again.",
    )
    alerts: AlertRulesDocument | None = Field(
        None,
        description="Rules for alerts; each replaces that of the project of the same kind, and `false` turns it off.",
    )
    pool: Name | None = Field(
        None, description="The scheduler pool, whose queries share one part of the cores (default: its own pool)."
    )
    checkpoint: Text | None = Field(
        None, description="The path of the query's checkpoint, instead of the default path in the target's storage."
    )
    partition_by: Names = Field((), description="Columns to partition the output by, instead of the sink's.")
    deduplicate: Names = Field(
        (), description="Columns that identify a row; the model emits one row for each combination of their values."
    )
    unique_key: Names = Field(
        (),
        description="Columns that identify a row of the output; a row replaces the earlier row with the same values.",
    )
    delete_when: Text | None = Field(
        None,
        description="A SQL condition on the model's columns; a row that meets it deletes the row with its unique_key.",
    )
    sequence_by: Names = Field(
        (),
        description="Columns that order the rows with the same unique_key; the row with the highest values counts, "
        "whichever batch brings it.",
    )
    history: bool = Field(
        False,
        description="Whether the table keeps all versions of a row, as a slowly changing dimension of type 2: with the "
        "columns `valid_from`, `valid_to` and `is_current`. Needs `unique_key` and one column in `sequence_by`.",
    )
    track_columns: Names = Field(
        (),
        description="With `history`: the columns whose change begins a new version; a change of others only updates "
        "the version in which it falls (default: all columns).",
    )
    keep_deletes_for: Interval = Field(
        "7 days",
        description="With `sequence_by` and `delete_when`: how long a deleted key is remembered, so that an older row "
        "that arrives later does not bring it back; with `history`, all changes are kept for this time.",
    )
    quarantine_sink: Name | None = Field(
        None,
        description="The sink for rows that violate a data test with `on_violation: quarantine`, and for late rows "
        "with `late_rows: quarantine`.",
    )
    late_rows: Literal["drop", "quarantine"] = Field(
        "drop",
        description="What happens to rows behind the watermark, which Spark leaves out: they are only counted, or "
        "`quarantine` writes them to `quarantine_sink`, too.",
    )
    contract: ContractDocument = Field(
        default_factory=ContractDocument,
        description="`{enforced: true}` refuses a model whose columns differ from `columns`.",
    )
    access: Literal["private", "protected", "public"] = Field(
        "protected", description="Which models can read it: `private` only those of its `group`, the others all models."
    )
    group: Text | None = Field(None, description="The group that owns the model; `groups:` declares it.")
    unavailable_columns: Text | None = Field(
        None,
        description="The column with the names of the columns whose values a change event of Debezium lacks: the table "
        "keeps its own values. Needs `unique_key`, and `_kafka_offset` in `sequence_by`.",
    )
    tags: Names = Field((), description="Tags for selection; tags from all places are combined.")
    enabled: bool = Field(True, description="Whether the model is part of the project.")
    options: Options = Field(
        default_factory=dict, description="Options of Spark's writer; they take precedence over the sink's options."
    )
    meta: dict[str, Any] = Field(default_factory=dict, description="Any values; sqlstream copies them to the manifest.")
    previous_name: Name | None = Field(
        None, description="The model's former name; after a rename the model keeps its checkpoint."
    )

    @property
    def sinks(self) -> tuple[str, ...]:
        """The sinks of the model."""
        return () if self.sink is None else (self.sink,) if isinstance(self.sink, str) else self.sink

    @property
    def sink_name(self) -> str | None:
        """The sink of the query that has the name of the model: the first one. None for a view."""
        return next(iter(self.sinks), None)

    @property
    def query_sinks(self) -> tuple[str, ...]:
        """The sinks of the query that has the name of the model."""
        return self.sinks if self.fan_out == "shared" else self.sinks[:1]

    @property
    def separate_sinks(self) -> tuple[str, ...]:
        """The other sinks, each of which has a separate query."""
        return self.sinks[len(self.query_sinks) :]

    @property
    def merges_rows(self) -> bool:
        """Whether a row of a stream replaces the row of a table with its `unique_key`."""
        return bool(self.unique_key) and self.output_mode != "complete"

    @property
    def is_stored(self) -> bool:
        """Whether other models read the rows that the model has written to its sink."""
        return self.materialized == "stored" and self.sink is not None

    def plain(self) -> dict[str, Any]:
        """Returns the configuration for selectors and the manifest: plain data, with the trigger as written."""
        rules = {} if self.alerts is None else self.alerts.by_kind
        shown: dict[str, Any] = {
            "trigger": str(self.trigger),
            "retries": dict(vars(self.retries)),
            "alerts": {str(kind): dict(vars(rule)) for kind, rule in rules.items()},
        }
        # pydantic warns of a list of sinks, because a validator of our own makes it
        return {**self.model_dump(mode="json", exclude=set(shown), warnings=False), **shown}


class SeedConfig(Document):
    """The keys of a seed that properties files and the folders of project.yml can set."""

    called: ClassVar[str] = "a seed's configuration"

    enabled: bool = Field(True, description="Whether the seed is part of the project.")
    delimiter: Delimiter = Field(",", description="The character between two values.")
    tags: Names = Field((), description="Tags for selection; tags from all places are combined.")
    meta: dict[str, Any] = Field(default_factory=dict, description="Any values; sqlstream copies them to the manifest.")


class MergedConfig(NamedTuple):
    """The configuration of one model; `config` is None if `findings` has errors. `places` has the location of each key
    that a patch sets: of the value that applies, or of the last one.
    """

    config: ModelConfig | None
    locations: Mapping[str, Location]
    findings: tuple[Finding, ...]


def merge_configs(patches: Sequence[ConfigPatch]) -> MergedConfig:
    """Returns the patches, in ascending precedence, as one validated configuration.

    `tags` are added up, `meta`, `options` and `alerts` merged key by key. For every other key the last value wins.
    """
    combined = combine_patches(patches)
    places = {key: located.location for key, located in combined.items()}
    try:
        config = ModelConfig.model_validate({key: item.value for key, item in combined.items()})
    except ValidationError as error:
        return MergedConfig(None, places, _findings(error.errors(include_url=False), combined, ModelConfig))
    return MergedConfig(config, places, ())


def check_patch(patch: ConfigPatch, model: type[Document] = ModelConfig) -> tuple[Finding, ...]:
    """Returns the errors in the keys and values that one place of YAML sets, each with its location.

    A value that is still a template could not be rendered, which is another finding.
    """
    try:
        model.model_validate({key: located.value for key, located in patch.items()})
    except ValidationError as error:
        problems = [problem for problem in error.errors(include_url=False) if not is_template(problem["input"])]
        return _findings(problems, patch, model)
    return ()


def _findings(problems: Iterable[ErrorDetails], patch: ConfigPatch, model: type[Document]) -> tuple[Finding, ...]:
    return tuple(to_finding(model, problem, lambda path, _: _location_in(patch, path)) for problem in problems)


def combine_patches(patches: Iterable[ConfigPatch]) -> ConfigPatch:
    """Returns patches in ascending precedence as one patch, without validation."""
    combined: dict[str, Located] = {}
    # As in dbt, a key without a value sets nothing.
    values = ((key, located) for patch in patches for key, located in patch.items() if located.value is not None)
    for key, located in values:
        below = combined.get(key)
        value = _merge_values(key, below.value, located.value) if below else located.value
        combined[key] = Located(value, located.location)
    return combined


def _merge_values(key: str, below: object, over: object) -> object:
    if key in COLLECTED_KEYS:
        return [*_listed(below), *(item for item in _listed(over) if item not in _listed(below))]
    if key in MERGED_KEYS and isinstance(below, dict) and isinstance(over, dict):
        return {**below, **over}
    return over


def _listed(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else [value]


def _location_in(patch: ConfigPatch, path: Path) -> Location:
    located = patch.get(str(path[0])) if path else None
    return located.location if located else Location("")
