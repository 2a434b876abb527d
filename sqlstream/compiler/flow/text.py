"""One model's compiled SQL, with cached answers about the expressions in its tree."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from sqlglot import exp

from sqlstream.compiler.flow.functions import AGGREGATES
from sqlstream.compiler.flow.names import Scope
from sqlstream.compiler.sql.edits import SqlProblem, Where
from sqlstream.compiler.sql.spark_reading import write
from sqlstream.compiler.sql.sql_text import SqlText, read_sql
from sqlstream.compiler.sql.tokens import Tokens
from sqlstream.errors import Severity

WITHOUT_PLACE: dict[type[exp.Expr], str] = {
    exp.ArgMax: "max_by",
    exp.ArgMin: "min_by",
    exp.ApproxQuantile: "percentile_approx",
    exp.Quantile: "percentile",
    exp.GroupConcat: "listagg",
}
"""Aggregate functions whose place sqlglot does not keep, with one name of each."""

UNIT_FIRST = frozenset(
    ("timestampadd", "timestampdiff", "timediff", "dateadd", "datediff", "date_add", "date_diff", "extract")
)
"""Functions whose first argument can be a unit such as HOUR, which looks like a column."""

NOWHERE = sys.maxsize
"""The start of a node without a place."""

_ALIAS, _COLUMN = frozenset({exp.Alias}), frozenset({exp.Column})
_WHOLE = frozenset({exp.Column, exp.Identifier, exp.Literal, exp.Null, exp.Boolean})
"""Nodes whose children no check needs, or without children."""


class ExpressionParts(NamedTuple):
    """The parts of the expression `node`, without the parts of queries in it.

    `parts` are its nodes from the top down, with each name and query as one node, and `kinds` their classes.
    `functions` are the calls with their names from `Text.function`, and `names` the full names with their parts.
    """

    node: exp.Expr
    parts: tuple[exp.Expr, ...]
    kinds: frozenset[type[exp.Expr]]
    functions: tuple[tuple[str, exp.Expr], ...]
    names: tuple[tuple[tuple[str, ...], exp.Expr], ...]

    @property
    def queries(self) -> Iterator[exp.Query]:
        """The queries in the expression, but not those nested in them."""
        return (part for part in self.parts if isinstance(part, exp.Query) and not isinstance(part, exp.Subquery))


class SqlPart(NamedTuple):
    """The part of a text from which an operator was made: sqlglot's tree of it, and the scope of its names."""

    text: Text
    tree: exp.Expr
    scope: Scope


@dataclass(frozen=True)
class Text:
    """A model's compiled SQL, and its unique id, to which places refer.

    `keeps_trees` means that the operators refer to sqlglot's trees, which take more memory than all the rest.
    """

    model: str
    sql: str
    keeps_trees: bool = False
    _expression_parts: dict[int, ExpressionParts] = field(default_factory=dict, init=False, repr=False, compare=False)
    _written: dict[int, tuple[str, exp.Expr]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _starts: dict[int, int] = field(default_factory=dict, init=False, repr=False, compare=False)
    _nodes: list[Sequence[exp.Expr]] = field(default_factory=list, init=False, repr=False, compare=False)

    @cached_property
    def read(self) -> SqlText:
        """The tokens and relations of the text."""
        return read_sql(self.sql)

    @property
    def tokens(self) -> Tokens:
        """The tokens of the text."""
        return self.read.tokens

    @property
    def after(self) -> dict[int, int]:
        """For the index of each `(`, the index after its `)`."""
        return self.read.after

    @cached_property
    def calls(self) -> dict[str, list[int]]:
        """The indexes of the names before a `(`, by the name in lower case."""
        found: dict[str, list[int]] = {}
        for opening in self.after:
            if opening and self.tokens[opening - 1].is_name:
                found.setdefault(self.tokens[opening - 1].name.lower(), []).append(opening - 1)
        return found

    def may_call(self, names: frozenset[str]) -> bool:
        """Returns whether one of `names`, in lower case, is before a `(` anywhere in the text."""
        return not names.isdisjoint(self.calls)

    @cached_property
    def _has_variables(self) -> bool:
        """Whether names can be lambda variables."""
        return "->" in self.read.keys

    def token_at(self, offset: int) -> int | None:
        """Returns the index of the token that starts at `offset`."""
        return self.read.starts.get(offset)

    def where(self, node: exp.Expr) -> Where:
        """Returns the place of `node`: its first token with a place, or else that of a node around it."""
        around: exp.Expr | None = node
        while around is not None:
            start = self.start(around)
            if start != NOWHERE:
                return Where(self.model, start)
            around = around.parent
        return Where(self.model, 0)

    def start(self, node: exp.Expr) -> int:
        """Returns the offset of the first token in `node` with a place; `NOWHERE` if there is none."""
        if id(node) not in self._starts:
            self.index(list(node.root().walk()))
        return self._starts[id(node)]

    def problem(
        self, node: exp.Expr, code: str, what: str, why: str, fix: str, severity: Severity = Severity.ERROR
    ) -> SqlProblem:
        """Returns a problem at the place of `node`."""
        return SqlProblem(self.where(node).offset, code, what, why, fix, severity)

    def index(self, nodes: Sequence[exp.Expr]) -> None:
        """Caches the start of each node of a tree, the smallest offset of the node and its parts.

        `nodes` are all nodes of the tree, from the top down.
        """
        self._nodes.append(nodes)  # kept, so that no other node gets the id
        starts = self._starts
        for node in nodes:
            starts[id(node)] = node.meta_get("start", NOWHERE)
        for node in reversed(nodes):
            start, around = starts[id(node)], id(node.parent)
            if start < starts.get(around, 0):
                starts[around] = start

    def part(self, tree: exp.Expr, scope: Scope) -> SqlPart | None:
        """Returns what an operator keeps of its part of the text."""
        return SqlPart(self, tree, scope) if self.keeps_trees else None

    def release(self) -> None:
        """Breaks the reference cycles of the nodes, so that Python frees them without its garbage collector.

        The text cannot be used afterwards.
        """
        for nodes in self._nodes:
            for node in nodes:
                node.parent = None

    def written(self, node: exp.Expr) -> str:
        """Returns `node` in SQL, on one line."""
        if isinstance(node, exp.Column) and not any(part.args.get("quoted", True) for part in node.parts):
            return ".".join(part.name for part in node.parts)
        if id(node) not in self._written:
            self._written[id(node)] = (write(node), node)
        return self._written[id(node)][0]

    def as_written(self, call: exp.Expr) -> str:
        """Returns a call as written in the text, on one line; generated SQL if that is not possible."""
        name = self.read.starts.get(call.meta.get("start", NOWHERE), len(self.tokens))
        end = self.after.get(name + 1)
        if end is None or not all(token.text.isprintable() for token in self.tokens[name:end]):
            return self.written(call)
        first, *others = self.tokens[name:end]
        gaps = zip(others, self.tokens[name:end], strict=False)
        return first.text + "".join(f"{'' if token.start == before.end else ' '}{token.text}" for token, before in gaps)

    def parts_of(self, node: exp.Expr) -> ExpressionParts:
        """Returns the parts of `node` from the cache."""
        found = self._expression_parts.get(id(node))
        if found is None:
            found = self._expression_parts[id(node)] = self._parts_of(node)
        return found

    def _parts_of(self, node: exp.Expr) -> ExpressionParts:
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier):  # most expressions
            name = name_parts(node)
            is_name = not self._has_variables or not _is_variable(node, name)
            return ExpressionParts(node, (node,), _COLUMN, (), ((name, node),) if is_name else ())
        if isinstance(node, exp.Alias):  # callers need the parts with and without the alias
            inner = self.parts_of(node.this)
            return inner._replace(node=node, parts=(node, *inner.parts), kinds=inner.kinds | _ALIAS)
        parts = _walk(node)
        functions: list[tuple[str, exp.Expr]] = []
        names: list[tuple[tuple[str, ...], exp.Expr]] = []
        units: set[int] = set()
        for part in parts:
            if isinstance(part, exp.Func):
                called = self.function(part)
                functions += [(called, part)] if called else []
                units.update(map(id, part.iter_expressions()) if called in UNIT_FIRST else ())
            elif isinstance(part, exp.Column | exp.Dot | exp.Paren) and id(part) not in units:
                found = self._whole_name(part, node)
                names += [(found, part)] if found else []
        return ExpressionParts(node, parts, frozenset(map(type, parts)), tuple(functions), tuple(names))

    def _whole_name(self, node: exp.Expr, root: exp.Expr) -> tuple[str, ...]:
        """Returns the parts of a name in `root`; none for a part of a longer name and for a lambda variable."""
        parts = name_parts(node)
        if not parts or (self._has_variables and _is_variable(node, parts)):
            return ()
        outer = node.parent
        dotted = (
            node is not root and isinstance(outer, exp.Dot | exp.Paren) and outer.this is node and name_parts(outer)
        )
        return () if dotted else parts

    def function(self, node: exp.Expr) -> str:
        """Returns the name of the function that `node` calls, in lower case; empty for other nodes."""
        if isinstance(node, exp.Func):
            if isinstance(node, exp.Anonymous):
                return str(node.this).lower()
            start = node.meta_get("start")
            if start is not None:
                return self.sql[start : node.meta["end"] + 1].strip("`").lower()
        return WITHOUT_PLACE.get(type(node), "")

    def is_aggregate(self, node: exp.Expr) -> bool:
        """Returns whether `node` contains an aggregate function without OVER."""
        return any(name in AGGREGATES and not is_windowed(part) for name, part in self.parts_of(node).functions)


def name_parts(node: exp.Expr) -> tuple[str, ...]:
    """Returns the parts of a name such as `a.b.c`; none for other nodes."""
    if type(node) is exp.Column:  # the usual names have one or two parts
        name, table = node.args["this"], node.args.get("table")
        if type(name) is exp.Identifier and table is None:
            return (name.args["this"],)
        if type(name) is type(table) is exp.Identifier and node.args.get("db") is None:
            return (table.args["this"], name.args["this"])
        return () if isinstance(name, exp.Star) else tuple(part.name for part in node.parts)
    if isinstance(node, exp.Paren):
        return name_parts(node.this)
    if isinstance(node, exp.Dot):
        left, right = name_parts(node.this), node.expression
        return (*left, right.name) if left and isinstance(right, exp.Identifier) else ()
    return ()


def computed_items(select: exp.Select) -> list[exp.Expr]:
    """Returns the items of a select list that are not just a name."""
    return [item for item in select.expressions if not isinstance(item, exp.Column)]


def _is_variable(node: exp.Expr, parts: tuple[str, ...]) -> bool:
    """Returns whether a name is a lambda variable, in any letter case: sqlglot compares letter case."""
    around = node.find_ancestor(exp.Lambda)
    name = parts[0].lower()
    while around is not None:
        if any(variable.name.lower() == name for variable in around.expressions):
            return True
        around = around.find_ancestor(exp.Lambda)
    return False


def _walk(node: exp.Expr) -> tuple[exp.Expr, ...]:
    """Returns the nodes of an expression from the top down, with each name and query as one node."""
    found = [node]
    for part in found:  # grows during the loop
        is_whole = isinstance(part, exp.Query) and not isinstance(part, exp.Subquery)
        if type(part) not in _WHOLE and not is_whole:
            found.extend(part.iter_expressions())
    return tuple(found)


def is_windowed(node: exp.Expr) -> bool:
    """Returns whether a function has OVER, also after FILTER or IGNORE NULLS."""
    parent = node.parent
    while isinstance(parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
        parent = parent.parent
    return isinstance(parent, exp.Window)
