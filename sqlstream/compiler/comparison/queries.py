"""Reads the compiled SQL of a query and of the models that it reads as relations."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from sqlstream.compiler.comparison.blocks import check_parts, conjuncts, deduplicated, read_block
from sqlstream.compiler.comparison.expressions import ExpressionReader
from sqlstream.compiler.comparison.relations import Named, Relation, RelationMaker, Step, side
from sqlstream.compiler.comparison.terms import NotComparableError, Term, column
from sqlstream.compiler.flow.text import Text
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
        model = next((each for each in (name.lower(), _first(name).lower()) if each in self._models), None)
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


def _first(view: str) -> str:
    """Returns the name of a view whose second reference in a text has a number."""
    return re.sub(r"__\d+$", "", view)


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
