"""The operators of a query as a tree of frozen values, the way Spark's analyser would see them.

The tree of a model holds the trees of the models it reads, so it reaches from the sources to the sink. What cannot be
known without Spark is None, never a guess.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlstream.compiler.flow.columns import Column, EventTime, Where


@dataclass(frozen=True)
class Call:
    """A function in an expression: its name in lower case, whether it has DISTINCT, its text, and its place."""

    name: str
    distinct: bool
    text: str
    where: Where


@dataclass(frozen=True, kw_only=True)
class Node:
    """One operator. `columns` are those of its output, None where they are not known; `where` is its place.

    `streaming` says that its rows come from a stream. `subqueries` are the queries within its expressions. `row_ids`
    are the calls of functions in them that number rows, which no streaming query may have; those of a whole SELECT
    stand at one of its operators.
    """

    where: Where
    columns: tuple[Column, ...] | None
    children: tuple[Node, ...] = ()
    subqueries: tuple[Node, ...] = ()
    row_ids: tuple[Call, ...] = ()
    streaming: bool = field(init=False)

    def __post_init__(self) -> None:
        # found while the tree grows upwards: looked for from the top, a long chain would exhaust Python's stack
        object.__setattr__(self, "streaming", self._streams())

    def _streams(self) -> bool:
        return any(child.streaming for child in self.children)

    def walk(self, *ends: type[Node]) -> Iterator[Node]:
        """Gives this operator and all below it once each, from the top down, the queries in its expressions aside.

        What lies below an operator of one of the kinds `ends` is left out.
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
    """The rows of a source, a seed, or anything else that is read: `node_id` is None for what the project does not
    declare (a catalog's table, VALUES, `range(10)`). `newest_first` says that a backlog is read from its end.
    """

    node_id: str | None
    stream: bool
    newest_first: bool = False

    def _streams(self) -> bool:
        return self.stream


@dataclass(frozen=True, kw_only=True)
class View(Node):
    """The rows of another model, whose tree is the only child."""


@dataclass(frozen=True, kw_only=True)
class With(Node):
    """A query, the first child, and the trees of its CTEs, whether it reads them or not.

    Spark's checks of what lies below an operator find a CTE here, where WITH stands, and not where it is read.
    """

    def _streams(self) -> bool:
        return self.children[0].streaming


@dataclass(frozen=True, kw_only=True)
class CteReference(Node):
    """The rows of a CTE, whose tree is the only child. Spark's checks of what lies below an operator end here: what a
    query reads from its own WITH is not below it, but a query around both has it below. See `With`.
    """


@dataclass(frozen=True, kw_only=True)
class Recursion(Node):
    """A CTE that reads itself: its first query and the one that is repeated, in which it is a `Scan`."""


@dataclass(frozen=True, kw_only=True)
class Projection(Node):
    """A select list over one child, or over none (`select 1`). `passes` says that the list is a `*` alone."""

    passes: bool = False


@dataclass(frozen=True)
class Hints:
    """What a condition may hold: an equality (`may_equate`), or a bound (`may_bound`)."""

    may_equate: bool = False
    may_bound: bool = False


@dataclass(frozen=True, kw_only=True)
class Filter(Node):
    """A WHERE or HAVING. `hints` say what its condition may add to the joins below it, which Spark moves it into."""

    hints: Hints


@dataclass(frozen=True, kw_only=True)
class EventTimeWatermark(Node):
    """A watermark on a column of the child: by a clause, or by the source's `watermark:`."""

    event_time: EventTime
    column: str


@dataclass(frozen=True)
class WindowCall(Call):
    """A function with OVER: the texts of PARTITION BY and ORDER BY, and whether the first one of those descends."""

    partition: tuple[str, ...]
    order: tuple[str, ...]
    descends: bool


@dataclass(frozen=True)
class Key:
    """A grouping key: its text, the column that it gives, and its place.

    `is_column` says that it is a column as it is; Spark looks for the watermark only on those and on time windows.
    `in_every_set` says that no grouping set leaves it out.
    """

    text: str
    column: Column
    is_column: bool
    where: Where
    in_every_set: bool = True


@dataclass(frozen=True, kw_only=True)
class Aggregate(Node):
    """GROUP BY or aggregate functions (`kind` is `group`), SELECT DISTINCT and UNION (`distinct`), or PIVOT (`pivot`).

    `session` says that a key is a session window.
    """

    keys: tuple[Key, ...]
    functions: tuple[Call, ...] = ()
    kind: str = "group"
    session: bool = False


@dataclass(frozen=True, kw_only=True)
class Join(Node):
    """Two children joined: `kind` is inner, left, right, full, left semi, left anti, cross or asof.

    `time_in_keys` says that a column that carries a watermark is among those that must be equal. `bounded` are the
    sides, `left` and `right`, whose rows the other side's watermark lets go: a condition says how much older than the
    other side's event time theirs may be. `has_equality` says that the condition has columns of both sides equal. Each
    is None where that cannot be known. `names` are those of the relation before JOIN and of the one behind it. `hints`
    are of the condition, and `clock` is the function of the current time in it, empty for none.
    """

    kind: str
    names: tuple[str, str]
    time_in_keys: bool | None
    bounded: frozenset[str] | None
    has_equality: bool | None
    hints: Hints = Hints()
    clock: str = ""


@dataclass(frozen=True, kw_only=True)
class SetOperation(Node):
    """UNION, EXCEPT (also MINUS) or INTERSECT of two children; `kind` is in lower case."""

    kind: str


@dataclass(frozen=True, kw_only=True)
class Sort(Node):
    """An ORDER BY of the whole query, or a SORT BY or CLUSTER BY."""


@dataclass(frozen=True, kw_only=True)
class Limit(Node):
    """A LIMIT, or an OFFSET (`is_offset`)."""

    is_offset: bool


@dataclass(frozen=True, kw_only=True)
class Sample(Node):
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
    """Several rows made of the columns of each: UNPIVOT."""


@dataclass(frozen=True, kw_only=True)
class LateralJoin(Generate):
    """A JOIN with LATERAL: `kind` is inner or left.

    `domain` are the columns of the child by whose distinct values Spark aggregates its rows before it can join them
    with what the subquery gives for each value: none where it needs no such aggregation, None where it is not known.
    """

    kind: str
    domain: tuple[Column, ...] | None


@dataclass(frozen=True, kw_only=True)
class Deduplicate(Node):
    """What `deduplicate` makes of a model's rows: one for the values of each of the `keys`.

    `within` says that a watermark lets its state go; None where that is not known.
    """

    keys: tuple[str, ...]
    within: bool | None


@dataclass(frozen=True, kw_only=True)
class Opaque(Node):
    """What the flow does not follow, such as TRANSFORM. Its columns are unknown."""


def open_source(node: Node) -> str | None:
    """Returns the id of the source that all columns of `node` are of, where nothing is known of them but that."""
    while node.columns is None and len(node.children) == 1 and _passes_all(node):
        node = node.children[0]
    return node.node_id if isinstance(node, Scan) and node.columns is None else None


def _passes_all(node: Node) -> bool:
    kinds = (View, CteReference, Filter, EventTimeWatermark, Sort, Limit, Sample, Deduplicate)
    return isinstance(node, kinds) or (isinstance(node, Projection) and node.passes)
