"""Data tests of stored rows: which to check, their results, and the text and the JSON of these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum

from sqlstream.app.request import EVERYTHING, ProjectRequest, Selection
from sqlstream.compiler.compiled import CompiledModel, Output
from sqlstream.compiler.graph import data_test_id
from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.numbers import count_text, seconds_text
from sqlstream.project.configuration.data_tests import DataTest
from sqlstream.project.values import SourceTable
from sqlstream.report.findings import finding_text
from sqlstream.report.rows import json_text, row_objects, rows_text
from sqlstream.report.table import node_line
from sqlstream.state.shown_rows import ShownRows


@dataclass(frozen=True)
class DataTestRequest:
    """The models whose data tests to check. With `fail_fast`, no test starts after one that does not pass. With
    `store_failures`, failures are stored unless a test says otherwise.
    """

    project: ProjectRequest
    selection: Selection = EVERYTHING
    fail_fast: bool = False
    store_failures: bool = False


class DataTestStatus(StrEnum):
    """The result of a data test, in dbt's words."""

    PASS = "pass"  # noqa: S105 - not a password
    WARN = "warn"
    FAIL = "fail"
    ERROR = "error"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class DataTestResult:
    """The result of a data test of `model`, whose rows are in `sink` (None if it has none that can be read).

    `failures` is None if they were not counted; `finding` then has the reason, and `reason` that of a skipped test.
    `shown` are the first failures, and `stored_in` is the folder below the project that has them, None without one.
    """

    unique_id: str
    name: str
    model: str
    sink: str | None
    location: Location
    status: DataTestStatus
    seconds: float = 0.0
    failures: int | None = None
    finding: Finding | None = None
    reason: str | None = None
    shown: ShownRows | None = None
    stored_in: str | None = None

    @property
    def full_name(self) -> str:
        """The name with that of the model."""
        return f"{self.model}.{self.name}"

    def as_json(self) -> dict[str, object]:
        """Returns the result as an entry of run_results.json, without rows."""
        return {
            "unique_id": self.unique_id,
            "name": self.name,
            "model": self.model,
            "kind": "data_test",
            "sink": self.sink,
            "status": str(self.status),
            "seconds": round(self.seconds, 3),
            "failures": self.failures,
            "location": asdict(self.location),
            "finding": None if self.finding is None else self.finding.as_json(),
            "reason": self.reason,
            "stored_in": self.stored_in,
        }


@dataclass(frozen=True)
class DataTestResults:
    """The results of one command in the order of the models, and the warnings about its selection."""

    results: Sequence[DataTestResult]
    warnings: tuple[Finding, ...]
    seconds: float

    @property
    def succeeded(self) -> bool:
        """Whether no test failed or could not be checked."""
        return not any(each.status in (DataTestStatus.FAIL, DataTestStatus.ERROR) for each in self.results)


@dataclass(frozen=True)
class TestedModel:
    """A model with data tests. `output` is its first sink whose rows can be read. The tests of a static `source` are
    about its rows. Without any of them, `reason` says why.
    """

    model: CompiledModel
    tests: tuple[DataTest, ...]
    output: Output | None
    reason: str = ""
    source: SourceTable | None = None

    @property
    def can_be_read(self) -> bool:
        """Whether there are rows to test."""
        return self.output is not None or self.source is not None


def not_checked(project: str, item: TestedModel) -> Iterator[DataTestResult]:
    """Yields the results of tests that are not checked."""
    sink = None if item.output is None else item.output.sink
    for test in item.tests:
        unique_id = data_test_id(project, item.model.name, test.name)
        yield DataTestResult(
            unique_id,
            test.name,
            item.model.name,
            sink,
            test.location,
            DataTestStatus.SKIPPED,
            reason=item.reason or None,
        )


def result_text(result: DataTestResult, index: int, total: int, width: int | None) -> str:
    """Returns the line of a test, and below it why it did not pass and its first failures."""
    word = "SKIP" if result.status is DataTestStatus.SKIPPED else result.status.upper()
    is_counted = result.status in (DataTestStatus.WARN, DataTestStatus.FAIL)
    end = f"{word} {count_text(result.failures)}" if is_counted else word
    if result.status is not DataTestStatus.SKIPPED:
        end = f"{end} in {seconds_text(result.seconds)}"
    lines = [node_line(index, total, f"{word} data test {result.full_name}", end)]
    if result.reason is not None:
        lines.append(f"  {result.reason}")
    if result.finding is not None:
        lines.append(finding_text(result.finding))
    if result.shown is not None and result.shown.rows:
        table = rows_text(result.shown, None if width is None else width - 2)
        lines += [f"  {line}" for line in table.splitlines()]
    if result.stored_in is not None:
        lines.append(f"  stored in {result.stored_in}")
    return "\n".join(lines)


def done_text(results: DataTestResults) -> str:
    """Returns the last line, as in dbt: ERROR counts failed tests, and those that could not be checked."""
    counts = Counter(each.status for each in results.results)
    bad = counts[DataTestStatus.FAIL] + counts[DataTestStatus.ERROR]
    passed, warned, skipped = (
        counts[status] for status in (DataTestStatus.PASS, DataTestStatus.WARN, DataTestStatus.SKIPPED)
    )
    return f"Done. PASS={passed} WARN={warned} ERROR={bad} SKIP={skipped} TOTAL={len(results.results)}"


def results_json(results: DataTestResults) -> str:
    """Returns one JSON object with an entry for each test. `shown` has its first failures."""
    return json_text(
        {
            "succeeded": results.succeeded,
            "results": [
                {**each.as_json(), "shown": None if each.shown is None else row_objects(each.shown)}
                for each in results.results
            ],
            "findings": [finding.as_json() for finding in results.warnings],
        },
        indent=2,
    )
