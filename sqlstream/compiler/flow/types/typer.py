"""Finds the type of one expression by the rule for its kind, or for the function that it names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from sqlstream.compiler.flow.functions.known import FUNCTIONS
from sqlstream.compiler.flow.functions.without_place import WITHOUT_PLACE
from sqlstream.project.types.types import DataType, Unknown

ColumnType = Callable[[exp.Expr], DataType | None]
Known = dict[int, tuple[DataType | None, exp.Expr]]
"""The types that have been found, by the `id` of the expression, with it, so that no other gets its id."""

Handler = Callable[["Typer", exp.Expr], DataType | None]

DEEPEST_NESTING = 80
"""Expressions within expressions that are followed; beyond it a type is not known. Python's own stack bears more."""


@dataclass(frozen=True)
class Rules:
    """The types that need code: of functions by name, and of nodes by class."""

    by_name: Mapping[str, Handler]
    by_class: Mapping[type[exp.Expr], Handler]


class Typer:
    """Knows the types of columns and of a lambda's variables while one expression is gone through. `known` are the
    types that it finds, those aside that depend on variables.
    """

    __slots__ = ("_column_type", "_depth", "_known", "_rules", "_variables", "sql")

    def __init__(
        self,
        rules: Rules,
        column_type: ColumnType,
        sql: str,
        known: Known,
        variables: Mapping[str, DataType | None] | None = None,
        depth: int = 0,
    ) -> None:
        self._rules = rules
        self._column_type = column_type
        self._known = known
        self._variables = variables or {}
        self._depth = depth
        self.sql = sql

    def of(self, node: object) -> DataType | None:
        """Returns the type of an expression, None where it is not known."""
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
            named = self._rules.by_name.get(name)
            if named is not None:
                return named(self, node)
            signature = FUNCTIONS.get(name)
            if signature is not None and signature.result is not None:
                return signature.result_type([] if signature.is_fixed else list(map(self.of, arguments(node))))
        handler = self._rules.by_class.get(type(node))
        return None if handler is None else handler(self, node)

    def name(self, node: exp.Expr) -> str:
        """Returns a function's name as it is written, in lower case; empty where sqlglot does not keep its place."""
        meta = node.meta
        return self.sql[meta["start"] : meta["end"] + 1].strip("`").lower() if "start" in meta else ""

    def column(self, node: exp.Expr) -> DataType | None:
        """Returns what the query's own columns say of a reference, or of a scalar subquery; of a star, a struct of the
        columns that it stands for.
        """
        return self._column_type(node)

    def variable(self, name: str) -> tuple[DataType | None] | None:
        """Returns the type of a lambda's variable in a tuple of one; None where there is no such variable."""
        name = name.lower()
        return (self._variables[name],) if name in self._variables else None

    def of_lambda(self, node: object, *types: DataType | None) -> DataType | None:
        """Returns the type of a lambda's body where its variables are of `types`."""
        if not isinstance(node, exp.Lambda) or len(node.expressions) > len(types):
            return None
        names = (variable.name.lower() for variable in node.expressions)
        variables = {**self._variables, **dict(zip(names, types, strict=False))}
        return Typer(self._rules, self._column_type, self.sql, self._known, variables, self._depth).of(node.this)


def arguments(node: exp.Expr) -> Iterator[exp.Expr]:
    """Gives the expressions of a function in the order in which sqlglot holds them, not always as written."""
    return node.iter_expressions()


def argument(node: exp.Expr, place: int = 0) -> exp.Expr | None:
    """Returns one argument of a function that sqlglot does not know; None where there are too few."""
    return node.expressions[place] if place < len(node.expressions) else None
