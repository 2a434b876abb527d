"""What a unit test in YAML may hold, as pydantic models: dbt's keys, and those that streams need."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, SkipValidation

from sqlstream.project.configuration.fields import Document, Name, Names, Text

Format = Literal["dict", "csv", "json", "jsonl", "sql"]

ROWS = "A list of mappings; with `format` csv, json, jsonl or sql a text."
FORMAT = "How rows are written: dict (YAML), csv, json, jsonl or sql; that of the fixture's file by default."
FIXTURE = "A file of tests/fixtures/ instead of rows, without its ending or with it."
_TAGS = "Words to select by."
_META = "Anything of your own."


class BatchDocument(Document):
    """One micro-batch that a case gives; the words `restart` and `upgrade` may stand between two of them."""

    called: ClassVar[str] = "a batch"

    rows: Any = Field(None, description=ROWS)
    format: Format | None = Field(None, description=FORMAT)
    fixture: Text | None = Field(None, description=FIXTURE)
    at: Text | None = Field(None, description="What current_timestamp() is in this batch, and from here on.")
    with_previous: bool = Field(False, description="Whether it comes in one micro-batch with the batch before it.")


class GivenDocument(Document):
    """One input of a case: a source's table, a seed or a model, and its rows."""

    called: ClassVar[str] = "an input of a unit test"

    input: Text = Field(description="What the rows are those of: source('source', 'table') or ref('model').")
    rows: Any = Field(None, description=ROWS)
    format: Format | None = Field(None, description=FORMAT)
    fixture: Text | None = Field(None, description=FIXTURE)
    batches: tuple[SkipValidation[BatchDocument], ...] = Field(
        (), description="Rows in ordered micro-batches; `restart` or `upgrade` may stand between two."
    )


class ExpectedBatchDocument(Document):
    """What has come out once one given batch is processed."""

    called: ClassVar[str] = "an expected batch"

    rows: Any = Field(None, description=ROWS)
    format: Format | None = Field(None, description=FORMAT)
    fixture: Text | None = Field(None, description=FIXTURE)


class ExpectDocument(Document):
    """What a case expects."""

    called: ClassVar[str] = "what a unit test expects"

    rows: Any = Field(None, description="The final result: all rows that came out, the last table in complete mode.")
    format: Format | None = Field(None, description=FORMAT)
    fixture: Text | None = Field(None, description=FIXTURE)
    batches: tuple[ExpectedBatchDocument, ...] | None = Field(
        None, description="What has come out by each given batch, the no-data batch after it included."
    )
    late_rows_dropped: int | None = Field(
        None, ge=0, description="Rows that counted nowhere, since the watermark had passed them."
    )
    watermark: Text | None = Field(None, description="The watermark at the end.")
    state_rows: int | None = Field(None, ge=0, description="Rows that are kept as state at the end.")
    error: Text | None = Field(
        None, description="The code of a finding, or Spark's error condition: the model is refused, or a batch fails."
    )
    partial: bool = Field(False, description="Whether only the columns that the expected rows give are compared.")
    ordered: bool = Field(False, description="Whether the rows of a batch have an order.")
    tolerance: float = Field(
        1e-9, ge=0, allow_inf_nan=False, description="By how much floats may differ, of the larger one."
    )


class OverridesDocument(Document):
    """What a case puts in the place of the project's own values."""

    called: ClassVar[str] = "the overrides of a unit test"

    vars: dict[str, Any] = Field(default_factory=dict, description="Variables.")
    macros: dict[str, Any] = Field(default_factory=dict, description="What macros give, by their names.")
    env_vars: dict[str, Any] = Field(default_factory=dict, description="Environment variables.")


class UnitTestConfig(Document):
    """The configuration of a case, as in dbt."""

    called: ClassVar[str] = "the configuration of a unit test"

    enabled: bool = Field(True, description="Whether it runs.")
    tags: Names = Field((), description=_TAGS)
    meta: dict[str, Any] = Field(default_factory=dict, description=_META)


class UpgradeDocument(Document):
    """The older form of the model that the first batches are run by."""

    called: ClassVar[str] = "an upgrade"

    sql: Text | None = Field(None, description="The older model, as its file held it.")
    git: Text | None = Field(None, description="A commit, branch or tag of the repository that has the older project.")


class UnitTestDocument(Document):
    """A unit test: given rows, expected rows."""

    called: ClassVar[str] = "a unit test"

    name: Name = Field(description="Its name, which no other test of its model has.")
    model: Text = Field(description="The model that is tested.")
    description: Text = Field("", description="What it is about.")
    given: tuple[GivenDocument, ...] = Field((), description="The inputs, with their rows.")
    expect: ExpectDocument = Field(description="What comes out.")
    overrides: OverridesDocument | None = Field(None, description="Other variables, macros and environment variables.")
    at: Text | None = Field(
        None, description="What current_timestamp() and its like are, for example 2024-01-01 00:00."
    )
    key: Names = Field((), description="In update mode, the columns that name a row, where the model does not tell.")
    call_sink: bool = Field(
        False, description="Whether the function of a sink of format python is called with each micro-batch."
    )
    equivalence: bool = Field(True, description="Whether the stream is also compared with the batch.")
    reason: Text = Field("", description="Why it is not.")
    upgrade_from: UpgradeDocument | None = Field(None, description="The older model, of the batches before `upgrade`.")
    config: UnitTestConfig | None = Field(None, description="Whether it runs, tags and meta.")
    tags: Names = Field((), description=_TAGS)
    enabled: bool = Field(True, description="Whether it runs.")


class UnitTestsDocument(Document):
    """A YAML file below tests/models/."""

    called: ClassVar[str] = "a file of unit tests"

    version: Literal[2] = Field(2, description="The version of this format, as dbt numbers it.")
    unit_tests: tuple[SkipValidation[UnitTestDocument], ...] = Field((), description="Unit tests of models.")
