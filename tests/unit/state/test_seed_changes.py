"""Which edits of a seed change a query: only those in columns that it can read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sqlstream import ProjectRequest
from sqlstream.app.loading.load import load
from sqlstream.project.declarations.seeds import KEPT_SEED_ROWS
from sqlstream.state.changes import describe_changes
from sqlstream.state.identity import identity_of
from sqlstream.state.judgement import Judgement, judge_changes
from sqlstream.state.ledger import QueryIdentity, read_ledger
from sqlstream.state.readers import source_uses
from sqlstream.state.signature.operators import STATIC
from sqlstream.state.signature.signature import InputRows, StateOperator, StateSignature
from tests.support.identities import ledger_of

FILES = {
    "project.yml": "name: shop\ntargets: {local: {master: local, storage: s}}\n",
    "sources.yml": "sources: [{name: shop, tables: [{name: orders, format: json, path: in, schema: 'k string, v int'}]}]\n",
    "sinks.yml": "sinks: [{name: out, format: noop}]\n",
}
CODES = "k,name,price\na,alpha,1\nb,beta,2\nc,,3\n"
SUMS = "select n.k, sum(o.v * n.price) as s from {{ source('shop', 'orders') }} o join {{ ref('codes') }} n on o.k = n.k group by n.k"
JOINED = StateSignature(
    (StateOperator("aggregation", {"keys": ("k",)}, (InputRows(f"{STATIC} 1 (k string): relation"),)),), "update", (), "4.3.0"
)  # fmt: skip


def identity(root: Path, seed: str, sql: str = SUMS) -> QueryIdentity:
    """Returns the stateful query of the project with this seed."""
    model = f"{{{{ config(sink='out', output_mode='update') }}}}\n{sql}"
    for name, text in {**FILES, "seeds/codes.csv": seed, "models/sums.sql": model}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    compiled = load(ProjectRequest(root, env={})).compiled
    found = next(each for each in compiled.models.values() if each.name == "sums")
    return identity_of(compiled, found, source_uses(compiled, found, None), None, stateful=True, settings={})


def judged(old: QueryIdentity, new: QueryIdentity) -> Judgement:
    """Returns the judgement of a query whose plan stays the same."""
    ledger = read_ledger(replace(ledger_of(old), signature=JOINED).to_json())
    return judge_changes(ledger, new, describe_changes(ledger.identity, new), lambda _format: JOINED)


UNREAD = CODES.replace("beta", "second")
ORDERS, CODED = "{{ source('shop', 'orders') }}", "{{ ref('codes') }}"
RENAMED = [
    f"{CODED} as c(x, y, z)",
    f"{CODED} c (x, y, z)",
    f"{CODED} tablesample (100 percent) as c(x, y, z)",
    f"{CODED} with ('a' = 'b') c(x, y, z)",
    f"({CODED}) as c(x, y, z)",
    f"(({CODED})) c(x, y, z)",
    f"({CODED} tablesample (100 percent)) c(x, y, z)",
    f"({CODED} cross join (select 1)) tablesample (100 percent) c(x, y, z, one)",
    f"(select * from {CODED}) c(x, y, z)",
    f"lateral (table {CODED}) c(x, y, z)",
]
"""Relations whose aliases have names for the columns of the seed."""
READ = CODES.replace("b,beta,2", "b,beta,20")


@pytest.mark.parametrize(
    ("seed", "is_safe"),
    [
        (CODES, True),
        (UNREAD, True),
        (CODES.replace("c,,3", "c,gamma,3"), True),
        (CODES.replace("name", "label"), True),
        ("k,more,name,price\na,1,alpha,1\nb,2,beta,2\nc,3,,3\n", True),
        (CODES.replace("\n", "\r\n"), True),
        (READ, False),
        (CODES + "d,delta,4\n", False),
        (CODES.replace("b,beta,2\n", ""), False),
        (CODES.replace("a,alpha,1\nb,beta,2", "b,beta,2\na,alpha,1"), False),
        (CODES.replace("c,,3", "c,,"), False),
    ],
)
def test_a_change_in_unread_columns_resumes(tmp_path: Path, seed: str, is_safe: bool) -> None:
    """Values, names and new columns that the query does not read are harmless; rows and read values are not."""
    assert judged(identity(tmp_path, CODES), identity(tmp_path, seed)).is_safe == is_safe


@pytest.mark.parametrize(
    "sql",
    [
        SUMS.replace("n.price) as s", "n.price) as s, max(name) as n"),
        SUMS.replace("= n.k", "= n.k and n.NAME <> 'x'"),
        SUMS.replace("{{ ref('codes') }} n", "(select * from {{ ref('codes') }}) n"),
        SUMS.replace("{{ ref('codes') }} n", "(select c.* from {{ ref('codes') }} c) n"),
        SUMS.replace("{{ ref('codes') }} n", "(select distinct * from {{ ref('codes') }}) n"),
        SUMS.replace("sum(o.v * n.price)", "max(struct(*))"),
        SUMS.replace("sum(o.v * n.price)", "sum(identifier('na' || 'me'))"),
        SUMS.replace("= n.k", "= n.k where exists (select 1 from {{ ref('codes') }} x where x.`name` = 'b')"),
        "select k, sum(v) as s from {{ source('shop', 'orders') }} natural join {{ ref('codes') }} group by k",
        *(f"select o.k, max(z) as s from {ORDERS} o join {each} on o.k = x group by o.k" for each in RENAMED),
        f"select k, sum(v) as s from {ORDERS} where exists (select 1 from {CODED} c(x, y, z) where y = 'b') group by k",
        f"select k, sum(v * (select max(length(y)) from {CODED} c(x, y, z))) as s from {ORDERS} group by k",
        f"select k, sum(v) as s from {ORDERS} where k in (select y from {CODED} as `c` (x, `y`, z)) group by k",
        f"with c(x, y, z) as (from {CODED}) select o.k, max(y) as s from {ORDERS} o join c on o.k = x group by o.k",
        f"with c(x, y, z) as (table {CODED}) select o.k, max(y) as s from {ORDERS} o join c on o.k = x group by o.k",
        f"with c(x, y, z) as (from {CODED} |> where price > 1) select o.k, max(y) as s from {ORDERS} o join c on o.k = x group by o.k",
        f"with c as (map * using 'cat' as (x, y, z) from {CODED}) select o.k, max(y) as s from {ORDERS} o join c on o.k = x group by o.k",
        f"select o.k, max(y) as s from {ORDERS} o join (select transform(*) using 'cat' as (x, y, z) from {CODED}) on o.k = x group by o.k",
        f"select o.k, max(y) as s from {ORDERS} o join (select 'a', 'b', 1 union all from {CODED}) c(x, y, z) on o.k = x group by o.k",
        f"from {CODED} |> as c |> rename price as z |> join {ORDERS} o on o.k = c.k |> aggregate max(z) as s group by o.k",
        f"from {CODED} |> join {ORDERS} o using (k) |> aggregate sum(v) as s group by k",
        f"select k, sum(v) as s from {ORDERS} join (select 1 from {CODED} unpivot (n for m in (price))) group by k",
        f"select k, max(to_json(struct(c.*))) as s from {ORDERS} join {CODED} c using (k) group by k",
    ],
)
def test_a_query_that_may_read_the_column_is_refused(tmp_path: Path, sql: str) -> None:
    """A column whose name is anywhere in the SQL, or that SQL can take without its name, counts as read."""
    old, new = (identity(tmp_path, seed, sql) for seed in (CODES, UNREAD))
    assert not judged(old, new).is_safe


@pytest.mark.parametrize(
    "sql",
    [
        SUMS.replace("o.v * n.price", "o.v*n.price"),
        SUMS.replace("sum(", "count(*) * sum("),
        SUMS.replace(CODED, f"(select k, price from {CODED})"),
        f"select k, sum(v * z) as s from {ORDERS} join (select k, price from {CODED}) c(k, z) using (k) group by 1",
        f"with c(k, z) as (select k, price from {CODED}) select k, sum(v * z) as s from {ORDERS} join c as d(k, z) using (k) group by all",
        f"select k, sum(v * z) as s from {ORDERS} join (from {CODED} select k, price as z) using (k) group by k",
        f"select k, sum(v * price) as s from {ORDERS} join {CODED} using (k) join (values (1), (2)) as t(x) on v = x group by k",
        f"select k, sum(v * price) as s from {ORDERS} join {CODED} using (k), lateral explode(array(1)) as t(x) group by k",
        f"select k, sum(v * price) as s from {ORDERS} join {CODED} using (k) where price is distinct from 3 group by k",
        f"select k, count(*) as s from {ORDERS} where exists (select 1 from {CODED}) group by k",
    ],
)
def test_a_query_that_names_its_columns_resumes(tmp_path: Path, sql: str) -> None:
    """Not every asterisk selects all columns, and not every list of names renames columns of the seed."""
    old, new = (identity(tmp_path, seed, sql) for seed in (CODES, UNREAD))
    assert judged(old, new).is_safe


def test_the_reason_shows_the_changed_rows(tmp_path: Path) -> None:
    """Rows that were removed and added are shown instead of checksums; of a large seed, the columns."""
    (difference,) = judged(identity(tmp_path, CODES), identity(tmp_path, READ)).differences
    assert (difference.before, difference.after) == ("(b, beta, 2)", "(b, beta, 20)")
    (difference,) = judged(identity(tmp_path, CODES), identity(tmp_path, CODES + "d,,4\n")).differences
    assert (difference.before, difference.after) == ("", "(d, null, 4)")

    large = CODES + "".join(f"x{number},text,5\n" for number in range(KEPT_SEED_ROWS))
    (difference,) = judged(identity(tmp_path, large), identity(tmp_path, large.replace(",2\n", ",20\n"))).differences
    assert "price" in difference.after
    assert "name" not in difference.after
    assert judged(identity(tmp_path, large), identity(tmp_path, large.replace("beta", "second"))).is_safe


def test_an_unread_change_is_told(tmp_path: Path) -> None:
    """The plan of the run names what changed, although the query resumes."""
    (change,) = describe_changes(identity(tmp_path, CODES), identity(tmp_path, UNREAD))
    assert change.is_note
    assert "second" in change.text


def test_a_ledger_without_rows_is_compared_by_checksum(tmp_path: Path) -> None:
    """A ledger of an earlier sqlstream has only the checksum: an unchanged seed is unchanged, any other is refused."""
    old = replace(identity(tmp_path, CODES), seeds={}, seed_columns={})
    assert judged(old, identity(tmp_path, CODES)).is_safe
    (difference,) = judged(old, identity(tmp_path, UNREAD)).differences
    assert "checksum" in difference.before


def test_another_delimiter_is_another_seed(tmp_path: Path) -> None:
    """The same text then has other columns; a ledger of an earlier sqlstream does not have it."""
    properties = tmp_path / "seeds/_seeds.yml"
    text = "k,name|k,price\na,alpha|b,1\n"
    sql = "select count(*) as s from {{ source('shop', 'orders') }} cross join {{ ref('codes') }}"
    old = identity(tmp_path, text, sql)
    properties.write_text("seeds: [{name: codes, config: {delimiter: '|'}}]\n")
    new = identity(tmp_path, text, sql)

    assert [change.text for change in describe_changes(old, new) if "`codes`" in change.text]
    early = replace(new, contents={**new.contents, "codes": old.contents["codes"]}, added_contents=None)
    assert describe_changes(early, new) == ()
