"""The functions whose name has no place in sqlglot's tree."""

from __future__ import annotations

from sqlglot import exp

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
"""The names that Spark has for these nodes of sqlglot, which do not keep the place of the name."""
