"""The state signature of a query, as the ledger keeps it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlstream.state.signature.wider_types import types_in

FORMAT = 2
"""The version of the texts in a signature, which are compared only with texts of the same version. The first one had
ambiguous texts of literals and types, and nothing of what subqueries read. A query can be described in both.
"""


def shown_source(reader: str) -> str:
    """Returns how texts name the source of a reader: `shop.orders` for `shop__orders`, `shop.orders__2` for its second
    reader.
    """
    return reader.replace("__", ".", 1)


_NUMBERED = re.compile(r"source [0-9]+")


def is_numbered(source: str) -> bool:
    """Returns whether a source has only a number: before Spark 4.3, or in an early checkpoint."""
    return _NUMBERED.fullmatch(source) is not None


def source_of(line: str) -> str:
    """Returns the name of the source in a line of `InputRows`: `shop.orders` for `shop.orders(id integer)`."""
    return line.strip().partition("(")[0]


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

    def sources(self) -> Iterator[str]:
        """Yields the names of the sources and static tables that the rows come from, in their order."""
        if not self.inputs:
            yield source_of(self.text)
        for each in self.inputs:
            yield from each.sources()


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
    the plan does not show all of its meaning, because it calls the project's Python. `functions` are the kinds of
    Spark's expressions that decide the state, in lower case.
    """

    operators: tuple[StateOperator, ...]
    output_mode: str
    watermarks: tuple[str, ...]
    spark_version: str
    calls_python: bool = False
    format: int = FORMAT
    functions: tuple[str, ...] = ()

    @property
    def input_lines(self) -> tuple[str, ...]:
        """The rows that go into all operators, a line for each operation."""
        rows = (each for operator in self.operators for each in operator.inputs)
        return tuple(line.strip() for each in rows for line in each.lines())

    def reads(self, name: str, type_: str = "") -> bool:
        """Returns whether a source is among the inputs, with a column that has the type or contains it. Before Spark
        4.3 sources have only numbers, so each can be the one.
        """
        found = (line for line in self.input_lines if source_of(line) == name or is_numbered(source_of(line)))
        return any(re.search(rf"\b{type_}\b", line.partition("(")[2]) for line in found)

    @property
    def types(self) -> dict[str, dict[str, str]]:
        """The types of the columns that decide the state, by source and column."""
        found: dict[str, dict[str, str]] = {}
        for line in self.input_lines:
            found.setdefault(source_of(line), {}).update(types_in(line))
        return found

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of all sources and static tables that are read, in the order of the query, each once."""
        rows = (each for operator in reversed(self.operators) for each in operator.inputs)  # the last one is on top
        return tuple(dict.fromkeys(name for each in rows for name in each.sources()))
