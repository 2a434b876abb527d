"""Edits aimed at what a signature can miss: literals, names in types, subqueries, hints, settings, and what is behind the
state. Part of the change matrix.
"""

from __future__ import annotations

from tests.spark.changes.edits import ASK, FREE, ORDERS, REFUNDS, REFUSE, RESUME, TS, Edit, aggregation, joined, windows

JSON = "concat('{\"a\":', v, ',\"b\":', id, ',\"x\":{\"a\":', v, ',\"b\":', id, '}}')"
"""A text of JSON with the numbers of a row."""

DECIMALS = "cast(v as decimal(38,18)) * cast(id as decimal(38,18)) / 3"
FACTOR = "cast('${spark.my.factor}' as int)"
SHORT = "try_to_timestamp(concat('2024-1-', v), 'yyyy-MM-dd')"

SEED = "k,name\na,alpha\nb,beta\nc,gamma\n"
OTHER_NAME = SEED.replace("beta", "second")
LONGER = SEED + "d,delta\ne,epsilon\n"
NAMES, LABELS, ZONES = "{{ ref('names') }}", "{{ ref('labels') }}", "{{ ref('zones') }}"
ZONE_FILE = {"seeds/zones.csv": SEED}


def filtered(name: str, text: str, before: str, after: str, expected: str = REFUSE, kind: str = "literal") -> Edit:
    """Returns an edit of the filter below an aggregation."""
    old, new = (aggregation("k, count(*) as n", f"where {condition}") for condition in (before, after))
    files = ZONE_FILE if ZONES in before else {}
    return Edit(name, kind, text, old, new, expected, files=(files, files))


def keyed(name: str, text: str, before: str, after: str, expected: str = REFUSE, kind: str = "type") -> Edit:
    """Returns an edit of the key of an aggregation."""
    old, new = (aggregation(f"{key} as a, count(*) as n", keys=key) for key in (before, after))
    return Edit(name, kind, text, old, new, expected)


def aggregated(name: str, text: str, before: str, after: str, expected: str, kind: str = "behind") -> Edit:
    """Returns an edit of an aggregate function."""
    old, new = (aggregation(f"k, {call} as m") for call in (before, after))
    return Edit(name, kind, text, old, new, expected)


def with_seed(name: str, text: str, query: str) -> Edit:
    """Returns a change of the seed that a query reads: more rows of `names`, or another name in `labels`."""
    path, changed = ("seeds/names.csv", LONGER) if NAMES in query else ("seeds/labels.csv", OTHER_NAME)
    return Edit(name, "subquery", text, query, query, REFUSE, files=({path: SEED}, {path: changed}))


def hinted(name: str, text: str, before: str, after: str) -> Edit:
    """Returns a change of a hint."""
    old, new = (f"select {hint} k, count(*) as n from {ORDERS} group by k" for hint in (before, after))
    return Edit(name, "hint", text, old, new, RESUME)


def settled(name: str, text: str, query: str, expected: str, mode: str = "update") -> Edit:
    """Returns a query whose settings change."""
    return Edit(name, "setting", text, query, query, expected, mode=mode, group="texts")


def declared(
    name: str, text: str, table: str, columns: tuple[str, str], queries: tuple[str, str], expected: str
) -> Edit:
    """Returns a change of the columns that a source declares."""
    files = tuple({f"{table} columns": f'"{each}"'} for each in columns)
    return Edit(name, "declaration", text, *queries, expected, files=(files[0], files[1]))


def wider(name: str, text: str, types: tuple[str, str], query: str, expected: str) -> Edit:
    """Returns a change of the type of a column, in a table that only this edit reads, TABLE in `query`."""
    query = query.replace("TABLE", f"{{{{ source('shop', '{name}') }}}}")
    columns = (f"k string, id int, v int, {types[0]}", f"k string, id int, v int, {types[1]}")
    return declared(name, text, name, columns, (query, query), expected)


INT, FLOAT, DECIMAL, DAY = (
    ("w int", "w bigint"),
    ("amount float", "amount double"),
    ("amount decimal(10,2)", "amount decimal(12,2)"),
    ("day date", "day timestamp"),
)
ITEM = ("item struct<sku: string, price: int>", "item struct<lot: bigint, sku: string, price: int>")
PRICE = ("item struct<sku: string, price: int>", "item struct<sku: string, price: bigint>")
ITEMS = ("items array<struct<sku: string, price: int>>", "items array<struct<lot: bigint, sku: string, price: int>>")
SHEET = "{{ source('shop', 'sheet') }}"
COLUMNS = "id int, ts timestamp, k string, g string, v int, d double"
CASED2 = "select g, count(*) as n from {{ source('shop', 'cased2') }} where k = 'A' group by g"
CASED = "select g, count(*) as n from {{ source('shop', 'cased') }} where k = 'A' group by g"
TOTAL = f"select k, sum(v) as s from {SHEET} group by k"
TOTAL2 = TOTAL.replace("'sheet'", "'sheet2'")
SAME = "timestamp'2024-01-01 00:06:00'"
UNION = f"select k, v from {ORDERS} where v > 1 union all select k, v from {REFUNDS}"
SWAPPED = f"select k, v from {REFUNDS} union all select k, v from {ORDERS} where v > 1"
GAPS = (
    "select /*+ WATERMARK(ts, '10 minutes') */ session_window.start as at, g, count(*) as n from "
    f"{ORDERS} group by session_window(ts, case when k = 'a' then '5 minutes' else '8 minutes' end), g"
)
LEAST = f"select k, count(*) as n from {ORDERS} where v > {{{{ var('least') }}}} group by k"
RATED = f"select cast(n.rate as string) as r, count(*) as n from {ORDERS} o join {{{{ ref('rated') }}}} n on o.k = n.k group by cast(n.rate as string)"
RATES = {"seeds/rated.csv": "k,rate\na,1\nb,2\nc,3\n"}
RATE_TYPE = "seeds: [{name: rated, columns: [{name: rate, data_type: TYPE}]}]\n"
LATE_UNION = f"""select window.start as at, count(*) as n from (
  select ts, k from {ORDERS} watermark ts delay of interval 10 minutes
  union all select ts, k from {REFUNDS} watermark ts delay of interval 10 minutes) group by window(ts, '5 minutes')"""
TWELVE = "'b','c','d','e','f','g','h','i','j'"

# fmt: off
CLOSED_EDITS = (
    # literals
    filtered("array_comma", "a comma within a text of an array", "array_contains(array('a,b', 'c'), k)", "array_contains(array('a', 'b', 'c'), k)"),
    filtered("array_same", "the order of an array's items is another value, but the alias is not", "array_contains(array('a', 'b'), k)", "array_contains(array('a', 'b'), k) and true", RESUME),
    filtered("array_nested", "items of nested arrays", "array_contains(flatten(array(array('a'), array('b,c'))), k)", "array_contains(flatten(array(array('a'), array('b', 'c'))), k)"),
    filtered("map_comma", "a comma within a value of a map", "map('a', 'x,b', 'c', 'y')[k] is not null", "map('a', 'x', 'b', 'c,y')[k] is not null"),
    keyed("map_value", "another value in a map", "map('a', '1', 'b', '2')[k]", "map('a', '1', 'b', '3')[k]", kind="literal"),
    filtered("in_comma", "a comma within a text of a long IN", f"v > if(k in ('a', {TWELVE}, 'k, l'), 0, 2)", f"v > if(k in ({TWELVE}, 'a, k', 'l'), 0, 2)"),
    filtered("in_order", "the order of a long IN", f"k in ('a', {TWELVE}, 'l')", f"k in ('l', {TWELVE}, 'a')", RESUME),
    filtered("in_keys_long", "a long list of keys, in update mode", "k is not null", f"k is not null and k not in ({TWELVE}, 'k', 'n, o')", RESUME),
    Edit("free_filter_key_in", "literal", "a list of keys of a join without a watermark", FREE, FREE + " where o.k in ('a', 'c')", RESUME, mode="append"),
    Edit("binary_alias", "literal", "another alias beside a binary literal", aggregation("k, count(*) as n", "where cast(k as binary) <> x'79'"), aggregation("k, count(*) as number", "where cast(k as binary) <> x'79'"), RESUME, compared=()),
    filtered("binary_other", "another binary literal", "cast(k as binary) <> x'61'", "cast(k as binary) <> x'62'"),
    filtered("time_other", "another time", "ts > timestamp'2024-01-01 12:17:30'", f"ts > {SAME}"),
    filtered("time_zone", "the same time in another notation", f"ts > {SAME}", "ts > timestamp'2024-01-01 01:06:00+01:00'", RESUME),
    filtered("number_digits", "more digits of the same number", "d > 1.5", "d > 1.50", RESUME),
    filtered("text_quote", "a quote within a text", "k <> 'a'", "k <> 'a''b'", REFUSE),
    filtered("struct_comma", "a comma within a field of a struct", "named_struct('p', k, 'q', g) <> named_struct('p', 'a', 'q', 'x,y')", "named_struct('p', k, 'q', g) <> named_struct('p', 'a', 'q', 'x')"),
    Edit("values_comma", "literal", "a comma within a text of VALUES", f"select k, count(*) as n from {ORDERS} join (values ('a,b', 'c'), ('b', 'd')) t(p, q) on k = p group by k", f"select k, count(*) as n from {ORDERS} join (values ('a', 'b,c'), ('b', 'd')) t(p, q) on k = p group by k", REFUSE),
    Edit("values_alias", "literal", "another alias of VALUES", f"select k, count(*) as n from {ORDERS} join (values ('a'), ('b')) t(p) on k = p group by k", f"select k, count(*) as n from {ORDERS} join (values ('a'), ('b')) u(w) on k = w group by k", RESUME),
    Edit("values_column", "literal", "another value in VALUES", f"select q, count(*) as n from {ORDERS} join (values ('a', 'x'), ('b', 'y')) t(p, q) on k = p group by q", f"select q, count(*) as n from {ORDERS} join (values ('a', 'x'), ('b', 'z')) t(p, q) on k = p group by q", REFUSE),
    # names within types
    keyed("json_name", "another field that from_json reads", f"from_json({JSON}, 'a int').a", f"from_json({JSON}, 'b int').b"),
    keyed("json_nested_name", "another field of a nested struct", f"from_json({JSON}, 'x struct<a: int>').x.a", f"from_json({JSON}, 'x struct<b: int>').x.b"),
    keyed("json_alias", "an alias behind from_json", f"from_json({JSON}, 'a int').a", f"from_json({JSON}, 'a INT').a", RESUME),
    keyed("json_type", "another type that from_json reads", f"cast(from_json({JSON}, 'a int').a as string)", f"cast(from_json({JSON}, 'a double').a as string)"),
    keyed("to_json_name", "the name of a field in to_json", "to_json(named_struct('a', v))", "to_json(named_struct('b', v))"),
    keyed("decimal_scale", "the scale of a decimal", "cast(cast(d as decimal(10, 2)) as string)", "cast(cast(d as decimal(10, 1)) as string)"),
    # subqueries
    with_seed("subquery_seed", "a seed within a scalar subquery", aggregation("k, count(*) as n", f"where v > (select count(*) from {NAMES})")),
    with_seed("exists_seed", "a seed within EXISTS", aggregation("k, count(*) as n", f"where exists (select 1 from {NAMES} where name = 'epsilon')")),
    with_seed("in_seed", "a seed within IN", aggregation("k, count(*) as n", f"where k in (select k from {NAMES})")),
    with_seed("nested_seed", "a seed within a subquery of a subquery", aggregation("k, count(*) as n", f"where v > (select max(length(name)) - 5 from {NAMES} where length(name) > (select min(length(name)) from {NAMES}))")),
    with_seed("aggregate_seed", "a seed within an aggregate", aggregation(f"k, sum(v * (select count(*) from {NAMES})) as s")),
    with_seed("key_seed", "a seed within a key", f"select g2, count(*) as n from (select v + (select count(*) from {NAMES}) as g2 from {ORDERS}) group by g2"),
    with_seed("alias_columns_seed", "a seed whose alias names its columns", f"select o.k, min(length(y)) as n from {ORDERS} o join {LABELS} as s(x, y) on o.k = x group by o.k"),
    with_seed("exists_columns_seed", "a seed whose alias names its columns, within EXISTS", aggregation("k, count(*) as n", f"where exists (select 1 from ({LABELS} tablesample (100 percent)) s(x, y) where y = 'second')")),
    with_seed("from_seed", "a seed that is read without SELECT", f"with s(x, y) as (from {LABELS}) select o.k, min(length(y)) as n from {ORDERS} o join s on o.k = x group by o.k"),
    filtered("subquery_function", "another function in a subquery", f"v > (select min(length(name)) - 3 from {ZONES})", f"v > (select max(length(name)) - 3 from {ZONES})", kind="subquery"),
    filtered("subquery_filter", "another filter in a subquery", f"v > (select count(*) from {ZONES} where k > 'a')", f"v > (select count(*) from {ZONES} where k > 'b')", kind="subquery"),
    filtered("subquery_alias", "an alias in a subquery", f"v > (select count(*) as n from {ZONES})", f"v > (select count(*) as m from {ZONES} as o)", RESUME, kind="subquery"),
    filtered("subquery_values", "another value in a subquery", "v > (select max(x) from values (1), (2) as t(x))", "v > (select max(x) from values (1), (4) as t(x))", kind="subquery"),
    # hints
    hinted("repartition_added", "a REPARTITION hint", "", "/*+ REPARTITION(3) */"),
    hinted("repartition_number", "another number in a REPARTITION hint", "/*+ REPARTITION(2) */", "/*+ REPARTITION(3) */"),
    hinted("repartition_keys", "a REPARTITION by a column", "", "/*+ REPARTITION(2, k) */"),
    Edit("repartition_below", "hint", "a REPARTITION below the aggregation", f"select k, count(*) as n from (select k from {ORDERS}) group by k", f"select k, count(*) as n from (select /*+ REPARTITION(3) */ k from {ORDERS}) group by k", RESUME),
    Edit("broadcast_added", "hint", "a BROADCAST hint of a static table", f"select o.k, count(*) as n from {ORDERS} o join {ZONES} s on o.k = s.k group by o.k", f"select /*+ BROADCAST(s) */ o.k, count(*) as n from {ORDERS} o join {ZONES} s on o.k = s.k group by o.k", RESUME, files=(ZONE_FILE, ZONE_FILE)),
    # what is behind the state, or has no order
    aggregated("percentile_fraction", "the fraction of a percentile", "percentile(v, 0.5)", "percentile(v, 0.9)", RESUME),
    aggregated("percentile_array", "several fractions of a percentile", "element_at(percentile(v, array(0.5)), 1)", "element_at(percentile(v, array(0.9)), 1)", RESUME),
    aggregated("approx_fraction", "the fraction of an approximate percentile", "percentile_approx(v, 0.5)", "percentile_approx(v, 0.9)", RESUME),
    aggregated("percentile_second", "a second percentile", "percentile(v, 0.5)", "percentile(v, 0.5) + percentile(v, 0.9)", REFUSE),
    aggregated("percentile_input", "the input of a percentile", "percentile(v, 0.5)", "percentile(id, 0.5)", REFUSE),
    Edit("sets_order", "order", "the order of grouping sets", f"select k, g, count(*) as n from {ORDERS} group by grouping sets ((k, g), (k), ())", f"select k, g, count(*) as n from {ORDERS} group by grouping sets ((k, g), (), (k))", RESUME),
    Edit("sets_changed", "order", "another grouping set", f"select k, g, count(*) as n from {ORDERS} group by grouping sets ((k, g), (k), ())", f"select k, g, count(*) as n from {ORDERS} group by grouping sets ((k, g), (g), ())", REFUSE),
    Edit("union_swapped", "order", "the branches of a union below an aggregation", f"select k, sum(v) as s from ({UNION}) group by k", f"select k, sum(v) as s from ({SWAPPED}) group by k", RESUME),
    Edit("union_crossed", "order", "the filters of a union's branches", f"select k, sum(v) as s from ({UNION}) group by k", f"select k, sum(v) as s from (select k, v from {ORDERS} union all select k, v from {REFUNDS} where v > 1) group by k", REFUSE),
    Edit("bound_units", "literal", "an interval in other units", joined("o.id, r.v"), joined("o.id, r.v").replace("interval 30 minutes", "interval 1800 seconds"), RESUME, mode="append"),
    Edit("window_units", "literal", "a window in other units", windows("count(*) as n", "'5 minutes'"), windows("count(*) as n", "'300 seconds'"), RESUME, mode="append"),
    Edit("limit_complete", "behind", "a LIMIT in complete mode", f"select k, count(*) as n from {ORDERS} group by k order by n, k limit 2", f"select k, count(*) as n from {ORDERS} group by k order by n, k limit 3", RESUME, mode="complete"),
    Edit("limit_complete_added", "behind", "a new LIMIT in complete mode", f"select k, count(*) as n from {ORDERS} group by k order by n, k", f"select k, count(*) as n from {ORDERS} group by k order by n, k limit 3", RESUME, mode="complete"),
    Edit("watermark_unused", "watermark", "a watermark where no key has the time", aggregation("k, count(*) as n"), f"select {TS} k, count(*) as n from {ORDERS} group by k", RESUME),
    Edit("watermark_unused_removed", "watermark", "no watermark any more where no key has the time", f"select {TS} k, count(*) as n from {ORDERS} group by k", aggregation("k, count(*) as n"), RESUME),
    Edit("watermark_used", "watermark", "a watermark of a window", windows("count(*) as n").replace("/*+ WATERMARK(ts, '10 minutes') */", ""), windows("count(*) as n"), REFUSE),
    # declarations; a table can be in one edit of a project only, because its columns are declared once
    declared("csv_order", "columns of CSV in another order, which Spark reads by their position", "sheet", (COLUMNS, "v int, ts timestamp, k string, g string, id int, d double"), (TOTAL, TOTAL), REFUSE),
    declared("csv_name", "another name of a column of CSV", "sheet2", (COLUMNS, COLUMNS.replace("k string", "kind string")), (TOTAL2, TOTAL2.replace("select k,", "select kind as k,").replace("by k", "by kind")), RESUME),
    declared("collation", "a collation of a declared column", "cased", (COLUMNS, COLUMNS.replace("k string", "k string collate UNICODE_CI")), (CASED, CASED), REFUSE),
    declared("collation_other", "another collation of a declared column", "cased2", (COLUMNS.replace("k string", "k string collate UTF8_LCASE"), COLUMNS.replace("k string", "k string collate UTF8_BINARY")), (CASED2, CASED2), REFUSE),
    wider("wider_sum", "int to bigint, in a sum, an average and a count", INT, "select k, sum(w) as s, avg(w) as a, count(w) as n from TABLE group by k", RESUME),
    wider("wider_filter", "int to bigint, compared with numbers", INT, "select k, count(*) filter (where w in (1, 2)) as n, max(case when w > 3 then 1 else 0 end) as m from TABLE where w < 4000 group by k", RESUME),
    wider("wider_text", "int to bigint, as text", INT, "select cast(w as string) as t, count(*) as n from TABLE group by cast(w as string)", RESUME),
    wider("wider_long_list", "int to bigint, in a long IN", INT, "select k, count(*) as n from TABLE where w in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12) group by k", RESUME),
    wider("wider_double", "int to bigint, multiplied by a double", INT, "select k, sum(w * 1.5D) as s from TABLE group by k", RESUME),
    wider("wider_unread", "int to bigint, not read before the state", INT, "select k, count(*) as n from TABLE group by k", RESUME),
    wider("wider_max", "int to bigint, in a maximum", INT, "select k, max(w) as m from TABLE group by k", REFUSE),
    wider("wider_key", "int to bigint, as a key", INT, "select w, count(*) as n from TABLE group by w", REFUSE),
    wider("wider_hash", "int to bigint, in an approximate count", INT, "select k, approx_count_distinct(w) as n from TABLE group by k", REFUSE),
    wider("wider_float", "float to double in JSON, in a count", FLOAT, "select k, count(amount) as n from TABLE group by k", RESUME),
    wider("wider_float_sum", "float to double in JSON, in a sum", FLOAT, "select k, sum(amount) as s from TABLE group by k", REFUSE),
    wider("wider_decimal", "decimal(10,2) to decimal(12,2), compared with numbers", DECIMAL, "select k, count(amount) as n from TABLE where amount > 3 and amount < 100.5 group by k", RESUME),
    wider("wider_decimal_sum", "decimal(10,2) to decimal(12,2), in a sum", DECIMAL, "select k, sum(amount) as s from TABLE group by k", REFUSE),
    wider("wider_day", "date to timestamp, in a count", DAY, "select k, count(day) as n from TABLE group by k", RESUME),
    wider("wider_day_key", "date to timestamp, as a key", DAY, "select day, count(*) as n from TABLE group by day", REFUSE),
    wider("field_added", "a new field of a struct, of which other fields are read", ITEM, "select item.sku, sum(item.price) as s, count(item) as n from TABLE where item.price > 1 group by item.sku", RESUME),
    wider("field_added_whole", "a new field of a struct that is a key", ITEM, "select item, count(*) as n from TABLE group by item", REFUSE),
    wider("field_added_text", "a new field of a struct that becomes text", ITEM, "select to_json(item) as j, count(*) as n from TABLE group by to_json(item)", REFUSE),
    wider("field_wider", "int to bigint in a field of a struct, in a sum", PRICE, "select item.sku, sum(item.price) as s from TABLE group by item.sku", RESUME),
    wider("field_wider_max", "int to bigint in a field of a struct, in a maximum", PRICE, "select item.sku, max(item.price) as m from TABLE group by item.sku", REFUSE),
    wider("item_field_added", "a new field of the items of a list, of which other fields are read", ITEMS, "select i.sku, max(n) as n from (select explode(items) as i, size(items) as n from TABLE) group by i.sku", RESUME),
    wider("item_field_added_whole", "a new field of the items of a list, in a maximum", ITEMS, "select k, max(items) as m from TABLE group by k", REFUSE),
    filtered("collate", "a collation in an expression", "collate(k, 'UTF8_LCASE') <> 'A'", "collate(k, 'UTF8_BINARY') <> 'A'", kind="type"),
    Edit("seed_type", "declaration", "another type of a seed's column", RATED, RATED, REFUSE, files=({**RATES, "seeds/_rated.yml": RATE_TYPE.replace("TYPE", "int")}, {**RATES, "seeds/_rated.yml": RATE_TYPE.replace("TYPE", "double")})),
    Edit("variable", "input", "a variable of the project in SQL", LEAST, LEAST, REFUSE, files=({}, {"least": "4"})),
    Edit("session_dynamic", "session", "a gap of sessions that depends on the row", GAPS, GAPS.replace("'8 minutes'", "'20 minutes'"), REFUSE, mode="append"),
    Edit("session_dynamic_alias", "session", "another alias beside such a gap", GAPS, GAPS.replace("as n", "as number"), RESUME, mode="append", compared=()),
    Edit("union_watermark", "watermark", "the watermark of one branch of a union", LATE_UNION, LATE_UNION[::-1].replace("01 lavretni", "03 lavretni", 1)[::-1], REFUSE, mode="append"),
    # settings
    settled("json_nulls", "whether JSON has nulls, below a key", aggregation("to_json(named_struct('v', nullif(v, 3), 'k', k)) as a, count(*) as n", keys="to_json(named_struct('v', nullif(v, 3), 'k', k))"), REFUSE),
    settled("json_nulls_behind", "whether JSON has nulls, and no JSON", aggregation("k, count(*) as n"), RESUME),
    settled("cast_text", "how a struct becomes text", aggregation("cast(named_struct('v', v, 'k', k) as string) as a, count(*) as n", keys="cast(named_struct('v', v, 'k', k) as string)"), REFUSE),
    settled("escaped_text", "how a backslash in SQL is read", aggregation("k, count(*) as n", r"where v > length(concat(substring(k, 1, 0), '\\n')) - 2"), REFUSE),
    settled("escaped_nothing", "how a backslash in SQL is read, without one", aggregation("upper(k) as u, count(*) as n", keys="upper(k)"), RESUME),
    Edit("zone_literal", "setting", "the time zone of a literal", aggregation("k, count(*) as n", f"where ts > {SAME}"), aggregation("k, count(*) as n", f"where ts > {SAME}"), REFUSE, group="zone"),
    Edit("zone_of_texts", "setting", "the time zone of times in files, which may have one", aggregation("ts, count(*) as n", keys="ts"), aggregation("ts, count(*) as n", keys="ts"), ASK, group="zone"),
    Edit("zone_of_minutes", "setting", "the time zone, where minutes are added to a time", aggregation("timestamp_seconds(id) + interval 90 minutes as a, count(*) as n", keys="timestamp_seconds(id) + interval 90 minutes"), aggregation("timestamp_seconds(id) + interval 90 minutes as a, count(*) as n", keys="timestamp_seconds(id) + interval 90 minutes"), RESUME, group="zone"),
    Edit("zone_of_days", "setting", "the time zone, where a day is added to a time", aggregation("timestamp_seconds(v * 100000 + 1699000000) + interval 1 day as a, count(*) as n", keys="timestamp_seconds(v * 100000 + 1699000000) + interval 1 day"), aggregation("timestamp_seconds(v * 100000 + 1699000000) + interval 1 day as a, count(*) as n", keys="timestamp_seconds(v * 100000 + 1699000000) + interval 1 day"), REFUSE, group="zone"),
    Edit("ansi_plain", "setting", "ANSI mode, where nothing can fail", aggregation("k, count(*) as n", "where v > 2"), aggregation("k, count(*) as n", "where v > 2"), RESUME, group="ansi"),
    Edit("ansi_off_plain", "setting", "no ANSI mode any more, where nothing can fail", windows("lower(k) as k, count(*) as n", more=", lower(k)"), windows("lower(k) as k, count(*) as n", more=", lower(k)"), RESUME, group="ansi off"),
    Edit("names_plain", "setting", "case-sensitive names, keys of maps and precision of decimals, which nothing reads", aggregation("lower(k) as k, avg(v) as m", keys="lower(k)"), aggregation("lower(k) as k, avg(v) as m", keys="lower(k)"), RESUME, group="names"),
    Edit("names_windows", "setting", "the same settings, over windows", windows("sum(v) as s"), windows("sum(v) as s"), RESUME, group="names"),
    Edit("names_decimals", "setting", "the precision of decimals that are multiplied", aggregation(f"k, sum({DECIMALS}) as s"), aggregation(f"k, sum({DECIMALS}) as s"), REFUSE, group="names"),
    Edit("times_parsed", "setting", "how a text with a short month is parsed", aggregation(f"{SHORT} as a, count(*) as n", keys=SHORT), aggregation(f"{SHORT} as a, count(*) as n", keys=SHORT), REFUSE, group="times"),
    Edit("times_unread", "setting", "how times are parsed, which nothing reads", aggregation("k, count(*) as n"), aggregation("k, count(*) as n"), RESUME, group="times"),
    Edit("value_in_sum", "setting", "a value that Spark puts into the SQL of a sum", aggregation(f"k, sum(v * {FACTOR}) as s"), aggregation(f"k, sum(v * {FACTOR}) as s"), REFUSE, group="values"),
    Edit("value_behind", "setting", "a value that Spark puts into the SQL behind a sum", aggregation(f"k, sum(v) * {FACTOR} as s"), aggregation(f"k, sum(v) * {FACTOR} as s"), RESUME, group="values"),
    Edit("value_elsewhere", "setting", "a setting that only Python code reads", aggregation("k, sum(v) as s"), aggregation("k, sum(v) as s"), RESUME, group="values"),
    Edit("ansi_off", "setting", "no ANSI mode any more", aggregation("k, sum(size(if(v > 2, array(v), null))) as s"), aggregation("k, sum(size(if(v > 2, array(v), null))) as s"), REFUSE, group="ansi off"),
)
# fmt: on
