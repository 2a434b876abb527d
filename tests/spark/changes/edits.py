"""The edits of the change matrix: a query, its changed version, and whether it can resume on the old checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

RESUME, REFUSE, ASK = "resume", "refuse", "ask"
"""What `run` does: it resumes, refuses, or asks, because only the author of Python code knows what its change means."""

TS = "/*+ WATERMARK(ts, '10 minutes') */"
ORDERS = "{{ source('shop', 'orders') }}"
REFUNDS = "{{ source('shop', 'refunds') }}"


@dataclass(frozen=True)
class Edit:
    """One edit. `mode` is the output mode, `mode_after` a changed one, and so with `sink`. `files` are other files of the
    project, before and after, and options by their name. `compared` are the phases whose results must agree.
    """

    name: str
    kind: str
    text: str
    before: str
    after: str
    expected: str
    mode: str = "update"
    mode_after: str | None = None
    config_before: str = ""
    config_after: str = ""
    files: tuple[Mapping[str, str], Mapping[str, str]] = field(default=({}, {}))
    compared: tuple[int, ...] = (2, 3)
    group: str = "queries"
    sink: str = "probe"
    sink_after: str | None = None
    suffix: str = ".sql"

    @property
    def path(self) -> str:
        """The file of the model."""
        return f"models/{self.name}{self.suffix}"

    @property
    def output(self) -> str:
        """The sink of the changed query."""
        return self.sink_after or self.sink

    def sql(self, *, changed: bool) -> str:
        """Returns the text of the model."""
        if self.suffix != ".sql":
            return self.after if changed else self.before
        sink = self.output if changed else self.sink
        mode = self.mode_after if changed and self.mode_after else self.mode
        more = self.config_after if changed else self.config_before
        query = self.after if changed else self.before
        return f"{{{{ config(sink='{sink}', output_mode='{mode}'{more}) }}}}\n{query}\n"


def declared_tables(options: Mapping[str, str]) -> list[str]:
    """Returns the tables whose columns are in options of edits: `shop columns` for the table `shop`."""
    return [name.removesuffix(" columns") for name in options if name.endswith(" columns")]


def aggregation(select: str, where: str = "", keys: str = "k", having: str = "") -> str:
    """Returns an aggregation over orders."""
    return f"select {select} from {ORDERS} {where} group by {keys} {having}"


def windows(select: str, span: str = "'5 minutes'", delay: str = "10 minutes", where: str = "", more: str = "") -> str:
    """Returns an aggregation in windows over orders."""
    return (
        f"select /*+ WATERMARK(ts, '{delay}') */ window.start as at, {select} from {ORDERS} {where} "
        f"group by window(ts, {span}){more}"
    )


def joined(select: str, kind: str = "join", on: str = "o.id = r.id", where: str = "") -> str:
    """Returns a join of orders and refunds in time."""
    return (
        "select /*+ WATERMARK(o.ts, '10 minutes'), WATERMARK(r.ts, '10 minutes') */ "
        f"{select} from {ORDERS} o {kind} {REFUNDS} r on {on} "
        f"and r.ts between o.ts - interval 30 minutes and o.ts + interval 30 minutes {where}"
    )


def distinct(keys: str, where: str = "", select: str = "id, k, v") -> tuple[str, str]:
    """Returns a query without duplicates and its configuration."""
    return f"select {select} from {ORDERS} {where}", f", deduplicate=[{keys}]"


def python(
    name: str,
    text: str,
    before: str,
    after: str,
    expected: str,
    view: str = "",
    options: Mapping[str, str] | None = None,
    helpers: tuple[str, str] = ("", ""),
) -> Edit:
    """Returns an edit of a Python model with state, of the SQL `view` below it, of `options`, or of a module of python/
    (`helpers`, before and after), whose name is HELPER.
    """
    below, helper = f"models/{name}_below.sql", f"python/{name}_helper.py"
    was = {below: f"select * from {ORDERS}\n", helper: helpers[0]}
    now = {below: f"select * from {ORDERS} {view}\n", helper: helpers[1], **(options or {})}
    before, after = (
        code.replace("VIEW", f"{name}_below").replace("HELPER", f"{name}_helper") for code in (before, after)
    )
    return Edit(name, "python", text, before, after, expected, files=(was, now), suffix=".py")


COUNT = aggregation("k, count(*) as n, sum(v) as total")
TWO_KEYS = aggregation("k, g, count(*) as n", keys="k, g")
WINDOW = windows("count(*) as n")
WINDOW_KEY = windows("k, count(*) as n, sum(v) as total", more=", k")
JOIN = joined("o.id, o.k, r.v")
JOIN_ALL = joined("o.id, o.k, r.v, o.v as w")
LEFT = joined("o.id, r.v", "left join")
SEMI = joined("o.id, o.v", "left semi join")
FREE = f"select o.id, o.k, r.v, o.v as w from {ORDERS} o join {REFUNDS} r on o.k = r.k"
"""A join without a watermark, which keeps all rows."""
SELF = (
    "select /*+ WATERMARK(a.ts, '10 minutes'), WATERMARK(b.ts, '10 minutes') */ a.id as one, b.id as other "
    f"from {ORDERS} a join {ORDERS} b on a.k = b.k and b.ts between a.ts and a.ts + interval 20 minutes"
)
SESSION = f"select {TS} session_window.start as at, k, count(*) as n from {ORDERS} group by session_window(ts, '5 minutes'), k"
CHAINED = (
    f"with five as (select {TS} window as w, k, count(*) as n from {ORDERS} group by window(ts, '5 minutes'), k) "
    "select window.start as at, sum(n) as total from five group by window(w, '10 minutes')"
)
TITLES = {"seeds/titles.csv": "k,name\na,first\nb,second\nc,gamma\n"}
NAMED = f"select n.name, count(*) as c from {ORDERS} o join {{{{ ref('names') }}}} n on o.k = n.k group by n.name"
TWO_TABLES = (
    f"select a.name, count(*) as c from {ORDERS} o join {{{{ ref('names') }}}} a on o.k = a.k "
    "join {{ ref('titles') }} b on o.k = b.k group by a.name"
)
VALUES = (
    f"select n.name, count(*) as c from {ORDERS} o join (values ('a', 'alpha'), ('b', 'beta')) as n(k, name) "
    "on o.k = n.k group by n.name"
)
RANGE = f"select o.k, count(*) as c from {ORDERS} o join range(2) n on o.id > n.id group by o.k"
TOTALS = """from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor


class Totals(StatefulProcessor):
    def init(self, handle):
        self.total = handle.getValueState("total", "v long")

    def handleInputRows(self, key, rows, timerValues):
        total = self.total.get()[0] if self.total.exists() else 0
        total += sum(row.v or 0 for row in rows)
        self.total.update((total,))
        yield Row(k=key[0], total=total)


def model(sqlstream, spark):
    sqlstream.config(sink="probe", output_mode="update")
    rows = sqlstream.ref("VIEW")
    return rows.groupBy("k").transformWithState(Totals(), "k string, total long", "update", "None")
"""
"""A Python model with state, over a view of orders."""
LEAST = TOTALS.replace(".groupBy", ".where(f\"v >= {sqlstream.var('least')}\").groupBy")
"""The same with a variable."""
HELPED = "from HELPER import amount\n" + TOTALS.replace("row.v or 0", "amount(row)")
"""The same with a function of python/."""
AMOUNT = "def amount(row):\n    return row.v or 0\n"
PRICED = f"select o.k, sum(o.v * p.price) as s from {ORDERS} o join {{{{ ref('prices') }}}} p on o.k = p.k group by o.k"
STATELESS = f"select id, k, v from {ORDERS} where v > 1"

# fmt: off
EDITS: tuple[Edit, ...] = (
    Edit("sum_times", "aggregation", "`sum(v)` to `sum(v * 1000)`", COUNT, COUNT.replace("sum(v)", "sum(v * 1000)"), REFUSE),
    Edit("sum_other", "aggregation", "`sum(v)` to `sum(id)`", COUNT, COUNT.replace("sum(v)", "sum(id)"), REFUSE),
    Edit("max_min", "aggregation", "`max(v)` to `min(v)`", aggregation("k, max(v) as m"), aggregation("k, min(v) as m"), REFUSE),
    Edit("avg_sum", "aggregation", "`avg(v)` to `sum(v)`", aggregation("k, avg(v) as m"), aggregation("k, sum(v) as m"), REFUSE),
    Edit("upper_lower", "aggregation", "key `upper(k)` to `lower(k)`", aggregation("upper(k) as u, count(*) as n", keys="upper(k)"), aggregation("lower(k) as u, count(*) as n", keys="lower(k)"), REFUSE),
    Edit("key_swap", "aggregation", "key `k` to `g`, of the same type", aggregation("k as key, count(*) as n"), aggregation("g as key, count(*) as n", keys="g"), REFUSE),
    Edit("key_type", "aggregation", "key `k` to `id`, of another type", aggregation("count(*) as n"), aggregation("count(*) as n", keys="id"), REFUSE),
    Edit("key_order", "aggregation", "keys `k, g` to `g, k`", TWO_KEYS, TWO_KEYS.replace("by k, g", "by g, k"), REFUSE),
    Edit("key_added", "aggregation", "another key", COUNT, aggregation("k, count(*) as n, sum(v) as total", keys="k, g"), REFUSE),
    Edit("aggregate_order", "aggregation", "aggregates in another order", aggregation("k, min(v) as a, max(v) as b"), aggregation("k, max(v) as b, min(v) as a"), REFUSE),
    Edit("aggregate_added", "aggregation", "another aggregate", COUNT, aggregation("k, count(*) as n, sum(v) as total, max(v) as m"), REFUSE),
    Edit("aggregate_removed", "aggregation", "one aggregate less", COUNT, aggregation("k, count(*) as n"), REFUSE),
    Edit("aggregate_filter", "aggregation", "a FILTER of an aggregate", COUNT, COUNT.replace("sum(v)", "sum(v) filter (where v > 2)"), REFUSE),
    Edit("count_distinct_column", "aggregation", "`count(*)` to `count(v)`", COUNT, COUNT.replace("count(*)", "count(v)"), REFUSE),
    Edit("cast_key", "aggregation", "a cast in the key", aggregation("v as key, count(*) as n", keys="v"), aggregation("cast(d as int) as key, count(*) as n", keys="cast(d as int)"), REFUSE),
    Edit("to_stateless", "aggregation", "an aggregation to a projection", COUNT, STATELESS, REFUSE),
    Edit("from_stateless", "aggregation", "a projection to an aggregation", STATELESS, COUNT, REFUSE),
    # aggregations: what goes in
    Edit("where_added", "input", "a filter before the aggregation", COUNT, aggregation("k, count(*) as n, sum(v) as total", "where v > 2"), REFUSE),
    Edit("where_removed", "input", "a filter before the aggregation removed", aggregation("k, count(*) as n", "where v > 2"), aggregation("k, count(*) as n"), REFUSE),
    Edit("where_changed", "input", "another filter before the aggregation", aggregation("k, count(*) as n", "where v > 2"), aggregation("k, count(*) as n", "where v > 4"), REFUSE),
    Edit("where_key", "input", "a filter on keys, in update mode", TWO_KEYS, TWO_KEYS.replace("group", "where k <> 'a' or g = 'x' group"), RESUME),
    Edit("where_key_in", "input", "a list of keys, in update mode", TWO_KEYS, TWO_KEYS.replace("group", "where k in ('a', 'c') and g not in ('y') group"), RESUME),
    Edit("where_key_part", "input", "a filter on a column within a key, in update mode", aggregation("upper(k) as u, count(*) as n", keys="upper(k)"), aggregation("upper(k) as u, count(*) as n", "where k <> 'a'", keys="upper(k)"), REFUSE),
    Edit("expression_below", "input", "another expression in a view below", f"with o as (select k, v * 2 as w from {ORDERS}) select k, sum(w) as s from o group by k", f"with o as (select k, v * 3 as w from {ORDERS}) select k, sum(w) as s from o group by k", REFUSE),
    Edit("coalesce_below", "input", "`coalesce` around a summed column", aggregation("k, avg(v) as m"), aggregation("k, avg(coalesce(v, 0)) as m"), REFUSE),
    Edit("explode_below", "input", "`explode` of another array below", f"with o as (select k, explode(array(v, 1)) as w from {ORDERS}) select k, sum(w) as s from o group by k", f"with o as (select k, explode(array(v, 2)) as w from {ORDERS}) select k, sum(w) as s from o group by k", REFUSE),
    Edit("union_added", "input", "another source beside the first one", f"with o as (select k, v from {ORDERS}) select k, count(*) as n from o group by k", f"with o as (select k, v from {ORDERS} union all select k, v from {REFUNDS}) select k, count(*) as n from o group by k", RESUME, compared=(3,)),
    Edit("union_dropped", "input", "one source less", f"with o as (select k, v from {ORDERS} union all select k, v from {REFUNDS}) select k, count(*) as n from o group by k", f"with o as (select k, v from {ORDERS}) select k, count(*) as n from o group by k", REFUSE),
    Edit("union_filter", "input", "a filter in one branch of a union", f"with o as (select k, v from {ORDERS} union all select k, v from {REFUNDS}) select k, count(*) as n from o group by k", f"with o as (select k, v from {ORDERS} union all select k, v from {REFUNDS} where v > 1) select k, count(*) as n from o group by k", REFUSE),
    # behind the aggregation
    Edit("having_added", "behind", "a HAVING on an aggregate", COUNT, COUNT + " having count(*) > 1", RESUME),
    Edit("having_changed", "behind", "another HAVING on an aggregate", COUNT + " having count(*) > 1", COUNT + " having count(*) > 2", RESUME),
    Edit("having_removed", "behind", "a HAVING on an aggregate removed", COUNT + " having count(*) > 1", COUNT, RESUME),
    Edit("having_key_update", "behind", "a HAVING on a key, in update mode", COUNT, COUNT + " having k > 'a'", RESUME),
    Edit("having_key", "behind", "a HAVING on a key, in complete mode", COUNT, COUNT + " having k > 'a'", REFUSE, mode="complete"),
    Edit("having_key_removed", "behind", "a HAVING on a key removed", COUNT + " having k > 'a'", COUNT, REFUSE),
    Edit("result_expression", "behind", "`sum(v)` to `sum(v) + 1`", COUNT, COUNT.replace("sum(v)", "sum(v) + 1"), RESUME),
    Edit("result_projection", "behind", "a projection of the result", COUNT, f"with c as ({COUNT}) select k, n * 2 as twice, total from c", RESUME),
    Edit("result_cast", "behind", "a cast of the result", COUNT, f"with c as ({COUNT}) select k, cast(n as string) as n, total from c", RESUME),
    Edit("result_ratio", "behind", "a new column from kept aggregates", COUNT, COUNT.replace("sum(v) as total", "sum(v) as total, sum(v) / count(*) as mean"), RESUME),
    Edit("result_order", "behind", "columns of keys in another order", TWO_KEYS, TWO_KEYS.replace("k, g, count", "g, k, count"), RESUME),
    # cosmetic
    Edit("comment", "cosmetic", "a comment and another format", COUNT, "-- counts\n" + COUNT.replace(" from ", "\n  from ").upper().replace("{{ SOURCE('SHOP', 'ORDERS') }}", ORDERS), RESUME),
    Edit("alias", "cosmetic", "an alias in front of the columns", COUNT, COUNT.replace(ORDERS, f"{ORDERS} as renamed").replace("sum(v)", "sum(renamed.v)"), RESUME),
    Edit("cte_name", "cosmetic", "another name of a CTE", f"with a as (select k, v as w from {ORDERS} where v > 1) select k, sum(w) as s from a group by k", f"with b as (select k, v as x from {ORDERS} where v > 1) select k, sum(x) as s from b group by k", RESUME),
    Edit("conjuncts", "cosmetic", "conditions in another order", aggregation("k, count(*) as n", "where v > 1 and g is not null and id < 100"), aggregation("k, count(*) as n", "where id < 100 and v > 1 and g is not null"), RESUME),
    Edit("count_one", "cosmetic", "`count(*)` to `count(1)`", COUNT, COUNT.replace("count(*)", "count(1)"), RESUME),
    Edit("ordinal", "cosmetic", "`group by k` to `group by 1`", COUNT, COUNT.replace("group by k", "group by 1"), RESUME),
    Edit("operands", "cosmetic", "`v * 2` to `2 * v`, `v > 1` to `1 < v`", aggregation("k, sum(v * 2) as s", "where v > 1"), aggregation("k, sum(2 * v) as s", "where 1 < v"), RESUME),
    Edit("between", "cosmetic", "`between` to two comparisons", aggregation("k, count(*) as n", "where v between 2 and 7"), aggregation("k, count(*) as n", "where v >= 2 and v <= 7"), RESUME),
    Edit("subquery", "cosmetic", "a CTE to a subquery", f"with a as (select k, v from {ORDERS} where v > 1) select k, sum(v) as s from a group by k", f"select k, sum(v) as s from (select * from {ORDERS} where v > 1) group by k", RESUME),
    Edit("unused_column", "cosmetic", "a column that nothing reads", f"with a as (select k, v from {ORDERS}) select k, sum(v) as s from a group by k", f"with a as (select k, v, g, id + 1 as x from {ORDERS}) select k, sum(v) as s from a group by k", RESUME),
    Edit("split", "cosmetic", "one model split into two", f"select k, sum(v * 2) as s from {ORDERS} where v > 1 group by k", "select k, sum(w) as s from {{ ref('split_view') }} group by k", RESUME, files=({}, {"models/split_view.sql": f"select k, v * 2 as w from {ORDERS} where v > 1\n"})),
    Edit("macro_same", "cosmetic", "a macro that compiles to the same SQL", COUNT, COUNT.replace("sum(v)", "{{ total('v') }}"), RESUME, files=({}, {"macros/total.sql": "{% macro total(x) %}sum({{ x }}){% endmacro %}\n"})),
    # windows and watermarks
    Edit("window_size", "window", "a window of 5 to 10 minutes", WINDOW, windows("count(*) as n", "'10 minutes'"), REFUSE, mode="append"),
    Edit("window_slide", "window", "a tumbling to a sliding window", WINDOW, windows("count(*) as n", "'5 minutes', '1 minute'"), REFUSE, mode="append"),
    Edit("window_start", "window", "another start of the windows", WINDOW, windows("count(*) as n", "'5 minutes', '5 minutes', '1 minute'"), REFUSE, mode="append"),
    Edit("delay_longer", "window", "a watermark of 10 to 30 minutes", WINDOW, windows("count(*) as n", delay="30 minutes"), REFUSE, mode="append"),
    Edit("delay_shorter", "window", "a watermark of 10 to 1 minutes", WINDOW, windows("count(*) as n", delay="1 minute"), REFUSE, mode="append"),
    Edit("delay_unit", "window", "the same delay in other units", WINDOW, windows("count(*) as n", delay="600 seconds"), RESUME, mode="append"),
    Edit("window_unit", "window", "the same window in other units", WINDOW, windows("count(*) as n", "'300 seconds'"), RESUME, mode="append"),
    Edit("window_end", "window", "the end of the window instead of its start", WINDOW, WINDOW.replace("window.start as at", "window.end as at"), RESUME, mode="append"),
    Edit("window_key", "window", "a key beside the window", WINDOW, windows("k, count(*) as n", more=", k"), REFUSE, mode="append"),
    Edit("window_having", "window", "a HAVING on an aggregate of windows", WINDOW_KEY, WINDOW_KEY + " having count(*) > 1", RESUME, mode="append"),
    Edit("window_having_key", "window", "a HAVING on the key of windows", WINDOW_KEY, WINDOW_KEY + " having k > 'a'", REFUSE, mode="append"),
    Edit("window_where_key", "window", "a filter on the key of windows, in update mode", WINDOW_KEY, WINDOW_KEY.replace("group", "where k <> 'a' group"), REFUSE),
    Edit("session_gap", "session", "another gap of sessions", SESSION, SESSION.replace("'5 minutes'", "'8 minutes'"), REFUSE, mode="append"),
    Edit("session_result", "session", "another projection of sessions", SESSION, SESSION.replace("count(*) as n", "count(*) * 2 as n"), RESUME, mode="append"),
    # chained aggregations
    Edit("chain_inner", "chain", "a filter below the first aggregation", CHAINED, CHAINED.replace("group by window(ts", "where v > 1 group by window(ts"), REFUSE, mode="append"),
    Edit("chain_between", "chain", "a filter between two aggregations", CHAINED, CHAINED.replace("from five", "from five where n > 1"), REFUSE, mode="append"),
    Edit("chain_outer", "chain", "an expression behind both aggregations", CHAINED, CHAINED.replace("sum(n) as total", "sum(n) * 10 as total"), RESUME, mode="append"),
    Edit("chain_names", "chain", "other names in both aggregations", CHAINED, CHAINED.replace("five", "small").replace("as w", "as span").replace("(w,", "(span,"), RESUME, mode="append"),
    # joins
    Edit("join_projection", "join", "fewer columns of an inner join", JOIN, joined("o.id, r.v"), REFUSE, mode="append"),
    Edit("join_more", "join", "another column of an inner join", JOIN, joined("o.id, o.k, r.v, r.k as rk"), REFUSE, mode="append"),
    Edit("join_computed", "join", "an expression over the columns of a join", JOIN, joined("o.id, o.k, r.v * 2 as v"), RESUME, mode="append"),
    Edit("join_rename", "join", "other aliases in a join", JOIN, JOIN.replace("o.", "a.").replace(" o ", " a ").replace("r.", "b.").replace(" r ", " b "), RESUME, mode="append"),
    Edit("join_filter", "join", "a filter on one side of a join", JOIN, joined("o.id, o.k, r.v", where="where r.v > 1"), REFUSE, mode="append"),
    Edit("join_filter_both", "join", "a comparison of both sides, which drops nulls before the join", JOIN_ALL, joined("o.id, o.k, r.v, o.v as w", where="where r.v > o.v"), REFUSE, mode="append"),
    Edit("join_filter_nulls", "join", "a comparison of both sides that keeps nulls until the join", JOIN_ALL, joined("o.id, o.k, r.v, o.v as w", where="where coalesce(r.v, 0) > coalesce(o.v, 0)"), RESUME, mode="append"),
    Edit("join_filter_key", "join", "a filter on the key of a join", joined("o.id, r.v", on="o.k = r.k"), joined("o.id, r.v", on="o.k = r.k", where="where o.k <> 'a'"), REFUSE, mode="append"),
    Edit("free_filter", "join", "a filter on one side of a join without a watermark", FREE, FREE + " where o.v > 1", REFUSE, mode="append"),
    Edit("free_filter_both", "join", "a comparison of both sides of a join without a watermark", FREE + " where r.v > o.v", FREE, REFUSE, mode="append"),
    Edit("free_filter_key", "join", "a filter on the key of a join without a watermark", FREE, FREE + " where o.k <> 'a'", RESUME, mode="append"),
    Edit("join_key", "join", "another key of a join", JOIN, joined("o.id, o.k, r.v", on="o.k = r.k"), REFUSE, mode="append"),
    Edit("join_swap", "join", "the sides of a join swapped", JOIN, f"select /*+ WATERMARK(o.ts, '10 minutes'), WATERMARK(r.ts, '10 minutes') */ o.id, o.k, r.v from {REFUNDS} r join {ORDERS} o on o.id = r.id and r.ts between o.ts - interval 30 minutes and o.ts + interval 30 minutes", REFUSE, mode="append"),
    Edit("join_equals", "join", "`o.id = r.id` to `r.id = o.id`", JOIN, joined("o.id, o.k, r.v", on="r.id = o.id"), RESUME, mode="append"),
    Edit("join_bound", "join", "a wider bound in time", JOIN.replace("+ interval 30", "+ interval 5").replace("- interval 30", "- interval 5"), JOIN, REFUSE, mode="append"),
    Edit("join_narrow", "join", "a narrower bound in time", JOIN, JOIN.replace("+ interval 30", "+ interval 5"), RESUME, mode="append"),
    Edit("join_condition", "join", "another condition on both sides", JOIN, joined("o.id, o.k, r.v", on="o.id = r.id and o.k <> r.k"), REFUSE, mode="append"),
    Edit("join_left", "join", "an inner to a left join", JOIN, joined("o.id, o.k, r.v", "left join"), REFUSE, mode="append"),
    Edit("left_inner", "join", "a left to an inner join", LEFT, joined("o.id, r.v"), REFUSE, mode="append"),
    Edit("left_computed", "join", "an expression over the columns of a left join", LEFT, joined("o.id, coalesce(r.v, 0) as v", "left join"), RESUME, mode="append"),
    Edit("semi_inner", "join", "a semi to an inner join", SEMI, joined("o.id, o.v"), REFUSE, mode="append"),
    Edit("semi_computed", "join", "an expression over a semi join", SEMI, joined("o.id, o.v + 1 as v", "left semi join"), RESUME, mode="append"),
    Edit("self_names", "join", "other aliases in a self-join", SELF, SELF.replace("a.", "x.").replace(" a ", " x "), RESUME, mode="append"),
    Edit("self_bound", "join", "a narrower bound of a self-join", SELF, SELF.replace("20 minutes", "5 minutes"), RESUME, mode="append"),
    Edit("static_join", "join", "another condition of a join with a table", f"select o.g, sum(v) as s from {ORDERS} o join {{{{ ref('names') }}}} n on o.k = n.k group by o.g", f"select o.g, sum(v) as s from {ORDERS} o join {{{{ ref('names') }}}} n on o.k = n.k and n.name <> 'alpha' group by o.g", REFUSE),
    Edit("static_swap", "join", "another table with the same columns", NAMED, NAMED.replace("'names'", "'titles'"), REFUSE, files=(TITLES, TITLES)),
    Edit("static_of_two", "join", "the column of another of two tables", TWO_TABLES, TWO_TABLES.replace("a.name", "b.name"), REFUSE, files=(TITLES, TITLES)),
    Edit("static_roles", "join", "two tables in each other's place", TWO_TABLES, TWO_TABLES.replace("'names'", "'x'").replace("'titles'", "'names'").replace("'x'", "'titles'"), REFUSE, files=(TITLES, TITLES)),
    Edit("static_values", "join", "another value in VALUES", VALUES, VALUES.replace("'beta'", "'second'"), REFUSE),
    Edit("static_range", "join", "another range", RANGE, RANGE.replace("range(2)", "range(3)"), REFUSE),
    Edit("static_column", "join", "another column of a table, behind the aggregation", f"select n.k, n.name, sum(v) as s from {ORDERS} o join {{{{ ref('names') }}}} n on o.k = n.k group by n.k, n.name", f"select n.k, upper(n.name) as name, sum(v) as s from {ORDERS} o join {{{{ ref('names') }}}} n on o.k = n.k group by n.k, n.name", RESUME),
    # de-duplication
    Edit("dedup_key", "deduplication", "another key", distinct("'k'")[0], distinct("'k'")[0], REFUSE, mode="append", config_before=distinct("'k'")[1], config_after=distinct("'id'")[1]),
    Edit("dedup_more", "deduplication", "another key beside the first one", distinct("'k'")[0], distinct("'k'")[0], REFUSE, mode="append", config_before=distinct("'k'")[1], config_after=distinct("'k', 'v'")[1]),
    Edit("dedup_filter", "deduplication", "a filter below", distinct("'k'")[0], distinct("'k'", "where v > 4")[0], REFUSE, mode="append", config_before=distinct("'k'")[1], config_after=distinct("'k'")[1]),
    Edit("dedup_filter_key", "deduplication", "a filter on a key below", distinct("'k'")[0], distinct("'k'", "where k <> 'a'")[0], RESUME, mode="append", config_before=distinct("'k'")[1], config_after=distinct("'k'")[1]),
    Edit("dedup_behind", "deduplication", "a filter behind", "select * from {{ ref('once') }}", "select * from {{ ref('once') }} where v > 4", RESUME, mode="append", files=({"models/once.sql": "{{ config(deduplicate=['k']) }} " + distinct("")[0] + "\n"}, {})),
    Edit("dedup_columns", "deduplication", "other columns that are no keys", distinct("'id'")[0], distinct("'id'", select="id, k, v * 2 as v")[0], RESUME, mode="append", config_before=distinct("'id'")[1], config_after=distinct("'id'")[1]),
    Edit("distinct_more", "deduplication", "another column of a SELECT DISTINCT", f"select distinct k from {ORDERS}", f"select distinct k, g from {ORDERS}", REFUSE),
    Edit("distinct_group", "deduplication", "SELECT DISTINCT to GROUP BY", f"select distinct k, g from {ORDERS}", f"select k, g from {ORDERS} group by k, g", RESUME),
    # modes, stateless queries, inputs
    Edit("append_update", "mode", "append to update mode", WINDOW, WINDOW, REFUSE, mode="append", mode_after="update", compared=(1, 2, 3)),
    Edit("update_append", "mode", "update to append mode", WINDOW, WINDOW, REFUSE, mode="update", mode_after="append", compared=(1, 2, 3)),
    Edit("update_complete", "mode", "update to complete mode", COUNT, COUNT, RESUME, mode="update", mode_after="complete"),
    Edit("complete_update", "mode", "complete to update mode", COUNT, COUNT, RESUME, mode="complete", mode_after="update"),
    Edit("trigger", "mode", "another trigger", COUNT, COUNT, RESUME, config_after=", trigger='1 minute'"),
    Edit("stateless_filter", "stateless", "another filter", STATELESS, STATELESS.replace("v > 1", "v > 4"), RESUME, mode="append"),
    Edit("stateless_columns", "stateless", "other columns", STATELESS, STATELESS.replace("id, k, v", "id, upper(k) as k, v + 1 as w"), RESUME, mode="append"),
    Edit("seed_changed", "input", "a changed seed below the aggregation", f"select c.name, count(*) as n from {ORDERS} o join {{{{ ref('codes') }}}} c on o.k = c.k group by c.name", f"select c.name, count(*) as n from {ORDERS} o join {{{{ ref('codes') }}}} c on o.k = c.k group by c.name", REFUSE, files=({"seeds/codes.csv": "k,name\na,alpha\nb,beta\n"}, {"seeds/codes.csv": "k,name\na,first\nb,second\n"})),
    Edit("seed_unread", "input", "a column of a seed that is not read", PRICED, PRICED, RESUME, files=({"seeds/prices.csv": "k,price,remark\na,1,old\nb,2,old\n"}, {"seeds/prices.csv": "k,price,remark\na,1,new\nb,2,\n"})),
    Edit("macro_changed", "input", "a changed macro below the aggregation", f"select k, sum({{{{ scaled('v') }}}}) as s from {ORDERS} group by k", f"select k, sum({{{{ scaled('v') }}}}) as s from {ORDERS} group by k", REFUSE, files=({"macros/scaled.sql": "{% macro scaled(x) %}({{ x }} * 2){% endmacro %}\n"}, {"macros/scaled.sql": "{% macro scaled(x) %}({{ x }} * 3){% endmacro %}\n"})),
    Edit("option_content", "input", "an option that changes what is read", "select k, count(*) as n from {{ source('shop', 'notes') }} group by k", "select k, count(*) as n from {{ source('shop', 'notes') }} group by k", REFUSE, files=({"notes": ""}, {"notes": "{multiLine: true}"})),
    Edit("source_type", "input", "another type of a column that is read", "select k, sum(v) as s from {{ source('shop', 'typed') }} group by k", "select k, sum(v) as s from {{ source('shop', 'typed') }} group by k", REFUSE, files=({"typed": "{}"}, {"typed": "{}", "typed columns": "id int, ts timestamp, k string, g string, v double, d double"})),
    Edit("source_column", "input", "another column of a source that is not read", "select k, sum(v) as s from {{ source('shop', 'wider') }} group by k", "select k, sum(v) as s from {{ source('shop', 'wider') }} group by k", RESUME, files=({"wider": "{}"}, {"wider": "{}", "wider columns": "id int, ts timestamp, k string, g string, v int, d double, w int"})),
    Edit("option_rate", "input", "an option that changes how much is read at once", "select k, count(*) as n from {{ source('shop', 'slow') }} group by k", "select k, count(*) as n from {{ source('shop', 'slow') }} group by k", RESUME, files=({"slow": "{maxFilesPerTrigger: 1}"}, {"slow": "{maxFilesPerTrigger: 5}"})),
    # sinks
    Edit("sink_other", "sink", "a function as another sink, with other options", COUNT, COUNT, REFUSE, sink_after="other", compared=(1, 2, 3)),
    Edit("sink_option", "sink", "an option of a function", COUNT, COUNT, RESUME, sink="noted", files=({}, {"noted": ", note: later"}), compared=(1, 2, 3)),
    Edit("sink_path", "sink", "another path of files", STATELESS, STATELESS, REFUSE, mode="append", sink="lines", sink_after="elsewhere"),
    Edit("sink_kind", "sink", "files to a function", STATELESS, STATELESS, REFUSE, mode="append", sink="lines", sink_after="probe", compared=(1, 2, 3)),
    Edit("sink_columns", "sink", "another name of a column in files", STATELESS, STATELESS.replace("v from", "v as w from"), REFUSE, mode="append", sink="lines"),
    Edit("sink_form", "sink", "how many rows a file has", STATELESS, STATELESS, RESUME, mode="append", sink="sized", files=({}, {"sized": ", options: {maxRecordsPerFile: 1000}"})),
    # state of Python code
    python("python_comment", "a comment and another layout", TOTALS, TOTALS.replace("row.v or 0 for", "(row.v or 0)  # null counts as 0\n            for"), RESUME),
    python("python_state", "what is added to the state", TOTALS, TOTALS.replace("row.v or 0", "row.id or 0"), ASK),
    python("python_result", "what is returned from the state", TOTALS, TOTALS.replace("total=total)", "total=total * 2)"), ASK),
    python("python_key", "another key of the groups", TOTALS, TOTALS.replace('groupBy("k")', 'groupBy("g")'), REFUSE),
    python("python_filter", "a filter in the view below", TOTALS, TOTALS, REFUSE, view="where v > 2"),
    python("python_variable", "a variable that Python code reads", LEAST, LEAST, REFUSE, options={"least": "4"}),
    python("python_view", "another alias in the view below", TOTALS, TOTALS, RESUME, view="as renamed"),
    python("python_import", "a module of `python/` that the model imports", HELPED, HELPED, ASK, helpers=(AMOUNT, AMOUNT.replace("row.v", "row.id"))),
    python("python_import_comment", "a comment and a docstring in a module that the model imports", HELPED, HELPED, RESUME, helpers=(AMOUNT, '"""Amounts."""\n# of rows\n' + AMOUNT)),
    python("python_unread", "a module of `python/` that nothing imports", TOTALS, TOTALS, RESUME, helpers=(AMOUNT, AMOUNT.replace("row.v", "row.id"))),
    # settings
    Edit("zone_date", "setting", "the time zone below a date", aggregation("date(ts) as day, count(*) as n", keys="date(ts)"), aggregation("date(ts) as day, count(*) as n", keys="date(ts)"), REFUSE, group="zone"),
    Edit("zone_window", "setting", "the time zone of windows", WINDOW, WINDOW, ASK, mode="append", group="zone"),
    Edit("zone_behind", "setting", "the time zone behind the aggregation", aggregation("k, date(max(ts)) as day"), aggregation("k, date(max(ts)) as day"), ASK, group="zone"),
    Edit("ansi", "setting", "ANSI mode", aggregation("k, sum(v + 2147483000) as s"), aggregation("k, sum(v + 2147483000) as s"), REFUSE, group="ansi"),
    Edit("ansi_stateless", "setting", "ANSI mode of a stateless query", STATELESS, STATELESS, RESUME, mode="append", group="ansi"),
)
# fmt: on
