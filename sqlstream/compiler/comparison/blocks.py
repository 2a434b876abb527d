"""Reads the clauses of one SELECT after FROM: filters, groups, and the columns that it returns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from sqlstream.compiler.comparison.expressions import WINDOWS, ExpressionReader
from sqlstream.compiler.comparison.relations import Named, Relation, RelationMaker, Step
from sqlstream.compiler.comparison.terms import NotComparableError, Term, flattened
from sqlstream.compiler.flow.text import Text, name_parts


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
