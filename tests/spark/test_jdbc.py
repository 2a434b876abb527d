"""Queries that write to tables of PostgreSQL and MariaDB servers."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from sqlstream.errors import FindingsError
from sqlstream.state.runs.events import QueryRestarting, RunEvent
from sqlstream.state.runs.progress import BatchProgress
from tests.services.database_server import PASSWORD
from tests.spark.conftest import ProjectFolder, order_rows
from tests.support.database_shop import ENV, TOTALS, Shop, check_update_mode, database_shop, drivers, servers


@pytest.fixture
def shop(request: pytest.FixtureRequest, orders: ProjectFolder) -> Shop:
    """Two files of orders, and a server without tables."""
    return database_shop(request, orders)


@pytest.mark.slow
@drivers
def test_update_mode_replaces_the_row_of_a_key(shop: Shop) -> None:
    """The table has one row for each group, also after a restart, and a repeated batch changes nothing."""
    check_update_mode(shop)


TYPED = """{{ config(sink='db', unique_key=['id', 'name']) }}
select id, 'é\\'"' as name, true as yes, 7Y as tiny, 1.5D as double, 1.25BD as exact,
  timestamp'1969-12-31 23:59:59.5Z' as ts, timestamp_ntz'2024-01-02 03:04:05' as ntz, date'2024-01-02' as day,
  X'00ff' as bytes, named_struct('a', 1) as fields, cast(null as timestamp) as none, interval '1' day as span
from {{ source('shop', 'orders') }} where id = 0"""

STORED = """select id, name, yes = true, tiny, exact, double_is, day, none is null, span from
  (select t.*, "double" = 1.5 and ts = '1969-12-31 23:59:59.5{zone}' and ntz = '2024-01-02 03:04:05'
   and fields {json} = '{value}' as double_is from typed t) s"""


@servers
def test_batches_append_delete_and_replace(shop: Shop) -> None:
    """Append mode with a key replaces and deletes rows, complete mode and batch models replace all, types are kept."""
    is_postgres = "postgres" in shop.server.url
    name = "elt(id + 1, 'a', 'A', 'á', 'b', 'B')"
    key = f"named_struct('name', {name})" if is_postgres else name  # only PostgreSQL has JSON in keys
    shop.project.write(
        {
            "models/state.sql": "{{ config(sink='db', unique_key=['k', 'ts', 'name'], delete_when='amount = 3') }}\n"
            "select id, amount, id >= 10 as k, timestamp'1969-12-31 23:59:59.5Z' as ts, "
            f"{key} as name " + "from {{ source('shop', 'orders') }}",
            "models/latest.sql": "{{ config(sink='db', output_mode='complete') }}\n"
            "select kind, max(id) as id from {{ source('shop', 'orders') }} group by kind",
            "models/added.sql": "{{ config(sink='db') }} select id from {{ source('shop', 'orders') }}",
            "models/kinds.sql": "{{ config(sink='db') }} select * from {{ ref('names') }}",
            "models/typed.sql": TYPED,
            "seeds/names.csv": "kind,name\na,first\n",
        }
    )
    shop.project.rows("in/orders/0.json", [{**row, "amount": row["amount"] + 1} for row in order_rows(0)], modified=0)
    shop.project.rows("in/orders/1.json", order_rows(0, 4), modified=1)
    assert shop.run()
    shop.project.write({"seeds/names.csv": "kind,name\nb,second\n"})
    assert shop.run("kinds")

    assert shop.rows("state", "id, amount") == [["0", "0"], ["1", "1"], ["2", "2"], ["4", "5"]]
    assert shop.rows("latest") == [["a", "4"], ["b", "3"]]
    assert shop.rows("added") == sorted([[str(number)] for number in (0, 0, 1, 1, 2, 2, 3, 3, 4)])
    assert shop.rows("kinds") == [["b", "second"]]
    query = STORED.format(
        zone="+00" if is_postgres else "",
        json="::text" if is_postgres else "",
        value='{"a": 1}' if is_postgres else '{"a":1}',
    )
    true = "t" if is_postgres else "1"
    found = shop.server.run(query if is_postgres else query.replace('"double"', "`double`"))
    assert found == [["0", "é'\"", true, "7", "1.25", true, "2024-01-02", true, "INTERVAL '1' DAY"]]


def refusals(shop: Shop) -> dict[str, str]:
    """Runs everything, and returns the fix for each model whose table refuses the run."""
    with pytest.raises(FindingsError) as refused:
        shop.project.run(env=ENV)
    assert {finding.code for finding in refused.value.findings} == {"output-columns"}
    return {finding.message.split("`")[-2]: finding.fix for finding in refused.value.findings}


@pytest.mark.slow
def test_existing_tables_are_checked(shop: Shop) -> None:
    """A table without the key, without a column, or with a smaller type is refused with the statement to run."""
    select = "select id, kind, amount, cast(amount as decimal(18, 2)) as price from {{ source('shop', 'orders') }}"
    shop.project.write(
        {
            f"models/{name}.sql": f"{{{{ config(sink='db', unique_key='id') }}}}\n{select}"
            for name in ("keyless", "narrow", "fine")
        }
    )
    shop.server.run("create table keyless (id int, kind text, amount bigint, price numeric)")
    shop.server.run(
        "create table narrow (id smallint primary key, kind varchar(9), amount bigint, price numeric(5, 0))"
    )
    shop.server.run(
        "create table fine (id bigserial primary key, kind varchar(9), amount numeric, "
        "price numeric(20, 3), more int default 7)"
    )

    fixes = refusals(shop)
    assert fixes.keys() == {"keyless", "narrow"}
    assert shop.run("fine")
    assert 'ALTER TABLE keyless ADD UNIQUE ("id")' in fixes["keyless"]
    assert 'ALTER TABLE narrow ALTER COLUMN "id" TYPE integer' in fixes["narrow"]
    assert len(shop.rows("fine")) == 10
    assert {row[4] for row in shop.rows("fine")} == {"7"}


@pytest.mark.slow
@pytest.mark.parametrize("shop", ["mariadb"], indirect=True)
def test_a_second_unique_index_is_refused(shop: Shop) -> None:
    """MariaDB replaces rows for each unique index, so only those with the whole key or a number of their own are fine."""
    select = "select id, kind, cast(amount as decimal(18, 2)) as amount from {{ source('shop', 'orders') }}"
    for name, columns in {
        "loose": "id bigint primary key, kind varchar(9) unique, amount decimal(20, 2)",
        "narrow": "id bigint primary key, kind varchar(9), amount decimal(18, 1)",
        "fine": "n bigint auto_increment primary key, id int unique, kind varchar(9), amount decimal(18, 2), "
        "unique (id, kind)",
    }.items():
        shop.project.write({f"models/{name}.sql": f"{{{{ config(sink='db', unique_key='id') }}}}\n{select}"})
        shop.server.run(f"create table {name} ({columns})")

    fixes = refusals(shop)

    assert fixes.keys() == {"loose", "narrow"}
    assert shop.run("fine")
    assert "ALTER TABLE loose DROP INDEX `kind`" in fixes["loose"]
    assert "ALTER TABLE narrow MODIFY COLUMN `amount` DECIMAL(18,2)" in fixes["narrow"]
    assert len(shop.rows("fine")) == 10


@pytest.mark.slow
@servers
def test_a_text_that_is_too_long_names_its_column(shop: Shop) -> None:
    """A text that does not fit its column ends the query without a restart, and the reason names the column."""
    select = "select id, kind, repeat(kind, 1 + id) as label, '' as other from {{ source('shop', 'orders') }}"
    shop.project.write({"models/short.sql": f"{{{{ config(sink='db') }}}}\n{select}"})
    shop.project.rows("in/orders/0.json", order_rows(0, 2), modified=0)
    shop.server.run("create table short (id int, kind varchar(1), label varchar(1), other varchar(5))")

    finding = shop.finding("short")

    assert "a value of the column `label` has " in finding.why
    assert "varchar(1)" in finding.why
    assert not any(isinstance(event, QueryRestarting) for event in shop.project.events)
    assert shop.rows("short") == []


@pytest.mark.slow
@servers
def test_a_wrong_key_is_refused_once(shop: Shop) -> None:
    """Two rows of a batch with one key end the query without a restart and without a change. The next run repeats the
    batch.
    """
    shop.project.write(
        {
            "models/keyed.sql": "{{ config(sink='db', unique_key='kind') }} select id, kind from {{ source('shop', 'orders') }}"
        }
    )
    shop.project.rows("in/orders/0.json", order_rows(0, 2), modified=0)
    finding = shop.finding("keyed")

    assert "two rows of one batch have the same value of the unique_key `kind`" in finding.why
    assert not any(isinstance(event, QueryRestarting) for event in shop.project.events)
    assert shop.rows("keyed") == [["0", "a"], ["1", "b"]]

    shop.project.rows("in/orders/1.json", order_rows(1, 2), modified=1)
    assert shop.run("keyed")
    assert shop.rows("keyed") == [["10", "a"], ["11", "b"]]


@pytest.mark.slow
def test_the_password_is_nowhere(shop: Shop) -> None:
    """After runs that succeed and fail, no file of the project has the password, and no message."""
    shop.project.write(
        {
            "models/totals.sql": TOTALS,
            "project.yml": "name: shop\ntargets: {local: {master: 'local[2]', storage: store}}\nmodels: {+retries: 0}\n",
        }
    )
    process = shop.project.command("run", "--available-now", "--debug", env=ENV)
    printed = process.communicate()[0]
    assert process.returncode == 0, printed
    shop.server.run("alter table totals add constraint few check (orders < 7)")
    shop.project.rows("in/orders/2.json", order_rows(2), modified=2)
    process = shop.project.command("run", "--available-now", "--debug", env=ENV)
    printed += process.communicate()[0]

    assert process.returncode == 1
    assert "PostgreSQL at 127.0.0.1" in printed
    assert "few" in printed
    assert PASSWORD not in printed
    with_it = [
        file for file in shop.project.root.rglob("*") if file.is_file() and PASSWORD.encode() in file.read_bytes()
    ]
    assert with_it == []


@pytest.mark.slow
@servers
def test_a_restarted_server_and_a_locked_table(shop: Shop) -> None:
    """A batch waits for a table that is locked, and a query whose server is killed continues with each row once."""
    shop.project.write(
        {"models/totals.sql": TOTALS.replace("')", "', retries={'attempts': 5, 'first_delay': '1 second'})", 1)}
    )
    assert shop.run("totals")
    is_postgres = "postgres" in shop.server.url
    seconds = float(os.environ.get("SQLSTREAM_LOCKED_SECONDS", "3"))
    lock = (
        f"begin; lock table totals; select pg_sleep({seconds}); commit"
        if is_postgres
        else f"lock tables totals write; select sleep({seconds}); unlock tables"
    )
    holder = shop.server.client_process(lock)
    shop.project.rows("in/orders/2.json", order_rows(2), modified=2)
    assert shop.run("totals")
    holder.communicate()
    assert holder.returncode == 0
    assert shop.rows("totals", "orders") == [["6"], ["9"]]

    shop.server.process.stop(signal.SIGKILL)
    threading.Timer(2, shop.server.restart).start()
    shop.project.rows("in/orders/3.json", order_rows(3), modified=3)
    assert shop.run("totals")
    assert shop.rows("totals", "orders") == [["12"], ["8"]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shop", "refresh"), [("postgres", "batch"), ("mariadb", "batch"), ("postgres", "run")], indirect=["shop"]
)
def test_a_static_table_is_read_in_each_batch_or_once(
    shop: Shop, refresh: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream that joins a table of a database sees rows that were added since the batch before, or none of them."""
    monkeypatch.setenv("SQLSTREAM_SECRET_DATABASE", PASSWORD)
    options = shop.project.root.joinpath("models/_db.yml").read_text().partition("options:\n")[2]
    shop.project.write(
        {
            "models/_rates.yml": "sources:\n  - name: shop_db\n    tables:\n      - name: rates\n        format: jdbc\n"
            f"        mode: batch\n        refresh: {refresh}\n        options:\n"
            + "".join(f"    {line}\n" for line in options.replace("{{ model.name }}", "rates").splitlines()),
            "models/priced.sql": "{{ config(sink='db') }}\nselect id, rate from {{ source('shop', 'orders') }} "
            "join {{ source('shop_db', 'rates') }} using (kind)",
        }
    )
    (shop.project.root / "in/orders/1.json").unlink()
    shop.server.run("create table rates (kind text, rate int)")
    shop.server.run("insert into rates values ('a', 1)")

    def done(events: list[RunEvent]) -> bool:
        batches = [event for event in events if isinstance(event, BatchProgress) and event.rows_out]
        if len(batches) == 1 and not (shop.project.root / "in/orders/2.json").exists():
            shop.server.run("insert into rates values ('b', 2)")
            shop.project.rows("in/orders/2.json", order_rows(2), modified=2)
        return len(batches) == 2

    assert shop.project.run_until(done, "priced").succeeded

    later = range(5) if refresh == "batch" else range(0, 5, 2)
    assert shop.rows("priced") == [["0", "1"], ["2", "1"], *([str(20 + i), "12"[i % 2]] for i in later), ["4", "1"]]


@pytest.mark.slow
@servers
def test_a_new_table_has_the_not_null_columns_of_a_contract(shop: Shop) -> None:
    """A column of a contract without nulls is NOT NULL, also as text; a row that deletes another one only has its key."""
    columns = "[{name: id, data_type: int}, {name: kind, data_type: string, constraints: [{type: not_null}]}]"
    shop.project.write(
        {
            "models/kinds.sql": "{{ config(sink='db', unique_key='id', delete_when='kind is null') }}\n"
            "select id, if(id = 10, null, kind) as kind from {{ source('shop', 'orders') }}",
            "models/_kinds.yml": f"models:\n  - name: kinds\n    config: {{contract: {{enforced: true}}}}\n    columns: {columns}\n",
        }
    )
    assert shop.run("kinds")

    found = shop.server.run(
        "select column_name, is_nullable from information_schema.columns where table_name = 'kinds'"
    )
    assert sorted(found) == [["id", "NO"], ["kind", "NO"]]
    assert len(shop.rows("kinds")) == 9
