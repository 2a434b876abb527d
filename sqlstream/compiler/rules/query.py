"""Streaming queries as rules see them, and the decorators of these rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from itertools import chain
from typing import TypeGuard, TypeVar

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.flow.nodes import Aggregate, Deduplicate, Filter, Hints, Join, Node, With
from sqlstream.compiler.rules.rule import QueryProblem, Rule
from sqlstream.compiler.spark_versions import TESTED, minor_version
from sqlstream.compiler.sql.tokens import Tokens, tokenize
from sqlstream.errors import Severity

N = TypeVar("N", bound=Node)


@dataclass(frozen=True)
class Query:
    """The query of the terminal model `terminal`, whose operators are the tree `node`."""

    compiled: CompiledProject
    terminal: CompiledModel
    node: Node

    @property
    def model(self) -> str:
        """The name of its terminal model."""
        return self.terminal.name

    @property
    def mode(self) -> str:
        """Its output mode."""
        return self.terminal.config.output_mode

    @property
    def trigger(self) -> str:
        """The kind of its trigger."""
        return self.terminal.config.trigger.kind

    @property
    def sink(self) -> str:
        """The format of its sink."""
        return self.terminal.output.format if self.terminal.output else ""

    @property
    def spark(self) -> tuple[int, int]:
        """The minor version of Spark that runs it."""
        return minor_version(self.compiled.options.spark or TESTED[-1])

    def name_of(self, unique_id: str) -> str:
        """Returns the name of a model; empty for a source."""
        return self.compiled.models[unique_id].name if unique_id in self.compiled.models else ""

    @cached_property
    def texts(self) -> Mapping[str, Tokens]:
        """The tokens of the compiled SQL of its models, by unique id."""
        ids = dict.fromkeys(node.where.model for node in self.nodes)
        models = {unique_id: self.compiled.models[unique_id] for unique_id in ids if unique_id in self.compiled.models}
        return {unique_id: tokenize(model.sql) for unique_id, model in models.items() if not model.file.is_python}

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All operators from the top down, without the subqueries in expressions."""
        return tuple(self.node.walk())

    def all(self, *kinds: type[N]) -> Iterator[N]:
        """Yields each operator of one of `kinds`."""
        return iter(()) if self._kinds.isdisjoint(kinds) else (node for node in self.nodes if isinstance(node, kinds))

    @cached_property
    def _kinds(self) -> frozenset[type[Node]]:
        """The classes of the operators, and their base classes."""
        return frozenset(chain.from_iterable(kind.__mro__ for kind in set(map(type, self.nodes))))

    def executed(self) -> Iterator[Node]:
        """Yields each operator that runs, once: all but the CTEs that the query does not read."""
        # The first child of `With` is its query, which leads to the CTEs that it reads.
        return _reach([self.node], lambda node: node.children[:1] if isinstance(node, With) else node.children)

    def below(self, may_add: Callable[[Hints], bool]) -> frozenset[int]:
        """Returns the `id()` of each operator below a condition for which `may_add` holds, because Spark moves
        conditions into the joins below them.
        """
        conditions = (node for node in self.nodes if isinstance(node, Filter | Join) and may_add(node.hints))
        starts = [child for node in conditions for child in node.children]
        return frozenset(map(id, _reach(starts, lambda node: node.children)))


def _reach(starts: list[Node], children_of: Callable[[Node], Iterable[Node]]) -> Iterator[Node]:
    seen: set[int] = set()
    waiting = starts
    while waiting:
        node = waiting.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            waiting += children_of(node)


Problems = Iterable[QueryProblem]
QueryRule = Rule[Query, QueryProblem]


def query_rule(
    code: str, *, mode: str = "", trigger: str = "", severity: Severity = Severity.ERROR
) -> Callable[[Callable[[Query], Problems]], QueryRule]:
    """Returns the decorator that turns a function of a query into a rule with one code.

    The rule applies only to queries with the output mode `mode` and the trigger `trigger`, if these are given.
    """

    def decorate(check: Callable[[Query], Problems]) -> QueryRule:
        @wraps(check)
        def check_query(query: Query) -> Problems:
            if mode not in ("", query.mode) or trigger not in ("", query.trigger):
                return
            for problem in check(query):
                is_warning = Severity.WARNING in (severity, problem.severity)
                yield replace(problem, code=code, severity=Severity.WARNING if is_warning else severity)

        return Rule(check_query, (code,), severity)

    return decorate


def operator_rule(
    code: str,
    kind: type[N],
    *,
    static: bool = False,
    mode: str = "",
    trigger: str = "",
    severity: Severity = Severity.ERROR,
) -> Callable[[Callable[[Query, N], Problems]], QueryRule]:
    """Returns the decorator that turns a function of a query and one operator into a rule with one code.

    The rule applies to each streaming operator of the type `kind`; with `static`, to static ones too.
    """

    def decorate(check: Callable[[Query, N], Problems]) -> QueryRule:
        @wraps(check)
        def check_operators(query: Query) -> Problems:
            return chain.from_iterable(check(query, node) for node in query.all(kind) if static or node.streaming)

        return query_rule(code, mode=mode, trigger=trigger, severity=severity)(check_operators)

    return decorate


def is_streaming_aggregate(node: Node) -> TypeGuard[Aggregate]:
    """Returns whether `node` aggregates a stream."""
    return isinstance(node, Aggregate) and node.streaming


def is_stream_join(node: Node) -> TypeGuard[Join]:
    """Returns whether `node` joins two streams."""
    return isinstance(node, Join) and all(child.streaming for child in node.children)


def is_stateful(node: Node) -> bool:
    """Returns whether `node` keeps rows from batch to batch and drops late rows: an aggregation of a stream, a
    deduplication within a watermark, or a join of two streams.
    """
    deduplicates = isinstance(node, Deduplicate) and node.streaming and node.within is True
    return deduplicates or is_stream_join(node) or is_streaming_aggregate(node)
