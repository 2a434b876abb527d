"""The families of types that functions take as their first argument, as Spark 4.3 said of a column of each.

Functions of any type are left out. `tests/spark/test_function_names.py` asks the installed Spark again.
"""

from __future__ import annotations

_TAKEN: dict[tuple[int, str], str] = {
    (1, "array"): """
        array_compact array_distinct array_max array_min array_size array_sort arrays_zip collect_union shuffle
        sort_array
    """,
    (1, "array map"): """
        cardinality explode explode_outer posexplode posexplode_outer size
    """,
    (1, "array map struct"): """
        to_variant_object
    """,
    (1, "array map struct variant"): """
        to_json
    """,
    (1, "binary"): """
        bitmap_and_agg bitmap_count bitmap_or_agg hll_sketch_estimate hll_union_agg kll_merge_agg_bigint
        kll_merge_agg_double kll_merge_agg_float theta_intersection_agg theta_sketch_estimate theta_union_agg
        tuple_sketch_estimate_double tuple_sketch_estimate_integer tuple_sketch_summary_double
        tuple_sketch_summary_integer tuple_sketch_theta_double tuple_sketch_theta_integer
    """,
    (1, "boolean number"): """
        bit_count
    """,
    (1, "boolean number string binary datetime interval year-month day-time array struct"): """
        hash xxhash64
    """,
    (1, "boolean number string binary datetime interval year-month day-time array struct variant"): """
        collect_set
    """,
    (1, "boolean number string binary datetime interval year-month day-time array variant"): """
        concat reverse
    """,
    (1, "boolean number string binary datetime interval year-month day-time variant"): """
        ascii bit_length btrim char_length character_length concat_ws format_string from_base32 hex initcap
        is_valid_utf8 lcase len length listagg lower ltrim luhn_check make_valid_utf8 octet_length printf quote
        rtrim sentences string_agg to_binary to_date to_timestamp to_timestamp_ltz to_timestamp_ntz
        try_to_binary try_to_date try_to_timestamp try_url_decode try_validate_utf8 ucase unbase64 unhex upper
        url_decode url_encode validate_utf8
    """,
    (1, "boolean number string binary datetime year-month day-time array struct"): """
        max min
    """,
    (1, "boolean number string datetime"): """
        approx_top_k approx_top_k_accumulate
    """,
    (1, "boolean number string datetime variant"): """
        double float
    """,
    (1, "boolean number string datetime year-month day-time variant"): """
        bigint decimal int smallint tinyint
    """,
    (1, "boolean number string variant"): """
        boolean
    """,
    (1, "boolean string"): """
        any bool_and bool_or count_if every some
    """,
    (1, "datetime"): """
        unix_date unix_micros unix_millis unix_seconds
    """,
    (1, "map"): """
        map_concat map_entries map_keys map_values
    """,
    (1, "number"): """
        bit_and bit_or bit_xor kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float rand randn
        random timestamp_micros timestamp_millis timestamp_nanos timestamp_seconds
    """,
    (1, "number string"): """
        acos acosh asin asinh atan atanh bin bitmap_bit_position bitmap_bucket_number bitmap_construct_agg
        bround cbrt ceil ceiling char chr cos cosh cot csc date_from_unix_date degrees exp expm1 factorial floor
        from_unixtime isnan kurtosis ln log log10 log1p log2 make_dt_interval make_interval make_ym_interval
        nullifzero radians rint round sec sin sinh skewness space sqrt std stddev stddev_pop stddev_samp tan
        tanh try_make_interval var_pop var_samp variance zeroifnull
    """,
    (1, "number string binary"): """
        hll_sketch_agg
    """,
    (1, "number string binary array"): """
        theta_sketch_agg
    """,
    (1, "number string datetime variant"): """
        timestamp
    """,
    (1, "number string datetime year-month day-time"): """
        avg mean sum try_avg try_sum
    """,
    (1, "number string interval year-month day-time"): """
        negative positive
    """,
    (1, "number string year-month day-time"): """
        abs median sign signum
    """,
    (1, "string"): """
        collation json_array_length json_object_keys mask parse_json soundex str_to_map try_parse_json
    """,
    (1, "string binary"): """
        base64 crc32 kll_sketch_get_n_bigint kll_sketch_get_n_double kll_sketch_get_n_float
        kll_sketch_to_string_bigint kll_sketch_to_string_double kll_sketch_to_string_float md5 sha sha1
        st_geogfromwkb st_geomfromwkb to_base32 tuple_intersection_agg_double tuple_intersection_agg_integer
        tuple_union_agg_double tuple_union_agg_integer
    """,
    (1, "string binary variant"): """
        binary
    """,
    (1, "string datetime"): """
        day dayname dayofmonth dayofweek dayofyear hour last_day minute month monthname quarter second
        to_unix_timestamp unix_timestamp weekday weekofyear year
    """,
    (1, "string datetime variant"): """
        date
    """,
    (1, "struct"): """
        to_csv
    """,
    (1, "struct variant"): """
        to_xml
    """,
    (1, "variant"): """
        is_valid_variant is_variant_null schema_of_variant schema_of_variant_agg variant_strip_nulls
    """,
    (2, "array"): """
        array_append array_contains array_except array_intersect array_join array_position array_prepend
        array_remove array_union arrays_overlap exists filter forall get map_from_arrays transform
    """,
    (2, "array map"): """
        element_at try_element_at
    """,
    (2, "binary"): """
        hll_union theta_difference theta_intersection theta_union tuple_difference_double
        tuple_difference_integer tuple_difference_theta_double tuple_difference_theta_integer
        tuple_intersection_double tuple_intersection_integer tuple_intersection_theta_double
        tuple_intersection_theta_integer
    """,
    (2, "boolean number string binary datetime interval year-month day-time array struct"): """
        map
    """,
    (2, "boolean number string binary datetime interval year-month day-time variant"): """
        contains convert_timezone date_trunc encode endswith find_in_set instr jaro_winkler_similarity left
        levenshtein locate lpad regexp regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like
        regexp_substr repeat replace right rlike rpad split startswith substr substring
    """,
    (2, "boolean number string binary datetime year-month day-time array struct"): """
        equal_null greatest least nullif
    """,
    (2, "datetime"): """
        to_char to_varchar
    """,
    (2, "map"): """
        map_contains_key map_filter transform_keys transform_values
    """,
    (2, "number"): """
        bit_get format_number getbit
    """,
    (2, "number string"): """
        atan2 corr covar_pop covar_samp elt hypot nanvl pmod pow power regr_avgx regr_avgy regr_count
        regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy shiftleft shiftright shiftrightunsigned
        try_mod
    """,
    (2, "number string datetime"): """
        sequence
    """,
    (2, "number string datetime interval year-month day-time"): """
        try_add try_subtract
    """,
    (2, "number string datetime year-month day-time"): """
        approx_percentile percentile_approx
    """,
    (2, "number string interval year-month day-time"): """
        try_divide try_multiply
    """,
    (2, "number string year-month day-time"): """
        percentile
    """,
    (2, "string"): """
        from_csv from_json from_xml get_json_object json_tuple parse_url try_parse_url xpath xpath_boolean
        xpath_double xpath_float xpath_int xpath_long xpath_number xpath_short xpath_string
    """,
    (2, "string binary"): """
        aes_decrypt aes_encrypt hmac kll_sketch_get_quantile_bigint kll_sketch_get_quantile_double
        kll_sketch_get_quantile_float kll_sketch_get_rank_bigint kll_sketch_get_rank_double
        kll_sketch_get_rank_float kll_sketch_merge_bigint kll_sketch_merge_double kll_sketch_merge_float sha2
        try_aes_decrypt
    """,
    (2, "string datetime"): """
        add_months date_format date_sub from_utc_timestamp months_between next_day to_utc_timestamp trunc
    """,
    (2, "variant"): """
        try_variant_get variant_delete variant_get
    """,
}

FIRST_ARGUMENTS = {
    name: (count, frozenset(families.split())) for (count, families), names in _TAKEN.items() for name in names.split()
}
"""By name: the number of arguments of the call that was asked for, and the families (`type_families`) that it takes."""
