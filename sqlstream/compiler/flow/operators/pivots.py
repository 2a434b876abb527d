"""PIVOT and UNPIVOT as operators: aggregations, and an expansion of each row to several."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sqlglot import exp

from sqlstream.compiler.flow.columns import Column, Columns, LostWatermark
from sqlstream.compiler.flow.expressions.column import Expressions
from sqlstream.compiler.flow.functions import AGGREGATES
from sqlstream.compiler.flow.names import ResolvedName, Scope
from sqlstream.compiler.flow.nodes import Aggregate, Expansion, Key, Node, Opaque
from sqlstream.compiler.flow.type_rules import RANKS, STRING, common_type_of, kind

_IN_ONE_ROW = frozenset({*RANKS, "boolean", "decimal"})
"""The types of aggregates that Spark computes for each value of the pivot column and then combines in one row
(`PivotFirst.supportsDataType` of Spark 4.3). For other types it aggregates once, with a condition for each value.
"""


@dataclass(frozen=True)
class Pivots:
    """Reads the PIVOT or UNPIVOT over the relation in `scope`."""

    expressions: Expressions
    scope: Scope

    def over(self, rows: Node, pivot: exp.Pivot) -> Node:
        """Returns the operators of `pivot` over `rows`."""
        where = self.expressions.text.where(pivot)
        fields: list[exp.Expr] = pivot.args.get("fields") or []
        if len(fields) != 1 or not isinstance(fields[0], exp.In) or not pivot.expressions:
            return Opaque(where=where, columns=None, children=(rows,))
        if pivot.args.get("unpivot"):
            return self._unpivoted(rows, pivot, fields[0])
        return self._pivoted(rows, pivot, fields[0])

    def _pivoted(self, rows: Node, pivot: exp.Pivot, values: exp.In) -> Node:
        where = self.expressions.text.where(pivot)
        by = _parts(values.this)
        for part in (*pivot.expressions, *by):
            self.expressions.check(part, self.scope)
        used = self._named((*pivot.expressions, *by))
        groups = None if rows.columns is None else tuple(c for c in rows.columns if c.name.lower() not in used)
        keys = tuple(Key(column.name, column, True, where) for column in groups or ())
        functions = tuple(call for item in pivot.expressions for call in self.expressions.calls(item, AGGREGATES))
        made = [self.expressions.column(item, self.scope, item.alias or "") for item in pivot.expressions]
        columns = _pivot_columns(groups, made, values.expressions)
        if all(kind(column.type) in _IN_ONE_ROW for column in made):
            rows = self._by_value(rows, Aggregate(where=where, columns=groups, keys=keys, functions=functions), by)
            functions = ()  # the lower aggregation computes them
        return Aggregate(where=where, columns=columns, children=(rows,), keys=keys, functions=functions, kind="pivot")

    def _by_value(self, rows: Node, groups: Aggregate, by: list[exp.Expr]) -> Aggregate:
        """Returns the first of two aggregations, whose keys include the pivot columns."""
        columns = [self.expressions.column(part, self.scope) for part in by]
        texts = map(self.expressions.text.written, by)
        # Spark combines several pivot columns in a struct, which is not an unchanged column
        keys = (Key(text, c, len(by) == 1, groups.where) for text, c in zip(texts, columns, strict=True))
        given = None if groups.columns is None else (*groups.columns, *columns)
        return replace(groups, columns=given, children=(rows,), keys=(*groups.keys, *keys), kind="pivot")

    def _unpivoted(self, rows: Node, pivot: exp.Pivot, values: exp.In) -> Node:
        where = self.expressions.text.where(pivot)
        names = [part.name for part in _parts(pivot.expressions[0])]
        sets = [_parts(item.this if isinstance(item, exp.PivotAlias) else item) for item in values.expressions]
        for part in (part for parts in sets for part in parts):
            self.expressions.check(part, self.scope)
        if rows.columns is None or any(len(parts) != len(names) for parts in sets):
            return Expansion(where=where, columns=None, children=(rows,))
        used = self._named(part for parts in sets for part in parts)
        kept = tuple(column for column in rows.columns if column.name.lower() not in used)
        made = (self._value(name, [parts[place] for parts in sets]) for place, name in enumerate(names))
        columns = (*kept, Column(values.this.name, STRING), *made)
        return Expansion(where=where, columns=columns, children=(rows,))

    def _value(self, name: str, parts: list[exp.Expr]) -> Column:
        """Returns a column with the values of several columns, without their watermarks."""
        columns = [self.expressions.column(part, self.scope) for part in parts]
        time = next((column for column in columns if column.event_time), None)
        lost = LostWatermark(self.expressions.text.where(parts[0]), "UNPIVOT", time.name) if time is not None else None
        origins = frozenset(origin for column in columns for origin in column.origins)
        return Column(name, common_type_of(column.type for column in columns), lost=lost, origins=origins)

    def _named(self, parts: Iterable[exp.Expr]) -> set[str]:
        """Returns the names of the columns that expressions read, in lower case."""
        names = (name for part in parts for name, _ in self.expressions.text.parts_of(part).names)
        found = map(self.scope.resolve, names)
        return {item.column.name.lower() for item in found if isinstance(item, ResolvedName)}


def _parts(item: exp.Expr) -> list[exp.Expr]:
    return list(item.expressions) if isinstance(item, exp.Tuple) else [item]


def _pivot_columns(groups: Columns | None, made: list[Column], values: list[exp.Expr]) -> Columns | None:
    """Returns the grouping columns, and one for each value and aggregate; None if a name is unknown."""
    if groups is None:
        return None
    columns = list(groups)
    for value in values:
        plain = (
            value.alias if isinstance(value, exp.PivotAlias) else value.name if isinstance(value, exp.Literal) else ""
        )
        if not plain or (len(made) > 1 and not all(column.name for column in made)):
            return None  # Spark generates a name from the value or the aggregate
        for column in made:
            name = f"{plain}_{column.name}" if len(made) > 1 else plain
            columns.append(Column(name, column.type, origins=column.origins))
    return tuple(columns)
