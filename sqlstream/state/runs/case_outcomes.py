"""Outcomes of unit tests as plain values: what the harness observed, and how it differs from the expectation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.types.data_types import DataType
from sqlstream.state.runs.progress import Figures

Value = object
"""A value of a row as JSON. Numbers with a point are `decimal.Decimal`."""

NOTHING = "the model emitted no rows"
"""The key of a result's note with the reason."""

Row = tuple[Value, ...]
"""The values of a row, in the order of the columns."""


class _Any:
    """The value of a column that an expected row omits, so it is not compared."""

    def __repr__(self) -> str:
        return "…"


ANY = _Any()


@dataclass(frozen=True)
class Observed:
    """The observations of one case. `columns` are names and Spark's types. `batches` has the emitted rows for each
    given batch (one entry for a batch model). `late` are the rows of each given batch that Spark dropped behind the
    watermark.

    `is_late`: a row was too late for any of its windows. `wrote` are the given batches after which a table was emitted
    that replaces the previous one (`replaces`). `watermark` is in ms since 1970, None if there is none. `figures` are
    the totals of a stream that emitted no rows. `error` is the failure of a batch: Spark's conditions, the outermost
    first, and a finding. `table` are the rows that the table of the sink has at the end, if the case expects any.
    `violations` are those of each data test, by `model.test`.
    """

    columns: tuple[tuple[str, str], ...]
    batches: tuple[tuple[Row, ...], ...]
    replaces: bool = False
    late: tuple[int, ...] = ()
    is_late: bool = False
    wrote: tuple[bool, ...] = ()
    watermark: int | None = None
    state_rows: int | None = None
    figures: Figures | None = None
    conditions: tuple[str, ...] = ()
    error: Finding | None = None
    table: tuple[Row, ...] | None = None
    violations: Mapping[str, int] = field(default_factory=dict)

    @property
    def final(self) -> tuple[Row, ...]:
        """The final result: all emitted rows, or the last table if each table replaces the previous one."""
        if self.replaces:
            tables = [rows for rows, wrote in zip(self.batches, self.wrote, strict=True) if wrote]
            return tables[-1] if tables else ()
        return tuple(row for rows in self.batches for row in rows)


class RowKind(StrEnum):
    """The outcome for a row of a comparison."""

    SAME = "same"
    CHANGED = "changed"
    MISSING = "missing"
    EXTRA = "extra"


@dataclass(frozen=True)
class ComparedRow:
    """A row of a comparison: `expected` and `actual` if they exist, `changed` are the numbers of the columns that
    differ.
    """

    kind: RowKind
    expected: Row | None
    actual: Row | None
    changed: frozenset[int] = frozenset()


@dataclass(frozen=True)
class RowDifference:
    """Rows that differ from the expectation, with columns of `types`. `batch` counts from 1, None for the final result.
    If `way` is set, it names another way to run the same rows, which must return the same as one micro-batch.
    `of_table`: the rows are those in the table of the sink.
    """

    batch: int | None
    columns: tuple[str, ...]
    rows: tuple[ComparedRow, ...]
    location: Location
    types: tuple[DataType, ...] = ()
    way: str | None = None
    of_table: bool = False


@dataclass(frozen=True)
class ValueDifference:
    """A number or text that differs from the expectation, such as the watermark."""

    what: str
    expected: str
    actual: str
    location: Location


class Outcome(StrEnum):
    """How a case ended."""

    PASSED = "passed"
    FAILED = "failed"
    BROKEN = "error"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class CaseResult:
    """How one case ended, and why it did not pass: differences, or findings if it is invalid. `split` are the rows of
    the micro-batches for which the stream differs from its batch.
    """

    name: str
    model: str | None
    location: Location
    outcome: Outcome
    seconds: float = 0.0
    differences: tuple[RowDifference | ValueDifference, ...] = ()
    findings: tuple[Finding, ...] = ()
    model_location: Location | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    split: tuple[tuple[str, ...], ...] = ()

    @property
    def full_name(self) -> str:
        """Its name with the name of its model."""
        return f"{self.model}.{self.name}" if self.model else self.name

    @property
    def selector(self) -> str:
        """The selector that selects only this case."""
        return f"unit_test:{self.full_name}"


@dataclass(frozen=True)
class ModelCoverage:
    """How a model is tested: its columns if known, and the columns that no test checks (`left`)."""

    model: str
    path: str
    tests: int
    columns: tuple[str, ...]
    left: tuple[str, ...]


@dataclass(frozen=True)
class Coverage:
    """How the models of a project are tested."""

    models: tuple[ModelCoverage, ...]

    @property
    def percent(self) -> float:
        """The percentage of columns that a test checks. A model with unknown columns counts as one column."""
        total = sum(len(model.columns) or 1 for model in self.models)
        tested = sum(
            len(model.columns) - len(model.left) if model.columns else bool(model.tests) for model in self.models
        )
        return 100 * tested / total if total else 100.0
