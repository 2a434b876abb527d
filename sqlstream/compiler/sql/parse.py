"""A model's compiled SQL as sqlglot's tree, every position kept.

sqlglot does not know Spark's streaming syntax. Before it reads a text, each piece of that syntax is written over with
as many characters that it reads, so that an offset in the tree is an offset in the text. What cannot be read all the
same is no error: Spark may read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import Token, exp
from sqlglot.errors import ParseError

from sqlstream.compiler.sql.clauses import at, skip_parentheses, step_over
from sqlstream.compiler.sql.parse_limits import is_bounded
from sqlstream.compiler.sql.pipe_stages import Stage, cut, parse_stages
from sqlstream.compiler.sql.relations import SqlRelation
from sqlstream.compiler.sql.spark_reading import PLUS, parse, plus_signs, read_as_spark, tokenize_for_sqlglot
from sqlstream.compiler.sql.sql_text import SqlText, read_sql
from sqlstream.compiler.sql.tokens import SqlTokenError

WINDOW = "w_ndow"
"""What stands for the word `window`, which sqlglot takes for the start of a WINDOW clause."""

FIRST_SAMPLE = 770_000_000
"""The watermark clause of a subquery without an alias becomes `TABLESAMPLE (n ROWS)`, n counting from here, which
sqlglot keeps at its relation. No true sample has as many rows.
"""


@dataclass(frozen=True)
class WatermarkClause:
    """`WATERMARK expression [AS name] DELAY OF INTERVAL delay` at offset `start`; `expression_start` is the offset of
    its expression.
    """

    start: int
    expression: str
    expression_start: int
    name: str | None
    delay: str


@dataclass(frozen=True)
class ParsedSql:
    """A query as a tree, None where sqlglot cannot read it, its watermark clauses, and its stages in pipe syntax.

    `unread_at` is the offset at which sqlglot gave up, where that is known. A clause's key is the offset of its
    relation's alias, else of the table's name, else the rows of the TABLESAMPLE that stands for it.
    """

    tree: exp.Query | None
    watermarks: Mapping[int, WatermarkClause] = field(default_factory=dict)
    stages: tuple[Stage, ...] = ()
    unread_at: int | None = None


def parse_sql(sql: str) -> ParsedSql:
    """Returns `sql` as a tree. Identifiers keep `start` and `end` in their `meta`."""
    try:
        return parse_text(read_sql(sql))
    except SqlTokenError:
        return ParsedSql(None)


def parse_text(text: SqlText) -> ParsedSql:
    """Returns the text as a tree, as `parse_sql` does.

    Of a query in pipe syntax the tree is that of what stands before the first `|>`. Pipe syntax within parentheses is
    not read.
    """
    cuts = cut(text.tokens) if "|>" in text.keys else []
    if cuts is None or not is_bounded(text):
        return ParsedSql(None)
    overwriting = _Overwriting(text)
    overwriting.run()
    read = overwriting.text[: text.tokens[cuts[0]].start] if cuts else overwriting.text
    tree, unread_at = _read(read, has_plus=overwriting.has_plus)
    if tree is None:
        return ParsedSql(None, unread_at=unread_at)

    def parsed(stage: str) -> exp.Query | None:
        return _read(stage, has_plus=overwriting.has_plus)[0]

    return ParsedSql(tree, overwriting.watermarks, parse_stages(text.tokens, cuts, overwriting.text, parsed))


def _read(text: str, *, has_plus: bool) -> tuple[exp.Query | None, int | None]:
    """The tree of a query in which Spark's own syntax is written over.

    Where sqlglot cannot read it, the offset of the word at which it gives up, if it says so.
    """
    tokens: list[Token] = []
    try:
        tokens = tokenize_for_sqlglot(text)
        trees = parse(tokens, text)
    except ParseError as error:
        places = [(found["line"], found["col"]) for found in error.errors[:1]]
        return None, next((token.start for token in tokens if (token.line, token.col) in places), None)
    except Exception:  # whatever goes wrong in a parser is no fault of the user's SQL
        return None, None
    tree = trees[0] if len(trees) == 1 else None
    if not isinstance(tree, exp.Query):
        return None, None
    for node in tree.find_all(exp.Identifier, exp.Anonymous) if WINDOW in text else ():
        if isinstance(node.this, str) and node.this.lower() == WINDOW:
            node.set("this", "window")
    read_as_spark(tree, text, has_plus=has_plus)
    return tree, None


class _Overwriting:
    """What is written over one text, piece by piece, and the watermark clauses that were found."""

    def __init__(self, text: SqlText) -> None:
        self._sql = text.sql
        self._tokens = text.tokens
        self._relations = text.relations
        self._starts, self._ends = text.starts, text.ends
        self._has_windows = "WINDOW" in text.keys
        self._reads_plus_signs = "+" in text.keys and PLUS not in text.keys
        self._characters = list(text.sql)
        self.watermarks: dict[int, WatermarkClause] = {}
        self.has_plus = False

    @property
    def text(self) -> str:
        """The text as it is now."""
        return "".join(self._characters)

    def run(self) -> None:
        """Writes over words `window` that start no WINDOW clause, plus signs, and Spark's clauses at relations."""
        for index, token in enumerate(self._tokens) if self._has_windows else ():
            if token.key == "WINDOW" and at(self._tokens, index + 2).key != "AS":
                self._put(token.start, token.end, WINDOW)
        for token in plus_signs(self._tokens) if self._reads_plus_signs else ():
            self._put(token.start, token.end, PLUS)
            self.has_plus = True
        for relation in self._relations:
            if relation.name is not None:
                self._stream(relation)
                self._options(relation)
            if relation.has_watermark:
                self._watermark(relation)

    def _put(self, start: int, end: int, text: str = "") -> None:
        self._characters[start:end] = text.ljust(end - start)

    def _stream(self, relation: SqlRelation) -> None:
        """`STREAM name` and `STREAM(name)` become `name`."""
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
        """Blanks `IDENTIFIED BY name` and `WITH (...)` behind a name."""
        index = self._ends[relation.name_end] + 1
        last = self._ends[relation.primary_end]
        while index <= last:
            key, after = self._tokens[index].key, index + 1
            if key == "IDENTIFIED":
                after = index + 3
            elif key == "WITH":
                after = skip_parentheses(self._tokens, index + 1)
            if key in ("IDENTIFIED", "WITH"):
                self._put(self._tokens[index].start, self._tokens[after - 1].end)
            index = after

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
        """The clause whose tokens are those from `first` up to, not including, `after`."""
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
            delay=self._sql[tokens[delay + 3].start : tokens[after - 1].end],
        )
