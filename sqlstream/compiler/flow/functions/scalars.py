"""The functions of one row and of several, as `known` reads them; those of Spark 4.3, its grammar included."""

from __future__ import annotations

SCALARS = """
(number|string|span): abs
(number|string) -> double: acos acosh asin asinh atan atanh cbrt cos cosh cot csc degrees exp expm1 ln log10 log1p
    log2 radians rint sec sin sinh sqrt tan tanh
(atomic, any) -> date: add_months next_day trunc
2-5 (atomic) -> binary: aes_decrypt try_aes_decrypt
2-6 (atomic) -> binary: aes_encrypt
3,4 (any): aggregate reduce
* (any): and array between cast convert current_time date_add date_diff dateadd datediff div extract identifier in
    localtime mod not or overlay struct timestampadd try_cast when
1,2 (any): approx_top_k_estimate schema_of_avro st_asbinary to_avro to_time try_to_time vector_norm vector_normalize
(array<T>, T) -> array<T>: array_append array_prepend
(array<T>) -> array<T>: array_compact array_distinct
(array, any) -> boolean: array_contains arrays_overlap exists forall
(array<T>, array<T>) -> array<T>: array_except array_intersect array_union
(array<T>, any, T) -> array<T>: array_insert
2,3 (array) -> text: array_join
(array<T>) -> T: array_max array_min
(array, any) -> bigint: array_position
(array<T>, any) -> array<T>: array_remove filter
(T, any) -> array<T>: array_repeat
(array) -> int: array_size
1,2 (array<T>) -> array<T>: array_sort shuffle sort_array
* (array): arrays_zip
(atomic) -> int: ascii bit_length char_length character_length len length octet_length
1,2 (any) -> void: assert_true
(atomic, any) -> double: atan2 hypot jaro_winkler_similarity pow power xpath_double xpath_number
(string|binary) -> string: base64 md5 sha sha1
(boolean|number|string|datetime|span|variant) -> bigint: bigint
(number|string) -> string: bin char chr
(string|binary|variant) -> binary: binary
(boolean|number) -> int: bit_count
(atomic, any) -> tinyint: bit_get getbit
(number|string) -> bigint: bitmap_bit_position bitmap_bucket_number factorial
(binary) -> bigint: bitmap_count hll_sketch_estimate
(boolean|number|string|variant) -> boolean: boolean
1,2 (number|string): bround ceiling round
1,2 (atomic) -> text: btrim ltrim rtrim
(array|map) -> int: cardinality size
* (number|string): ceil floor
1+ (T...) -> T: coalesce
(any, any): collate date_part datepart session_window st_setsrid time_trunc to_number try_to_number
    vector_cosine_similarity vector_inner_product vector_l2_distance
(string) -> string: collation
* (atomic|array): concat
1+ (atomic) -> text: concat_ws format_string printf
(atomic, any) -> boolean: contains endswith regexp regexp_like rlike startswith xpath_boolean
(any, any, any) -> string: conv
2,3 (atomic) -> timestamp_ntz: convert_timezone
(string|binary) -> bigint: crc32
() -> date: curdate
() -> string: current_catalog current_database current_schema current_timezone input_file_name version
* (any) -> date: current_date
* (any) -> text: current_path trim
* (any) -> timestamp: current_timestamp
* (any) -> string: current_user session_user user
(string|datetime|variant) -> date: date
(atomic, any) -> string: date_format get_json_object sha2
(number|string) -> date: date_from_unix_date
(atomic, any): date_sub kll_sketch_get_quantile_bigint kll_sketch_get_quantile_double kll_sketch_get_quantile_float
    kll_sketch_get_rank_bigint kll_sketch_get_rank_double kll_sketch_get_rank_float kll_sketch_merge_bigint
    kll_sketch_merge_double kll_sketch_merge_float left nanvl pmod shiftleft shiftright shiftrightunsigned
    theta_difference theta_intersection try_add try_divide try_mod try_multiply try_subtract tuple_difference_double
    tuple_difference_integer tuple_difference_theta_double tuple_difference_theta_integer
(atomic, any) -> timestamp: date_trunc from_utc_timestamp to_utc_timestamp
(string|datetime) -> int: day dayofmonth dayofweek dayofyear month quarter weekday weekofyear year
(string|datetime) -> string: dayname monthname
(boolean|number|string|datetime|span|variant) -> decimal(10, 0): decimal
2+ (any): decode java_method reflect try_reflect
(boolean|number|string|datetime|variant) -> double: double
() -> double: e pi
(array|map, any): element_at try_element_at
2+ (atomic): elt
(atomic, any) -> binary: encode
(atomic|array|struct, any) -> boolean: equal_null
(atomic, any) -> int: find_in_set regexp_count xpath_int
(array<array<T>>) -> array<T>: flatten
(boolean|number|string|datetime|variant) -> float: float
(atomic, any) -> string: format_number to_char to_varchar
(atomic, any) -> text: regexp_substr repeat right xpath_string
2,3 (any): from_avro time_bucket uniform
(atomic): from_base32
2,3 (atomic): from_csv from_json from_xml lpad rpad sequence substr substring theta_union try_variant_get
    tuple_intersection_double tuple_intersection_integer tuple_intersection_theta_double
    tuple_intersection_theta_integer variant_get
2-4 (any): from_protobuf to_protobuf window
1,2 (number|string) -> string: from_unixtime
(array<T>, any) -> T: get
2+ (atomic|array|struct): greatest least
1+ (basic|interval|array|struct) -> int: hash
(atomic) -> string: hex
2,3 (atomic) -> binary: hll_union hmac
1+ (string|datetime) -> int: hour minute second
(any, T, T) -> T: if nvl2
(T, T) -> T: ifnull nvl
* (any) -> boolean: ilike like
(atomic) -> text: initcap lcase lower make_valid_utf8 try_validate_utf8 ucase upper validate_utf8
(atomic) -> string: quote try_url_decode url_decode url_encode
() -> bigint: input_file_block_length input_file_block_start monotonically_increasing_id
2-4 (atomic) -> int: instr
(boolean|number|string|datetime|span|variant) -> int: int
(atomic) -> boolean: is_valid_utf8 luhn_check
(variant): is_valid_variant schema_of_variant_agg
(variant) -> boolean: is_variant_null
(number|string) -> boolean: isnan
(any) -> boolean: isnotnull isnull
(string) -> int: json_array_length
(string) -> array<string>: json_object_keys
(string|binary): kll_sketch_get_n_bigint kll_sketch_get_n_double kll_sketch_get_n_float kll_sketch_to_string_bigint
    kll_sketch_to_string_double kll_sketch_to_string_float st_geogfromwkb to_base32
(string|datetime) -> date: last_day
2,3 (atomic) -> int: levenshtein locate regexp_instr
0,1 (any) -> timestamp_ntz: localtimestamp
1,2 (number|string) -> double: log
(any, any, any) -> date: make_date
0-4 (number|string) -> interval day to second: make_dt_interval
0-7 (number|string) -> interval: make_interval
(any, any, any): make_time map_zip_with time_diff zip_with
1,2,3,6,7 (any) -> timestamp: make_timestamp try_make_timestamp
2,3,6,7 (any) -> timestamp: make_timestamp_ltz try_make_timestamp_ltz
2,6 (any) -> timestamp_ntz: make_timestamp_ntz try_make_timestamp_ntz
0-2 (number|string) -> interval year to month: make_ym_interval
even (atomic|array|struct): map
* (map): map_concat
(map, any) -> boolean: map_contains_key
(map<K, V>) -> array<struct<key: K, value: V>>: map_entries
(map<K, V>, any) -> map<K, V>: map_filter
(array<K>, array<V>) -> map<K, V>: map_from_arrays
(any): map_from_entries st_srid time time_from_micros time_from_millis time_from_seconds time_to_micros time_to_millis
    time_to_seconds unix_nanos vector_avg vector_sum window_time
(map<K, V>) -> array<K>: map_keys
(map<K, V>) -> array<V>: map_values
0-5 (string) -> text: mask
2,3 (atomic) -> double: months_between
even (any): named_struct
(number|string|span|interval): negative positive
0,1 (any) -> timestamp: now
(T=atomic|array|struct, any) -> T: nullif
(T=number|string) -> T: nullifzero
(string) -> variant: parse_json try_parse_json
2,3 (atomic) -> string: parse_url try_parse_url
2,3 (atomic) -> text: regexp_extract replace
* (any) -> int: position
(any) -> void: raise_error
0,1 (number) -> double: rand randn random
1,2 (any) -> text: randstr
2,3 (atomic) -> array<text>: regexp_extract_all split
3,4 (any) -> text: regexp_replace
(atomic|array): reverse
1,2 (any) -> string: schema_of_csv schema_of_json schema_of_xml
(variant) -> string: schema_of_variant
1-3 (atomic) -> array<array<string>>: sentences
(number|string|span) -> double: sign signum
(array<T>, any, any) -> array<T>: slice
(boolean|number|string|datetime|span|variant) -> smallint: smallint
(string) -> string: soundex
(number|string) -> string: space
() -> int: spark_partition_id
(any, any, any) -> text: split_part substring_index translate
1,2 (string|binary): st_geomfromwkb
1-3 (string) -> map<string, string>: str_to_map
(any) -> string: string typeof
(binary): theta_sketch_estimate tuple_sketch_estimate_double tuple_sketch_estimate_integer tuple_sketch_theta_double
    tuple_sketch_theta_integer
(any, any, any) -> bigint: timediff
(number|string|datetime|variant) -> timestamp: timestamp
(number) -> timestamp: timestamp_micros timestamp_millis timestamp_seconds
(number): timestamp_nanos
* (any) -> bigint: timestampdiff
(boolean|number|string|datetime|span|variant) -> tinyint: tinyint
1,2 (atomic) -> binary: to_binary try_to_binary
1,2 (struct) -> text: to_csv
1,2 (atomic) -> date: to_date try_to_date
1,2 (variant|array|map|struct) -> string: to_json
1,2 (atomic) -> timestamp: to_timestamp to_timestamp_ltz try_to_timestamp
1,2 (atomic) -> timestamp_ntz: to_timestamp_ntz
1,2 (string|datetime) -> bigint: to_unix_timestamp
(array|map|struct) -> variant: to_variant_object
1,2 (variant|struct) -> text: to_xml
(array, any): transform
(map, any): transform_keys transform_values
1-7 (number|string) -> interval: try_make_interval
(any, any, any) -> variant: try_variant_array_append try_variant_insert variant_array_append variant_insert
0-4 (any) -> variant: try_variant_set variant_set
1,2 (binary): tuple_sketch_summary_double tuple_sketch_summary_integer
0-4 (any): tuple_union_double tuple_union_integer tuple_union_theta_double tuple_union_theta_integer
(atomic) -> binary: unbase64 unhex
(datetime) -> int: unix_date
(datetime) -> bigint: unix_micros unix_millis unix_seconds
0-2 (string|datetime) -> bigint: unix_timestamp
0,1 (any) -> string: uuid
2+ (atomic) -> variant: variant_delete
0-2 (variant) -> variant: variant_strip_nulls
(any, any, any, any) -> bigint: width_bucket
(atomic, any) -> array<string>: xpath
(atomic, any) -> float: xpath_float
(atomic, any) -> bigint: xpath_long
(atomic, any) -> smallint: xpath_short
1+ (basic|interval|array|struct) -> bigint: xxhash64
(number|string): zeroifnull
"""


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
