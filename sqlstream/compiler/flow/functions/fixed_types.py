"""The functions of Spark's that give one type whatever their arguments are, by the name as it is written."""

from __future__ import annotations

from sqlstream.compiler.flow.types.values import (
    BIGINT,
    BINARY,
    BOOLEAN,
    CALENDAR_INTERVAL,
    DATE,
    DAY_TO_SECOND,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    VARIANT,
    VOID,
    YEAR_TO_MONTH,
)
from sqlstream.project.types.types import Array, DataType, Decimal, Map

_INT = """
    array_size ascii bit_count bit_length cardinality char_length character_length day dayofmonth dayofweek dayofyear
    dense_rank find_in_set  hash hour instr int json_array_length length len
    levenshtein locate minute month ntile octet_length position quarter rank regexp_count regexp_instr row_number second
    size spark_partition_id unix_date weekday weekofyear xpath_int year
"""
_BIGINT = """
    approx_count_distinct array_position bigint bitmap_bit_position bitmap_bucket_number bitmap_count count count_if
    crc32 factorial grouping_id hll_sketch_estimate input_file_block_length input_file_block_start
    monotonically_increasing_id regr_count to_unix_timestamp unix_micros unix_millis unix_seconds
    unix_timestamp width_bucket xpath_long xxhash64
"""
_DOUBLE = """
    acos acosh asin asinh atan atan2 atanh cbrt corr cos cosh cot covar_pop covar_samp csc cume_dist degrees double e
    exp expm1 hypot jaro_winkler_similarity kurtosis ln log log10 log1p log2 months_between percent_rank pi pow power
    radians rand randn random regr_avgx regr_avgy regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy rint sec
    sign signum sin sinh skewness sqrt std stddev stddev_pop stddev_samp tan tanh var_pop var_samp variance
    xpath_double xpath_number
"""
_BOOLEAN = """
    any array_contains arrays_overlap bool_and bool_or boolean contains endswith equal_null every exists forall ilike
    is_valid_utf8 is_variant_null isnan isnotnull isnull like luhn_check map_contains_key regexp regexp_like rlike some
    startswith xpath_boolean
"""
_STRING = """
    base64 bin chr char collation conv current_catalog current_database current_schema current_timezone current_user
    date_format dayname from_unixtime get_json_object hex input_file_name md5 monthname
    schema_of_csv schema_of_json schema_of_variant schema_of_xml session_user sha sha1 sha2 string to_json typeof user
    uuid version
"""
_BINARY = """
    aes_decrypt aes_encrypt binary bitmap_and_agg bitmap_construct_agg bitmap_or_agg count_min_sketch
    encode hll_sketch_agg hll_union hll_union_agg hmac to_binary try_aes_decrypt try_to_binary unbase64 unhex
"""
_TIMESTAMP = """
    current_timestamp date_trunc from_utc_timestamp make_timestamp_ltz now timestamp timestamp_micros timestamp_millis
    timestamp_seconds to_timestamp to_timestamp_ltz to_utc_timestamp try_make_timestamp_ltz try_to_timestamp
    make_timestamp try_make_timestamp
"""
_TIMESTAMP_NTZ = "convert_timezone localtimestamp make_timestamp_ntz to_timestamp_ntz try_make_timestamp_ntz"
_DATE = """
    add_months curdate current_date date date_from_unix_date last_day make_date next_day to_date trunc try_to_date
"""
_VARIANT = """
    parse_json to_variant_object try_parse_json variant_delete variant_insert variant_set
    variant_array_append variant_strip_nulls try_variant_insert try_variant_set try_variant_array_append
"""

FIXED: dict[str, DataType] = {
    **dict.fromkeys(_INT.split(), INT),
    **dict.fromkeys(_BIGINT.split(), BIGINT),
    **dict.fromkeys(_DOUBLE.split(), DOUBLE),
    **dict.fromkeys(_BOOLEAN.split(), BOOLEAN),
    **dict.fromkeys(_STRING.split(), STRING),
    **dict.fromkeys(_BINARY.split(), BINARY),
    **dict.fromkeys(_TIMESTAMP.split(), TIMESTAMP),
    **dict.fromkeys(_TIMESTAMP_NTZ.split(), TIMESTAMP_NTZ),
    **dict.fromkeys(_DATE.split(), DATE),
    **dict.fromkeys(_VARIANT.split(), VARIANT),
    **dict.fromkeys(("bit_get", "getbit", "grouping", "tinyint"), TINYINT),
    **dict.fromkeys(("smallint", "xpath_short"), SMALLINT),
    **dict.fromkeys(("float", "xpath_float"), FLOAT),
    **dict.fromkeys(("make_interval", "try_make_interval"), CALENDAR_INTERVAL),
    **dict.fromkeys(("assert_true", "raise_error"), VOID),
    "decimal": Decimal(),
    "make_dt_interval": DAY_TO_SECOND,
    "make_ym_interval": YEAR_TO_MONTH,
    "json_object_keys": Array(STRING),
    "sentences": Array(Array(STRING)),
    "str_to_map": Map(STRING, STRING),
    "xpath": Array(STRING),
}
