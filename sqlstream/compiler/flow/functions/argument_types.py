"""The families of types that functions take as their first argument, as Spark 4.3 said of a column of each.

Functions of any type are left out. What a function of two arguments takes may depend on the second one, so of those
only arrays, maps and structs are told from the rest. `tests/spark/test_function_names.py` asks the installed Spark.
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
    (2, "boolean number string binary datetime interval year-month day-time array struct variant"): """
        equal_null greatest least map nullif
    """,
    (2, "boolean number string binary datetime interval year-month day-time variant"): """
        add_months aes_decrypt aes_encrypt approx_percentile atan2 bit_get contains convert_timezone corr
        covar_pop covar_samp date_format date_sub date_trunc elt encode endswith find_in_set format_number
        from_csv from_json from_utc_timestamp from_xml get_json_object getbit hll_union hmac hypot instr
        jaro_winkler_similarity json_tuple kll_sketch_get_quantile_bigint kll_sketch_get_quantile_double
        kll_sketch_get_quantile_float kll_sketch_get_rank_bigint kll_sketch_get_rank_double
        kll_sketch_get_rank_float kll_sketch_merge_bigint kll_sketch_merge_double kll_sketch_merge_float left
        levenshtein locate lpad months_between nanvl next_day parse_url percentile percentile_approx pmod pow
        power regexp regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like regexp_substr
        regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy repeat
        replace right rlike rpad sequence sha2 shiftleft shiftright shiftrightunsigned split startswith substr
        substring theta_difference theta_intersection theta_union to_char to_utc_timestamp to_varchar trunc
        try_add try_aes_decrypt try_divide try_mod try_multiply try_parse_url try_subtract try_variant_get
        tuple_difference_double tuple_difference_integer tuple_difference_theta_double
        tuple_difference_theta_integer tuple_intersection_double tuple_intersection_integer
        tuple_intersection_theta_double tuple_intersection_theta_integer variant_delete variant_get xpath
        xpath_boolean xpath_double xpath_float xpath_int xpath_long xpath_number xpath_short xpath_string
    """,
    (2, "map"): """
        map_contains_key map_filter transform_keys transform_values
    """,
}

FIRST_ARGUMENTS = {
    name: (count, frozenset(families.split())) for (count, families), names in _TAKEN.items() for name in names.split()
}
"""By name: the number of arguments of the call that was asked for, and the families (`type_families`) that it takes."""
