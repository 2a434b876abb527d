"""What became of unit tests, as plain values: what the harness observed, and how it differs from what was expected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.state.runs.figures import Figures

Value = object
"""A value of a row as JSON has it: numbers with a point are `decimal.Decimal`."""


class _Any:
    """The value of a column that an expected row does not give, and that is not compared."""

    def __repr__(self) -> str:
        return "…"


NOTHING = "the model emitted no rows"
"""The note of a result that says why."""

ANY = _Any()

Row = tuple[Value, ...]
"""The values of a row, in the order of the columns."""


@dataclass(frozen=True)
class Observed:
    """What a case gave. `columns` are names and Spark's types; `batches` has the rows that came out by each given batch
    (one entry for a batch model); `late` are the rows of each given batch that count nowhere, since they came behind
    the watermark. `is_late` says whether one came too late for any of its windows, `wrote` by which given batches a
    table came out that takes the place of the one before (`replaces`).

    `watermark` is in ms since 1970, None where there is none; `figures` are what the query did in all where no rows
    came out of a stream. `error` is what a batch failed with: Spark's
    conditions, the outermost first, and a finding.
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

    @property
    def final(self) -> tuple[Row, ...]:
        """The final result: all rows that came out, or the last table where each takes the place of the one before."""
        if self.replaces:
            tables = [rows for rows, wrote in zip(self.batches, self.wrote, strict=True) if wrote]
            return tables[-1] if tables else ()
        return tuple(row for rows in self.batches for row in rows)


class RowKind(StrEnum):
    """How a row of a comparison is there."""

    SAME = "same"
    CHANGED = "changed"
    MISSING = "missing"
    EXTRA = "extra"


@dataclass(frozen=True)
class ComparedRow:
    """A row of a comparison: `expected` and `actual` where they are there, `changed` the numbers of the columns in
    which the two differ.
    """

    kind: RowKind
    expected: Row | None
    actual: Row | None
    changed: frozenset[int] = frozenset()


@dataclass(frozen=True)
class RowDifference:
    """Rows that are not as expected: `batch` counts from 1, None for the final result. Where `way` is a way of running
    the same rows, what is expected is what comes out of one micro-batch.
    """

    batch: int | None
    columns: tuple[str, ...]
    rows: tuple[ComparedRow, ...]
    location: Location
    way: str | None = None


@dataclass(frozen=True)
class ValueDifference:
    """A figure or text that is not as expected, such as the watermark."""

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
    """How one case ended, and why it did not pass: differences, or findings where it is broken. `split` are the rows of
    the micro-batches that show how the stream differs from its batch.
    """

    name: str
    model: str | None
    location: Location
    outcome: Outcome
    seconds: float = 0.0
    differences: tuple[RowDifference | ValueDifference, ...] = ()
    findings: tuple[Finding, ...] = ()
    model_place: Location | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    split: tuple[tuple[str, ...], ...] = ()

    @property
    def full_name(self) -> str:
        """Its name with that of its model."""
        return f"{self.model}.{self.name}" if self.model else self.name

    @property
    def selector(self) -> str:
        """What selects it alone."""
        return f"unit_test:{self.full_name}"


@dataclass(frozen=True)
class ModelCoverage:
    """How a model is tested: its columns as far as they are known, and those of them that no test states (`left`)."""

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
        """How many of 100 columns some test states; a model whose columns are not known counts as one column."""
        every = sum(len(model.columns) or 1 for model in self.models)
        stated = sum(
            len(model.columns) - len(model.left) if model.columns else bool(model.tests) for model in self.models
        )
        return 100 * stated / every if every else 100.0
