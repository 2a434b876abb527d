"""The gap of a session window, which drops every row where it is not longer than nothing."""

from __future__ import annotations

from sqlglot import exp

from sqlstream.compiler.intervals import NEGATIVE, IntervalError, parse_interval
from sqlstream.compiler.problem import SqlProblem


def gap_problem(session: exp.Expr, offset: int) -> SqlProblem | None:
    """Returns the problem of a call of `session_window` whose gap is the text of a length of zero or less."""
    gap = session.expressions[1] if len(session.expressions) > 1 else None
    if not isinstance(gap, exp.Literal) or not gap.is_string or not _is_empty(gap.name):
        return None
    return SqlProblem(
        offset,
        "session-window",
        f"a session window with a gap of '{gap.name}' takes no row",
        "a session lasts from its first row until the gap after its last, and Spark drops the rows of sessions that "
        "last no time",
        "write a longer gap, such as '5 minutes'",
    )


def _is_empty(text: str) -> bool:
    try:
        return all(float(value) == 0 for value, _ in parse_interval(text).units)
    except IntervalError as error:
        return error.why == NEGATIVE
