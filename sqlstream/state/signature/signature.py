"""The state signature of a query, as the ledger keeps it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

FORMAT = 1
"""The version of the texts in a signature. Signatures of different versions cannot be compared part by part."""


def shown_source(reader: str) -> str:
    """Returns how texts name the source of a reader: `shop.orders` for `shop__orders`, `shop.orders__2` for its second
    reader.
    """
    return reader.replace("__", ".", 1)


@dataclass(frozen=True)
class InputRows:
    """Where the rows of an operator come from: a source, or an operation on the rows of `inputs`."""

    text: str
    inputs: tuple[InputRows, ...] = ()

    def lines(self, depth: int = 0) -> Iterator[str]:
        """Yields the operation and its inputs, indented."""
        yield "  " * depth + self.text
        for each in self.inputs:
            yield from each.lines(depth + 1)


@dataclass(frozen=True)
class StateOperator:
    """An operator that keeps state. `parts` are what its state depends on, by name, for example the keys of an
    aggregation; `inputs` are the rows that go in.
    """

    kind: str
    parts: Mapping[str, tuple[str, ...]]
    inputs: tuple[InputRows, ...]


@dataclass(frozen=True)
class StateSignature:
    """What decides the content of a query's state: its operators in the order of Spark's plan, and what concerns all of
    them. `watermarks` are those of the whole query, because Spark uses one watermark for all operators. `calls_python`:
    the plan does not show all of its meaning, because it calls the project's Python.
    """

    operators: tuple[StateOperator, ...]
    output_mode: str
    watermarks: tuple[str, ...]
    spark_version: str
    calls_python: bool = False
    format: int = FORMAT

    @property
    def input_lines(self) -> tuple[str, ...]:
        """The rows that go into all operators, a line for each operation."""
        rows = (each for operator in self.operators for each in operator.inputs)
        return tuple(line.strip() for each in rows for line in each.lines())
