"""Spark's built-in functions by name: those of the registry of Spark 4.3 and those that its grammar knows.

`tests/spark/test_function_names.py` compares them with the installed Spark.
"""

from __future__ import annotations

from sqlglot import exp

from sqlstream.compiler.flow.functions import aggregates, scalars
from sqlstream.compiler.flow.functions.signatures import read_signatures

_AGGREGATES = dict(read_signatures(aggregates.AGGREGATES))
_GENERATORS = dict(read_signatures(aggregates.GENERATORS))
_WINDOW_FUNCTIONS = dict(read_signatures(aggregates.WINDOW_FUNCTIONS))

FUNCTIONS = {**_AGGREGATES, **_GENERATORS, **_WINDOW_FUNCTIONS, **dict(read_signatures(scalars.SCALARS))}
"""The signatures of all functions that can be used in an expression, by name in lower case."""

AGGREGATES = frozenset(_AGGREGATES)
GENERATORS = frozenset(_GENERATORS)
WINDOW_FUNCTIONS = frozenset(_WINDOW_FUNCTIONS)
TABLE_FUNCTIONS = GENERATORS | frozenset(aggregates.TABLE_FUNCTIONS.split())

WITHOUT_PLACE: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.AnyValue: ("any_value",),
    exp.ApproxQuantile: ("percentile_approx", "approx_percentile"),
    exp.ArgMax: ("max_by",),
    exp.ArgMin: ("min_by",),
    exp.Chr: ("chr", "char"),
    exp.Count: ("count",),
    exp.CumeDist: ("cume_dist",),
    exp.CurrentDate: ("current_date",),
    exp.CurrentTimestamp: ("current_timestamp",),
    exp.CurrentUser: ("current_user",),
    exp.DenseRank: ("dense_rank",),
    exp.First: ("first",),
    exp.FirstValue: ("first_value",),
    exp.If: ("if",),
    exp.Initcap: ("initcap",),
    exp.Last: ("last",),
    exp.LastValue: ("last_value",),
    exp.LogicalAnd: ("bool_and", "every"),
    exp.LogicalOr: ("bool_or", "any", "some"),
    exp.Ntile: ("ntile",),
    exp.PercentRank: ("percent_rank",),
    exp.Quantile: ("percentile",),
    exp.Rank: ("rank",),
    exp.RowNumber: ("row_number",),
    exp.StrPosition: ("position",),
    exp.Substring: ("substring", "substr"),
    exp.Trim: ("trim",),
}
"""Functions that sqlglot makes without keeping the place of the name, and their names."""
