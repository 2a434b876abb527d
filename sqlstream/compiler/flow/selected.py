"""The select list: one column for each item, several for a star or a generator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from sqlstream.compiler.flow.expressions import Expressions, function_name, parts_of, type_of_field
from sqlstream.compiler.flow.nodes import Column
from sqlstream.compiler.flow.scope import Resolved, Scope, Visible
from sqlstream.compiler.flow.spark_functions import GENERATORS
from sqlstream.project.types import Struct


@dataclass(frozen=True)
class Selected:
    """The select list of `select`, read in `scope`."""

    select: exp.Select
    scope: Scope
    expressions: Expressions

    def columns(self) -> tuple[Column, ...] | None:
        """Returns the columns, None where a star or a generator stands for unknown ones."""
        found: list[Column] | None = []
        scope = self.scope
        for item in self.select.expressions:
            columns = self._item(item, scope)
            found = None if found is None or columns is None else [*found, *columns]
            if isinstance(item, exp.Alias) and columns is not None and len(columns) == 1:
                aliases = {item.alias.lower(): columns[0], **scope.aliases}
                scope = replace(scope, aliases=aliases)
        return None if found is None else tuple(found)

    def _item(self, item: exp.Expr, scope: Scope) -> tuple[Column, ...] | None:
        if isinstance(item, exp.Star):
            return self._star(item, scope.relations, None)
        if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            return self._qualified_star(item, scope)
        self.expressions.check(item, scope)
        inner = item.unalias()
        inner = inner.this if isinstance(inner, exp.Aliases) else inner
        if function_name(inner, self.expressions.text) in GENERATORS:
            return self.expressions.generated(inner, scope, list(_alias_names(item)))
        return (self.expressions.column(item, scope),)

    def _star(self, star: exp.Expr, relations: tuple[Visible, ...], fields: Struct | None) -> tuple[Column, ...] | None:
        if fields is not None:
            relations = (Visible(None, tuple(Column(field.name, field.type) for field in fields.fields)),)
        dropped, changed = self._excluded(star, Scope(relations))
        found: list[Column] = []
        for relation in relations:
            if relation.columns is None:
                return None
            found += [c for c in relation.columns if c.name.lower() not in relation.merged | dropped]
        return tuple(replace(c, type=None) if c.name.lower() in changed else c for c in found)

    def _excluded(self, star: exp.Expr, scope: Scope) -> tuple[set[str], set[str]]:
        """The columns that EXCEPT leaves out, and those of which it leaves out a field, in lower case."""
        dropped: set[str] = set()
        changed: set[str] = set()
        for part in star.args.get("except_") or ():
            self.expressions.check(part, scope)
            found = scope.resolve(parts_of(part))
            if isinstance(found, Resolved):
                (changed if found.fields else dropped).add(found.column.name.lower())
        return dropped, changed

    def _qualified_star(self, item: exp.Column, scope: Scope) -> tuple[Column, ...] | None:
        """`t.*` and `struct.*`."""
        parts = tuple(part.name for part in item.parts[:-1])
        named = tuple(r for r in scope.relations if r.name is not None and (r.name.lower(),) == (parts[-1].lower(),))
        if named and len(parts) == 1:
            return self._star(item.this, tuple(replace(r, merged=frozenset()) for r in named), None)
        found = scope.resolve(parts)
        if not isinstance(found, Resolved):
            return None
        kind = type_of_field(found)
        columns = self._star(item.this, (), kind) if isinstance(kind, Struct) else None
        if columns is None:
            return None
        source = found.column
        return tuple(
            replace(item, origins=source.origins, holds_time=source.holds_time, may_carry=source.holds_time)
            for item in columns
        )


def _alias_names(item: exp.Expr) -> Iterator[str]:
    if isinstance(item, exp.Aliases):
        yield from (part.name for part in item.expressions[0:] if isinstance(part, exp.Identifier))
    elif isinstance(item, exp.Alias):
        yield item.alias
