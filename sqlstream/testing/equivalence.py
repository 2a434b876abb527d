"""Whether a stream gives what the batch over the same rows gives, however its rows are split into micro-batches.

Every split ends with the same watermark, so all of them give the same final table, unless the query depends on which
rows come together. Splits in which a row comes behind the watermark are left out: there the stream rightly drops what
the batch has. A difference is shrunk to few rows and few batches.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise

from pyspark.sql import DataFrame

from sqlstream.compiler.emission.examples import IDLE_BATCHES
from sqlstream.errors import Finding, FindingsError
from sqlstream.spark.reading.memory_streams import RowMaker, select_rows
from sqlstream.spark.reading.static_stream import (
    closed_groups,
    differs_by_outer_join,
    equals_batch,
    key_columns,
    matched_rows,
)
from sqlstream.state.results.unit_tests import CaseResult, Observed, Outcome, Row, RowDifference, RowKind
from sqlstream.testing.compare import RowComparison, types_of
from sqlstream.testing.frames import StreamInput
from sqlstream.testing.judge import result_of
from sqlstream.testing.prepared import PreparedCase
from sqlstream.testing.stream import Delivery

MOST_BATCHES = 6
"""Batches of a split: cases have few rows, and each batch takes a tenth of a second."""

MOST_RUNS = 40
"""Runs in which a difference is shrunk."""

RowId = tuple[str, int]
"""A given row: its input's node, and its number."""

Batches = tuple[tuple[RowId, ...], ...]


@dataclass(frozen=True)
class Way:
    """A way of running the rows of a case: `batches` None is as a batch."""

    name: str
    batches: Batches | None


@dataclass
class Equivalence:
    """Compares the ways of running one case that has passed."""

    prepared: PreparedCase
    runs: int = 0
    _error: Finding | None = None
    _last: tuple[Row, ...] = ()

    def check(self) -> CaseResult | None:
        """Returns the failed result of a case whose ways differ, None where they agree or cannot be compared."""
        rows = self._rows()
        if not rows:
            return None
        # all that the watermark closes comes out, also where the target lets it wait for the next rows
        self.prepared.frame.sparkSession.conf.set(IDLE_BATCHES, "true")
        self._keys = self._key_numbers()
        once = Way("one micro-batch", (tuple(rows),))
        expected = self._final(once)
        if expected is None:
            return self._broke(once, self._error) if self._error is not None else None
        for way in self._ways(rows):
            found = self._final(way, rows)
            if found is None and self._error is not None:
                return self._broke(way, self._error)
            if found is not None and self._differ(expected, found):
                return self._failed(way, rows)
        return None

    def _ways(self, rows: Sequence[RowId]) -> Iterator[Way]:
        """As a batch, row by row, and split by chance; the seed is the name of the case.

        The rows come as they are written, or, where one would be late then, in the order of a column of times.
        """
        yield Way("a batch", None)
        chance = random.Random(self.prepared.case.test.name)  # noqa: S311 - no secret: the same splits each time
        for order_name, order in self._orders(rows):
            self._was_late = False
            yield Way(f"row by row{order_name}", _cut(order, range(1, len(order)), MOST_BATCHES))
            if self._was_late:
                continue
            if len(order) > 2:
                cuts = sorted(chance.sample(range(1, len(order)), chance.randint(1, min(len(order), MOST_BATCHES) - 1)))
                yield Way(f"in {len(cuts) + 1} micro-batches{order_name}", _cut(order, cuts, MOST_BATCHES))
            return

    def _rows(self) -> list[RowId]:
        """The rows in the order in which the case gives them."""
        found: list[RowId] = []
        for step in self.prepared.own_steps():
            if isinstance(step, Delivery):
                found += [(node, number) for node, numbers in step.rows.items() for number in numbers]
        return found

    def _key_numbers(self) -> tuple[int, ...] | None:
        """In update mode, the numbers of the columns that name a row. Raises: FindingsError where nobody knows them."""
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
        """The rows as they are written, and by each column in which a time may stand, where that is another order."""
        seen = [list(rows)]
        yield "", seen[0]
        for column in self._time_columns():
            order = sorted(rows, key=lambda row: self._sort_key(row, column))
            if order not in seen:
                seen.append(order)
                yield f" in the order of `{column}`", order

    def _time_columns(self) -> list[str]:
        """The columns of times, or else those of whole numbers, that the inputs have."""
        types = [(each.name, each.dataType.simpleString()) for item in self._inputs() for each in item.schema]
        times = [name for name, kind in types if kind.startswith("timestamp")]
        return list(dict.fromkeys(times or [name for name, kind in types if kind in ("bigint", "int")]))[:2]

    def _sort_key(self, row: RowId, column: str) -> tuple[bool, int, str]:
        node, number = row
        names = self.prepared.frames.streams[node].schema.names
        if column not in names:
            return True, 0, ""
        value = self._values(node)[number][names.index(column)]
        return value is None, value if isinstance(value, int) else 0, str(value)

    def _inputs(self) -> Iterable[StreamInput]:
        return self.prepared.frames.streams.values()

    def _values(self, node: str) -> list[Row]:
        known = self.__dict__.setdefault("_known", {})
        if node not in known:
            item = self.prepared.frames.streams[node]
            maker = RowMaker(self.prepared.frame.sparkSession)
            known[node] = maker.rows(maker.frame(item.rows, item.schema))
        found: list[Row] = known[node]
        return found

    def _final(self, way: Way, rows: Sequence[RowId] = ()) -> tuple[Row, ...] | None:
        """The final table, None where it cannot be compared: rows came late, or Spark refuses such a batch."""
        self.runs += 1
        self._error = None
        if way.batches is None:
            return self._batch(rows)
        observed = self.prepared.anew().stream([_delivery(batch) for batch in way.batches if batch])
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
        """What the batch gives of what the stream has given after one micro-batch of these rows."""
        case, stream = self.prepared.case, self.prepared.frame
        outer = differs_by_outer_join(stream)
        if case.test.document.at or any(feed.at for feed in case.feeds):
            return None  # the clock of a batch cannot be set
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
        """The rows of an outer join that have a partner, and of the others those that the stream has given by now."""
        inner = matched_rows(frame)
        found = [self.prepared.batch(each) for each in (inner, frame) if each is not None]
        if inner is None or any(observed.error is not None for observed in found):
            return None
        matched, every = (observed.final for observed in found)
        alone = Counter(map(repr, every)) - Counter(map(repr, matched))
        seen = Counter(map(repr, self._last)) - Counter(map(repr, matched))
        rows = {repr(row): row for row in every}
        return (*matched, *(rows[text] for text in (alone & seen).elements()))

    def _compared(self, expected: Sequence[Row], found: Sequence[Row]) -> RowDifference:
        frame, test = self.prepared.frame, self.prepared.case.test
        comparison = RowComparison(types_of(frame.dtypes), Decimal(repr(test.expect.document.tolerance)))
        return RowDifference(None, tuple(frame.columns), comparison.compare(expected, found), test.location)

    def _differ(self, expected: Sequence[Row], found: Sequence[Row]) -> bool:
        return any(row.kind is not RowKind.SAME for row in self._compared(expected, found).rows)

    def _broke(self, way: Way, error: Finding) -> CaseResult:
        """The result where the query fails in a way in which the case does not run it."""
        what = f"`{self.prepared.case.model.name}` fails with its rows {way.name}, but not as the test gives them"
        fix = "fix the model, or set `equivalence: false` with the `reason` why that is correct"
        finding = replace(error, message=what, fix=fix)
        return replace(result_of(self.prepared.case, Outcome.FAILED, [finding]), split=self._split(way.batches or ()))

    def _split(self, batches: Batches) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(self._text(row) for row in batch) for batch in batches)

    def _failed(self, way: Way, rows: Sequence[RowId]) -> CaseResult:
        """The difference with as few rows and batches as are found to show it."""
        self.runs = 0
        smallest, rows = self._shrunk(way, list(rows))
        expected, found = self._both(smallest, rows)
        difference = replace(self._compared(expected or (), found or ()), way=smallest.name)
        split = self._split(smallest.batches or (tuple(rows),))
        result = result_of(self.prepared.case, Outcome.FAILED)
        return replace(result, differences=(difference,), split=split)

    def _both(self, way: Way, rows: Sequence[RowId]) -> tuple[tuple[Row, ...] | None, tuple[Row, ...] | None]:
        """The final tables of one micro-batch and of `way`."""
        return self._final(Way("", (tuple(rows),))), self._final(way, rows)

    def _shrunk(self, way: Way, rows: list[RowId]) -> tuple[Way, list[RowId]]:
        def shows(candidate: Way, left: Sequence[RowId]) -> bool:
            if self.runs >= MOST_RUNS or not left:
                return False
            expected, found = self._both(candidate, left)
            return expected is not None and found is not None and self._differ(expected, found)

        for row in list(rows):
            left = [other for other in rows if other != row]
            candidate = replace(way, batches=_without(way.batches, row))
            if shows(candidate, left):
                way, rows = candidate, left
        return _merged(way, lambda candidate: shows(candidate, rows)), rows

    def _text(self, row: RowId) -> str:
        node, number = row
        item = self.prepared.frames.streams[node]
        values = zip(item.schema.names, self._values(node)[number], strict=True)
        given = ", ".join(f"{name}: {value}" for name, value in values if value is not None)
        return f"{self.prepared.case.inputs[node].text} {{{given}}}"


def _cut(order: Sequence[RowId], cuts: Sequence[int], most: int) -> Batches:
    """The rows in the order given, cut before the numbers `cuts`, in at most `most` batches."""
    chosen = list(cuts)
    if len(chosen) >= most:
        step = len(chosen) / (most - 1)
        chosen = [chosen[int(index * step)] for index in range(most - 1)]
    ends = [0, *chosen, len(order)]
    return tuple(tuple(order[begin:end]) for begin, end in pairwise(ends))


def _without(batches: Batches | None, row: RowId) -> Batches | None:
    if batches is None:
        return None
    left = (tuple(other for other in batch if other != row) for batch in batches)
    return tuple(batch for batch in left if batch)


def _merged(way: Way, shows: Callable[[Way], bool]) -> Way:
    """The way with neighbouring batches put together where the difference stays."""
    at = 0
    while way.batches is not None and at + 1 < len(way.batches):
        one, other = way.batches[at], way.batches[at + 1]
        candidate = replace(way, batches=(*way.batches[:at], one + other, *way.batches[at + 2 :]))
        if len(candidate.batches or ()) > 1 and shows(candidate):
            way = candidate
        else:
            at += 1
    return way


def _delivery(batch: Sequence[RowId]) -> Delivery:
    rows: dict[str, tuple[int, ...]] = {}
    for node, number in batch:
        rows[node] = (*rows.get(node, ()), number)
    return Delivery(rows)
