"""Checks that a stream equals the batch query over the same rows, for different splits of the rows into micro-batches.

Every split ends with the same watermark, so all of them return the same final table, unless the query depends on which
rows are in the same batch. Splits with late rows are left out, because the stream correctly drops rows that the batch
query has. A difference is reduced to few rows and few batches.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import pairwise

from pyspark.sql import DataFrame

from sqlstream.compiler.emission import IDLE_BATCHES
from sqlstream.errors import Finding, FindingsError
from sqlstream.project.unit_tests.unit_test import BetweenBatches
from sqlstream.spark.reading.memory_streams import RowMaker, select_rows
from sqlstream.spark.reading.static_stream import (
    closed_groups,
    differs_by_outer_join,
    equals_batch,
    key_columns,
    matched_rows,
)
from sqlstream.state.runs.case_outcomes import CaseResult, Observed, Outcome, Row, RowDifference, RowKind
from sqlstream.testing.judge import RowComparison, result_of, types_of
from sqlstream.testing.prepared import PreparedCase
from sqlstream.testing.stream import IndexedBatch

MOST_BATCHES = 6
"""The maximal number of batches in a split. Cases have few rows, and each batch takes a tenth of a second."""

MOST_RUNS = 40
"""The maximal number of runs for reducing a difference."""

RowId = tuple[str, int]
"""A given row: the node of its input, and its index."""

Batches = tuple[tuple[RowId, ...], ...]


@dataclass(frozen=True)
class Execution:
    """One way to run the rows of a case: in `batches` of a stream, or (None) as a batch query. With `restarts`, the
    query stops after each batch, and starts again on its checkpoint.
    """

    name: str
    batches: Batches | None
    restarts: bool = False


@dataclass
class Equivalence:
    """Compares the variants of one case that has passed."""

    prepared: PreparedCase
    runs: int = 0
    _error: Finding | None = None
    _last: tuple[Row, ...] = ()
    _was_late: bool = False
    _watermark: int | None = None
    _values_by_node: dict[str, list[Row]] = field(default_factory=dict)

    def check(self) -> CaseResult | None:
        """Returns the failed result of a case whose variants differ, None if they agree or cannot be compared."""
        rows = self._rows()
        if not rows:
            return None
        # emit everything that the watermark closes, even if the target makes it wait for the next rows
        self.prepared.frame.sparkSession.conf.set(IDLE_BATCHES, "true")
        self._keys = self._key_indexes()
        once = Execution("one micro-batch", (tuple(rows),))
        # also finds the watermark and the rows with which a batch query is compared
        expected = self._final(once)
        if expected is None:
            return self._failed_with(once, self._error) if self._error is not None else None
        for variant in self._variants(rows):
            found = self._final(variant, rows)
            if found is None and self._error is not None:
                return self._failed_with(variant, self._error)
            if found is not None and self._differ(expected, found):
                return self._failed(variant, rows)
        return None

    def _variants(self, rows: Sequence[RowId]) -> Iterator[Execution]:
        """Yields the variants: as a batch query, row by row, and a random split, with the test's name as the seed.

        The rows are in the order of the test. If a row is late in that order, they are sorted by a time column.
        """
        yield Execution("a batch", None)
        chance = random.Random(self.prepared.case.test.name)  # noqa: S311 - the same splits each time
        for order_name, order in self._orders(rows):
            self._was_late = False
            yield Execution(f"row by row{order_name}", _cut(order, range(1, len(order))))
            if self._was_late:
                continue
            if len(order) > 2:
                cuts = sorted(chance.sample(range(1, len(order)), chance.randint(1, min(len(order), MOST_BATCHES) - 1)))
                yield Execution(f"in {len(cuts) + 1} micro-batches{order_name}", _cut(order, cuts))
            if self.prepared.is_stateful:
                every = _cut(order, range(1, len(order)))
                yield Execution(f"row by row with restarts{order_name}", every, restarts=True)
            return  # other orders are only for rows that are late in this one

    def _rows(self) -> list[RowId]:
        """Returns the rows in the order of the test."""
        deliveries = [step for step in self.prepared.own_steps() if isinstance(step, IndexedBatch)]
        return [(node, number) for each in deliveries for node, numbers in each.rows.items() for number in numbers]

    def _key_indexes(self) -> tuple[int, ...] | None:
        """Returns, in update mode, the indexes of the key columns. Raises: FindingsError if the key is unknown."""
        case, frame = self.prepared.case, self.prepared.frame
        if case.model.config.output_mode != "update" or not self.prepared.is_stateful:
            return None
        named = case.test.document.key or key_columns(frame)
        names = [name.casefold() for name in frame.columns]
        if not named or any(name.casefold() not in names for name in named):
            what = "the columns that identify a row are unknown"
            why = "in update mode the last row of each key counts, but the output lacks some columns of GROUP BY"
            fix = "list them in `key: [column, ...]`"
            raise FindingsError([Finding("unit-test-expect", what, why, fix, case.test.location)])
        return tuple(names.index(name.casefold()) for name in named)

    def _orders(self, rows: Sequence[RowId]) -> Iterator[tuple[str, list[RowId]]]:
        """Yields the rows as given, and sorted by each possible time column if that changes their order."""
        seen = [list(rows)]
        yield "", seen[0]
        for column in self._time_columns():
            order = sorted(rows, key=lambda row: self._sort_key(row, column))
            if order not in seen:
                seen.append(order)
                yield f" in the order of `{column}`", order

    def _time_columns(self) -> list[str]:
        """Returns the timestamp columns of the inputs, or else their integer columns; two at most."""
        inputs = self.prepared.frames.streams.values()
        types = [(each.name, each.dataType.simpleString()) for item in inputs for each in item.schema]
        times = [name for name, kind in types if kind.startswith("timestamp")]
        return list(dict.fromkeys(times or [name for name, kind in types if kind in ("bigint", "int")]))[:2]

    def _sort_key(self, row: RowId, column: str) -> tuple[bool, int, str]:
        node, number = row
        names = self.prepared.frames.streams[node].schema.names
        if column not in names:
            return True, 0, ""
        value = self._values(node)[number][names.index(column)]
        return value is None, value if isinstance(value, int) else 0, str(value)

    def _values(self, node: str) -> list[Row]:
        if node not in self._values_by_node:
            item = self.prepared.frames.streams[node]
            maker = RowMaker(self.prepared.frame.sparkSession)
            self._values_by_node[node] = maker.rows(maker.frame(item.rows, item.schema))
        return self._values_by_node[node]

    def _final(self, variant: Execution, rows: Sequence[RowId] = ()) -> tuple[Row, ...] | None:
        """Returns the final table, None if it cannot be compared: rows were late, or Spark refuses the batch query."""
        self.runs += 1
        self._error = None
        if variant.batches is None:
            return self._batch(rows)
        observed = self.prepared.renew().stream(_steps(variant))
        self._was_late, self._error = observed.is_late, observed.error
        if observed.error is not None or self._was_late:
            return None
        self._watermark = observed.watermark
        self._last = self._last_rows(observed)
        return self._last

    def _last_rows(self, observed: Observed) -> tuple[Row, ...]:
        if self._keys is None:
            return observed.final
        last = {repr([row[number] for number in self._keys]): row for row in observed.final}
        return tuple(last.values())

    def _batch(self, rows: Sequence[RowId]) -> tuple[Row, ...] | None:
        """Returns the rows of the batch query, without those that the stream has not emitted yet."""
        case, stream = self.prepared.case, self.prepared.frame
        outer = differs_by_outer_join(stream)
        if case.test.document.at or any(feed.at for feed in case.feeds):
            return None  # the clock of a batch query cannot be set
        if not outer and not equals_batch(stream):
            return None
        streams = self.prepared.frames.streams
        numbers = {node: [number for other, number in rows if other == node] for node in streams}
        given = {node: select_rows(streams[node].rows, found) for node, found in numbers.items() if found}
        frame = self.prepared.frames.over(given)
        if outer:
            return self._joined(frame)
        if self.prepared.case.model.config.output_mode == "append":
            closed = closed_groups(frame, (self._watermark or 0) * 1000)
            if closed is None:
                return None
            frame = closed
        observed = self.prepared.batch(frame)
        return None if observed.error is not None else observed.final

    def _joined(self, frame: DataFrame) -> tuple[Row, ...] | None:
        """Returns the matched rows of an outer join, and the unmatched rows that the stream has already emitted."""
        inner = matched_rows(frame)
        found = [self.prepared.batch(each) for each in (inner, frame) if each is not None]
        if inner is None or any(observed.error is not None for observed in found):
            return None
        matched, every = (observed.final for observed in found)
        # as text, because lists and mappings have no hash
        unmatched = Counter(map(repr, every)) - Counter(map(repr, matched))
        emitted = Counter(map(repr, self._last)) - Counter(map(repr, matched))
        rows = {repr(row): row for row in every}
        return (*matched, *(rows[text] for text in (unmatched & emitted).elements()))

    def _compared(self, expected: Sequence[Row], found: Sequence[Row]) -> RowDifference:
        frame, test = self.prepared.frame, self.prepared.case.test
        comparison = RowComparison(types_of(frame.dtypes), Decimal(repr(test.expect.document.tolerance)))
        rows = comparison.compare(expected, found)
        return RowDifference(None, tuple(frame.columns), rows, test.location, comparison.types)

    def _differ(self, expected: Sequence[Row], found: Sequence[Row]) -> bool:
        return any(row.kind is not RowKind.SAME for row in self._compared(expected, found).rows)

    def _failed_with(self, variant: Execution, error: Finding) -> CaseResult:
        """Returns the result if the query fails in a variant, but not with the batches of the test."""
        what = f"`{self.prepared.case.model.name}` fails with its rows {variant.name}, but not as the test gives them"
        fix = "fix the model, or set `equivalence: false` with the `reason` why that is correct"
        finding = replace(error, message=what, fix=fix)
        result = result_of(self.prepared.case, Outcome.FAILED, [finding])
        return replace(result, split=self._split(variant.batches or ()))

    def _split(self, batches: Batches) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(self._text(row) for row in batch) for batch in batches)

    def _failed(self, variant: Execution, rows: Sequence[RowId]) -> CaseResult:
        """Returns the result with the difference, reduced to few rows and batches."""
        self.runs = 0
        smallest, rows = self._reduced(variant, list(rows))
        expected, found = self._both(smallest, rows)
        difference = replace(self._compared(expected or (), found or ()), way=smallest.name)
        split = self._split(smallest.batches or (tuple(rows),))
        result = result_of(self.prepared.case, Outcome.FAILED)
        return replace(result, differences=(difference,), split=split)

    def _both(self, variant: Execution, rows: Sequence[RowId]) -> tuple[tuple[Row, ...] | None, tuple[Row, ...] | None]:
        """Returns the final tables of one micro-batch and of `variant`."""
        return self._final(Execution("", (tuple(rows),))), self._final(variant, rows)

    def _reduced(self, variant: Execution, rows: list[RowId]) -> tuple[Execution, list[RowId]]:
        """Returns the variant without rows, and with fewer batches, as long as the difference remains."""

        def shows(candidate: Execution, left: Sequence[RowId]) -> bool:
            if self.runs >= MOST_RUNS or not left:
                return False
            expected, found = self._both(candidate, left)
            return expected is not None and found is not None and self._differ(expected, found)

        for row in list(rows):
            left = [other for other in rows if other != row]
            candidate = replace(variant, batches=_without(variant.batches, row))
            if shows(candidate, left):
                variant, rows = candidate, left
        return _merged(variant, lambda candidate: shows(candidate, rows)), rows

    def _text(self, row: RowId) -> str:
        node, number = row
        item = self.prepared.frames.streams[node]
        values = zip(item.schema.names, self._values(node)[number], strict=True)
        given = ", ".join(f"{name}: {value}" for name, value in values if value is not None)
        return f"{self.prepared.case.inputs[node].text} {{{given}}}"


def _cut(order: Sequence[RowId], cuts: Sequence[int]) -> Batches:
    """Returns the rows split before the indexes `cuts`, in at most `MOST_BATCHES` batches."""
    chosen = list(cuts)
    if len(chosen) >= MOST_BATCHES:
        step = len(chosen) / (MOST_BATCHES - 1)
        chosen = [chosen[int(index * step)] for index in range(MOST_BATCHES - 1)]
    ends = [0, *chosen, len(order)]
    return tuple(tuple(order[begin:end]) for begin, end in pairwise(ends))


def _without(batches: Batches | None, row: RowId) -> Batches | None:
    if batches is None:
        return None
    left = (tuple(other for other in batch if other != row) for batch in batches)
    return tuple(batch for batch in left if batch)


def _merged(variant: Execution, shows: Callable[[Execution], bool]) -> Execution:
    """Returns the variant with adjacent batches merged as long as the difference remains."""
    at = 0
    while variant.batches is not None and at + 1 < len(variant.batches):
        one, other = variant.batches[at], variant.batches[at + 1]
        candidate = replace(variant, batches=(*variant.batches[:at], one + other, *variant.batches[at + 2 :]))
        # one batch is what the variant is compared with
        if len(candidate.batches or ()) > 1 and shows(candidate):
            variant = candidate
        else:
            at += 1
    return variant


def _steps(variant: Execution) -> list[IndexedBatch | BetweenBatches]:
    deliveries = [_delivery(batch) for batch in variant.batches or () if batch]
    if not variant.restarts:
        return [*deliveries]
    return [step for each in deliveries for step in (each, BetweenBatches.RESTART)][:-1]


def _delivery(batch: Sequence[RowId]) -> IndexedBatch:
    rows: dict[str, tuple[int, ...]] = {}
    for node, number in batch:
        rows[node] = (*rows.get(node, ()), number)
    return IndexedBatch(rows)
