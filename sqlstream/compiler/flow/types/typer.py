"""Finds the type of an expression by the rule for its node or for the function that it calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from sqlstream.compiler.flow.functions.known import FUNCTIONS
from sqlstream.compiler.flow.functions.without_place import WITHOUT_PLACE
from sqlstream.project.types.types import DataType, Unknown

ColumnType = Callable[[exp.Expr], DataType | None]
Known = dict[int, tuple[DataType | None, exp.Expr]]
"""Types by the `id` of their expression. The expression is kept too, so that no other object gets its id."""

Handler = Callable[["TypeResolver", exp.Expr], DataType | None]
Handlers = Mapping[str | type[exp.Expr], Handler]
"""The rules that need code: by function name, or by node class."""

DEEPEST_NESTING = 80
"""The greatest depth of nested expressions; deeper types are unknown. Python's stack allows some more."""


class TypeResolver:
    """Knows the types of columns and of lambda variables during one walk through an expression.

    It adds the types that it finds to `known`, except those that depend on lambda variables.
    """

    __slots__ = ("_column_type", "_depth", "_handlers", "_known", "_variables", "sql")

    def __init__(
        self,
        handlers: Handlers,
        column_type: ColumnType,
        sql: str,
        known: Known,
        variables: Mapping[str, DataType | None] | None = None,
        depth: int = 0,
    ) -> None:
        self._handlers = handlers
        self._column_type = column_type
        self._known = known
        self._variables = variables or {}
        self._depth = depth
        self.sql = sql

    def of(self, node: object) -> DataType | None:
        """Returns the type of an expression; None if it is unknown."""
        if not isinstance(node, exp.Expr):
            return None
        known = None if self._variables else self._known.get(id(node))
        if known is not None:
            return known[0]
        if self._depth >= DEEPEST_NESTING:
            return None
        self._depth += 1
        found = self._found(node)
        self._depth -= 1
        type_ = None if isinstance(found, Unknown) else found
        if not self._variables:
            self._known[id(node)] = (type_, node)
        return type_

    def _found(self, node: exp.Expr) -> DataType | None:
        if isinstance(node, exp.Func):
            name = self.name(node) or WITHOUT_PLACE.get(type(node), ("",))[0]
            named = self._handlers.get(name)
            if named is not None:
                return named(self, node)
            signature = FUNCTIONS.get(name)
            if signature is not None and signature.result is not None:
                types = [] if signature.is_fixed else list(map(self.of, node.iter_expressions()))
                return signature.result_type(types)
        handler = self._handlers.get(type(node))
        return None if handler is None else handler(self, node)

    def first(self, node: exp.Expr) -> DataType | None:
        """Returns the type of the first argument of a call, without its DISTINCT."""
        value = argument(node)
        return self.of(argument(value) if isinstance(value, exp.Distinct) else value)

    def all_of(self, node: exp.Expr) -> list[DataType | None]:
        """Returns the types of `node.expressions`."""
        return [self.of(part) for part in node.expressions]

    def name(self, node: exp.Expr) -> str:
        """Returns a function's name as written, in lower case; empty if sqlglot does not keep its place."""
        meta = node.meta
        return self.sql[meta["start"] : meta["end"] + 1].strip("`").lower() if "start" in meta else ""

    def column(self, node: exp.Expr) -> DataType | None:
        """Returns the type of a reference or scalar subquery; for a star, a struct of its columns."""
        return self._column_type(node)

    def variable(self, name: str) -> tuple[DataType | None] | None:
        """Returns the type of a lambda variable in a tuple; None if there is no such variable."""
        name = name.lower()
        return (self._variables[name],) if name in self._variables else None

    def of_lambda(self, node: object, *types: DataType | None) -> DataType | None:
        """Returns the type of a lambda's body if its variables have `types`."""
        if not isinstance(node, exp.Lambda) or len(node.expressions) > len(types):
            return None
        names = (variable.name.lower() for variable in node.expressions)
        variables = {**self._variables, **dict(zip(names, types, strict=False))}
        return TypeResolver(self._handlers, self._column_type, self.sql, self._known, variables, self._depth).of(
            node.this
        )


def argument(node: exp.Expr, place: int = 0) -> exp.Expr | None:
    """Returns one argument of a call, in sqlglot's order; None if there are too few."""
    arguments = node.expressions if isinstance(node, exp.Anonymous) else list(node.iter_expressions())
    return arguments[place] if place < len(arguments) else None
