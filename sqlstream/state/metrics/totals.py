"""What the metrics of a query need beyond the figures of its run: sums and counts over all batches."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlstream.state.metrics.catalog import DURATION_BUCKETS
from sqlstream.state.runs.progress import BatchProgress, SourceProgress


@dataclass
class QueryTotals:
    """The sums of one query. `buckets` counts batches by the first of `DURATION_BUCKETS` that is not exceeded; the last
    count is of longer batches. `part_ms`, `source_rows` and `backlogs` are by the names of parts and sources.
    """

    buckets: list[int] = field(default_factory=lambda: [0] * (len(DURATION_BUCKETS) + 1))
    duration_ms: int = 0
    part_ms: Counter[str] = field(default_factory=Counter)
    source_rows: Counter[str] = field(default_factory=Counter)
    backlogs: dict[str, Mapping[str, int]] = field(default_factory=dict)
    failures: int = 0

    def add(self, batch: BatchProgress) -> None:
        """Adds a batch."""
        self.buckets[bisect_left(DURATION_BUCKETS, batch.duration_ms / 1000)] += 1
        self.duration_ms += batch.duration_ms
        self.part_ms.update(batch.parts_ms)
        by_name: dict[str, list[SourceProgress]] = defaultdict(list)
        for source in batch.sources:  # a table may have several readers
            by_name[source.name].append(source)
        for name, readers in by_name.items():
            self.source_rows[name] += sum(reader.rows_in or 0 for reader in readers)
            self.backlogs[name] = _sums(readers)


def _sums(readers: list[SourceProgress]) -> Mapping[str, int]:
    sums: Counter[str] = Counter()
    for reader in readers:
        sums.update(reader.backlog)
    return sums
