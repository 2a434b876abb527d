"""Checks the number of arguments of each function call, and the type of the first one."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sqlstream.compiler.flow.expressions.column import Expressions
from sqlstream.compiler.flow.expressions.literals import WITHOUT_PLACE
from sqlstream.compiler.flow.functions import FUNCTIONS
from sqlstream.compiler.flow.names import Scope
from sqlstream.compiler.flow.text import Text
from sqlstream.compiler.flow.types import family
from sqlstream.compiler.sql.clauses import at
from sqlstream.compiler.sql.edits import SqlProblem
from sqlstream.compiler.sql.tokens import Tokens
from sqlstream.project.wording import alternatives, counted, quoted

UNCOUNTABLE = frozenset({"*", "=>", "FROM", "FOR", "IN", "USING"})
"""Tokens in arguments that commas do not separate: a star, a name, or special syntax."""

BEFORE_CALLS = frozenset(
    """
    SELECT DISTINCT WHERE AND OR NOT ON BY WHEN THEN ELSE HAVING BETWEEN ( , = <> != > <= >= + - * / ||
    """.split()  # noqa: SIM905 - a list of words
)
"""Tokens that can come before a call, and, except for the comma, not before a type, an alias or the name of a CTE."""

SCRIPT = frozenset({"USING", "ROW"})
"""Tokens that follow `TRANSFORM (...)` if it is the clause that runs a script, and not the function."""

TYPES = frozenset({"decimal", "char", "time", "timestamp", "string", "binary"})
"""Functions whose names are also types, which have their own arguments."""


def argument_problems(node: exp.Expr, text: Text) -> Iterator[SqlProblem]:
    """Yields a problem for each function in `node` with a number of arguments that Spark does not accept."""
    walked = text.parts_of(node)
    for _, part in walked.functions:
        if "start" in part.meta:
            yield from _call_problem(text, text.token_at(part.meta["start"]))
    for part in walked.parts if not WITHOUT_PLACE.keys().isdisjoint(walked.kinds) else ():
        if type(part) in WITHOUT_PLACE and "start" not in part.meta:
            yield from _unplaced(part, text)


def type_problems(node: exp.Expr, scope: Scope, expressions: Expressions) -> Iterator[SqlProblem]:
    """Yields a problem for each function in `node` whose first argument has a type that Spark does not accept."""
    text = expressions.text
    for _, part in text.parts_of(node).functions:
        index = text.token_at(part.meta["start"]) if "start" in part.meta else None
        name = "" if index is None else text.tokens[index].name.lower()
        function = FUNCTIONS.get(name)
        count = None if index is None or function is None else _count(text, index + 1)
        families = function.families(count) if function is not None and count else frozenset()
        first = _first_argument(part, text) if families else None
        type_ = None if first is None else expressions.type_of(first, scope)
        if first is not None and family(type_) not in families | {"", "void"}:
            what = f"the argument {quoted(text.written(first))} of {quoted(name)} has type {type_}"
            why = f"it accepts {alternatives(sorted(families))}, and Spark does not cast this type implicitly"
            yield text.problem(
                first, "type-mismatch", what, why, "extract a part of the value, or use another function"
            )


def _first_argument(call: exp.Expr, text: Text) -> exp.Expr | None:
    """Returns the first argument in the text if it reads a column: Spark accepts literals of more types."""
    children = sorted(call.iter_expressions(), key=lambda child: text.where(child).offset)
    first = children[0] if children else None
    if isinstance(first, exp.Cast) and not isinstance(first, exp.TryCast):  # sqlglot adds such casts
        first = first.this
    return first if first is not None and text.parts_of(first).names else None


def unread_argument_problems(text: Text) -> Iterator[SqlProblem]:
    """Yields the same problems for a text that sqlglot cannot parse, because of a function with too few arguments."""
    for index in sorted(opening - 1 for opening in text.after):
        is_call = at(text.tokens, index).name.lower() not in TYPES and at(text.tokens, index - 1).key in BEFORE_CALLS
        following = [at(text.tokens, text.after[index + 1] + step).key for step in (0, 1)]
        if is_call and following != ["AS", "("] and following[0] not in SCRIPT:
            yield from _call_problem(text, index)


def _unplaced(part: exp.Expr, text: Text) -> Iterator[SqlProblem]:
    """Yields the problem of a call without a place, if the text calls the function only once."""
    places = [index for name in WITHOUT_PLACE[type(part)] for index in text.calls.get(name, ())]
    if len(places) == 1:
        yield from _call_problem(text, places[0])


def _call_problem(text: Text, index: int | None) -> Iterator[SqlProblem]:
    tokens = text.tokens
    if index is None or at(tokens, index + 1).key != "(" or at(tokens, index - 1).key == ".":
        return
    name = tokens[index]
    count = _count(text, index + 1)
    function = FUNCTIONS.get(name.name.lower())
    wanted = None if count is None or function is None else function.counts.wanted(count)
    if wanted is not None:
        what = f"{quoted(name.text)} has {counted(count or 0, 'argument')}"
        why = f"this Spark function takes {wanted}"
        fix = "add or remove arguments; `describe function extended` in a Spark shell shows examples"
        yield SqlProblem(name.start, "argument-count", what, why, fix)


def _count(text: Text, opening: int) -> int | None:
    """Returns the number of arguments in the parentheses at `opening`; None if commas do not separate them."""
    if opening not in text.after:  # sqlglot treats some other characters as blanks
        return None
    level = list(_level(text, opening + 1, text.after[opening] - 1))
    if any(text.tokens[index].key in UNCOUNTABLE and not _is_operator(text.tokens, index) for index in level):
        return None
    return 1 + sum(text.tokens[index].key == "," for index in level) if level else 0


def _level(text: Text, start: int, end: int) -> Iterator[int]:
    """Yields the indexes of the tokens from `start` to `end`, but only the opening bracket of those in brackets."""
    tokens, index = text.tokens, start
    while index < end:
        yield index
        depth = 1 if tokens[index].key == "[" else 0
        index = text.after.get(index, index + 1)
        while depth and index < end:
            depth += {"[": 1, "]": -1}.get(tokens[index].key, 0)
            index += 1


def _is_operator(tokens: Tokens, index: int) -> bool:
    """Returns whether a star is between two operands."""
    return tokens[index].key == "*" and at(tokens, index - 1).key not in ("(", ",", ".", "DISTINCT")
