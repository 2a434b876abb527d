"""What Spark takes as the number of a LIMIT or OFFSET: a constant INT that is not negative."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sqlstream.compiler.flow.expressions.column import Expressions
from sqlstream.compiler.flow.names.scope import Scope
from sqlstream.compiler.flow.text import Text, parts_of
from sqlstream.compiler.flow.types.values import INT, kind
from sqlstream.compiler.sql.clauses import at
from sqlstream.compiler.sql.problem import SqlProblem
from sqlstream.project.wording import quoted

NEVER_CONSTANT = frozenset({"rand", "randn", "random", "uuid", "shuffle", "input_file_name", "spark_partition_id"})


def limit_problems(clause: str, value: exp.Expr, expressions: Expressions) -> Iterator[SqlProblem]:
    """Gives what is wrong with the value of a LIMIT or OFFSET (`CheckAnalysis.checkLimitLikeClause`)."""
    why = _reason(value, expressions)
    if why is not None:
        what = f"{clause.upper()} cannot be {quoted(expressions.text.written(value))}"
        fix = "use a whole-number literal"
        yield SqlProblem(_offset(value, expressions.text), "bad-limit", what, why, fix)


def _offset(value: exp.Expr, text: Text) -> int:
    """Where a value stands, its sign included: sqlglot keeps no place for that."""
    offset = text.where(value).offset
    token = text.token_at(offset)
    is_signed = isinstance(value, exp.Neg) and token is not None and at(text.tokens, token - 1).key == "-"
    return text.tokens[token - 1].start if is_signed and token else offset


def _reason(value: exp.Expr, expressions: Expressions) -> str | None:
    for part in value.walk():
        called = expressions.text.function(part) in NEVER_CONSTANT
        if parts_of(part) or called or isinstance(part, exp.Query):
            return "Spark needs a constant that it knows before it reads any rows"
    type_ = expressions.type_of(value, Scope())
    if kind(type_) and type_ != INT:
        return f"it has type {type_}, but Spark needs an INT"
    if isinstance(value, exp.Neg) and isinstance(value.this, exp.Literal) and value.this.name.strip("0"):
        return "it is negative"
    return None
