"""Functions that give another value each time, and the places where Spark does not take them."""

from __future__ import annotations

from sqlglot import exp

ROW_IDS = frozenset({"monotonically_increasing_id"})
"""Functions that Spark refuses in a streaming query, in its static parts as well."""

RANDOM = ROW_IDS | frozenset(
    """
    input_file_block_length input_file_block_start input_file_name rand randn random randstr shuffle spark_partition_id
    uniform uuid
    """.split()  # noqa: SIM905 - as a list of quoted words this would be three times as long
)
"""Functions that are no `deterministic` expressions to Spark 4.3."""

_CLOCKS = {
    exp.CurrentDate: "current_date",
    exp.CurrentTimestamp: "current_timestamp",
    exp.Localtimestamp: "localtimestamp",
}
"""Functions of the time at which a batch begins, by sqlglot's classes, which know them inside `unix_timestamp()` too.

A streaming query replaces them by an expression that is not deterministic to Spark; `now()` it does not.
"""


def clock_in(condition: exp.Expr | None) -> str:
    """Returns the name of a function of the current time in the condition of a join, empty where there is none."""
    found = condition.find(*_CLOCKS) if condition is not None else None
    return _CLOCKS[type(found)] if found is not None else ""
