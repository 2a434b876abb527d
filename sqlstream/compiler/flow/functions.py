"""Spark's built-in functions by name, those of its registry and of its grammar, and a signature for each.

`tests/spark/test_function_names.py` compares them with the installed Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest

from sqlstream.compiler.flow.type_rules import (
    array_of,
    common_type,
    common_type_of,
    element_of_both,
    map_of,
    struct_of,
    text_of,
)
from sqlstream.numbers import plural
from sqlstream.project.types.data_types import Array, DataType, Field, Map, Struct, Unknown
from sqlstream.project.types.ddl import parse_type

# The notation for the signatures of Spark's functions.
#
# Each entry is `COUNTS (ARGUMENTS) -> RESULT: NAMES`, and a line that begins with blanks continues the one before it:
#
# - COUNTS are the accepted numbers of arguments: `2`, `1,2`, `0-4`, `1+` (at least one), `*` (any) or `even`. The
#   default is the number of ARGUMENTS.
# - An argument is `any`, families of types such as `number|string` (`compiler.flow.types`; `span`, `basic` and `atomic`
#   are groups of them), or a type with variables such as `array<T>` or `map<K, V>`. `T=number` is a variable of one
#   family, and `T...` any number of arguments. Which families Spark accepts can depend on further arguments, so
#   families apply only to the first argument of a call with the fewest arguments.
# - RESULT is the type of the call, in which `text` is STRING with the collation of the arguments; unknown if they have
#   several. A function without a result needs code (`compiler.flow.expressions.function_types`), or its type is
#   unknown.

_SPAN = "year-month|day-time"
_BASIC = f"boolean|number|string|binary|datetime|{_SPAN}"
_GROUPS = {"span": _SPAN, "basic": _BASIC, "atomic": f"{_BASIC}|interval|variant"}

_TEXT = "text"
_VARIABLES = frozenset({"T", "K", "V", _TEXT})

_ENTRY = re.compile(r"(?:(?P<counts>\S+) )?\((?P<arguments>.*?)\)(?: -> (?P<result>.+?))?: (?P<names>[a-z0-9_ ]+)")
_COMMA = re.compile(r",\s*(?![^<]*>)")
"""A comma outside of `<` and `>`."""


@dataclass(frozen=True)
class Counts:
    """The numbers of arguments that a function accepts: those `listed`, or any from `least` on, only `even` ones."""

    listed: tuple[int, ...] = ()
    least: int = 0
    even: bool = False

    @property
    def smallest(self) -> int:
        """The smallest accepted number of arguments, except zero."""
        if self.listed:
            return next((count for count in self.listed if count), 0)
        return max(self.least, 2 if self.even else 1)

    def wanted(self, count: int) -> str | None:
        """Returns the accepted numbers in words; None if `count` is one of them."""
        if self.listed and count not in self.listed:
            *most, last = self.listed
            words = f"{', '.join(map(str, most))} or {last}" if most else str(last)
            return f"{words} argument{'' if self.listed == (1,) else 's'}" if last else "no arguments"
        if count < self.least:
            return f"at least {plural(self.least, 'argument')}"
        return "pairs of arguments, so an even number" if self.even and count % 2 else None


@dataclass(frozen=True)
class Argument:
    """One argument of a signature: its `families` (empty: any), and the `pattern` of its type if it has variables."""

    families: frozenset[str] = frozenset()
    pattern: DataType | None = None


@dataclass(frozen=True)
class Signature:
    """The signature of a function: the number and types of its arguments, and the type of its result."""

    counts: Counts
    arguments: tuple[Argument, ...]
    repeats: bool
    result: DataType | None
    is_fixed: bool

    def families(self, count: int) -> frozenset[str]:
        """Returns the families of the first argument in a call with `count` arguments; empty if any is accepted."""
        return self.arguments[0].families if self.arguments and count == self.counts.smallest else frozenset()

    def result_type(self, types: Sequence[DataType | None]) -> DataType | None:
        """Returns the type of a call with arguments of `types`; None if it is unknown. If `is_fixed`, ignores them."""
        if self.result is None or self.is_fixed:
            return self.result
        bound: dict[str, list[DataType | None]] = {_TEXT: [text_of(types)]}
        patterns = [argument.pattern for argument in self.arguments]
        pairs = zip_longest(patterns * len(types) if self.repeats else patterns, types)
        if not all(pattern is None or _bind(pattern, type_, bound) for pattern, type_ in pairs):
            return None
        # functions on arrays find the element type by rules from before ANSI mode
        common = element_of_both if any(isinstance(pattern, Array) for pattern in patterns) else common_type
        return _fill(self.result, {name: common_type_of(found, common) for name, found in bound.items()})


def _bind(pattern: DataType, type_: DataType | None, bound: dict[str, list[DataType | None]]) -> bool:
    """Adds the types of the variables of `pattern` in `type_` to `bound`, and returns whether the pattern matches."""
    if isinstance(pattern, Unknown):
        bound.setdefault(pattern.text, []).append(type_)
        return type_ is not None
    if isinstance(pattern, Array) and isinstance(type_, Array):
        return _bind(pattern.element, type_.element, bound)
    if isinstance(pattern, Map) and isinstance(type_, Map):
        return _bind(pattern.key, type_.key, bound) and _bind(pattern.value, type_.value, bound)
    return False


def _fill(pattern: DataType, bound: Mapping[str, DataType | None]) -> DataType | None:
    """Returns `pattern` with the types of its variables; None if one of them is unknown."""
    if isinstance(pattern, Unknown):
        return bound.get(pattern.text)
    if isinstance(pattern, Array):
        return array_of(_fill(pattern.element, bound))
    if isinstance(pattern, Map):
        return map_of(_fill(pattern.key, bound), _fill(pattern.value, bound))
    if isinstance(pattern, Struct):
        return struct_of((field.name, _fill(field.type, bound)) for field in pattern.fields)
    return pattern


def read_signatures(text: str) -> Iterator[tuple[str, Signature]]:
    """Yields the functions of `text` by name. Raises: ValueError for an entry that is not of the form above."""
    for line in text.strip().replace("\n    ", " ").splitlines():
        entry = _ENTRY.fullmatch(line)
        if entry is None:
            raise ValueError(f"not a signature: {line}")
        written = _COMMA.split(entry["arguments"]) if entry["arguments"] else []
        arguments = tuple(_argument(each.removesuffix("...")) for each in written)
        counts = _counts(entry["counts"] or str(len(written)))
        repeats = bool(written) and written[-1].endswith("...")
        result = _pattern(entry["result"]) if entry["result"] else None
        is_fixed = not _VARIABLES.intersection(re.findall(r"\w+", entry["result"] or ""))
        signature = Signature(counts, arguments, repeats, result, is_fixed)
        yield from ((name, signature) for name in entry["names"].split())


def _counts(written: str) -> Counts:
    if written in ("*", "even"):
        return Counts(even=written == "even")
    if written.endswith("+"):
        return Counts(least=int(written[:-1]))
    first, _, last = written.partition("-")
    return Counts(tuple(range(int(first), int(last) + 1)) if last else tuple(map(int, written.split(","))))


@cache
def _argument(written: str) -> Argument:
    if written == "any":
        return Argument()
    variable, _, families = written.rpartition("=")
    if variable or families in _VARIABLES:
        pattern = Unknown(variable or families)
        return Argument(_families(families) if variable else frozenset(), pattern)
    if "<" in written:
        return Argument(_families(written.partition("<")[0]), _pattern(written))
    return Argument(_families(written))


def _families(written: str) -> frozenset[str]:
    return frozenset("|".join(_GROUPS.get(name, name) for name in written.split("|")).split("|"))


@cache
def _pattern(written: str) -> DataType:
    """Returns the type that `written` names, with its variables as unknown types."""
    if written in _VARIABLES:
        return Unknown(written)
    outer, _, inner = written.removesuffix(">").partition("<")
    if outer == "array":
        return Array(_pattern(inner))
    if outer == "map":
        key, value = _COMMA.split(inner)
        return Map(_pattern(key), _pattern(value))
    if outer == "struct":
        fields = (field.split(": ") for field in _COMMA.split(inner))
        return Struct(tuple(Field(name, _pattern(type_)) for name, type_ in fields))
    return parse_type(written)


_SCALARS = dict(
    read_signatures("""
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
""")
)


_AGGREGATES = dict(
    read_signatures("""
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
""")
)

_GENERATORS = dict(
    read_signatures("""
0,1 (array|map): explode explode_outer posexplode posexplode_outer
0,1 (any): inline inline_outer
2+ (atomic): json_tuple
2+ (any): stack
* (any): variant_explode variant_explode_outer
""")
)
"""Functions that return several rows; they can also be table functions in FROM."""

_WINDOW_FUNCTIONS = dict(
    read_signatures("""
0-2 (any): counter_diff
() -> double: cume_dist
* (any) -> int: dense_rank rank
0-4 (T) -> T: lag lead
2,3 (T) -> T: nth_value
0,1 (any) -> int: ntile
* (any) -> double: percent_rank
() -> int: row_number
""")
)
"""Functions that need OVER."""

FUNCTIONS = {**_AGGREGATES, **_GENERATORS, **_WINDOW_FUNCTIONS, **_SCALARS}
"""The signatures of all functions that can be used in an expression, by name in lower case."""

AGGREGATES = frozenset(_AGGREGATES)
GENERATORS = frozenset(_GENERATORS)
WINDOW_FUNCTIONS = frozenset(_WINDOW_FUNCTIONS)
TABLE_FUNCTIONS = GENERATORS | {"collations", "python_worker_logs", "range", "sql_keywords"}
"""The functions that can be used in FROM."""

ROW_IDS = frozenset({"monotonically_increasing_id"})
"""Functions that Spark rejects in a streaming query, also in its static parts."""

RANDOM = ROW_IDS | frozenset(
    """
    input_file_block_length input_file_block_start input_file_name rand randn random randstr shuffle spark_partition_id
    uniform uuid
    """.split()  # noqa: SIM905 - as a list of quoted words this would be three times as long
)
"""The functions that are not `deterministic` in Spark 4.3."""
