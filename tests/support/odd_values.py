"""Odd values of each type as SQL, and a text of each value that no other value has."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

VALUES: dict[str, list[str]] = {
    "string": [
        *("''", "' '", "'  a b  '", r"'two\nlines'", r"'cr\rlf\r\n'", r"'tab\t'", """'quo"te'""", "'it''s'"),
        *(r"'back\\slash'", "'a,b'", "'null'", "'NULL'", "'日本'", "'#c'", "'<x>&amp;</x>'", "'ü€😀'", "'08:30'"),
        *("'1'", "'01'", "'true'", "'2024-01-01'", "'a/b=c%25?*[x]{y}:'", r"'ends\\'", r"'\"'", r"'\u2028\u0085'"),
        *("'NaN'", "'sum of {{ 1 + 1 }}'", "'{% raw %}{# x #}'", "'.'", "'..'"),
    ],
    "tinyint": ["-128Y", "127Y"],
    "smallint": ["-32768S", "32767S"],
    "int": ["-2147483648", "2147483647"],
    "bigint": ["-9223372036854775808L", "9223372036854775807L"],
    "float": ["'NaN'", "'Infinity'", "'-Infinity'", "-0.0", "3.4028235E38", "1.4E-45", "0.1"],
    "double": ["'NaN'", "'Infinity'", "'-Infinity'", "-0.0D", "1.7976931348623157E308D", "4.9E-324D", "1e22D"],
    "decimal(10,2)": ["'12345678.90'", "'-0.01'"],
    "decimal(38,18)": ["'12345678901234567890.123456789012345678'", "'0.000000000000000001'"],
    "decimal(38,0)": ["'99999999999999999999999999999999999999'"],
    "boolean": ["true", "false"],
    "binary": ["X''", "X'00FF10'", "X'80'", "X'20'", "X'6869'"],
    "date": [
        f"date'{day}'"
        for day in ["0001-01-01", "1582-10-04", "1582-10-15", "1900-01-01", "9999-12-31", "+10000-01-01", "-0044-03-15"]
    ],
    "timestamp": [
        *(f"timestamp'2024-01-01T00:00:00{fraction}Z'" for fraction in ("", ".123456", ".000001")),
        "timestamp'2024-10-27T00:30:00Z'",  # 02:30 in Berlin, in summer time
        "timestamp'2024-10-27T01:30:00Z'",  # 02:30 in Berlin, an hour later
        *(f"timestamp'{time}Z'" for time in ("0001-01-03T00:00:00", "1582-10-04T12:00:00", "1890-01-01T00:00:01")),
        *(f"timestamp'{day}T23:59:59.999999Z'" for day in ("9999-12-30", "+10001-01-01", "-0044-03-15")),
    ],
    "timestamp_ntz": [
        f"timestamp_ntz'{time}'"
        for time in (
            *("2024-01-01T00:00:00", "2024-01-01T00:00:00.123456", "2024-03-31T02:30:00", "0001-01-03T00:00:00"),
            *("1582-10-10T12:00:00", "9999-12-31T23:59:59.999999", "+10001-01-01T00:00:00"),
        )
    ],
    "interval year to month": [f"interval '{text}' year to month" for text in ("-1-2", "178956970-7", "0-0")],
    "interval day to second": [
        f"interval '{text}' day to second" for text in ("1 02:03:04.123456", "-1 0:0:0.000001", "0 0:0:0")
    ],
    "interval": ["make_interval(1, 2, 3, 4, 5, 6, 7.123456)"],
    "variant": ['parse_json(\'{"a": [1, null, "x"]}\')', "parse_json('1.5')"],
    "array<int>": ["array(1, null, 3)", "array()"],
    "array<string>": ["array('', ' ', null, 'a')", "array(cast(null as string))", "array('{{ x }}')"],
    "array<timestamp>": ["array(timestamp'2024-10-27T00:30:00.123456Z', null, timestamp'2024-10-27T01:30:00Z')"],
    "array<binary>": ["array(X'00FF', X'', null)"],
    "array<array<int>>": ["array(array(1), array(2, 3))", "array(array())"],
    "map<string,int>": [
        "map('a', 1, 'b', null)",
        "map()",
        "map('日', 1)",
        "map('a b', 1)",
        "map('', 1)",
        "map('{{ x }}', 1, 'true', 2)",
    ],
    "map<int,string>": ["map(1, 'x', 2, '')"],
    "map<timestamp,int>": ["map(timestamp'2024-10-27T00:30:00.123456Z', 1, timestamp'2024-10-27T01:30:00.123456Z', 2)"],
    "map<date,int>": ["map(date'2024-10-27', 1)"],
    "map<boolean,double>": ["map(true, double('NaN'))"],
    "map<binary,int>": ["map(X'6869', 1)"],
    "map<double,int>": ["map(0.1D, 1)"],
    "map<decimal(5,2),int>": ["map(1.50BD, 1)"],
    "struct<a:int,b:string>": [
        "named_struct('a', 1, 'b', '')",
        "named_struct('a', cast(null as int), 'b', cast(null as string))",
    ],
    "array<struct<a:int>>": ["array(named_struct('a', 1), null, named_struct('a', cast(null as int)))"],
    "struct<t:timestamp,n:timestamp_ntz,d:decimal(38,18),b:binary>": [
        (
            "named_struct('t', timestamp'2024-10-27T00:30:00.123456Z', 'n', timestamp_ntz'2024-01-01 00:00:00.123456', "
            "'d', 1.5, 'b', X'00FF')"
        )
    ],
}
"""Values by type. Each is cast to its type."""


def rows_of(spark: SparkSession, *types: str, values: Mapping[str, list[str]] = VALUES) -> DataFrame:
    """Returns rows with their number `id` and a column for each of `types`, `c0` and so on: each row has a value of
    each type that has one left, otherwise null. The last row has only nulls.
    """
    count = 1 + max(len(values[type_]) for type_ in types)
    rows = (
        ", ".join(
            f"cast({value} as {type_}) as c{at}"
            for at, type_ in enumerate(types)
            for value in [values[type_][number] if number < len(values[type_]) else "null"]
        )
        for number in range(count)
    )
    return spark.sql(" union all ".join(f"select {number} as id, {row}" for number, row in enumerate(rows)))


def exact(frame: DataFrame, *types: str) -> dict[str, dict[int, str | None]]:
    """Returns the text of each value of the columns of `rows_of`, by type and `id`; different values, and values of
    different types, differ.
    """
    kinds = [frame.schema[f"c{at}"].dataType.simpleString() for at in range(len(types))]
    texts = (f"{_exact(f'c{at}', kind)} as c{at}" for at, kind in enumerate(kinds))
    rows = frame.selectExpr("id", *texts).collect()
    return {type_: {row[0]: row[at] for row in rows} for at, type_ in enumerate(types, 1)}


def _exact(value: str, kind: str) -> str:
    if kind.startswith("map<"):
        texts = [f"concat_ws(' ', xxhash64(e.{part}), cast(e.{part} as string))" for part in ("key", "value")]
        return f"cast(array_sort(transform(map_entries({value}), e -> concat_ws('=', {', '.join(texts)}))) as string)"
    if kind == "variant":
        return f"concat_ws(' ', schema_of_variant({value}), to_json({value}))"
    if kind in ("float", "double", "interval"):
        return f"cast({value} as string)"
    # the hash depends on each bit of a value, and the text tells what it was
    return f"if({value} is null, null, concat_ws(' ', xxhash64({value}), cast({value} as string)))"
