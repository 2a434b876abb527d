"""Whether functions get as many arguments as they take, and a first one of a type that they take."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sqlstream.compiler.flow.expressions.column import Expressions
from sqlstream.compiler.flow.functions.argument_types import FIRST_ARGUMENTS
from sqlstream.compiler.flow.functions.arities import COUNTS, LEAST, PAIRS
from sqlstream.compiler.flow.names.scope import Scope
from sqlstream.compiler.flow.text import Text
from sqlstream.compiler.flow.types.families import family
from sqlstream.compiler.sql.clauses import at
from sqlstream.compiler.sql.problem import SqlProblem
from sqlstream.compiler.sql.tokens import Tokens
from sqlstream.project.wording import alternatives, counted, quoted

WITHOUT_PLACE: dict[type[exp.Expr], frozenset[str]] = {
    exp.Substring: frozenset({"substring", "substr"}),
    exp.ArgMax: frozenset({"max_by"}),
    exp.ArgMin: frozenset({"min_by"}),
    exp.Quantile: frozenset({"percentile"}),
    exp.ApproxQuantile: frozenset({"percentile_approx", "approx_percentile"}),
}
"""Functions that sqlglot makes without keeping where the name stands, and their names."""

UNCOUNTABLE = frozenset({"*", "=>", "FROM", "FOR", "IN", "USING"})
"""What makes a list of arguments another one than its commas tell: stars, names, and functions' own grammar."""


BEFORE_CALLS = frozenset(
    {
        *("SELECT", "DISTINCT", "WHERE", "AND", "OR", "NOT", "ON", "BY", "WHEN", "THEN", "ELSE", "HAVING", "BETWEEN"),
        *("(", ",", "=", "<>", "!=", ">", "<=", ">=", "+", "-", "*", "/", "||"),
    }
)
"""What stands before a call and not before a type, an alias or the name of a CTE, the comma aside."""

SCRIPT = frozenset({"USING", "ROW"})
"""What stands behind `TRANSFORM (...)` where it is a script's clause and not a function."""

TYPES = frozenset({"decimal", "char", "time", "timestamp", "string", "binary"})
"""Functions whose names are also types, which have arguments of their own."""


def argument_problems(node: exp.Expr, text: Text) -> Iterator[SqlProblem]:
    """Gives a problem for each function in `node` that gets another number of arguments than Spark's takes."""
    walked = text.parts_of(node)
    for _, part in walked.functions:
        if "start" in part.meta:
            yield from _call_problem(text, text.token_at(part.meta["start"]))
    for part in walked.parts if not WITHOUT_PLACE.keys().isdisjoint(walked.kinds) else ():
        if type(part) in WITHOUT_PLACE and "start" not in part.meta:
            yield from _unplaced(part, text)


def type_problems(node: exp.Expr, scope: Scope, expressions: Expressions) -> Iterator[SqlProblem]:
    """Gives a problem for each function in `node` whose first argument is of a type that it does not take."""
    text = expressions.text
    for _, part in text.parts_of(node).functions:
        index = text.token_at(part.meta["start"]) if "start" in part.meta else None
        name = "" if index is None else text.tokens[index].name.lower()
        count, families = FIRST_ARGUMENTS.get(name, (0, frozenset()))
        if index is None or count == 0 or _count(text, index + 1) != count:
            continue
        first = _first_argument(part, text)
        type_ = None if first is None else expressions.type_of(first, scope)
        if first is not None and family(type_) not in families | {"", "void"}:
            yield SqlProblem(
                text.where(first).offset,
                "type-mismatch",
                f"the argument {quoted(text.written(first))} of {quoted(name)} has type {type_}",
                f"it accepts {alternatives(sorted(families))}, and Spark does not cast this type implicitly",
                "extract a part of the value, or use another function",
            )


def _first_argument(call: exp.Expr, text: Text) -> exp.Expr | None:
    """The argument that is written first, where it names a column: Spark takes more of literals."""
    children = sorted(call.iter_expressions(), key=lambda child: text.where(child).offset)
    first = children[0] if children else None
    if isinstance(first, exp.Cast) and not isinstance(first, exp.TryCast):  # sqlglot adds such casts
        first = first.this
    return first if first is not None and text.parts_of(first).names else None


def unread_argument_problems(text: Text) -> Iterator[SqlProblem]:
    """Gives the same problems of a text of which there is no tree: sqlglot reads no function with too few arguments."""
    for index, token in enumerate(text.tokens):
        is_call = at(text.tokens, index + 1).key == "(" and at(text.tokens, index - 1).key in BEFORE_CALLS
        if is_call and token.name.lower() not in TYPES:
            after = text.after[index + 1]
            following = [at(text.tokens, after + step).key for step in (0, 1)]
            if following != ["AS", "("] and following[0] not in SCRIPT:
                yield from _call_problem(text, index)


def _unplaced(part: exp.Expr, text: Text) -> Iterator[SqlProblem]:
    """The problem of a call that has no place, where it is the only one of its function in the text."""
    places = [index for name in WITHOUT_PLACE[type(part)] for index in text.calls.get(name, ())]
    if len(places) == 1:
        yield from _call_problem(text, places[0])


def _call_problem(text: Text, index: int | None) -> Iterator[SqlProblem]:
    tokens = text.tokens
    if index is None or at(tokens, index + 1).key != "(" or at(tokens, index - 1).key == ".":
        return
    name = tokens[index]
    count = _count(text, index + 1)
    taken = None if count is None else _taken(name.name.lower(), count)
    if taken is not None:
        yield SqlProblem(
            name.start,
            "argument-count",
            f"{quoted(name.text)} has {counted(count or 0, 'argument')}",
            f"this Spark function takes {taken}",
            "add or remove arguments; `describe function extended` in a Spark shell shows examples",
        )


def _count(text: Text, opening: int) -> int | None:
    """The number of arguments in the parentheses at `opening`; None where commas do not tell it."""
    if opening not in text.after:  # sqlglot takes some characters for blanks that are none
        return None
    level = list(_level(text, opening + 1, text.after[opening] - 1))
    if any(text.tokens[index].key in UNCOUNTABLE and not _is_operator(text.tokens, index) for index in level):
        return None
    return 1 + sum(text.tokens[index].key == "," for index in level) if level else 0


def _level(text: Text, start: int, end: int) -> Iterator[int]:
    """The indexes of the tokens between two places; of those in brackets only the opening one."""
    tokens, index = text.tokens, start
    while index < end:
        yield index
        depth = 1 if tokens[index].key == "[" else 0
        index = text.after.get(index, index + 1)
        while depth and index < end:
            depth += {"[": 1, "]": -1}.get(tokens[index].key, 0)
            index += 1


def _is_operator(tokens: Tokens, index: int) -> bool:
    """Whether a star stands between two operands."""
    return tokens[index].key == "*" and at(tokens, index - 1).key not in ("(", ",", ".", "DISTINCT")


def _taken(name: str, count: int) -> str | None:
    """What a function takes, in words; None where `count` is right."""
    if name in COUNTS and count not in COUNTS[name]:
        *most, last = COUNTS[name]
        listed = f"{', '.join(map(str, most))} or {last}" if most else str(last)
        return f"{listed} argument{'' if COUNTS[name] == (1,) else 's'}" if last else "no arguments"
    if count < LEAST.get(name, 0):
        return f"at least {counted(LEAST[name], 'argument')}"
    return "pairs of arguments, so an even number" if name in PAIRS and count % 2 else None
