"""Reads a query as relations, whose columns are terms over the columns of sources: from the operators of `flow/`, which
have resolved its names, CTEs, stars and groups.

`flow/` follows what it can, because its rules must not report what it cannot follow. Here each part of a query must be
known completely, so all else of sqlglot's tree and all other operators are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from itertools import chain

from sqlglot import exp

from sqlstream.compiler.comparison.expressions import ExpressionReader
from sqlstream.compiler.comparison.terms import Kind, NotComparableError, Term, column, flattened
from sqlstream.compiler.flow.columns import Column, Columns
from sqlstream.compiler.flow.expressions.column import WINDOWS
from sqlstream.compiler.flow.names import ResolvedName, Scope, ScopedRelation, UnresolvedName
from sqlstream.compiler.flow.nodes import (
    Aggregate,
    CteReference,
    Deduplicate,
    EventTimeWatermark,
    Filter,
    Join,
    Key,
    Node,
    Projection,
    Scan,
    SetOperation,
    View,
    With,
)
from sqlstream.compiler.flow.operators.builder import Builder
from sqlstream.compiler.flow.operators.from_clause import TooManyJoinsError
from sqlstream.compiler.flow.text import SqlPart, Text
from sqlstream.compiler.graph import MODEL
from sqlstream.compiler.sql.edits import Where
from sqlstream.compiler.sql.intervals import IntervalError, length_text, parse_interval, parse_span
from sqlstream.compiler.sql.sqlglot_tree import parse_text
from sqlstream.compiler.sql.tokens import SqlTokenError
from sqlstream.errors import Severity

FindTable = Callable[[tuple[str, ...]], Node]
"""Returns the rows of a source or static table at the end of a path of views, from the query down. The origins of its
columns have its name in messages and theirs. Raises: NotComparableError if it is unknown.
"""


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
class Relation:
    """One operation: the terms of its output columns in their order, and the relations from which it gets its rows.

    `number` is its number within a query, from 1. `terms` are its keys or conditions, in their order, and `calls` the
    aggregate functions of an aggregation, or the columns that a select list uses, in the order of the text. `detail` is
    the type of a join, the delay of a watermark, or the name of a table.
    """

    step: Step
    number: int
    columns: tuple[Term, ...]
    inputs: tuple[Relation, ...] = ()
    terms: tuple[Term, ...] = ()
    calls: tuple[Term, ...] = ()
    detail: str = ""
    types: Mapping[str, str] = field(default_factory=dict, compare=False)
    """The types of the columns of a source or table, by their terms as text."""

    @cached_property
    def streaming(self) -> bool:
        """Whether its rows come from a stream."""
        return self.step is Step.SOURCE or any(each.streaming for each in self.inputs)

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


_MOST_OPERATORS = 2_000
"""A CTE and a model are read once for each reference, so nested ones could take forever."""

_LONGEST_PATH = 100
_DAYS = re.compile(r"day|week", re.IGNORECASE)

_IN_ORDER = 4
"""The largest set of Scala that keeps the order of its elements (Dataset.dropDuplicates of Spark 4.3)."""

_JOINS = frozenset(
    {
        *("", "INNER", "LEFT", "LEFT OUTER", "RIGHT", "RIGHT OUTER", "FULL", "FULL OUTER"),
        *("SEMI", "LEFT SEMI", "ANTI", "LEFT ANTI"),
    }
)
"""The words before JOIN that are known."""


class QueryReader:
    """Reads the models of one query: their SQL and the columns by which they are deduplicated, by name."""

    def __init__(self, models: Mapping[str, str], keys: Mapping[str, tuple[str, ...]], find_table: FindTable) -> None:
        self._models = {name.lower(): sql for name, sql in models.items()}
        self._keys = {name.lower(): columns for name, columns in keys.items()}
        self._find_table = find_table
        self._count = 0

    def read(self, model: str) -> Relation:
        """Returns the rows of a model. Raises: NotComparableError; RecursionError if its SQL is nested too deeply."""
        return self._relation(self._tree(model.lower(), ()))

    def _number(self) -> int:
        self._count += 1
        if self._count > _MOST_OPERATORS:
            raise NotComparableError("the query is too large")
        return self._count

    def _tree(self, name: str, path: tuple[str, ...]) -> Node:
        """Returns the operators of a model at the end of a path of views: another path can lead to other tables."""
        self._number()
        sql = self._models[name]
        if "\\" in sql:  # sqlglot does not read all escapes of strings as Spark does
            raise NotComparableError("a string with a backslash")
        text = Text(f"{MODEL}..{name}", sql, keeps_trees=True)
        try:
            parsed = parse_text(text.read)
        except SqlTokenError as error:
            raise NotComparableError(str(error)) from error
        if parsed.tree is None or parsed.stages:
            raise NotComparableError("sqlglot cannot read the SQL, or it has pipes")
        _check_clauses(parsed.tree)
        builder = Builder(text, parsed)
        try:
            tree = builder.build(self._views(text, path))
        except TooManyJoinsError as error:
            raise NotComparableError("too many joins") from error
        if any(problem.severity is Severity.ERROR for problem in builder.problems):
            raise NotComparableError("SQL that Spark refuses")
        placed = {each.where for each in tree.walk(View) if isinstance(each, EventTimeWatermark)}
        if not placed >= {Where(text.model, clause.start) for clause in parsed.watermarks.values()}:
            raise NotComparableError("a watermark in another place than after a relation")
        if name not in self._keys:
            return tree
        keys = self._keys[name]
        return Deduplicate(where=tree.where, columns=tree.columns, children=(tree,), keys=keys, within=None)

    def _views(self, text: Text, path: tuple[str, ...]) -> Mapping[str, Node]:
        """Returns the relations that a text can read. Others have unknown columns, so a query over them is refused."""
        found: dict[str, Node] = {}
        for relation in text.read.relations:
            if relation.name is not None and relation.name.lower() not in found:
                with suppress(NotComparableError):  # it may also be the name of a CTE
                    found[relation.name.lower()] = self._view(relation.name, path)
        return found

    def _view(self, name: str, path: tuple[str, ...]) -> Node:
        """Returns the rows of a model, source or seed by the name of its view at the end of a path."""
        names = (name.lower(), re.sub(r"__\d+$", "", name).lower())  # a further reference of a view has a number
        model = next((each for each in names if each in self._models), None)
        if model is None or len(path) > _LONGEST_PATH:
            return self._find_table((*path, name))
        tree = self._tree(model, (*path, name))
        return View(where=tree.where, columns=tree.columns, children=(tree,))

    def _relation(self, node: Node) -> Relation:
        """Returns the relation of an operator, with a term for each of its columns. Raises: NotComparableError."""
        reader = self._readers.get(type(node))
        if reader is None:
            raise NotComparableError(type(node).__name__)
        found = reader(self, node, self._number())
        if node.columns is None or len(node.columns) != len(found.columns):
            raise NotComparableError(f"{type(node).__name__} with unknown columns")
        return found

    def _same(self, node: Node, _number: int) -> Relation:
        return self._relation(node.children[0])

    def _scan(self, node: Scan, number: int) -> Relation:
        columns = [(column(*origin, number), each.type) for each in node.columns or () for origin in each.origins]
        types = {term.text: str(kind) for term, kind in columns}
        step, terms = Step.SOURCE if node.stream else Step.TABLE, tuple(term for term, _ in columns)
        return Relation(step, number, terms, detail=node.node_id or "", types=types)

    def _watermark(self, node: EventTimeWatermark, number: int) -> Relation:
        rows, delay = self._relation(node.children[0]), node.event_time.delay
        marks = [each.event_time is node.event_time for each in node.columns or ()]
        times = tuple(term for term, is_time in zip(rows.columns, marks, strict=False) if is_time)
        try:
            parse_interval(delay)
            span = parse_span(delay)
        except IntervalError as error:
            raise NotComparableError(str(error)) from error
        if len(times) != 1 or span.months or _DAYS.search(delay):  # Spark does not compare days with hours
            raise NotComparableError(f"the watermark of `{node.column}`")
        return Relation(Step.WATERMARK, number, rows.columns, (rows,), times, detail=length_text(span.microseconds))

    def _filter(self, node: Filter, number: int) -> Relation:
        (child,), part = node.children, _part(node)
        if isinstance(child, Aggregate) and isinstance(part.tree, exp.Having):
            return self._grouped(child, number, part.tree)
        rows = self._relation(child)
        reader = ExpressionReader(part.text, _Names(part.scope, rows.columns).resolve)
        conditions = tuple(conjuncts(part.tree.this, reader))
        _check_windows(reader, ())
        return Relation(Step.FILTER, number, rows.columns, (rows,), conditions)

    def _projection(self, node: Projection, number: int) -> Relation:
        if not node.children:
            raise NotComparableError("a SELECT without FROM")
        part, rows = _part(node), self._relation(node.children[0])
        names = _Names(part.scope, rows.columns)
        reader = ExpressionReader(part.text, names.resolve)
        columns = tuple(_selected(part, names, reader))
        _check_windows(reader, ())
        return Relation(Step.SELECT, number, columns, (rows,), calls=tuple(reader.columns))

    def _aggregate(self, node: Aggregate, number: int) -> Relation:
        if node.kind == "group":
            return self._grouped(node, number)
        if node.kind != "distinct":
            raise NotComparableError(node.kind)
        rows = self._relation(node.children[0])
        return Relation(Step.AGGREGATION, number, rows.columns, (rows,), _different(rows.columns))

    def _grouped(self, node: Aggregate, number: int, having: exp.Having | None = None) -> Relation:
        """Returns the groups, with the conditions of HAVING and the select list above them."""
        part, rows = _part(node), self._relation(node.children[0])
        names = _Names(part.scope, rows.columns)
        reader = ExpressionReader(part.text, names.resolve)
        names.keys = keys = _different(reader.read(_part(key).tree) for key in node.keys)
        # keys cannot have aggregate functions, unlike the select list and HAVING
        reader = ExpressionReader(part.text, names.resolve, number)
        columns = tuple(_selected(part, names, reader))
        # HAVING can use the names of the select list
        selected, names.selected = tuple(reader.calls), list(zip(node.columns or (), columns, strict=False))
        if not keys and not selected:
            raise NotComparableError("HAVING without groups")
        conditions = () if having is None else tuple(conjuncts(having.this, reader))
        _check_windows(reader, keys)
        groups = Relation(Step.AGGREGATION, number, (), (rows,), keys, tuple(dict.fromkeys(reader.calls)))
        if conditions:
            groups = Relation(Step.FILTER, number, (), (groups,), conditions)
        return Relation(Step.SELECT, number, columns, (groups,), calls=selected)

    def _join(self, node: Join, number: int) -> Relation:
        part, inputs = _part(node), [self._relation(each) for each in node.children]
        words = f"{part.tree.args.get('side') or ''} {part.tree.args.get('kind') or ''}".strip().upper()
        condition = part.tree.args.get("on")
        if words not in _JOINS or condition is None:
            raise NotComparableError(f"`{part.text.written(part.tree)}`")
        left, right = (
            replace(rows, columns=_numbered(Term(name, (term,), Kind.SIDE, number) for term in rows.columns))
            for rows, name in zip(inputs, ("left", "right"), strict=True)
        )
        both = (*left.columns, *right.columns)
        terms = tuple(conjuncts(condition, ExpressionReader(part.text, _Names(part.scope, both).resolve)))
        columns = left.columns if node.kind in ("left semi", "left anti") else both
        return Relation(Step.JOIN, number, columns, (left, right), terms, detail=node.kind)

    def _union(self, node: SetOperation, number: int) -> Relation:
        first, second = (self._relation(each) for each in node.children)
        if node.kind != "union" or len(first.columns) != len(second.columns):
            raise NotComparableError(f"{node.kind} of {len(first.columns)} and {len(second.columns)} columns")
        pairs = zip(first.columns, second.columns, strict=True)
        columns = _numbered(Term("union", pair, Kind.BRANCHES, number) for pair in pairs)
        return Relation(Step.UNION, number, columns, (first, second))

    def _deduplicate(self, node: Deduplicate, number: int) -> Relation:
        rows = self._relation(node.children[0])
        names = _Names(Scope((ScopedRelation(None, node.columns),)), rows.columns)
        terms = _different(names.resolve((key,)) for key in node.keys)
        ordered = ", ".join(node.keys) if len(node.keys) > _IN_ORDER else ""  # Spark orders more by their names' hashes
        return Relation(Step.DEDUPLICATION, number, rows.columns, (rows,), terms, detail=ordered)

    _readers: Mapping[type[Node], Callable[..., Relation]] = {
        **dict.fromkeys((View, With, CteReference), _same),
        Scan: _scan,
        EventTimeWatermark: _watermark,
        Filter: _filter,
        Projection: _projection,
        Aggregate: _aggregate,
        Join: _join,
        SetOperation: _union,
        Deduplicate: _deduplicate,
    }


_KNOWN: Mapping[type[exp.Expr], frozenset[str]] = {
    exp.Select: frozenset({"expressions", "from_", "joins", "where", "group", "having", "distinct", "with_"}),
    exp.Union: frozenset({"this", "expression", "with_", "distinct"}),
    exp.Subquery: frozenset({"this", "alias"}),
    exp.Table: frozenset({"this", "alias"}),
    exp.TableAlias: frozenset({"this", "columns"}),
    exp.Join: frozenset({"this", "side", "kind", "on"}),
    exp.With: frozenset({"expressions"}),
    exp.CTE: frozenset({"this", "alias"}),
    exp.Group: frozenset({"expressions", "all"}),
    exp.Column: frozenset({"this", "table"}),
    exp.Alias: frozenset({"this", "alias"}),
    **dict.fromkeys((exp.Distinct, exp.Star, exp.Tuple, exp.Rollup, exp.Cube, exp.GroupingSets), frozenset[str]()),
}
"""The parts of clauses of which the operators show all. Of a tuple in GROUP BY they show only its items."""


def _check_clauses(tree: exp.Expr) -> None:
    """Raises: NotComparableError if a clause has other parts than the known ones."""
    for node in tree.walk():
        known = _KNOWN.get(type(node))
        for name, value in node.args.items() if known is not None else ():
            if value and name not in (known or ()):
                raise NotComparableError(f"{type(node).__name__} with {name}")


def _part(of: Node | Key) -> SqlPart:
    if of.part is None:
        raise NotComparableError("an operator without expressions")
    return of.part


class _Names:
    """Resolves names: those of the columns in `scope`, which have the `terms`, and then those of time windows in `keys`
    and of the `selected` columns.
    """

    def __init__(self, scope: Scope, terms: Sequence[Term]) -> None:
        relations = scope.relations
        if relations and relations[-1].name is None and len(_columns_of(relations)) > len(terms):
            relations = relations[:-1]  # the time windows that GROUP BY adds
        found = _columns_of(relations)
        if len(found) != len(terms) or any(each.columns is None for each in relations):
            raise NotComparableError("unknown columns")
        self._scope, self._terms = Scope(relations), list(zip(found, terms, strict=True))
        self.keys: Sequence[Term] = ()
        self.selected: Sequence[tuple[Column, Term]] = ()

    def resolve(self, parts: tuple[str, ...]) -> Term:
        """Returns the term of a name. Raises: NotComparableError if it is unknown or can mean two columns."""
        found = self._scope.resolve(parts)
        windows = [key for key in self.keys if key.head == parts[0].lower() and key.head in WINDOWS]
        terms = {
            term
            for each, term in self.selected
            if not each.is_generated and [each.name.lower()] == [part.lower() for part in parts]
        }
        if isinstance(found, ResolvedName):
            terms |= self._meant(found)
        elif not isinstance(found, UnresolvedName):
            terms = set()
        elif len(windows) == 1:
            window = windows[0]
            for name in parts[1:]:
                window = Term(f".{name.lower()}", (window,))
            terms.add(window)
        if len(terms) != 1:
            raise NotComparableError(f"`{'.'.join(parts)}` is unknown, or can mean several columns")
        return terms.pop()

    def _meant(self, found: ResolvedName) -> set[Term]:
        """Returns the terms of all columns of the relation that have the name."""
        if found.fields:  # the column can be a map, whose keys have letter case, and a name can contain dots
            raise NotComparableError("a field of a column")
        if found.column.is_generated:
            raise NotComparableError("a column whose name Spark generates")
        relations = (each for each in self._scope.relations if any(found.column is own for own in each.columns or ()))
        same = {id(own) for each in relations for own in each.columns or () if _same_name(own, found.column)}
        return {term for each, term in self._terms if id(each) in same}

    def star(self, qualifier: str | None) -> list[Term]:
        """Returns the terms of `*`, or of `t.*`."""
        wanted = {id(each) for each in self._scope.star(qualifier) or ()}
        found = [term for each, term in self._terms if id(each) in wanted]
        if not found:
            raise NotComparableError("`*` without columns")
        return found


def _same_name(one: Column, other: Column) -> bool:
    return one.name.lower() == other.name.lower()


def _columns_of(relations: Iterable[ScopedRelation]) -> Columns:
    return tuple(chain.from_iterable(each.columns or () for each in relations))


def _selected(part: SqlPart, names: _Names, reader: ExpressionReader) -> Iterator[Term]:
    """Yields the columns of a select list."""
    for item in part.tree.expressions:
        if item.is_star:
            found = names.star(item.args["table"].name.lower() if item.args.get("table") else None)
            reader.columns += found
            yield from found
        else:
            yield reader.read(item.unalias())


def _different(keys: Iterable[Term]) -> tuple[Term, ...]:
    """Returns the keys. Raises: NotComparableError if two are the same: Spark removes a repeated key, but keeps both
    columns of `select k as a, k as b`.
    """
    found = tuple(keys)
    if len(set(found)) < len(found):
        raise NotComparableError("a repeated key")
    return found


def _check_windows(reader: ExpressionReader, keys: Sequence[Term]) -> None:
    """Raises: NotComparableError if a time window is not a key, so that Spark makes other rows of it."""
    if not set(reader.windows) <= set(keys):
        raise NotComparableError("a time window that is not a key")


def conjuncts(node: exp.Expr, reader: ExpressionReader) -> Iterator[Term]:
    """Yields the conditions that AND combines, in the order of the text."""
    if isinstance(node, exp.Paren):
        yield from conjuncts(node.this, reader)
    elif isinstance(node, exp.And):
        yield from conjuncts(node.this, reader)
        yield from conjuncts(node.expression, reader)
    else:
        yield from flattened(reader.read(node), "and")


def _numbered(terms: Iterable[Term]) -> tuple[Term, ...]:
    """Returns different terms: Spark stores two columns although they have the same values."""
    found: list[Term] = []
    counts: dict[Term, int] = {}
    for term in terms:
        count = counts[term] = counts.get(term, 0) + 1
        found.append(replace(term, head=f"{term.head} {count}") if count > 1 else term)
    return tuple(found)
