"""What a rule on a streaming query gets, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TypeVar

from sqlstream.compiler.flow.columns import Where
from sqlstream.compiler.flow.nodes import Aggregate, Deduplicate, Filter, Hints, Join, Node, With
from sqlstream.compiler.spark_versions import TESTED, minor_version
from sqlstream.compiler.sql.problem import ORIGIN
from sqlstream.compiler.sql.tokens import Tokens
from sqlstream.errors import Finding, Severity
from sqlstream.location import Place

N = TypeVar("N", bound=Node)

NEWEST = minor_version(TESTED[-1])


@dataclass(frozen=True)
class QueryText:
    """The compiled SQL of one model that a query is made of: its unique id, and its tokens."""

    model: str
    tokens: Tokens

    def at(self, offset: int) -> Where:
        """Returns a place in the text."""
        return Where(self.model, offset)


@dataclass(frozen=True)
class Query:
    """The query of terminal model `model`: its tree and its output mode. `names` are those of all models by id.

    `trigger` is the kind of its trigger, `sink` the format of its sink, `formats` are those of the sources by node id,
    and `texts` those of the models that it is made of, which only continuous and real-time triggers have looked at.
    `spark` is the minor version of Spark that runs it.
    """

    model: str
    node: Node
    mode: str
    names: Mapping[str, str]
    trigger: str = "default"
    sink: str = ""
    formats: Mapping[str, str] = field(default_factory=dict)
    texts: tuple[QueryText, ...] = ()
    spark: tuple[int, int] = NEWEST

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All operators, from the top down, the queries in expressions aside."""
        return tuple(self.node.walk())

    def all(self, *kinds: type[N]) -> Iterator[N]:
        """Gives each operator of one of `kinds`."""
        return iter(()) if self._kinds.isdisjoint(kinds) else (node for node in self.nodes if isinstance(node, kinds))

    @cached_property
    def _kinds(self) -> frozenset[type[Node]]:
        """The classes of the operators, and those that these are derived from."""
        return frozenset(chain.from_iterable(kind.__mro__ for kind in set(map(type, self.nodes))))

    def read(self) -> Iterator[Node]:
        """Gives each operator whose rows are read once, without the CTEs that only stand in a WITH."""
        seen: set[int] = set()
        waiting: list[Node] = [self.node]
        while waiting:
            node = waiting.pop()
            if id(node) not in seen:
                seen.add(id(node))
                yield node
                waiting += node.children[:1] if isinstance(node, With) else node.children

    def below(self, may_add: Callable[[Hints], bool]) -> frozenset[int]:
        """Returns the `id()` of each operator below a condition for which `may_add` holds: Spark moves conditions into
        the joins below them.
        """
        waiting: list[Node] = []
        for node in self.nodes:
            if isinstance(node, Filter | Join) and may_add(node.hints):
                waiting += node.children
        found: set[int] = set()
        while waiting:
            node = waiting.pop()
            if id(node) not in found:
                found.add(id(node))
                waiting += node.children
        return frozenset(found)


@dataclass(frozen=True)
class QueryProblem:
    """A finding without its location: `where` is the part of a model's SQL that is wrong, or a source, and `key` then
    the key of it that is meant. `origins` are the places for which each `ORIGIN` in `fix` stands.
    """

    where: Where
    code: str
    message: str
    why: str
    fix: str
    severity: Severity = Severity.ERROR
    key: str = "watermark"
    origins: tuple[Where, ...] = ()

    def at(self, place: Place, origins: Iterable[str] = ()) -> Finding:
        """Returns the finding, where `place` is that of `where`, and `origins` are those places in words."""
        fix = self.fix
        for origin in origins:
            fix = fix.replace(ORIGIN, origin, 1)
        return Finding(self.code, self.message, self.why, fix, place.location, self.severity, place.calls)


def is_streaming_aggregate(node: Node) -> bool:
    """Returns whether `node` aggregates a stream."""
    return isinstance(node, Aggregate) and node.streaming


def is_stateful(node: Node) -> bool:
    """Returns whether `node` keeps rows from batch to batch and drops late ones: an aggregation or deduplication of a
    stream, or a join of two.
    """
    joins = isinstance(node, Join) and all(child.streaming for child in node.children)
    deduplicates = isinstance(node, Deduplicate) and node.streaming and node.within is True
    return joins or deduplicates or is_streaming_aggregate(node)
