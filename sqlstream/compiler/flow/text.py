"""One model's compiled SQL, and what is asked again and again of the expressions in its tree."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from sqlglot import exp

from sqlstream.compiler.flow.columns import Where
from sqlstream.compiler.flow.functions.known import AGGREGATES
from sqlstream.compiler.sql.spark_reading import write
from sqlstream.compiler.sql.sql_text import SqlText, read_sql
from sqlstream.compiler.sql.tokens import Tokens

WITHOUT_PLACE: dict[type[exp.Expr], str] = {
    exp.ArgMax: "max_by",
    exp.ArgMin: "min_by",
    exp.ApproxQuantile: "percentile_approx",
    exp.Quantile: "percentile",
    exp.GroupConcat: "listagg",
}
"""Aggregate functions that sqlglot makes without keeping where the name stands, and a name of each."""

UNIT_FIRST = frozenset(
    {
        *("timestampadd", "timestampdiff", "timediff", "dateadd", "datediff", "date_add", "date_diff", "extract"),
    }
)
"""Functions whose first argument may be a unit such as HOUR, which looks like a column."""

NOWHERE = sys.maxsize
"""The start of what has no place."""

_ALIAS, _COLUMN = frozenset({exp.Alias}), frozenset({exp.Column})
_WHOLE = frozenset({exp.Column, exp.Identifier, exp.Literal, exp.Null, exp.Boolean})
"""Nodes in which nobody looks for others, or which have none."""


class ExpressionParts(NamedTuple):
    """What one walk through the expression `node` has found, queries in it aside.

    `parts` are its nodes from the top down, a name and a query in it as one each; `kinds` their classes; `functions`
    those that call a function, each behind its name as `Text.function` gives it; `names` the longest form of each name,
    behind its parts.
    """

    node: exp.Expr
    parts: tuple[exp.Expr, ...]
    kinds: frozenset[type[exp.Expr]]
    functions: tuple[tuple[str, exp.Expr], ...]
    names: tuple[tuple[tuple[str, ...], exp.Expr], ...]

    @property
    def queries(self) -> Iterator[exp.Query]:
        """The queries in the expression, not those within one of them."""
        return (part for part in self.parts if isinstance(part, exp.Query) and not isinstance(part, exp.Subquery))


@dataclass(frozen=True)
class Text:
    """A model's compiled SQL, and its unique id: what places refer to."""

    model: str
    sql: str
    _expression_parts: dict[int, ExpressionParts] = field(default_factory=dict, init=False, repr=False, compare=False)
    _written: dict[int, tuple[str, exp.Expr]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _starts: dict[int, int] = field(default_factory=dict, init=False, repr=False, compare=False)
    _nodes: dict[int, list[exp.Expr]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def read(self) -> SqlText:
        """The text, which can be read, with its tokens and relations."""
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
        """Whether one of `names`, which are in lower case, stands before a `(` anywhere in the text."""
        return not names.isdisjoint(self.calls)

    @cached_property
    def _has_variables(self) -> bool:
        """Whether a name may be that of a lambda's variable."""
        return "->" in self.read.keys

    def token_at(self, offset: int) -> int | None:
        """Returns the index of the token that starts at `offset`."""
        return self.read.starts.get(offset)

    def where(self, node: exp.Expr) -> Where:
        """Returns the place of `node`: that of the first token in it that has one, or else in what it is a part of."""
        around: exp.Expr | None = node
        while around is not None:
            start = self.start(around)
            if start != NOWHERE:
                return Where(self.model, start)
            around = around.parent
        return Where(self.model, 0)

    def start(self, node: exp.Expr) -> int:
        """Returns the offset of the first token in `node` that has a place, `NOWHERE` where none has."""
        if id(node) not in self._starts:
            self._index(node.root())
        return self._starts[id(node)]

    def nodes(self, root: exp.Expr) -> Sequence[exp.Expr]:
        """Returns all nodes of a tree that was read from the text, from the top down."""
        if id(root) not in self._starts:
            self._index(root)
        return self._nodes[id(root)]

    def _index(self, root: exp.Expr) -> None:
        """Notes where each node of a tree starts: the first of what it and its parts say."""
        nodes = self._nodes[id(root)] = list(root.walk())  # kept: one that is gone would leave its id to another one
        starts = self._starts
        for node in nodes:
            starts[id(node)] = node.meta_get("start", NOWHERE)
        for node in reversed(nodes):
            start, around = starts[id(node)], id(node.parent)
            if start < starts.get(around, 0):
                starts[around] = start

    def let_go(self) -> None:
        """Parts the nodes, which know each other, for Python to free them at once: else it must look for them first.

        Nothing may be asked of them afterwards.
        """
        for nodes in self._nodes.values():
            for node in nodes:
                node.parent = None

    def written(self, node: exp.Expr) -> str:
        """Returns `node` in SQL, on one line."""
        if isinstance(node, exp.Column) and not any(part.args.get("quoted", True) for part in node.parts):
            return ".".join(part.name for part in node.parts)
        if id(node) not in self._written:
            self._written[id(node)] = (write(node), node)
        return self._written[id(node)][0]

    def said(self, call: exp.Expr) -> str:
        """Returns the call of a function as its author wrote it, on one line; in SQL where that is not possible."""
        name = self.read.starts.get(call.meta.get("start", NOWHERE), len(self.tokens))
        end = self.after.get(name + 1)
        if end is None or not all(token.text.isprintable() for token in self.tokens[name:end]):
            return self.written(call)
        first, *others = self.tokens[name:end]
        gaps = zip(others, self.tokens[name:end], strict=False)
        return first.text + "".join(f"{'' if token.start == before.end else ' '}{token.text}" for token, before in gaps)

    def parts_of(self, node: exp.Expr) -> ExpressionParts:
        """Returns what is in `node`, for which it is walked through once."""
        found = self._expression_parts.get(id(node))
        if found is None:
            found = self._expression_parts[id(node)] = self._looked(node)
        return found

    def _looked(self, node: exp.Expr) -> ExpressionParts:
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier):  # most of what there is
            name = parts_of(node)
            is_name = not self._has_variables or not _is_variable(node, name)
            return ExpressionParts(node, (node,), _COLUMN, (), ((name, node),) if is_name else ())
        if isinstance(node, exp.Alias):  # what has one is looked at with it and without
            inner = self.parts_of(node.this)
            return inner._replace(node=node, parts=(node, *inner.parts), kinds=inner.kinds | _ALIAS)
        parts = _parts_of(node)
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
        """The parts of a name in `root` that is neither a part of a longer one nor a lambda's variable, else none."""
        parts = parts_of(node)
        if not parts or (self._has_variables and _is_variable(node, parts)):
            return ()
        outer = node.parent
        dotted = node is not root and isinstance(outer, exp.Dot | exp.Paren) and outer.this is node and parts_of(outer)
        return () if dotted else parts

    def function(self, node: exp.Expr) -> str:
        """Returns the name of the function that `node` calls, in lower case; empty where it is no call."""
        if isinstance(node, exp.Func):
            if isinstance(node, exp.Anonymous):
                return str(node.this).lower()
            start = node.meta_get("start")
            if start is not None:
                return self.sql[start : node.meta["end"] + 1].strip("`").lower()
        return WITHOUT_PLACE.get(type(node), "")

    def is_aggregate(self, node: exp.Expr) -> bool:
        """Whether `node` holds an aggregate function, one with OVER aside."""
        return any(name in AGGREGATES and not is_windowed(part) for name, part in self.parts_of(node).functions)


def parts_of(node: exp.Expr) -> tuple[str, ...]:
    """Returns the parts of a name such as `a.b.c`; none where `node` is no name."""
    if type(node) is exp.Column:  # what most names are, of one part or two
        name, table = node.args["this"], node.args.get("table")
        if type(name) is exp.Identifier:
            if table is None:
                return (name.args["this"],)
            if type(table) is exp.Identifier and node.args.get("db") is None:
                return (table.args["this"], name.args["this"])
        return () if isinstance(name, exp.Star) else tuple(part.name for part in node.parts)
    if isinstance(node, exp.Paren):
        return parts_of(node.this)
    if isinstance(node, exp.Dot):
        left, right = parts_of(node.this), node.expression
        return (*left, right.name) if left and isinstance(right, exp.Identifier) else ()
    return ()


def computed(select: exp.Select) -> list[exp.Expr]:
    """Returns the items of a select list that are more than a name."""
    return [item for item in select.expressions if not isinstance(item, exp.Column)]


def _is_variable(node: exp.Expr, parts: tuple[str, ...]) -> bool:
    """Whether a name is that of a variable of a lambda around it, which sqlglot sees in the same letter case only."""
    around = node.find_ancestor(exp.Lambda)
    name = parts[0].lower()
    while around is not None:
        if any(variable.name.lower() == name for variable in around.expressions):
            return True
        around = around.find_ancestor(exp.Lambda)
    return False


def _parts_of(node: exp.Expr) -> tuple[exp.Expr, ...]:
    """The nodes of an expression from the top down, a name and a query in it as one each."""
    found = [node]
    for part in found:  # which grows meanwhile
        is_whole = isinstance(part, exp.Query) and not isinstance(part, exp.Subquery)
        if type(part) not in _WHOLE and not is_whole:
            found.extend(part.iter_expressions())
    return tuple(found)


def is_windowed(node: exp.Expr) -> bool:
    """Whether a function has OVER, perhaps behind FILTER or IGNORE NULLS."""
    parent = node.parent
    while isinstance(parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
        parent = parent.parent
    return isinstance(parent, exp.Window)
