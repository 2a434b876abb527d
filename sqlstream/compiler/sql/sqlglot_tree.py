"""Parses a model's compiled SQL with sqlglot, with the offset of each name.

sqlglot does not know Spark's streaming syntax. Each piece of it is first replaced with text of the same length that
sqlglot can parse, so offsets in the tree are offsets in the text. SQL that sqlglot still cannot parse is not an error,
because Spark may accept it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import Token, exp
from sqlglot.errors import ParseError

from sqlstream.compiler.sql.clauses import at, identifier_at, skip_parentheses, step_over
from sqlstream.compiler.sql.doubts import is_doubtful
from sqlstream.compiler.sql.relations import SqlRelation
from sqlstream.compiler.sql.spark_reading import (
    PLUS,
    PipeStage,
    cut,
    is_bounded,
    parse,
    parse_stages,
    plus_signs,
    read_as_spark,
    tokenize_for_sqlglot,
)
from sqlstream.compiler.sql.sql_text import SqlText, read_sql
from sqlstream.compiler.sql.tokens import SqlTokenError

WINDOW = "w_ndow"
"""Replaces the word `window`, which sqlglot would read as the start of a WINDOW clause."""

_PLAIN_NAME = re.compile(r"[\w.`]+")
"""A name in IDENTIFIER that sqlglot reads without its quotes."""

FIRST_SAMPLE = 770_000_000
"""The first n of `TABLESAMPLE (n ROWS)`, which replaces the watermark clause of a subquery without an alias. sqlglot
keeps it at the relation, and no actual sample has so many rows.
"""


@dataclass(frozen=True)
class WatermarkClause:
    """`WATERMARK expression [AS name] DELAY OF INTERVAL delay`, with the offsets of the clause and its expression."""

    start: int
    expression: str
    expression_start: int
    name: str | None
    delay: str


@dataclass(frozen=True)
class ParsedSql:
    """The tree of a query (None if sqlglot cannot parse it), its watermark clauses, and its stages in pipe syntax.

    `nodes` are those of the tree, from the top down. `is_doubtful` says that Spark may not parse it. `unread_at` is the
    offset at which sqlglot gave up, if known. The key of a clause is the offset of its relation's alias, or else of the
    table's name, or else the number of rows of the TABLESAMPLE that replaces it.
    """

    tree: exp.Query | None
    watermarks: Mapping[int, WatermarkClause] = field(default_factory=dict)
    stages: tuple[PipeStage, ...] = ()
    unread_at: int | None = None
    is_doubtful: bool = False
    nodes: Sequence[exp.Expr] = ()


def parse_sql(sql: str) -> ParsedSql:
    """Returns the parsed `sql`. Identifiers have `start` and `end` in their `meta`."""
    try:
        return parse_text(read_sql(sql))
    except SqlTokenError:
        return ParsedSql(None)


def parse_text(text: SqlText) -> ParsedSql:
    """Returns the parsed text. In pipe syntax, the tree is that of the query before the first `|>`.

    Pipe syntax in parentheses is not supported.
    """
    cuts = cut(text.tokens) if "|>" in text.keys else []
    if cuts is None or not is_bounded(text):
        return ParsedSql(None)
    replaced = _Replaced(text)
    sql, has_plus = replaced.text, replaced.has_plus
    tree, unread_at = _parse(sql[: text.tokens[cuts[0]].start] if cuts else sql, has_plus=has_plus)
    if tree is None:
        return ParsedSql(None, unread_at=unread_at)
    stages = parse_stages(text.tokens, cuts, sql, lambda stage: _parse(stage, has_plus=has_plus)[0])
    nodes = list(tree.walk())
    doubtful = is_doubtful(text.tokens, nodes, stages)
    return ParsedSql(tree, replaced.watermarks, stages, is_doubtful=doubtful, nodes=nodes)


def _parse(text: str, *, has_plus: bool) -> tuple[exp.Query | None, int | None]:
    """Returns the tree of a query without Spark's own syntax, and the offset at which sqlglot gives up, if known."""
    tokens: list[Token] = []
    try:
        tokens = tokenize_for_sqlglot(text)
        trees = parse(tokens, text)
    except ParseError as error:
        places = [(found["line"], found["col"]) for found in error.errors[:1]]
        return None, next((token.start for token in tokens if (token.line, token.col) in places), None)
    except Exception:  # an error inside sqlglot does not mean that the SQL is wrong
        return None, None
    tree = trees[0] if len(trees) == 1 else None
    if not isinstance(tree, exp.Query):
        return None, None
    for node in tree.find_all(exp.Identifier, exp.Anonymous) if WINDOW in text else ():
        if isinstance(node.this, str) and node.this.lower() == WINDOW:
            node.set("this", "window")
    read_as_spark(tree, text, has_plus=has_plus)
    return tree, None


class _Replaced:
    """A text in which words `window` outside WINDOW clauses, plus signs, and Spark's clauses at relations are replaced.

    `has_plus` says whether it has any plus signs, `watermarks` are its watermark clauses.
    """

    def __init__(self, text: SqlText) -> None:
        self._sql, self._tokens = text.sql, text.tokens
        self._starts, self._ends = text.starts, text.ends
        self.text = text.sql
        self.watermarks: dict[int, WatermarkClause] = {}
        for index, token in enumerate(self._tokens) if "WINDOW" in text.keys else ():
            # In `WINDOW w AS (...)`, the word does begin a clause.
            if token.key == "WINDOW" and at(self._tokens, index + 2).key != "AS":
                self._put(token.start, token.end, WINDOW)
        signs = list(plus_signs(self._tokens)) if "+" in text.keys and PLUS not in text.keys else []
        self.has_plus = bool(signs)
        for token in signs:
            self._put(token.start, token.end, PLUS)
        if "IDENTIFIER" in text.keys:
            self._identifiers({relation.name_start for relation in text.relations})
        for relation in text.relations:
            if relation.name is not None:
                self._stream(relation)
                self._options(relation)
            if relation.has_watermark:
                self._watermark(relation)

    def _put(self, start: int, end: int, text: str = "") -> None:
        # Blanks fill it up, because every offset must stay.
        self.text = f"{self.text[:start]}{text.ljust(end - start)}{self.text[end:]}"

    def _identifiers(self, relations: Collection[int]) -> None:
        """Blanks all but the name in `IDENTIFIER('name')`, except where a relation starts: at the same place, it is a
        column, an alias or a function.
        """
        for index, token in enumerate(self._tokens):
            name = identifier_at(self._tokens, index)
            if name is not None and token.start not in relations and _PLAIN_NAME.fullmatch(name):
                text, closing = self._tokens[index + 2], self._tokens[index + 3]
                self._put(token.start, text.start + 1)
                self._put(text.end - 1, closing.end)

    def _stream(self, relation: SqlRelation) -> None:
        """Replaces `STREAM name` and `STREAM(name)` with `name`."""
        index = self._starts[relation.name_start]
        while at(self._tokens, index - 1).key == ".":
            index -= 2
        before = at(self._tokens, index - 1)
        if before.key == "(" and at(self._tokens, index - 2).key == "STREAM":
            closing = at(self._tokens, self._ends[relation.name_end] + 1)
            self._put(before.start, before.end)
            self._put(closing.start, closing.end)
            before = self._tokens[index - 2]
        if before.key == "STREAM" and before.start != relation.name_start:
            self._put(before.start, before.end)

    def _options(self, relation: SqlRelation) -> None:
        """Blanks `IDENTIFIED BY name` and `WITH (...)` after a name."""
        index = self._ends[relation.name_end] + 1
        while index <= self._ends[relation.primary_end]:
            key, start = self._tokens[index].key, self._tokens[index].start
            if key in ("IDENTIFIED", "WITH"):
                index = index + 2 if key == "IDENTIFIED" else skip_parentheses(self._tokens, index + 1) - 1
                self._put(start, self._tokens[index].end)
            index += 1

    def _watermark(self, relation: SqlRelation) -> None:
        first, after = self._ends[relation.primary_end] + 1, self._ends[relation.alias_at] + 1
        clause = self._clause(first, after)
        alias = after + 1 if at(self._tokens, after).key == "AS" else after
        text = ""
        if relation.alias is not None:
            key = self._tokens[alias].start
        elif relation.name is not None:
            key = relation.name_start
        else:
            key = FIRST_SAMPLE + len(self.watermarks)
            text = f"TABLESAMPLE ({key} ROWS)"
        self.watermarks[key] = clause
        self._put(clause.start, relation.alias_at, text)

    def _clause(self, first: int, after: int) -> WatermarkClause:
        """Returns the clause from the token `first` up to, not including, `after`."""
        tokens, delay = self._tokens, first + 1
        while tokens[delay].key != "DELAY" or at(tokens, delay + 1).key != "OF":
            delay = step_over(tokens, delay)
        named = delay - first > 3 and tokens[delay - 2].key == "AS"
        start, end = tokens[first + 1].start, tokens[delay - 3 if named else delay - 1].end
        return WatermarkClause(
            start=tokens[first].start,
            expression=self._sql[start:end],
            expression_start=start,
            name=tokens[delay - 1].name if named else None,
            delay=self._sql[at(tokens, delay + 3).start : tokens[after - 1].end],
        )
