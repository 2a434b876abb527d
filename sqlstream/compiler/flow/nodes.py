"""The operators of a query as a tree of frozen values, as in Spark's analyzed plan.

The tree of a model contains the trees of the models that it reads, so it extends from the sources to the sink. Anything
that only Spark can know is None, never a guess.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlstream.compiler.flow.columns import Column, EventTime
from sqlstream.compiler.sql.edits import Where

if TYPE_CHECKING:
    from sqlstream.compiler.flow.text import SqlPart  # loads sqlglot, unlike a compilation from the cache


@dataclass(frozen=True)
class Call:
    """A call in an expression: the function in lower case, whether it has DISTINCT, its text and its place."""

    name: str
    distinct: bool
    text: str
    where: Where


@dataclass(frozen=True, kw_only=True)
class Node:
    """One operator at the place `where`, with the `columns` of its output (None: unknown).

    `streaming` means that its rows come from a stream. `subqueries` are the queries in its expressions. `row_ids` are
    the calls of functions that number rows, which Spark rejects in streaming queries; one operator of a SELECT has
    those of the whole SELECT. `part` has its expressions: the SELECT of a select list or an aggregation, the WHERE or
    HAVING of a filter, the JOIN of a join. It is None for other operators, and if the text does not keep its trees.
    """

    where: Where
    columns: tuple[Column, ...] | None
    children: tuple[Node, ...] = ()
    subqueries: tuple[Node, ...] = ()
    row_ids: tuple[Call, ...] = ()
    part: SqlPart | None = field(default=None, repr=False, compare=False)
    streaming: bool = field(init=False)

    def __post_init__(self) -> None:
        # computed once per node: a recursion from the top of a long chain would exhaust Python's stack
        object.__setattr__(self, "streaming", self._streams())

    def _streams(self) -> bool:
        return any(child.streaming for child in self.children)

    def walk(self, *ends: type[Node]) -> Iterator[Node]:
        """Yields this operator and all below it once, from the top down, without the queries in expressions.

        It does not yield what is below an operator of the classes `ends`.
        """
        seen: set[int] = set()
        waiting: list[Node] = [self]
        while waiting:
            node = waiting.pop()
            if id(node) not in seen:
                seen.add(id(node))
                yield node
                waiting += () if isinstance(node, ends) else reversed(node.children)


@dataclass(frozen=True, kw_only=True)
class Scan(Node):
    """The rows of a source, a seed or another input. `node_id` is None for inputs that the project does not declare (a
    catalog table, VALUES, `range(10)`). `newest_first` means that Spark reads the newest files of a backlog first.
    """

    node_id: str | None
    stream: bool
    newest_first: bool = False

    def _streams(self) -> bool:
        return self.stream


@dataclass(frozen=True, kw_only=True)
class View(Node):
    """The rows of another model. Its tree is the only child."""


@dataclass(frozen=True, kw_only=True)
class With(Node):
    """A query, the first child, and the trees of its CTEs, including those that it does not read.

    Spark's checks of the operators below another find a CTE here, below its WITH, and not below its references.
    """

    def _streams(self) -> bool:
        return self.children[0].streaming


@dataclass(frozen=True, kw_only=True)
class CteReference(Node):
    """The rows of a CTE. Its tree is the only child. Spark's checks of operators below another end here; see `With`."""


@dataclass(frozen=True, kw_only=True)
class Recursion(Node):
    """A CTE that reads itself: its first query, and the repeated query, in which the CTE is a `Scan`."""


@dataclass(frozen=True, kw_only=True)
class Projection(Node):
    """A select list over one child, or over none (`select 1`). `passes` means that the list is only `*`."""

    passes: bool = False


@dataclass(frozen=True)
class Hints:
    """Whether a condition can contain an equality (`may_equate`) or a bound (`may_bound`)."""

    may_equate: bool = False
    may_bound: bool = False


@dataclass(frozen=True)
class TimeCondition:
    """A part of a condition that reads an event time, the `column` with the watermark or one computed from it.

    `is_limit` means that the part may remove rows that are later than those that it keeps.
    """

    column: str
    where: Where
    is_limit: bool


@dataclass(frozen=True, kw_only=True)
class Filter(Node):
    """A WHERE or HAVING. `hints` describe its condition, which Spark can push into the joins below it.

    `times` are the parts, between ANDs, that read an event time. `has_others` means that there are other parts.
    """

    hints: Hints
    times: tuple[TimeCondition, ...] = ()
    has_others: bool = True


@dataclass(frozen=True, kw_only=True)
class EventTimeWatermark(Node):
    """A watermark on a column of the child, from a clause or from the source's `watermark:`."""

    event_time: EventTime
    column: str


@dataclass(frozen=True)
class WindowCall(Call):
    """A function with OVER: the texts of PARTITION BY and ORDER BY, and whether the first sort key is descending."""

    partition: tuple[str, ...]
    order: tuple[str, ...]
    descends: bool


@dataclass(frozen=True)
class Key:
    """A grouping key: its text, its output column and its place.

    `is_column` marks an unchanged column or a time window; Spark looks for the watermark only on those. `in_every_set`
    means that each grouping set contains the key. `part` is the expression to which a name or a position refers; None
    for the keys of DISTINCT and PIVOT, and if the text does not keep its trees.
    """

    text: str
    column: Column
    is_column: bool
    where: Where
    in_every_set: bool = True
    part: SqlPart | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, kw_only=True)
class Aggregate(Node):
    """GROUP BY or aggregate functions (`kind` is `group`), SELECT DISTINCT and UNION (`distinct`), or PIVOT (`pivot`).

    `session` means that a key is a session window.
    """

    keys: tuple[Key, ...]
    functions: tuple[Call, ...] = ()
    kind: str = "group"
    session: bool = False


@dataclass(frozen=True, kw_only=True)
class Join(Node):
    """A join of two children: `kind` is inner, left, right, full, left semi, left anti, cross or asof.

    `time_keys` are the columns with a watermark among the equality keys. `bounded` are the sides (`left`,
    `right`) whose rows Spark can drop by the other side's watermark, because a condition limits how old they are
    compared to the other side's event time. `has_equality` means that columns of both sides must be equal. Each is None
    if it is unknown. `names` are those of the relations before and after JOIN. `hints` describe the condition, and
    `clock` is the function of the current time in it, or empty. `times` are the parts of the condition of an inner or
    left semi join that read an event time of one side.
    """

    kind: str
    names: tuple[str, str]
    time_keys: tuple[Column, ...] | None
    bounded: frozenset[str] | None
    has_equality: bool | None
    hints: Hints = Hints()
    clock: str = ""
    times: tuple[TimeCondition, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SetOperation(Node):
    """UNION, EXCEPT (or MINUS) or INTERSECT of two children. `kind` is in lower case."""

    kind: str


@dataclass(frozen=True, kw_only=True)
class Sort(Node):
    """An ORDER BY of the whole query, or a SORT BY or CLUSTER BY."""


@dataclass(frozen=True, kw_only=True)
class Limit(Node):
    """A LIMIT, or an OFFSET (`is_offset`)."""

    is_offset: bool


@dataclass(frozen=True, kw_only=True)
class TableSample(Node):
    """A TABLESAMPLE."""


@dataclass(frozen=True, kw_only=True)
class WindowFunctions(Node):
    """Functions with OVER."""

    functions: tuple[WindowCall, ...]


@dataclass(frozen=True, kw_only=True)
class Generate(Node):
    """LATERAL VIEW, or a generator such as `explode` in a select list."""


@dataclass(frozen=True, kw_only=True)
class Expansion(Node):
    """UNPIVOT: several rows from the columns of each row."""


@dataclass(frozen=True, kw_only=True)
class LateralJoin(Generate):
    """A JOIN with LATERAL: `kind` is inner or left.

    `domain` are the columns of the child by which Spark first aggregates its rows, to join them with the rows of the
    subquery for each distinct value. It is empty if Spark needs no aggregation, and None if that is unknown.
    """

    kind: str
    domain: tuple[Column, ...] | None


@dataclass(frozen=True, kw_only=True)
class Deduplicate(Node):
    """The `deduplicate` of a model: one row for each combination of values of `keys`.

    `within` means that Spark can drop its state by a watermark; None if that is unknown.
    """

    keys: tuple[str, ...]
    within: bool | None


@dataclass(frozen=True, kw_only=True)
class Opaque(Node):
    """An operator that the flow does not follow, such as TRANSFORM. Its columns are unknown."""


def open_source(node: Node) -> str | None:
    """Returns the id of the source of all columns of `node`, if these are unknown columns of one source."""
    while node.columns is None and len(node.children) == 1 and _passes_all(node):
        node = node.children[0]
    return node.node_id if isinstance(node, Scan) and node.columns is None else None


def _passes_all(node: Node) -> bool:
    kinds = (View, CteReference, Filter, EventTimeWatermark, Sort, Limit, TableSample, Deduplicate)
    return isinstance(node, kinds) or (isinstance(node, Projection) and node.passes)


def kept_state(node: Node) -> str | None:
    """Returns what keeps state at an operator of a stream, None without state."""
    if isinstance(node, Aggregate) and node.streaming:
        return "aggregation"
    if isinstance(node, Deduplicate) and node.streaming:
        return "deduplication"
    if isinstance(node, Join) and all(child.streaming for child in node.children):
        return "join of streams"
    return None
