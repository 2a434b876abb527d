"""The functions of several rows, as `signatures` reads them; those of Spark 4.3."""

from __future__ import annotations

AGGREGATES = """
(boolean|string) -> boolean: any bool_and bool_or every some
1,2 (T) -> T: any_value first first_value last last_value
1,2 (any) -> bigint: approx_count_distinct
2,3 (atomic): approx_percentile percentile percentile_approx
1-3 (boolean|number|string|datetime): approx_top_k
1,2 (boolean|number|string|datetime): approx_top_k_accumulate
1,2 (any): approx_top_k_combine
(T) -> array<T>: array_agg collect_list
(number|string|datetime|span): avg mean sum try_avg try_sum
(T=number) -> T: bit_and bit_or bit_xor
(binary) -> binary: bitmap_and_agg bitmap_or_agg
(number|string) -> binary: bitmap_construct_agg
(T=atomic|array|struct) -> array<T>: collect_set
(array<T>) -> array<T>: collect_union
(atomic, any) -> double: corr covar_pop covar_samp regr_avgx regr_avgy regr_intercept regr_r2 regr_slope regr_sxx
    regr_sxy regr_syy
1+ (any) -> bigint: count
(boolean|string) -> bigint: count_if
0-4 (any) -> binary: count_min_sketch
(any) -> tinyint: grouping
* (any) -> bigint: grouping_id
(any, any): histogram_numeric
1,2 (number|string|binary) -> binary: hll_sketch_agg
1,2 (binary) -> binary: hll_union_agg
1,2 (binary): kll_merge_agg_bigint kll_merge_agg_double kll_merge_agg_float theta_union_agg
1,2 (number): kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float
(number|string) -> double: kurtosis skewness std stddev stddev_pop stddev_samp var_pop var_samp variance
1,2 (atomic): listagg string_agg
(T=basic|array|struct) -> T: max min
2,3 (any): max_by min_by
(any): measure percentile_cont percentile_disc
(number|string|span): median
0-2 (T) -> T: mode
(atomic, any) -> bigint: regr_count
(binary): theta_intersection_agg
1,2 (number|string|binary|array): theta_sketch_agg
1,2 (string|binary): tuple_intersection_agg_double tuple_intersection_agg_integer
0-4 (any): tuple_sketch_agg_double tuple_sketch_agg_integer
0-3 (string|binary): tuple_union_agg_double tuple_union_agg_integer
"""

GENERATORS = """
0,1 (array|map): explode explode_outer posexplode posexplode_outer
0,1 (any): inline inline_outer
2+ (atomic): json_tuple
2+ (any): stack
* (any): variant_explode variant_explode_outer
"""
"""Functions that return several rows; they can also be table functions in FROM."""

WINDOW_FUNCTIONS = """
0-2 (any): counter_diff
() -> double: cume_dist
* (any) -> int: dense_rank rank
0-4 (T) -> T: lag lead
2,3 (T) -> T: nth_value
0,1 (any) -> int: ntile
* (any) -> double: percent_rank
() -> int: row_number
"""
"""Functions that need OVER."""

TABLE_FUNCTIONS = "collations python_worker_logs range sql_keywords"
"""The functions that can be used only in FROM."""
