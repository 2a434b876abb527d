"""The keys of a unit test in YAML, as pydantic models: those of dbt, and others for streams."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, SkipValidation

from sqlstream.project.configuration.fields import Document, Name, Names, Text

Format = Literal["dict", "csv", "json", "jsonl", "sql"]

ROWS = "A list of mappings; a text if `format` is csv, json, jsonl or sql."
FORMAT = "The format of the rows: dict (YAML), csv, json, jsonl or sql (default: the fixture's extension, or dict)."
MESSAGES = "Messages of Kafka instead of rows: mappings of `key`, `value`, `headers`, `timestamp` and others."
FIXTURE = "A file in tests/fixtures/ instead of rows, with or without its extension."
_TAGS = "Tags for selection."
_META = "Any values."


class BatchDocument(Document):
    """One micro-batch of given rows. Between two of them there can be the word `restart` or `upgrade`."""

    called: ClassVar[str] = "a batch"

    rows: Any = Field(None, description=ROWS)
    format: Format | None = Field(None, description=FORMAT)
    fixture: Text | None = Field(None, description=FIXTURE)
    messages: Any = Field(None, description=MESSAGES)
    at: Text | None = Field(None, description="The value of current_timestamp() from this batch on.")
    with_previous: bool = Field(False, description="Whether it belongs to the same micro-batch as the previous batch.")


class GivenDocument(Document):
    """One input of a case: a source's table, a seed or a model, and its rows."""

    called: ClassVar[str] = "an input of a unit test"

    input: Text = Field(description="The input: `source('source', 'table')` or `ref('model')`.")
    rows: Any = Field(None, description=ROWS)
    format: Format | None = Field(None, description=FORMAT)
    fixture: Text | None = Field(None, description=FIXTURE)
    messages: Any = Field(None, description=MESSAGES)
    batches: tuple[SkipValidation[BatchDocument], ...] = Field(
        (), description="Rows in ordered micro-batches; `restart` or `upgrade` can be between two."
    )


class ExpectedBatchDocument(Document):
    """The expected output after one given batch."""

    called: ClassVar[str] = "an expected batch"

    rows: Any = Field(None, description=ROWS)
    format: Format | None = Field(None, description=FORMAT)
    fixture: Text | None = Field(None, description=FIXTURE)


class ExpectDocument(Document):
    """The expectations of a case."""

    called: ClassVar[str] = "`expect`"

    rows: Any = Field(None, description="The final result: all emitted rows, or the last table in complete mode.")
    format: Format | None = Field(None, description=FORMAT)
    fixture: Text | None = Field(None, description=FIXTURE)
    batches: tuple[ExpectedBatchDocument, ...] | None = Field(
        None, description="The rows that each given batch emits, including the no-data batch after it."
    )
    table: Any = Field(
        None,
        description="The rows that the table of the sink has after all batches, with `unique_key`, `sequence_by` and "
        "`delete_when`: a list of mappings, or a mapping of `rows`, `format` and `fixture`.",
    )
    late_rows_dropped: int | None = Field(
        None, ge=0, description="The number of rows dropped because the watermark had passed them."
    )
    watermark: Text | None = Field(None, description="The watermark at the end.")
    state_rows: int | None = Field(None, ge=0, description="The number of rows in the state at the end.")
    violations: dict[str, int] | None = Field(
        None, description="The rows that violate data tests, by `test` of the model or `model.test` of one upstream."
    )
    error: Text | None = Field(
        None, description="The code of a finding or a Spark error condition, if the model or a batch must fail."
    )
    partial: bool = Field(False, description="Whether to compare only the columns in the expected rows.")
    ordered: bool = Field(False, description="Whether the order of rows matters.")
    tolerance: float = Field(1e-9, ge=0, allow_inf_nan=False, description="The allowed relative difference of floats.")


class OverridesDocument(Document):
    """The values of the project that a case overrides."""

    called: ClassVar[str] = "the overrides of a unit test"

    vars: dict[str, Any] = Field(default_factory=dict, description="Variables.")
    macros: dict[str, Any] = Field(default_factory=dict, description="Return values of macros, by name.")
    env_vars: dict[str, Any] = Field(default_factory=dict, description="Environment variables.")


class UnitTestConfig(Document):
    """The configuration of a case, as in dbt."""

    called: ClassVar[str] = "the configuration of a unit test"

    enabled: bool = Field(True, description="Whether the test runs.")
    tags: Names = Field((), description=_TAGS)
    meta: dict[str, Any] = Field(default_factory=dict, description=_META)


class UpgradeDocument(Document):
    """The older form of the model, which processes the first batches."""

    called: ClassVar[str] = "an upgrade"

    sql: Text | None = Field(None, description="The text of the older model.")
    git: Text | None = Field(None, description="A commit, branch or tag with the older project.")


class UnitTestDocument(Document):
    """A unit test: given rows, expected rows."""

    called: ClassVar[str] = "a unit test"

    name: Name = Field(description="The test's name, unique within its model.")
    model: Text = Field(description="The model to test.")
    description: Text = Field("", description="A description for readers.")
    given: tuple[GivenDocument, ...] = Field((), description="The inputs and their rows.")
    expect: ExpectDocument = Field(description="The expected result.")
    overrides: OverridesDocument | None = Field(
        None, description="Variables, macros and environment variables to override."
    )
    at: Text | None = Field(
        None, description="The value of current_timestamp() and similar functions, for example 2024-01-01 00:00."
    )
    key: Names = Field(
        (),
        description="For update mode: the columns that identify a row, if GROUP BY does not define them.",
    )
    call_sink: bool = Field(False, description="Whether to call the function of a python sink with each micro-batch.")
    equivalence: bool = Field(True, description="Whether `--equivalence` compares the stream with its batch.")
    reason: Text = Field("", description="Why `equivalence` is false.")
    upgrade_from: UpgradeDocument | None = Field(None, description="The older model, for the batches before `upgrade`.")
    config: UnitTestConfig | None = Field(None, description="The configuration of the test.")
    tags: Names = Field((), description=_TAGS)
    enabled: bool = Field(True, description="Whether the test runs.")


class UnitTestsDocument(Document):
    """A YAML file below tests/models/."""

    called: ClassVar[str] = "a file of unit tests"

    version: Literal[2] = Field(2, description="The version of the format, as in dbt.")
    unit_tests: tuple[SkipValidation[UnitTestDocument], ...] = Field((), description="Unit tests of models.")
