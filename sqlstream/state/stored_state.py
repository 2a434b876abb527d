"""The state of a query, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlstream.state.shown_rows import ShownRows


@dataclass(frozen=True)
class StateStore:
    """A store of an operator with state: the number and the name of the operator, and the name of the store."""

    operator: int
    kind: str
    name: str

    @property
    def title(self) -> str:
        """How messages name the store: `stateStoreSave 0`, with the name of the store if it is not Spark's default."""
        return f"{self.kind} {self.operator}" + ("" if self.name == "default" else f" ({self.name})")


@dataclass(frozen=True)
class PartitionSize:
    """The number of rows in a partition of a store."""

    partition: int
    rows: int


@dataclass(frozen=True)
class StoreSize:
    """The rows of a store by partition, of which empty ones are left out, and the bytes of its files on disk by
    partition, for all stores of its operator together.
    """

    store: StateStore
    partitions: tuple[PartitionSize, ...]
    bytes_on_disk: Mapping[int, int]

    @property
    def rows(self) -> int:
        """All rows."""
        return sum(each.rows for each in self.partitions)

    @property
    def skew(self) -> float | None:
        """How many times as many rows the largest partition has as it would have if all had the same; None without
        rows.
        """
        count = max(len(self.bytes_on_disk), len(self.partitions))
        return max(each.rows for each in self.partitions) * count / self.rows if self.rows else None


@dataclass(frozen=True)
class ShownState:
    """The first rows of each store of a query's version."""

    model: str
    version: int
    stores: tuple[ShownRows, ...]


@dataclass(frozen=True)
class StateSize:
    """The sizes of the stores of a query's version."""

    model: str
    version: int
    stores: tuple[StoreSize, ...]


@dataclass(frozen=True)
class Repartitioned:
    """A repartition of the state of a query's version from `before` to `after` partitions, equal if it already had that
    number. `batch` is the last batch, which Spark added unless both are equal. `archived` is where the leftovers of an
    interrupted repartition are.
    """

    model: str
    version: int
    before: int
    after: int
    batch: int
    archived: str | None = None
