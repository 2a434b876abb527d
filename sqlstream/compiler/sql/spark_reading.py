"""Parses Spark SQL with sqlglot: one parser per thread, with limits, pipe syntax, and corrections of the tree.

sqlglot reads the type of a literal (`DATE '...' :: type`) as a cast of all casts that follow it, and drops plus signs.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import Token as SqlglotToken
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel

from sqlstream.compiler.sql.clauses import NO_TOKEN
from sqlstream.compiler.sql.sql_text import SqlText
from sqlstream.compiler.sql.tokens import Token, TokenKind, Tokens

PLUS = "~"
"""Replaces a plus sign before an operand while sqlglot reads a text without `~`."""

_BEFORE_OPERAND = frozenset({
    "SELECT", "DISTINCT", "WHERE", "AND", "OR", "NOT", "ON", "BY", "CASE", "WHEN", "THEN", "ELSE", "HAVING", "BETWEEN",
    "(", ",", "[", "=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "||",
})  # fmt: skip

_DIALECT = Spark()


class _Reader(threading.local):
    """A tokenizer and a parser for each thread, because both have state while they read."""

    def __init__(self) -> None:
        self.tokenizer = _DIALECT.tokenizer()
        self.parser = _DIALECT.parser()
        self.is_reading = False


_READER = _Reader()

# sqlglot logs a warning for SQL that it does not know. That is no news for the user: Spark decides what is valid.
logging.getLogger("sqlglot").addFilter(lambda _record: not _READER.is_reading)


def tokenize_for_sqlglot(sql: str) -> list[SqlglotToken]:
    """Returns the tokens of `sql`. Raises: sqlglot's TokenError."""
    return _READER.tokenizer.tokenize(sql)


def parse(tokens: list[SqlglotToken], sql: str) -> list[exp.Expr | None]:
    """Returns the trees of the statements in `sql`. Raises: sqlglot's ParseError, or any other exception."""
    reader = _READER
    reader.is_reading = True
    try:
        return reader.parser.parse(tokens, sql)
    finally:
        reader.is_reading = False


def write(node: exp.Expr) -> str:
    """Returns `node` as SQL on one line, without comments and with the original letter case of functions."""
    return _DIALECT.generate(node, comments=False, normalize_functions=False, unsupported_level=ErrorLevel.IGNORE)


def plus_signs(tokens: Tokens) -> Iterator[Token]:
    """Yields each plus sign that is certainly a sign and not an operator, except those of numbers."""
    for before, token, after in zip(tokens, tokens[1:], (*tokens[2:], NO_TOKEN), strict=False):
        is_sign = token.key == "+" and before.key in _BEFORE_OPERAND
        if is_sign and after.kind is not TokenKind.NUMBER and after.key not in ("INTERVAL", "+", "-"):
            yield token


def read_as_spark(tree: exp.Expr, text: str, *, has_plus: bool) -> None:
    """Changes `tree`, the tree of `text`, to Spark's meaning. With `has_plus`, each `~` is a plus sign."""
    if "::" in text:
        for node in list(tree.find_all(exp.Cast, exp.Neg)):
            _cast_literal(node, text)
    if "collate" in text.lower():  # string collate unicode: sqlglot reads the name of a column
        for type_ in list(tree.find_all(exp.DataType)):
            if isinstance(type_.args.get("collate"), exp.Column):
                type_.set("collate", exp.var(type_.args["collate"].name))
    if has_plus:
        for sign in list(tree.find_all(exp.BitwiseNot)):
            sign.replace(exp.Anonymous(this="positive", expressions=[sign.this]))


def _cast_literal(node: exp.Expr, text: str) -> None:
    """Moves the type or sign before a literal inside the casts that follow the literal."""
    # `x::type` is a TryCast in the tree of sqlglot.
    if isinstance(node, exp.TryCast) or not isinstance(node.this, exp.TryCast):
        return
    casts = innermost = node.this
    while isinstance(innermost.this, exp.TryCast):
        innermost = innermost.this
    literal = innermost.this
    if not isinstance(literal, exp.Literal) or "start" not in literal.meta:
        return
    before = text[: literal.meta["start"]].rstrip()[-1:]
    if isinstance(node, exp.Neg):
        whole: exp.Expr | None = exp.Neg(this=literal) if before == "-" and not literal.is_string else None
    else:
        whole = exp.Cast(this=literal, to=node.args["to"]) if before.isalnum() else None
    if whole is not None:
        node.replace(casts)
        innermost.set("this", whole)


# Parses the stages of a query in pipe syntax, `FROM t |> WHERE a > 1 |> SELECT b`, each as a separate tree.
#
# sqlglot would turn them into CTEs, with names and offsets that the text does not have. Here each stage becomes a
# query over a placeholder for the previous rows. Offsets in the trees refer to the whole text.

ParseQuery = Callable[[str], exp.Query | None]
"""Parses a query. Returns None if that is not possible."""

PREVIOUS_ROWS = "SELECT * FROM p "
"""The text before a stage that changes or joins the previous rows."""

_ON_ROWS = frozenset(
    """
    ANTI CLUSTER CROSS DISTRIBUTE EXCEPT FULL INNER INTERSECT JOIN LEFT LIMIT MINUS NATURAL OFFSET ORDER PIVOT RIGHT
    SEMI SORT TABLESAMPLE UNION UNPIVOT WHERE
    """.split()  # noqa: SIM905 - a list of words
)
_ON_LISTS = frozenset({"SELECT", "EXTEND", "SET", "DROP"})
"""The stages that consist of a list of expressions."""


@dataclass(frozen=True)
class PipeStage:
    """One stage: its first word in capitals, the offset of that word, and the contents.

    `tree` is a query over the previous rows. For a list of expressions it is a SELECT without FROM. It is None for
    other stages, and if it cannot be parsed. `keys` are the GROUP BY keys of AGGREGATE, None if they cannot be parsed.
    `name` is the alias of AS.
    """

    keyword: str
    start: int
    tree: exp.Query | None = None
    keys: tuple[exp.Expr, ...] | None = ()
    name: str = ""


def cut(tokens: Tokens) -> list[int] | None:
    """Returns the indexes of the `|>` of a query; None if some are in parentheses."""
    found = [index for index, token in enumerate(tokens) if token.key == "|>"]
    return found if set(found) <= set(_outside(tokens)) else None


def _outside(tokens: Tokens) -> Iterator[int]:
    """Yields the indexes of the tokens that are not in parentheses."""
    depth = 0
    for index, token in enumerate(tokens):
        depth += (token.key == "(") - (token.key == ")")
        if not depth:
            yield index


def parse_stages(tokens: Tokens, cuts: list[int], text: str, parse: ParseQuery) -> tuple[PipeStage, ...]:
    """Returns the stages after the indexes `cuts`. The offsets of the tokens refer to `text`."""
    edges = pairwise([*cuts, len(tokens)])
    return tuple(_stage(tokens[start + 1 : end], text, parse) for start, end in edges)


def _stage(tokens: Tokens, text: str, parse: ParseQuery) -> PipeStage:
    if not tokens:
        return PipeStage("", len(text))
    key, start = tokens[0].key, tokens[0].start
    if key == "AS" and len(tokens) == 2:
        return PipeStage("AS", start, name=tokens[1].name)
    if key == "AGGREGATE":
        return _aggregate(tokens, text, parse)
    if key in _ON_ROWS:
        return PipeStage(key, start, _parsed(PREVIOUS_ROWS, tokens, text, parse))
    if key in _ON_LISTS:
        return PipeStage(key, start, _parsed("SELECT ", tokens[1:], text, parse))
    return PipeStage(key, start)


def _aggregate(tokens: Tokens, text: str, parse: ParseQuery) -> PipeStage:
    """Returns the stage of AGGREGATE: a list, which may be empty, and the keys of GROUP BY, which may have aliases."""
    keys = [token.key for token in tokens]
    at = next((index for index in _outside(tokens) if keys[index : index + 2] == ["GROUP", "BY"]), len(tokens))
    listed, grouped = (
        _parsed("SELECT ", part, text, parse) if part else exp.Select() for part in (tokens[1:at], tokens[at + 2 :])
    )
    group_keys = None if grouped is None else tuple(grouped.args.get("expressions") or ())
    return PipeStage("AGGREGATE", tokens[0].start, listed, group_keys)


def _parsed(prefix: str, tokens: tuple[Token, ...], text: str, parse: ParseQuery) -> exp.Query | None:
    """Returns the tree of `prefix` and the text of the tokens, with offsets that refer to the whole text."""
    tree = parse(prefix + text[tokens[0].start : tokens[-1].end]) if tokens else None
    if tree is None:
        return None
    moved = tokens[0].start - len(prefix)
    for node in tree.walk():
        if node.meta.get("start", -1) >= len(prefix):
            node.meta["start"] += moved
            node.meta["end"] += moved
        else:
            # The prefix is not in the text, so what it contains has no place.
            node.meta.pop("start", None)
            node.meta.pop("end", None)
    return tree


DEEPEST_NESTING = 100
"""The deepest nesting of brackets. sqlglot is compiled code that recurses for each level without checking the stack, so
the process crashes at a few thousand levels.
"""

MOST_READS = 100_000
"""The most tokens to read, where sqlglot reads some of them many times. Each takes about five microseconds."""

MOST_VIEWS = 300
"""The most LATERAL VIEW, PIVOT and UNPIVOT in one text. The cost of each grows with the number before it."""

TYPE_NAMES = frozenset(
    word for word, kind in Spark.tokenizer_class.KEYWORDS.items() if kind in Spark.parser_class.TYPE_TOKENS
)
"""Words that sqlglot first reads as a type, then as a function. It reads the contents of their parentheses twice, so
the cost of `struct(struct(...))` doubles with every level.
"""

NESTED_TYPES = frozenset({"ARRAY", "MAP", "STRUCT"})
"""Types with element types in `<` and `>`."""

QUERIES = frozenset({"FROM", "SELECT"})
BEFORE_QUERIES = frozenset({",", "FROM", "JOIN", "LATERAL"})
VIEWS = frozenset({"VIEW", "PIVOT", "UNPIVOT"})
CLOSINGS = {"(": ")", "[": "]", "{": "}", "CASE": "END"}
JOINS = frozenset({"JOIN", "STRAIGHT_JOIN"})
PREFIXES = frozenset({"!", "~", "@", "NOT", "ANY", "ARRAY", "DESC", "DESCRIBE", "FROM", "INTERVAL"})
"""Words after which sqlglot recurses to read an operand or a query: nesting without brackets."""

OPERATORS = frozenset(
    {"*", "/", "%", "=", "==", "!=", "<>", "<", ">", "<=", ">=", "<=>", "||", "|", "&", "^", "::", "->"}
)
_SIGNED = PREFIXES | OPERATORS | {"-", "+"}
PREFIXES_AFTER = {"-": _SIGNED, "+": _SIGNED, "RENAME": {"*"}, "REPLACE": {"*"}}
"""Words that are prefixes only after certain others: `-` as a sign, and the clause `* REPLACE`."""

NEXT_OPERAND = frozenset({",", "AND", "OR", "WHEN", "THEN", "ELSE", "BY"})
"""Words that end the operand of a prefix, like those in `ENDS_FROM`."""

ENDS_FROM = frozenset({"SELECT", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "EXCEPT", "INTERSECT", "|>"})

_COUNTED = frozenset().union(
    *(CLOSINGS, CLOSINGS.values(), "<>", VIEWS, QUERIES, JOINS, PREFIXES, PREFIXES_AFTER, NEXT_OPERAND, ENDS_FROM),
    ("ON", "USING"),
)

_NESTING = (*CLOSINGS, "<", *PREFIXES, *PREFIXES_AFTER, *QUERIES, *VIEWS)
_DOUBLING = JOINS | TYPE_NAMES


@dataclass
class _Level:
    """A pair of brackets that ends with `closing` (None: the whole text). sqlglot reads its contents `times` times.

    After a join without a condition it reads all following joins twice. `joins` counts the joins that have no condition
    yet, each of which doubles `times`. `depth` is the nesting of the brackets, `prefixes` that of the present operand.
    """

    closing: str | None
    times: int
    depth: int = 0
    joins: int = 0
    prefixes: int = 0

    def take(self, before: Token, token: Token) -> None:
        """Counts `token`, one of `_COUNTED`: a prefix, a join, its condition, or the end of an operand or of FROM."""
        if token.key in NEXT_OPERAND or token.key in ENDS_FROM:
            self.prefixes = 0
        elif token.key in PREFIXES or before.key in PREFIXES_AFTER.get(token.key, ()):
            self.prefixes += 1
        if token.key in JOINS and before.key != "CROSS":
            self.joins += 1
            self.times *= 2
        elif token.key in ("ON", "USING") and self.joins:
            self.joins -= 1
            self.times //= 2
        elif token.key in ENDS_FROM:
            self.times //= 2**self.joins
            self.joins = 0


def is_bounded(text: SqlText) -> bool:
    """Returns whether sqlglot can read `text` within the limits above."""
    return _is_small(text.keys, len(text.tokens)) or _is_bounded(text.tokens)


def _is_small(keys: Mapping[str, int], tokens: int) -> bool:
    """Whether a text is within the limits even if all its words of `_NESTING` were nested in each other."""
    nesting = sum(keys[key] for key in _NESTING if key in keys)
    doubling = sum(keys[key] for key in _DOUBLING if key in keys)
    # Each of these words can double the reads of all tokens.
    return nesting <= DEEPEST_NESTING and tokens << doubling <= MOST_READS


def _is_bounded(tokens: Tokens) -> bool:
    reads = queries = views = 0
    levels = [_Level(None, 1)]
    for before, token in pairwise((NO_TOKEN, *tokens)):
        here = levels[-1]
        reads += here.times
        if token.key not in _COUNTED and reads <= MOST_READS:
            continue
        here.take(before, token)
        queries += token.key in QUERIES and before.key in BEFORE_QUERIES  # all that follows is nested in it
        views += token.key in VIEWS
        closing = ">" if token.key == "<" and before.key in NESTED_TYPES else CLOSINGS.get(token.key)
        if closing is not None:
            is_doubled = token.key == "(" and before.key in TYPE_NAMES
            levels.append(_Level(closing, here.times * 2 if is_doubled else here.times, here.depth + here.prefixes + 1))
        elif token.key == here.closing:
            levels.pop()
        if reads > MOST_READS or views > MOST_VIEWS or here.depth + here.prefixes + queries > DEEPEST_NESTING:
            return False
    return True
