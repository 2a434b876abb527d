"""Writes a replayed batch as a unit test. A query with state gets all batches from the first one on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from sqlstream.app.replaying.replay import QueryReplay
from sqlstream.app.request import ProjectRequest, Selection, UnitTestRequest
from sqlstream.app.test import open_tests
from sqlstream.app.unit_tests.update import update_expectations
from sqlstream.app.unit_tests.written import (
    GivenRows,
    NewCase,
    RowMasker,
    free_name,
    masked_columns,
    run_case,
    write_case,
)
from sqlstream.compiler.compiled import CompiledProject
from sqlstream.errors import Finding, FindingsError
from sqlstream.project.unit_tests.values import BrokenTest, UnitTest
from sqlstream.project.wording import quoted
from sqlstream.spark.secrets import Secrets
from sqlstream.state.ledger import SourceUse
from sqlstream.state.replay.entries import BatchEntries, planned_at
from sqlstream.state.replay.findings import no_test
from sqlstream.state.results.replay import ReplayedNode
from sqlstream.state.results.rows import ShownRows
from sqlstream.state.results.unit_tests import Outcome

MOST_ROWS = 1_000
"""The most rows of an input, or of the output, that a unit test gets."""

MOST_BATCHES = 20
"""The most batches that a unit test of a query with state gets."""

REPLAYED = "replayed"
"""The end of the name of the file with these tests."""


@dataclass(frozen=True)
class TestOfBatch:
    """A unit test that is not written yet. With `is_exact`, it expects the rows that came out of the batch; otherwise
    its expectation is what the model emits for all batches up to this one.
    """

    compiled: CompiledProject
    case: NewCase
    is_exact: bool

    def write(self, project: ProjectRequest) -> tuple[str, str, bool, tuple[str, ...]]:
        """Writes the test, and runs it. Returns its file, its name, whether it passes, and notes about it. Raises:
        FindingsError.
        """
        tests = open_tests(project).tests
        every: tuple[UnitTest | BrokenTest, ...] = (*tests.cases, *tests.broken)
        name = free_name(self.case.name, [test.name for test in every if test.model == self.case.model])
        case = replace(self.case, name=name)
        path = write_case(self.compiled, case, RowMasker(Secrets(project.env)), REPLAYED)
        only = UnitTestRequest(project, Selection((f"unit_test:{case.model}.{name}",)))
        outcome = run_case(only, path, is_recorded=False)
        is_masked = any(given.masked for given in case.given)
        if not outcome.succeeded and (is_masked or not self.is_exact):
            list(update_expectations(project.folder, outcome.results))
            outcome = run_case(only, path, is_recorded=False)
        passes = all(result.outcome is Outcome.PASSED for result in outcome.results) and bool(outcome.results)
        return path, name, passes, tuple(self._notes(is_masked=is_masked))

    def _notes(self, *, is_masked: bool) -> Iterator[str]:
        if not self.is_exact:
            yield (
                "the unit test has all batches up to this one, and expects what the query has emitted when they are "
                "fully processed"
            )
        if is_masked:
            yield "the unit test has other values in masked columns, and expects what the model emits for them"


def collect_test(replay: QueryReplay, entries: BatchEntries, wanted: str) -> TestOfBatch:
    """Returns the unit test of a batch with all its rows. `wanted` is its name, empty for one made of the batch.

    Raises: FindingsError if there are too many rows or batches.
    """
    query, stateful = replay.query, replay.query.is_stateful
    numbers = range(entries.number + 1) if stateful else [entries.number]
    if len(numbers) > MOST_BATCHES:
        raise FindingsError([_too_many_batches(replay, entries.number)])
    batches = [replay.entries(number) for number in numbers]
    compiled = query.query.compiled
    _check_readers(replay, batches)
    given = [*_streams(replay, batches, is_batched=stateful), *_static(replay)]
    name = wanted or f"batch_{entries.number}"
    if stateful:
        return TestOfBatch(compiled, NewCase(query.model.name, name, given), is_exact=False)
    *_, last = replay.nodes(entries, MOST_ROWS + 1)
    output = _all_rows(replay, last)
    at = _clock(entries)
    case = NewCase(query.model.name, name, given, output, at, None if at is None else REASON)
    return TestOfBatch(compiled, case, is_exact=True)


REASON = "its clock is that of the batch"
"""Why the case of a batch is not compared with the batch query."""


def _clock(entries: BatchEntries) -> str | None:
    at = planned_at(entries.planned)
    return None if at is None else datetime.fromtimestamp(at / 1000, UTC).isoformat(sep=" ", timespec="milliseconds")


def _streams(replay: QueryReplay, batches: list[BatchEntries], *, is_batched: bool) -> Iterator[GivenRows]:
    compiled = replay.query.query.compiled
    for part in replay.query.parts:
        if part.table is not None:
            nodes = (replay.alone(part, entries, MOST_ROWS + 1) for entries in batches)
            rows = tuple(_all_rows(replay, node) for node in nodes)
            yield GivenRows(part.unique_id, rows, masked_columns(compiled, part.unique_id), is_batched)


def _static(replay: QueryReplay) -> Iterator[GivenRows]:
    """Yields the present rows of static tables. Seeds have their own rows in a unit test."""
    compiled = replay.query.query.compiled
    upstream = compiled.upstream(replay.query.model.unique_id)
    for node, table in compiled.tables.items():
        if node in upstream and table.mode != "stream":
            rows = replay.query.static_rows(node, MOST_ROWS + 1)
            found = ReplayedNode("source", rows.name, node, rows, len(rows.rows))
            yield GivenRows(node, (_all_rows(replay, found),), masked_columns(compiled, node))


def _all_rows(replay: QueryReplay, node: ReplayedNode) -> ShownRows:
    """Returns all rows of a node. Raises: FindingsError if there are too many."""
    if node.rows is not None and node.count is not None and node.count <= MOST_ROWS:
        return node.rows
    model = replay.model
    why = node.note or "its rows are unknown"
    if node.count:
        why = f"{quoted(node.name)} has {node.count:,} rows in it, and a unit test gets at most {MOST_ROWS:,}"
    fix = f"replay a smaller batch; or record a test with `sqlstream test --record {model.name}`"
    raise FindingsError([no_test(model.name, why, fix, model.file.location)])


def _too_many_batches(replay: QueryReplay, batch: int) -> Finding:
    model = replay.model
    return no_test(
        model.name,
        f"its state before batch {batch} depends on all earlier batches, and a unit test gets at most {MOST_BATCHES}",
        f"replay a batch up to {MOST_BATCHES - 1}; or record a test with `sqlstream test --record {model.name}`",
        model.file.location,
    )


def _check_readers(replay: QueryReplay, batches: list[BatchEntries]) -> None:
    """Raises: FindingsError if two readers of one source have read different data: a unit test gives it once."""
    for entries in batches:
        read: dict[str, tuple[SourceUse, object]] = {}
        for source in entries.sources(replay.ledger.identity.sources):
            use, offsets = read.setdefault(source.use.table, (source.use, (source.start, source.end)))
            if offsets != (source.start, source.end):
                model = replay.model
                why = (
                    f"batch {entries.number} has read different data of {quoted(use.table)} in two places of the query"
                )
                fix = f"record a test with `sqlstream test --record {model.name}`"
                raise FindingsError([no_test(model.name, why, fix, model.file.location)])
