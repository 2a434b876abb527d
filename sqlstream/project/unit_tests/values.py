"""Unit tests as frozen values, each with its places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.unit_tests.documents import ExpectDocument, UnitTestDocument
from sqlstream.project.unit_tests.fixtures import Rows
from sqlstream.project.values import Located
from sqlstream.project.yaml import YamlMapping


class BetweenBatches(StrEnum):
    """What may stand between two batches: the query is stopped and started again on its checkpoint, by the same model
    or, from an upgrade on, by the present one.
    """

    RESTART = "restart"
    UPGRADE = "upgrade"


@dataclass(frozen=True)
class Batch:
    """The rows of one given batch; `at` is what the clock says from here on; `with_previous` says that they come in one
    micro-batch with those before.
    """

    rows: Rows
    location: Location
    at: Located | None = None
    with_previous: bool = False


@dataclass(frozen=True)
class Given:
    """One input: `kind` and `parts` are what `ref()` (a name) or `source()` (the source and its table) say.

    `steps` are its batches and what stands between them, None where no rows are given. `in_batches` says that
    they were written as batches.
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
    """What a case expects: `rows` at the end, `batches` by each given batch; None for what it does not say."""

    location: Location
    rows: Rows | None
    batches: tuple[Rows, ...] | None
    document: ExpectDocument
    places: Mapping[str, Location]


@dataclass(frozen=True)
class UnitTest:
    """One case. `places` gives the location of each of its keys, `node` the case as it is written."""

    name: str
    model: str
    given: tuple[Given, ...]
    expect: Expected
    document: UnitTestDocument
    location: Location
    places: Mapping[str, Location]
    node: YamlMapping = field(repr=False, compare=False)

    @property
    def enabled(self) -> bool:
        """Whether the test runs."""
        config = self.document.config
        return self.document.enabled and (config is None or config.enabled)

    @property
    def tags(self) -> frozenset[str]:
        """The words to select it by."""
        config = self.document.config
        return frozenset((*self.document.tags, *(config.tags if config else ())))


@dataclass(frozen=True)
class BrokenTest:
    """A case that cannot be run, and why; its name and model where they can be told."""

    name: str
    model: str | None
    location: Location
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class UnitTests:
    """All cases in the order of their files, the broken ones beside them, and what is wrong with whole files."""

    cases: tuple[UnitTest, ...]
    broken: tuple[BrokenTest, ...]
    findings: tuple[Finding, ...]
