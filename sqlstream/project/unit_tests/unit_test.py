"""Unit tests as frozen values with locations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.unit_tests.fixtures import Rows
from sqlstream.project.unit_tests.unit_test_documents import ExpectDocument, UnitTestDocument
from sqlstream.project.yaml import Located, YamlMapping


class BetweenBatches(StrEnum):
    """The steps between two batches: the query stops and starts again on its checkpoint, with the same model or, from
    an upgrade on, with the current one.
    """

    RESTART = "restart"
    UPGRADE = "upgrade"


@dataclass(frozen=True)
class Batch:
    """The rows of one given batch. `at` sets the clock from here on. `with_previous`: they are in one micro-batch with
    the rows before.
    """

    rows: Rows
    location: Location
    at: Located | None = None
    with_previous: bool = False


@dataclass(frozen=True)
class Given:
    """One input: `kind` and `parts` are the arguments of `ref()` (a name) or `source()` (the source and its table).
    `steps` are its batches and the words between them, None without rows. `in_batches`: the rows were written as
    batches.
    """

    text: str
    kind: str
    parts: tuple[str, ...]
    location: Location
    steps: tuple[Batch | BetweenBatches, ...] | None
    in_batches: bool

    @property
    def batches(self) -> tuple[Batch, ...]:
        """The batches alone."""
        return tuple(step for step in self.steps or () if isinstance(step, Batch))


@dataclass(frozen=True)
class Expected:
    """The expectation of a case: `rows` at the end, `batches` after each given batch, `table` in the sink; None for
    values that it omits.
    """

    location: Location
    rows: Rows | None
    batches: tuple[Rows, ...] | None
    document: ExpectDocument
    locations: Mapping[str, Location]
    table: Rows | None = None


@dataclass(frozen=True)
class UnitTest:
    """One case. `places` has the location of each of its keys, `node` is the case as written."""

    name: str
    model: str
    given: tuple[Given, ...]
    expect: Expected
    document: UnitTestDocument
    location: Location
    locations: Mapping[str, Location]
    node: YamlMapping = field(repr=False, compare=False)

    @property
    def enabled(self) -> bool:
        """Whether the test runs."""
        config = self.document.config
        return self.document.enabled and (config is None or config.enabled)

    @property
    def tags(self) -> frozenset[str]:
        """The words that select it."""
        config = self.document.config
        return frozenset((*self.document.tags, *(config.tags if config else ())))


@dataclass(frozen=True)
class BrokenTest:
    """A case that cannot run, and the reason; its name and model if known."""

    name: str
    model: str | None
    location: Location
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class UnitTests:
    """All cases in the order of their files, with the invalid ones, and the errors of whole files."""

    cases: tuple[UnitTest, ...]
    broken: tuple[BrokenTest, ...]
    findings: tuple[Finding, ...]
