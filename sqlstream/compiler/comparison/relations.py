"""The relations of a query: what becomes of the rows of its sources, one operation after another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from sqlstream.compiler.comparison.terms import Kind, NotComparableError, Term


class Step(StrEnum):
    """The kind of a relation."""

    SOURCE = "source"
    TABLE = "static table"
    SELECT = "select"
    FILTER = "where"
    WATERMARK = "watermark"
    AGGREGATION = "aggregation"
    DEDUPLICATION = "deduplication"
    JOIN = "join"
    UNION = "union"


@dataclass(frozen=True)
class Named:
    """A column of a relation: its name, its term, and the relation's names with which it can be qualified."""

    name: str
    term: Term
    qualifier: str | None = None


@dataclass(frozen=True)
class Relation:
    """One operation: its output columns in their order, and the relations from which it gets its rows.

    `number` is its number within a query, from 1. `terms` are its keys or conditions, in their order, and `calls` the
    aggregate functions of an aggregation, or the columns that a select list uses, in the order of the text. `detail` is
    the type of a join, the delay of a watermark, or the name of a table.
    """

    step: Step
    number: int
    columns: tuple[Named, ...]
    inputs: tuple[Relation, ...] = ()
    terms: tuple[Term, ...] = ()
    calls: tuple[Term, ...] = ()
    detail: str = ""
    streaming: bool = True
    types: Mapping[str, str] = field(default_factory=dict, compare=False)
    """The types of the columns of a source or table, by their terms as text."""

    @property
    def keeps_state(self) -> bool:
        """Whether Spark keeps state for the operation."""
        if self.step is Step.JOIN:
            return all(each.streaming for each in self.inputs)
        return self.streaming and self.step in (Step.AGGREGATION, Step.DEDUPLICATION)

    def walk(self) -> Iterator[Relation]:
        """Yields the relation and all relations below it."""
        yield self
        for each in self.inputs:
            yield from each.walk()

    def find(self, parts: Sequence[str]) -> Term | None:
        """Returns the column with a name of one or more parts, None without one. Raises: NotComparableError if several
        have the name.
        """
        names = [part.lower() for part in parts]
        if len(names) > 1:
            found = self._named(names[1], names[0])
            if found is not None:
                return _field(found, names[2:])
        found = self._named(names[0], None)
        return None if found is None else _field(found, names[1:])

    def _named(self, name: str, qualifier: str | None) -> Term | None:
        found = [
            each.term
            for each in self.columns
            if each.name.lower() == name and qualifier in (None, (each.qualifier or "").lower())
        ]
        if len(found) > 1:
            raise NotComparableError(f"several columns have the name `{name}`")
        return found[0] if found else None

    def qualified(self, name: str | None) -> Relation:
        """Returns the relation with another name in front of its columns."""
        return replace(self, columns=tuple(replace(each, qualifier=name) for each in self.columns))


def _field(term: Term, names: Sequence[str]) -> Term:
    """Returns a field of a column. Raises: NotComparableError, because the column can be a map, whose keys have letter
    case, and a name can contain dots.
    """
    if names:
        raise NotComparableError("a field of a column")
    return term


class RelationMaker:
    """Makes the relations of one query."""

    def __init__(self) -> None:
        self._count = 0

    def number(self) -> int:
        """Returns the number of the next relation. Raises: NotComparableError for very large queries."""
        self._count += 1
        if self._count > _MOST_RELATIONS:
            raise NotComparableError("the query is too large")
        return self._count

    def filtered(self, rows: Relation, conditions: Sequence[Term]) -> Relation:
        """Returns the rows for which all conditions hold."""
        if not conditions:
            return rows
        return Relation(Step.FILTER, self.number(), rows.columns, (rows,), tuple(conditions), streaming=rows.streaming)

    def selected(self, rows: Relation, columns: Sequence[Named], used: Sequence[Term] = ()) -> Relation:
        """Returns the rows with other columns. `used` are the terms in them, in the order of the text."""
        return Relation(
            Step.SELECT, self.number(), tuple(columns), (rows,), calls=tuple(used), streaming=rows.streaming
        )

    def watermarked(self, rows: Relation, time: Term, delay: str) -> Relation:
        """Returns the rows with a watermark."""
        return Relation(
            Step.WATERMARK, self.number(), rows.columns, (rows,), (time,), detail=delay, streaming=rows.streaming
        )

    def joined(self, kind: str, left: Relation, right: Relation, number: int) -> Relation:
        """Returns the join of `sides`, without its condition."""
        columns = left.columns if kind in ("left semi", "left anti") else (*left.columns, *right.columns)
        streaming = left.streaming or right.streaming
        return Relation(Step.JOIN, number, columns, (left, right), detail=kind, streaming=streaming)

    def united(self, first: Relation, second: Relation) -> Relation:
        """Returns the rows of both relations, with the names of the first one."""
        if len(first.columns) != len(second.columns):
            raise NotComparableError("a union of different numbers of columns")
        number = self.number()
        pairs = zip(first.columns, second.columns, strict=True)
        columns = numbered(
            Named(one.name, Term("union", (one.term, other.term), Kind.BRANCHES, number)) for one, other in pairs
        )
        return Relation(Step.UNION, number, columns, (first, second), streaming=first.streaming or second.streaming)


_MOST_RELATIONS = 1_000
"""A CTE is read once for each reference, so nested ones could take forever."""


def side(rows: Relation, name: str, number: int) -> tuple[Named, ...]:
    """Returns the columns of one side of the join with a number."""
    return numbered(replace(each, term=Term(name, (each.term,), Kind.SIDE, number)) for each in rows.columns)


def numbered(columns: Iterator[Named]) -> tuple[Named, ...]:
    """Returns columns with different terms: Spark stores two columns although they have the same values."""
    found: list[Named] = []
    counts: dict[Term, int] = {}
    for each in columns:
        count = counts[each.term] = counts.get(each.term, 0) + 1
        term = replace(each.term, head=f"{each.term.head} {count}") if count > 1 else each.term
        found.append(replace(each, term=term))
    return tuple(found)
