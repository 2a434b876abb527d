"""Finds the relations that a query reads, in every FROM at every depth.

The search follows only the structure of SELECT, WITH, FROM, JOIN and parentheses in Spark's grammar, so it also works
for text that sqlglot cannot parse.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sqlstream.compiler.sql.clauses import (
    AFTER_QUERY,
    SET_OPERATORS,
    at,
    ends_from,
    identifier_at,
    is_from_clause,
    is_keyword,
    is_select,
    is_set_operator,
    skip_alias,
    skip_primary_clauses,
    skip_watermark,
    starts_clause,
)
from sqlstream.compiler.sql.tokens import Tokens

_BEGINS_PART = SET_OPERATORS | {"|>", "(", "SELECT", "FROM", "JOIN", "TABLE"}
"""The tokens that matter in a query outside its clauses."""

_DEEPEST = 100
"""The deepest parentheses to search. Python's stack allows about twice as many."""


@dataclass(frozen=True)
class SqlRelation:
    """One relation of a FROM clause or a join. All offsets refer to the SQL text.

    `name` is the last part of a table's name without backquotes, from `name_start` to `name_end`. For subqueries,
    functions and VALUES it is None, and the offsets are those of the relation. `primary_end` is the place for a
    watermark clause, `alias_at` that for an alias. `select` is the index of the token SELECT of the FROM, None without
    one (`TABLE x`, a join in pipe syntax). `is_cte`: the name is that of a CTE. `is_qualified`: the name has several
    parts. `is_nested`: the relation is in a join in parentheses with an alias or a watermark clause. `takes_clauses` is
    False if the grammar allows neither that clause nor an alias. `names_columns`: its alias has a list of names for its
    columns, which is not that of a subquery, a function or VALUES.
    """

    name: str | None
    name_start: int
    name_end: int
    primary_end: int
    has_watermark: bool
    alias: str | None
    alias_at: int
    select: int | None
    is_cte: bool = False
    is_qualified: bool = False
    is_nested: bool = False
    takes_clauses: bool = True
    names_columns: bool = False

    @property
    def visible_name(self) -> str | None:
        """The qualifier of its columns: the alias, or else the name."""
        return self.alias or self.name


class _Scope(NamedTuple):
    """The context of a part of the query: the visible CTEs in lower case, the index of the SELECT, the depth."""

    ctes: frozenset[str] = frozenset()
    select: int | None = None
    is_nested: bool = False
    depth: int = 0


def find_relations(tokens: Tokens, after: Mapping[int, int]) -> tuple[SqlRelation, ...]:
    """Returns all relations in the order of the text. `after` has the index after the `)` of each `(`."""
    finder = _Finder(tokens, after)
    finder.query(0, len(tokens), _Scope())
    return tuple(sorted(finder.found, key=lambda relation: (relation.name_start, -relation.primary_end)))


def skip_ctes(tokens: Tokens, after: Mapping[int, int], start: int) -> int:
    """Returns the index after the common table expressions of the WITH at `start`; `start` if there is no WITH."""
    return _Finder(tokens, after).common_table_expressions(start, len(tokens), _Scope())[0]


class _Finder:
    """Walks the tokens once by recursive descent, and adds to `found`."""

    def __init__(self, tokens: Tokens, after: Mapping[int, int]) -> None:
        self.tokens = tokens
        self.after = after
        self.found: list[SqlRelation] = []

    def query(self, start: int, end: int, scope: _Scope) -> None:
        """Walks a query, a combination of queries by set operators, or a pipeline."""
        index, scope = self.common_table_expressions(start, end, _Scope(scope.ctes, depth=scope.depth))
        term = index
        while index < end:
            key = self.tokens[index].key
            if key not in _BEGINS_PART:
                index += 1
            elif key == "|>" or is_set_operator(self.tokens, index):
                # Here the next query of the set operators, or the next stage, begins.
                quantifier = at(self.tokens, index + 1).key
                index = term = index + (2 if quantifier in ("ALL", "DISTINCT") else 1)
                scope = scope._replace(select=None)
            elif is_select(self.tokens, index):
                scope = _Scope(scope.ctes, index, scope.is_nested, scope.depth)
                index += 1
            else:
                index = self.query_part(index, term, end, scope)

    def query_part(self, index: int, term: int, end: int, scope: _Scope) -> int:
        """Walks a FROM clause, a piped join, `TABLE x`, or one token of the query term that starts at `term`."""
        key = self.tokens[index].key
        if is_from_clause(self.tokens, index):
            return self.from_clause(index + 1, end, self.from_scope(index, end, scope))
        if key == "JOIN" and is_keyword(self.tokens, index) and at(self.tokens, term - 1).key == "|>":
            return self.relation(index + 1, scope)
        if key == "TABLE" and index == term and self.is_name(index + 1):
            return self.table(index + 1, scope)
        return self.step(index, scope)

    def common_table_expressions(self, start: int, end: int, scope: _Scope) -> tuple[int, _Scope]:
        """Walks the definitions after WITH. A name is visible after its definition, or within a recursive one."""
        if at(self.tokens, start).key != "WITH":
            return start, scope
        index = start + 1
        is_recursive = at(self.tokens, index).key == "RECURSIVE" and self.is_name(index + 1)
        index += is_recursive
        while index < end and self.is_name(index):
            clause = identifier_at(self.tokens, index)
            name = (self.tokens[index].name if clause is None else clause).lower()
            known = scope._replace(ctes=scope.ctes | {name})
            index = self.definition(index + (1 if clause is None else 4), end)
            index = self.parentheses(index, known if is_recursive else scope, is_query=True)
            scope = known
            if at(self.tokens, index).key != ",":
                break
            index += 1
        return index, scope

    def definition(self, index: int, end: int) -> int:
        """Returns the index of the `(` of a CTE's query, after the columns, the recursion level and AS."""
        if at(self.tokens, index).key == "(" and not self.starts_query(index + 1):
            index = self.after[index]
        while index < end and self.tokens[index].key != "(":
            index += 1
        return index

    def step(self, index: int, scope: _Scope) -> int:
        """Walks one token, or the contents of the parentheses that it opens."""
        return self.parentheses(index, scope) if self.tokens[index].key == "(" else index + 1

    def parentheses(self, opening: int, scope: _Scope, *, is_query: bool = False) -> int:
        """Walks the parentheses that open at `opening`, and returns the index after them."""
        after = self.after.get(opening, opening + 1)
        inner = _Scope(scope.ctes, scope.select, scope.is_nested, scope.depth + 1)
        if inner.depth > _DEEPEST:
            return after
        if is_query or self.starts_query(opening + 1):
            self.query(opening + 1, after - 1, inner)
        else:
            self.expression(opening + 1, after - 1, inner)
        return after

    def expression(self, start: int, end: int, scope: _Scope) -> None:
        """Walks an expression or arguments, where FROM is not a clause, but parentheses can contain queries."""
        index = start
        while index < end:
            is_table = self.tokens[index].key == "TABLE" and at(self.tokens, index + 1).key == "("
            if is_table and self.is_name(index + 2) and not self.starts_query(index + 2):
                index = self.table(index + 2, scope)
            else:
                index = self.step(index, scope)

    def from_scope(self, index: int, end: int, scope: _Scope) -> _Scope:
        """Returns the scope with the SELECT of the FROM at `index`. In a FROM-first query, SELECT follows FROM."""
        while scope.select is None and index < end:
            key = self.tokens[index].key
            if key == "|>" or is_set_operator(self.tokens, index):
                break
            if is_select(self.tokens, index):
                return _Scope(scope.ctes, index, scope.is_nested, scope.depth)
            index = self.after.get(index, index + 1)
        return scope

    def from_clause(self, index: int, end: int, scope: _Scope) -> int:
        """Walks relations with their joins and conditions, and returns the index of the token that ends the clause."""
        index = self.relation(index, scope)
        while index < end and not ends_from(self.tokens, index):
            starts = self.tokens[index].key in ("JOIN", ",") and is_keyword(self.tokens, index)
            index = self.relation(index + 1, scope) if starts else self.step(index, scope)
        return index

    def relation(self, index: int, scope: _Scope) -> int:
        """Walks one relation with its clauses and alias, and returns the index after it."""
        if at(self.tokens, index).key == "LATERAL":
            index += 1
        if at(self.tokens, index).key == "STREAM":
            following = at(self.tokens, index + 1)
            if following.key == "(" and self.is_name(index + 2):
                return self.stream(index, scope)
            # Before AS or a clause, `stream` is the name of a relation.
            index += following.is_name and following.key != "AS" and not starts_clause(self.tokens, index + 1)
        if at(self.tokens, index).key == "(":
            return self.parenthesised(index, scope)
        if at(self.tokens, index).key == "VALUES" and not starts_clause(self.tokens, index + 1):
            return self.values(index + 1, scope)
        return self.named(index, scope) if self.is_name(index) else index

    def named(self, index: int, scope: _Scope) -> int:
        last = self.last_part(index)
        if at(self.tokens, last + 1).key != "(":
            return self.add(index, last, last + 1, scope)
        after = self.parentheses(last + 1, scope)
        if at(self.tokens, after).key == "WITH" and at(self.tokens, after + 1).key == "ORDINALITY":
            after += 2
        return self.add(index, None, after, scope)

    def stream(self, index: int, scope: _Scope) -> int:
        """Walks `STREAM(name)` or `STREAM(function(...))`."""
        last = self.last_part(index + 2)
        named = last if at(self.tokens, last + 1).key == ")" else None
        return self.add(index + 2, named, self.after[index + 1], scope)

    def parenthesised(self, index: int, scope: _Scope) -> int:
        """Walks a subquery, or a join in parentheses, which is a relation only with an alias or watermark."""
        after = self.after[index]
        if self.starts_query(index + 1):
            self.parentheses(index, scope, is_query=True)
            return self.add(index, None, after, scope)
        end = self.add(index, None, after, scope)
        is_named = self.found[-1].alias is not None or self.found[-1].has_watermark
        if not is_named:
            # Parentheses alone are no relation. Only the relations in them count.
            self.found.pop()
        if scope.depth < _DEEPEST:
            inner = scope._replace(depth=scope.depth + 1, is_nested=scope.is_nested or is_named)
            self.from_clause(index + 1, after - 1, inner)
        return end

    def values(self, index: int, scope: _Scope) -> int:
        """Walks an inline table. A comma after a row starts the next row."""
        start = index - 1
        while True:
            index = self.step(index, scope) if index < len(self.tokens) else index
            if at(self.tokens, index).key != ",":
                return self.add(start, None, index, scope, takes_clauses=False)
            index += 1

    def table(self, index: int, scope: _Scope) -> int:
        """Walks the name of `TABLE name`, a query that cannot have clauses."""
        last = self.last_part(index)
        self.add(index, last, last + 1, scope._replace(select=None), takes_clauses=False)
        return last + 1

    def add(self, first: int, last: int | None, after: int, scope: _Scope, *, takes_clauses: bool = True) -> int:
        """Adds the relation from token `first` up to `after`, with its name at `last`, and returns its end."""
        tokens = self.tokens
        primary = skip_primary_clauses(tokens, after)
        watermark = skip_watermark(tokens, primary)
        end, alias = skip_alias(tokens, watermark)
        name = tokens[last] if last is not None else None
        is_values = at(tokens, first + 1).key == "VALUES"
        is_join = tokens[first].key == "(" and not is_values and not self.starts_query(first + 1)
        self.found.append(
            SqlRelation(
                name=name.name if name else None,
                name_start=(name or tokens[first]).start,
                name_end=name.end if name else tokens[after - 1].end,
                primary_end=tokens[primary - 1].end,
                has_watermark=watermark > primary,
                alias=alias,
                alias_at=tokens[watermark - 1].end,
                select=scope.select,
                is_cte=last == first and name is not None and name.name.lower() in scope.ctes,
                is_qualified=last is not None and last != first,
                is_nested=scope.is_nested,
                takes_clauses=takes_clauses,
                names_columns=alias is not None and tokens[end - 1].key == ")" and (name is not None or is_join),
            )
        )
        return end

    def last_part(self, index: int) -> int:
        while at(self.tokens, index + 1).key == "." and self.is_name(index + 2):
            index += 2
        return index

    def is_name(self, index: int) -> bool:
        return at(self.tokens, index).is_name

    def starts_query(self, index: int) -> bool:
        """Whether a query starts at `index`, the first token in parentheses."""
        while at(self.tokens, index).key == "(":
            if at(self.tokens, self.after[index]).key not in AFTER_QUERY:
                return False
            index += 1
        key, following = at(self.tokens, index).key, at(self.tokens, index + 1)
        if key == "FROM":
            # trim(FROM text) is an expression.
            return (following.is_name or following.key == "(") and at(self.tokens, index - 2).key != "TRIM"
        return key == "SELECT" or (key in ("WITH", "TABLE") and following.is_name)
