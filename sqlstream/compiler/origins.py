"""Carries the place of each row in its source through the SQL of models, so that a quarantine can say where a row comes
from: its file, or its topic, partition and offset.

A hidden column goes along with the rows. Only SQL in which each row comes from one row of one stream is edited: a
projection, a filter, LATERAL VIEW, UNION ALL, and joins with static tables. Everything else stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.sql.clauses import (
    at,
    ends_from,
    is_from_clause,
    is_keyword,
    is_select,
    is_set_operator,
    split_at_commas,
    step_over,
)
from sqlstream.compiler.sql.relations import SqlRelation
from sqlstream.compiler.sql.sql_text import SqlText, quote_identifier, read_sql
from sqlstream.compiler.sql.tokens import SqlTokenError, TokenKind, Tokens
from sqlstream.project.formats.formats import format_of
from sqlstream.project.values import SourceTable

ORIGIN = "_sqlstream_source"
"""The hidden column with the place of a row in its source."""

_OTHER_CLAUSES = frozenset({
    "CLUSTER", "DISTRIBUTE", "GROUP", "HAVING", "LIMIT", "MATCH_RECOGNIZE", "ORDER", "QUALIFY", "SORT", "WINDOW", "|>",
})  # fmt: skip
"""Words after FROM that can begin a clause in which rows are not passed on one by one. A column with such a name ends
the search, too: then the place is unknown.
"""

_WHOLE_ROWS = ("PIVOT", "UNPIVOT", "TABLESAMPLE")
"""Words for clauses of a relation, perhaps within parentheses, to which each column matters."""


def origin_sql(compiled: CompiledProject, model: CompiledModel) -> dict[str, str]:
    """Returns the SQL that carries `ORIGIN`, by the unique id of the model: of `model` and of all views that it reads
    a stream through. Empty if it cannot be carried up to the rows of `model`.
    """
    found: dict[str, str] = {}
    return found if _carries(compiled, model, found) else {}


def has_origin(table: SourceTable | None) -> bool:
    """Returns whether the rows of a stream have a file, or a place in Kafka."""
    if table is None or table.mode != "stream" or table.corrupt_of is not None:
        return False
    return table.format == "kafka" or (format_of(table.format).is_file and table.python is None)


def _carries(compiled: CompiledProject, model: CompiledModel, found: dict[str, str]) -> bool:
    if model.unique_id in found:
        return True
    if model.file.is_python or model.config.deduplicate:
        return False
    views = []
    for read in model.reads:
        table, upstream = compiled.tables.get(read.node_id), compiled.models.get(read.node_id)
        if has_origin(table) or (upstream is not None and _carries(compiled, upstream, found)):
            views.append(read.view)
        elif (upstream is not None and upstream.streaming) or (table is not None and table.mode == "stream"):
            return False  # a join of two streams keeps their columns in its state
    sql = with_origin(model.sql, views)
    if sql is None:
        return False
    found[model.unique_id] = sql
    return True


def with_origin(sql: str, views: Iterable[str]) -> str | None:
    """Returns `sql` with `ORIGIN` as its last column, which the rows of `views` have; None if a row of the query is not
    one row of one of them.
    """
    try:
        text = read_sql(sql)
    except SqlTokenError:
        return None
    if any(text.keys[word] for word in _WHOLE_ROWS):
        return None
    walk = _Walk(text, frozenset(view.lower() for view in views))
    try:
        is_carried = walk.query(0, len(text.tokens), {})
    except _NotCarriedError:
        return None
    # the others would have a column more, for example in a subquery of a condition
    if not is_carried or any(walk.may_carry(each) and each.name_start not in walk.seen for each in text.relations):
        return None
    for offset, inserted in sorted(walk.edits, reverse=True):
        sql = f"{sql[:offset]}{inserted}{sql[offset:]}"
    return sql


class _NotCarriedError(Exception):
    """A part of the query does not pass on its rows one by one."""


@dataclass
class _Walk:
    """Finds the edits of one query. `seen` has the offsets of the relations whose rows are passed on."""

    text: SqlText
    views: frozenset[str]
    edits: list[tuple[int, str]] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)
    carried_ctes: set[str] = field(default_factory=set)

    @property
    def tokens(self) -> Tokens:
        return self.text.tokens

    def may_carry(self, relation: SqlRelation) -> bool:
        name = (relation.name or "").lower()
        return not relation.is_qualified and name in (self.carried_ctes if relation.is_cte else self.views)

    def query(self, start: int, end: int, ctes: Mapping[str, bool]) -> bool:
        """Edits the query from token `start` to `end`, and returns whether its rows have the column now: they have not
        if it reads nothing that has it. Raises: _NotCarriedError.
        """
        while end > start and self.tokens[end - 1].key == ";":
            end -= 1
        start, ctes = self.definitions(start, end, ctes)
        branches, begin, index = [], start, start
        while index < end:
            if is_set_operator(self.tokens, index):
                if self.tokens[index].key != "UNION" or at(self.tokens, index + 1).key != "ALL":
                    raise _NotCarriedError
                branches.append((begin, index))
                begin = index = index + 2
            else:
                index = step_over(self.tokens, index)
        carried = {self.select(first, last, ctes) for first, last in [*branches, (begin, end)]}
        if len(carried) > 1:
            raise _NotCarriedError
        return carried.pop()

    def definitions(self, start: int, end: int, ctes: Mapping[str, bool]) -> tuple[int, Mapping[str, bool]]:
        """Edits the queries after WITH, and returns the index after them and which of them carry the column."""
        if at(self.tokens, start).key != "WITH":
            return start, ctes
        index, known = start + 1, dict(ctes)
        while index < end:
            name, opening = at(self.tokens, index), index + 2
            if not name.is_name or at(self.tokens, index + 1).key != "AS" or at(self.tokens, opening).key != "(":
                raise _NotCarriedError  # a list of columns, RECURSIVE
            after = self.text.after[opening]
            known[name.name.lower()] = self.query(opening + 1, after - 1, known)
            if known[name.name.lower()]:
                self.carried_ctes.add(name.name.lower())
            if at(self.tokens, after).key != ",":
                return after, known
            index = after + 1
        raise _NotCarriedError

    def select(self, start: int, end: int, ctes: Mapping[str, bool]) -> bool:
        """Edits one SELECT, and returns whether its rows have the column now. Raises: _NotCarriedError."""
        if not is_select(self.tokens, start):
            raise _NotCarriedError
        first = start + 1
        while at(self.tokens, first).kind is TokenKind.HINT or at(self.tokens, first).key == "ALL":
            first += 1
        clause = first
        while clause < end and not is_from_clause(self.tokens, clause):
            clause = step_over(self.tokens, clause)
        carriers = [each for each in self.text.relations if each.select == start and self.carries(each, ctes)]
        if not carriers:
            return False
        items = self.tokens[first:clause]
        if len(carriers) > 1 or not items or items[0].key == "DISTINCT" or not self.is_plain(clause, end):
            raise _NotCarriedError
        name = carriers[0].alias or carriers[0].name or ""
        for item in split_at_commas(items):
            self.star(item, name.lower())
        self.seen.add(carriers[0].name_start)
        qualifier = f"{quote_identifier(name, always=True)}." if name else ""  # a subquery needs no alias
        self.edits.append((items[-1].end, f", {qualifier}{ORIGIN}"))
        return True

    def carries(self, relation: SqlRelation, ctes: Mapping[str, bool]) -> bool:
        """Returns whether the rows of a relation have the column; edits subqueries. Raises: _NotCarriedError."""
        if relation.name is None:
            opening = self.text.starts[relation.name_start]
            if self.tokens[opening].key != "(" or at(self.tokens, opening + 1).key not in ("SELECT", "WITH"):
                return False
            is_carried = self.query(opening + 1, self.text.after[opening] - 1, ctes)
        elif relation.is_qualified:
            return False
        elif relation.is_cte:
            is_carried = ctes.get(relation.name.lower(), False)
        else:
            is_carried = relation.name.lower() in self.views
        if is_carried and (relation.is_nested or relation.names_columns):
            raise _NotCarriedError
        return is_carried

    def is_plain(self, clause: int, end: int) -> bool:
        """Returns whether only joins, LATERAL VIEW and WHERE follow the token FROM at `clause`."""
        index = clause + 1
        while index < end:
            token = self.tokens[index]
            if token.key in _OTHER_CLAUSES and is_keyword(self.tokens, index):
                return False
            if ends_from(self.tokens, index) and token.key not in ("WHERE", "LATERAL"):
                return False
            index = step_over(self.tokens, index)
        return True

    def star(self, item: Tokens, name: str) -> None:
        """Leaves the column out of a star, because it follows the list. Raises: _NotCarriedError for a star inside an
        expression, which would have it.
        """
        keys = [token.key for token in item]
        if "USING" in keys:
            raise _NotCarriedError  # TRANSFORM with a script
        place = 0
        while keys[place + 1 : place + 2] == ["."] and item[place].is_name:
            place += 2
        stars = [index for index, key in enumerate(keys) if key == "*" and (index == 0 or keys[index - 1] in "(,.")]
        if any(each != place for each in stars):
            raise _NotCarriedError
        if not stars or place > 2 or (place == 2 and item[0].name.lower() != name):
            return  # the fields of a struct
        if keys[place + 1 : place + 3] == ["EXCEPT", "("]:
            self.edits.append((item[place + 2].end, f"{ORIGIN}, "))
        elif len(keys) == place + 1:
            self.edits.append((item[place].end, f" except ({ORIGIN})"))
        else:
            raise _NotCarriedError
