"""Reads the compiled SQL of a query and of the models that it reads as relations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from sqlglot import exp

from sqlstream.compiler.comparison.expressions import (
    WINDOWS,
    ExpressionReader,
    Kind,
    NotComparableError,
    Term,
    column,
    flattened,
)
from sqlstream.compiler.flow.text import Text, name_parts
from sqlstream.compiler.sql.intervals import IntervalError, length_text, parse_interval, parse_span
from sqlstream.compiler.sql.parse import ParsedSql, parse_text
from sqlstream.compiler.sql.tokens import SqlTokenError


@dataclass(frozen=True)
class InputTable:
    """A source or static table: its name in messages, its columns with their types, and its watermark as a column and
    a delay.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    streaming: bool
    watermark: tuple[str, str] | None = None


FindTable = Callable[[tuple[str, ...]], InputTable]
"""Returns the table at the end of a path of views, from the query down. Raises: NotComparableError if it is unknown."""

_Ctes = Mapping[str, "_Cte"]


@dataclass(frozen=True)
class _Cte:
    tree: exp.Expr
    visible: _Ctes


class QueryReader:
    """Reads the models of one query: their SQL and the columns by which they are deduplicated, by name."""

    def __init__(self, models: Mapping[str, str], keys: Mapping[str, tuple[str, ...]], find_table: FindTable) -> None:
        self._models = {name.lower(): sql for name, sql in models.items()}
        self._keys = {name.lower(): columns for name, columns in keys.items()}
        self._find_table = find_table
        self.maker = RelationMaker()

    def read(self, model: str) -> Relation:
        """Returns the rows of a model. Raises: NotComparableError; RecursionError if its SQL is nested too deeply."""
        return self._model(model.lower(), ())

    def _model(self, name: str, path: tuple[str, ...]) -> Relation:
        sql = self._models[name]
        if "\\" in sql:  # sqlglot does not read all escapes of strings as Spark does
            raise NotComparableError("a string with a backslash")
        text = Text(name, sql)
        try:
            parsed = parse_text(text.read)
        except SqlTokenError as error:
            raise NotComparableError(str(error)) from error
        if parsed.tree is None or parsed.stages:
            raise NotComparableError("sqlglot cannot read the SQL, or it has pipes")
        reader = _TextReader(self, text, parsed, path)
        rows = reader.query(parsed.tree, {})
        if reader.read_watermarks != set(parsed.watermarks):
            raise NotComparableError("a watermark in another place than after the name of a relation")
        return deduplicated(self.maker, rows, self._keys[name]) if name in self._keys else rows

    def view(self, name: str, path: tuple[str, ...]) -> Relation:
        """Returns the rows of a model, source or seed by the name of its view at the end of a path."""
        model = next(
            (each for each in (name.lower(), re.sub(r"__\d+$", "", name).lower()) if each in self._models), None
        )
        if model is not None and len(path) <= _LONGEST_PATH:
            return self._model(model, (*path, name))
        table = self._find_table((*path, name))
        number = self.maker.number()
        names = [column(table.name, each, number) for each, _ in table.columns]
        columns = tuple(Named(each, term) for (each, _), term in zip(table.columns, names, strict=True))
        types = {term.text: kind for term, (_, kind) in zip(names, table.columns, strict=True)}
        step = Step.SOURCE if table.streaming else Step.TABLE
        rows = Relation(step, number, columns, detail=table.name, streaming=table.streaming, types=types)
        return rows if table.watermark is None else self.watermarked(rows, *table.watermark)

    def watermarked(self, rows: Relation, name: str, delay: str) -> Relation:
        """Returns `rows` with a watermark on a column. Raises: NotComparableError."""
        time = rows.find([name.strip("`")]) if _NAME.fullmatch(name) else None
        try:
            parse_interval(delay)
            span = parse_span(delay)
        except IntervalError as error:
            raise NotComparableError(str(error)) from error
        if time is None or span.months or _DAYS.search(delay):  # Spark does not compare days with hours
            raise NotComparableError(f"the watermark of `{name}`")
        return self.maker.watermarked(rows, time, length_text(span.microseconds))


_NAME = re.compile(r"\w+|`[^`]+`")
_DAYS = re.compile(r"day|week", re.IGNORECASE)
_LONGEST_PATH = 100


class _TextReader:
    """Reads the queries in the text of one model, at the end of a path of views."""

    def __init__(self, outer: QueryReader, text: Text, parsed: ParsedSql, path: tuple[str, ...]) -> None:
        self._outer, self._text, self._parsed, self._path = outer, text, parsed, path
        self.read_watermarks: set[int] = set()

    def query(self, tree: exp.Expr, ctes: _Ctes) -> Relation:
        """Returns the rows of a query that sees `ctes`. Raises: NotComparableError."""
        if isinstance(tree, exp.Subquery):
            check_parts(tree, "this")
            return self.query(tree.this, ctes)
        if isinstance(tree, exp.Union):
            check_parts(tree, "this", "expression", "with_")
            if tree.args.get("distinct") is not False:
                raise NotComparableError("UNION without ALL")
            ctes = self._with(tree, ctes)
            return self._outer.maker.united(self.query(tree.this, ctes), self.query(tree.expression, ctes))
        if not isinstance(tree, exp.Select):
            raise NotComparableError(f"{type(tree).__name__} as a query")
        check_parts(tree, "expressions", "from_", "joins", "where", "group", "having", "distinct", "with_")
        ctes = self._with(tree, ctes)
        if tree.args.get("from_") is None:
            raise NotComparableError("a SELECT without FROM")
        rows = self._relation(tree.args["from_"].this, ctes)
        for join in tree.args.get("joins") or ():
            rows = self._join(rows, join, ctes)
        return read_block(self._outer.maker, self._text, tree, rows)

    def _with(self, tree: exp.Expr, ctes: _Ctes) -> _Ctes:
        found = tree.args.get("with_")
        if found is None:
            return ctes
        check_parts(found, "expressions")
        for cte in found.expressions:
            check_parts(cte, "this", "alias")
            check_parts(cte.args["alias"], "this")
            ctes = {**ctes, cte.alias.lower(): _Cte(cte.this, ctes)}
        return ctes

    def _relation(self, node: exp.Expr, ctes: _Ctes) -> Relation:
        """Returns the rows of a relation in FROM, with its watermark and its name."""
        check_parts(node, "this", "alias")
        alias = node.args.get("alias")
        if alias is not None:
            check_parts(alias, "this")
        place = alias.this if alias is not None else node.this
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            name = node.name
            cte = ctes.get(name.lower())
            rows = self.query(cte.tree, cte.visible) if cte else self._outer.view(name, self._path)
        elif isinstance(node, exp.Subquery):
            name = None
            rows = self.query(node.this, ctes)
        else:
            raise NotComparableError(f"`{self._text.written(node)}` in FROM")
        key = place.meta_get("start") if isinstance(place, exp.Identifier) else None
        clause = self._parsed.watermarks.get(key) if key is not None else None
        if clause is not None and key is not None:
            if clause.name is not None:
                raise NotComparableError("a watermark with a name")
            self.read_watermarks.add(key)
            rows = self._outer.watermarked(rows, clause.expression, clause.delay)
        return rows.qualified(name if alias is None else alias.name)

    def _join(self, left: Relation, node: exp.Join, ctes: _Ctes) -> Relation:
        check_parts(node, "this", "side", "kind", "on")
        kind = _KINDS.get(f"{node.args.get('side') or ''} {node.args.get('kind') or ''}".strip().upper())
        if kind is None or node.args.get("on") is None:
            raise NotComparableError(f"`{self._text.written(node)}`")
        maker = self._outer.maker
        right = self._relation(node.this, ctes)
        number = maker.number()
        sides = [side(rows, name, number) for rows, name in ((left, "left"), (right, "right"))]
        left, right = (replace(rows, columns=columns) for rows, columns in zip((left, right), sides, strict=True))
        scope = replace(left, columns=(*sides[0], *sides[1]))
        reader = ExpressionReader(self._text, lambda parts: _found(scope, parts))
        terms = tuple(conjuncts(node.args["on"], reader))
        return replace(maker.joined(kind, left, right, number), terms=terms)


_KINDS = {
    "": "inner",
    "INNER": "inner",
    "LEFT": "left",
    "LEFT OUTER": "left",
    "RIGHT": "right",
    "RIGHT OUTER": "right",
    "FULL": "full",
    "FULL OUTER": "full",
    "LEFT SEMI": "left semi",
    "SEMI": "left semi",
    "LEFT ANTI": "left anti",
    "ANTI": "left anti",
}


def _found(rows: Relation, parts: tuple[str, ...]) -> Term:
    term = rows.find(parts)
    if term is None:
        raise NotComparableError(f"`{'.'.join(parts)}` is unknown")
    return term


def check_parts(node: exp.Expr, *known: str) -> None:
    """Raises: NotComparableError if a clause has other parts than the known ones."""
    for name, value in node.args.items():
        if value and name not in known:
            raise NotComparableError(f"{type(node).__name__} with {name}")


def conjuncts(node: exp.Expr, reader: ExpressionReader) -> Iterator[Term]:
    """Yields the conditions that AND combines, in the order of the text."""
    if isinstance(node, exp.Paren):
        yield from conjuncts(node.this, reader)
    elif isinstance(node, exp.And):
        yield from conjuncts(node.this, reader)
        yield from conjuncts(node.expression, reader)
    else:
        yield from flattened(reader.read(node), "and")


def deduplicated(maker: RelationMaker, rows: Relation, keys: Sequence[str]) -> Relation:
    """Returns one row of those with the same keys, which are names of columns."""
    terms = [rows.find([key]) for key in keys]
    known = tuple(term for term in terms if term is not None)
    if len(known) != len(keys):
        raise NotComparableError("an unknown column in `deduplicate`")
    names = ", ".join(keys) if len(keys) > _IN_ORDER else ""  # Spark orders more keys by the hashes of their names
    return Relation(
        Step.DEDUPLICATION, maker.number(), rows.columns, (rows,), known, detail=names, streaming=rows.streaming
    )


_IN_ORDER = 4
"""The largest set of Scala that keeps the order of its elements (Dataset.dropDuplicates of Spark 4.3)."""


def read_block(maker: RelationMaker, text: Text, tree: exp.Select, rows: Relation) -> Relation:
    """Returns the rows that a SELECT returns, from the rows of its FROM. Raises: NotComparableError."""
    where, having, distinct = (tree.args.get(name) for name in ("where", "having", "distinct"))
    if where is not None:
        reader = ExpressionReader(text, _Names(rows).resolve)
        rows = maker.filtered(rows, list(conjuncts(where.this, reader)))
        _check_windows(reader, ())
    if distinct is not None:
        check_parts(distinct)
    is_grouped = tree.args.get("group") is not None or any(map(text.is_aggregate, tree.expressions))
    if is_grouped:
        found = _grouped(maker, text, tree, rows)
    elif having is None:
        reader = ExpressionReader(text, _Names(rows).resolve)
        columns = list(_columns(tree, rows, reader))
        _check_windows(reader, ())
        found = maker.selected(rows, columns, reader.columns)
    else:
        raise NotComparableError("HAVING without groups")
    if distinct is None:
        return found
    keys = tuple(each.term for each in found.columns)
    return Relation(Step.AGGREGATION, maker.number(), found.columns, (found,), keys, streaming=found.streaming)


class _Names:
    """Resolves names of columns: those of `rows`, and then those of the select list or of time windows."""

    def __init__(self, rows: Relation) -> None:
        self._rows = rows
        self.keys: Sequence[Term] = ()
        self.selected: Sequence[Named] = ()

    def is_alias(self, name: str) -> bool:
        """Returns whether no input column has this name, so it may be a select-list alias."""
        return self._rows.find([name]) is None

    def resolve(self, parts: tuple[str, ...]) -> Term:
        """Returns the term of a name. Raises: NotComparableError if it is unknown or can mean two columns."""
        found = self._rows.find(parts)
        windows = [key for key in self.keys if key.head == parts[0].lower() and key.head in WINDOWS]
        others = [each.term for each in self.selected if [each.name.lower()] == [part.lower() for part in parts]]
        terms = {term for term in (found, *others) if term is not None}
        if windows and found is None and len(windows) == 1:
            terms |= {_part(windows[0], parts[1:])}
        if len(terms) != 1:
            raise NotComparableError(f"`{'.'.join(parts)}` is unknown, or can mean several columns")
        return terms.pop()


def _part(window: Term, names: Sequence[str]) -> Term:
    for name in names:
        window = Term(f".{name.lower()}", (window,))
    return window


def _grouped(maker: RelationMaker, text: Text, tree: exp.Select, rows: Relation) -> Relation:
    number, names = maker.number(), _Names(rows)
    keys = tuple(_keys(text, tree, names))
    names.keys = keys
    reader = ExpressionReader(text, names.resolve, number)
    columns = list(_columns(tree, rows, reader))
    selected, names.selected = tuple(reader.calls), columns
    having = tree.args.get("having")
    conditions = list(conjuncts(having.this, reader)) if having is not None else []
    _check_windows(reader, keys)
    calls = tuple(dict.fromkeys(reader.calls))
    grouped = Relation(Step.AGGREGATION, number, (), (rows,), keys, calls, streaming=rows.streaming)
    return maker.selected(maker.filtered(grouped, conditions), columns, selected)


def _keys(text: Text, tree: exp.Select, names: _Names) -> Iterator[Term]:
    """Yields the keys of GROUP BY. A name is first that of a column, and then that of an item of the select list."""
    group = tree.args.get("group")
    if group is None:
        return
    check_parts(group, "expressions")
    items = tree.expressions
    aliases = {each.alias.lower(): each.this for each in items if isinstance(each, exp.Alias)}
    reader = ExpressionReader(text, names.resolve)
    for node in group.expressions:
        parts = name_parts(node)
        if isinstance(node, exp.Literal):
            number = int(node.name) if node.name.isdigit() and not node.is_string else 0
            if not 0 < number <= len(items) or any(each.is_star for each in items):
                raise NotComparableError(f"GROUP BY `{node.name}`")
            item = items[number - 1]
            yield reader.read(item.this if isinstance(item, exp.Alias) else item)
        elif len(parts) == 1 and names.is_alias(parts[0]) and parts[0].lower() in aliases:
            yield reader.read(aliases[parts[0].lower()])
        else:
            yield reader.read(node)


def _columns(tree: exp.Select, rows: Relation, reader: ExpressionReader) -> Iterator[Named]:
    """Yields the columns of a select list."""
    for index, item in enumerate(tree.expressions):
        if isinstance(item, exp.Star):
            check_parts(item)
            yield from _all(rows, None, reader)
        elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            check_parts(item, "this", "table")
            check_parts(item.this)
            yield from _all(rows, item.table, reader)
        elif isinstance(item, exp.Alias):
            check_parts(item, "this", "alias")
            yield Named(item.alias, reader.read(item.this))
        else:
            parts = name_parts(item)
            yield Named(parts[-1] if parts else f"?{index}", reader.read(item))


def _all(rows: Relation, qualifier: str | None, reader: ExpressionReader) -> Iterator[Named]:
    wanted = None if qualifier is None else qualifier.lower()
    found = [each for each in rows.columns if wanted in (None, (each.qualifier or "").lower())]
    if not found:
        raise NotComparableError("`*` without columns")
    reader.columns += [each.term for each in found]
    yield from (Named(each.name, each.term) for each in found)


def _check_windows(reader: ExpressionReader, keys: Sequence[Term]) -> None:
    """Raises: NotComparableError if a time window is not a key, so that Spark makes other rows of it."""
    if not set(reader.windows) <= set(keys):
        raise NotComparableError("a time window that is not a key")


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
