"""Tables of PostgreSQL and MariaDB as sinks of queries on a Spark Connect server, whose processes have no JVM."""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlstream.errors import FindingsError
from sqlstream.project.databases.logins import PYTHON_DRIVERS
from tests.services.connect_server import ConnectServer, connector_jars, kill_in_turns, start_connect
from tests.services.database_server import PASSWORD
from tests.spark.conftest import ProjectFolder, order_rows, wait_for
from tests.support.database_shop import ENV, TOTALS, Shop, check_update_mode, database_shop, drivers, servers
from tests.support.keyed_changes import keyed_changes

pytest.importorskip("grpc", reason="the client of Spark Connect needs the extra `connect`")
pytest.importorskip("pg8000", reason="databases over Spark Connect need the extra `databases`")

KILLS = int(os.environ.get("SQLSTREAM_KILLS", "2"))


@pytest.fixture(scope="module")
def connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """A running server for the tests of this module."""
    jars = connector_jars("postgresql", "mariadb", "mysql")
    started = start_connect(tmp_path_factory.mktemp("connect"), spark__jars=jars)
    yield started
    started.stop()


def write_target(folder: ProjectFolder, address: str, more: str = "") -> None:
    """Gives the project a target on a server."""
    targets = f"{{far: {{remote: '{address}', storage: store{more}}}}}"
    folder.write(
        {
            "project.yml": f"name: shop\nversion: 1.0.0\ndefault_target: far\ntargets: {targets}\nmodels: {{+retries: 0}}\n"
        }
    )


@pytest.fixture
def shop(request: pytest.FixtureRequest, orders: ProjectFolder, connect: ConnectServer) -> Shop:
    """Two files of orders on the server, and a database without tables."""
    write_target(orders, connect.address)
    return database_shop(request, orders)


@pytest.mark.slow
@drivers
def test_update_mode_replaces_the_row_of_a_key(shop: Shop) -> None:
    """The table has one row for each group, also after a restart, and a repeated batch changes nothing."""
    check_update_mode(shop)


@pytest.mark.slow
@servers
def test_batches_append_delete_and_replace(shop: Shop) -> None:
    """Append mode with a key replaces and deletes rows, complete mode and batch models replace all, types are kept,
    and a quarantine has the rows that violate a test.
    """
    shop.project.write(
        {
            "models/state.sql": "{{ config(sink='db', unique_key=['k', 'name'], delete_when='amount = 3') }}\n"
            "select id, amount, id >= 10 as k, elt(id + 1, 'a', 'A', 'á', 'b', 'B') as name "
            "from {{ source('shop', 'orders') }}",
            "models/latest.sql": "{{ config(sink='db', output_mode='complete') }}\n"
            "select kind, max(id) as id from {{ source('shop', 'orders') }} group by kind",
            "models/added.sql": "{{ config(sink='db', quarantine_sink='wrong') }}\n"
            "select id from {{ source('shop', 'orders') }}",
            "models/added.yml": "models:\n  - name: added\n    data_tests:\n      - expression_is_true: "
            "{name: small, expression: id <> 2, on_violation: quarantine}\n",
            "models/kinds.sql": "{{ config(sink='db') }} select * from {{ ref('names') }}",
            "models/typed.sql": "{{ config(sink='db', unique_key='id') }}\nselect id, 'é\\'\"%s :a' as name, true as yes, "
            "1.25BD as exact, timestamp'1969-12-31 23:59:59.5Z' as ts, timestamp_ntz'2024-01-02 03:04:05' as ntz, "
            "date'2024-01-02' as day, X'00ff' as bytes, named_struct('a', 1) as fields "
            "from {{ source('shop', 'orders') }} where id = 0",
            "models/_wrong.yml": "sinks:\n" + shop.server.sink("wrong").replace("{{ model.name }}", "wrong"),
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
    assert shop.rows("added") == sorted([[str(number)] for number in (0, 0, 1, 1, 3, 3, 4)])
    assert shop.rows("wrong", "id") == [["2"], ["2"]]
    assert shop.rows("kinds") == [["b", "second"]]
    zone = "+00" if shop.is_postgres else ""
    moments = f"ts = '1969-12-31 23:59:59.5{zone}' and ntz = '2024-01-02 03:04:05'"
    true = "t" if shop.is_postgres else "1"
    assert shop.rows("typed", f"id, name, exact, day, {moments}") == [["0", "é'\"%s :a", "1.25", "2024-01-02", true]]


@pytest.mark.slow
@servers
def test_changes_in_any_order(shop: Shop) -> None:
    """`sequence_by` decides which row of a key counts, across batches, runs and deletions, and with a history the table
    has the versions of each row.
    """
    sources = "sources:\n  - name: crm\n    tables:\n      - {name: changes, format: json, path: in/changes, "
    columns = "id int, at int, n int, name string, op string"
    sequence = "unique_key='id', sequence_by='at', delete_when=\"op = 'd'\""
    select = "select id, at, n, name, op from {{ source('crm', 'changes') }}"
    shop.project.write(
        {
            "models/_crm.yml": f'{sources}schema: "{columns}", options: {{maxFilesPerTrigger: 1}}}}\n',
            "models/customers.sql": f"{{{{ config(sink='db', {sequence}) }}}}\n{select}",
            "models/versions.sql": f"{{{{ config(sink='db', {sequence}, history=true) }}}}\n{select}",
        }
    )
    changes = keyed_changes(5, 200, 15, 4, times=True)
    shop.project.batches("in/changes", changes.batches[:2])
    assert shop.run("customers", "versions")
    shop.project.batches("in/changes", changes.batches[2:], first=2)
    assert shop.run("customers", "versions")

    versions = changes.versions("n", "name")
    current = sorted([str(row[0]), str(row[1])] for row in versions if row[-1])
    assert shop.rows("customers", "id, n") == current
    listed = shop.rows("versions", "id, n, case when is_current then 1 else 0 end")
    assert listed == sorted([str(row[0]), str(row[1]), str(int(bool(row[-1])))] for row in versions)


@pytest.mark.slow
@servers
def test_errors_say_what_the_database_reports(shop: Shop) -> None:
    """A key that is null, a constraint of the table, a table that does not fit and a wrong password end a run with the
    reason, and no message has the password.
    """
    keyed = "{{ config(sink='db', unique_key='kind') }} select id, kind from {{ source('shop', 'orders') }}"
    shop.project.write({"models/keyed.sql": keyed, "models/totals.sql": TOTALS})
    wrong = shop.finding("keyed")
    assert "two rows of one batch have the same value of the unique_key `kind`" in wrong.why

    limit = "add constraint few check (orders < 4)"
    shop.server.run("create table totals (kind varchar(9) primary key, orders bigint, amount int)")
    shop.server.run(f"alter table totals {limit}")
    refused = shop.finding("totals")
    assert f"{'PostgreSQL' if shop.is_postgres else 'MariaDB'} at 127.0.0.1" in refused.why
    assert "few" in refused.why
    assert f"[SQLSTATE {'23514' if shop.is_postgres else '23000, error 4025'}]" in refused.why

    shop.server.run("alter table totals drop column amount")
    with pytest.raises(FindingsError) as unfit:
        shop.project.run("totals", env=ENV)
    shop.server.run("drop table totals")
    with pytest.raises(FindingsError) as login:
        shop.project.run("totals", env={"SQLSTREAM_SECRET_DATABASE": "canary-4711-wrong"})
    findings = [wrong, refused, *unfit.value.findings, *login.value.findings]
    assert [finding.code for finding in findings] == [*["query-failed"] * 2, "output-columns", "database-refused"]
    assert "canary" not in str(findings)
    assert shop.tables() == ["_sqlstream_batches", "keyed"]


@pytest.mark.slow
@servers
def test_a_static_table_of_a_database_in_many_runs(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream joins a table of a database, also in later runs on the same server: its driver is that of the server."""
    monkeypatch.setenv("SQLSTREAM_SECRET_DATABASE", PASSWORD)
    options = shop.project.root.joinpath("models/_db.yml").read_text().partition("options:\n")[2]
    shop.project.write(
        {
            "models/_rates.yml": "sources:\n  - name: shop_db\n    tables:\n      - name: rates\n        format: jdbc\n"
            "        mode: batch\n        options:\n"
            + "".join(f"    {line}\n" for line in options.replace("{{ model.name }}", "rates").splitlines()),
            "models/priced.sql": "{{ config(sink='db') }}\nselect id, rate from {{ source('shop', 'orders') }} "
            "join {{ source('shop_db', 'rates') }} using (kind)",
        }
    )
    shop.server.run("create table rates (kind varchar(9), rate int)")
    shop.server.run("insert into rates values ('a', 1), ('b', 2)")
    for number in range(2, 5):
        shop.project.rows(f"in/orders/{number}.json", order_rows(number), modified=number)
        assert shop.run("priced")

    rows = [row for number in range(5) for row in order_rows(number)]
    assert shop.rows("priced") == sorted([str(row["id"]), {"a": "1", "b": "2"}[row["kind"]]] for row in rows)


@pytest.mark.slow
@servers
def test_a_restarted_database(shop: Shop) -> None:
    """A query whose database is killed tries again until it answers, and then has each row once."""
    retries = "', retries={'attempts': 5, 'first_delay': '1 second'})"
    shop.project.write({"models/totals.sql": TOTALS.replace("')", retries, 1)})
    assert shop.run("totals")
    shop.project.rows("in/orders/2.json", order_rows(2), modified=2)
    process = shop.project.command("run", "--log-format", "json", env=ENV)
    wait_for(process, '"event": "batch"')
    shop.server.process.stop(signal.SIGKILL)
    shop.project.rows("in/orders/3.json", order_rows(3), modified=3)
    wait_for(process, '"event": "query_restarting"')
    shop.server.restart()
    wait_for(process, '"event": "batch"')
    process.send_signal(signal.SIGTERM)
    process.communicate()

    assert shop.rows("totals", "orders") == [["12"], ["8"]]


@pytest.mark.slow
def test_leftover_staging_tables_are_dropped(shop: Shop) -> None:
    """A process that was killed leaves a staging table. The next batch of the query drops it, and no other table."""
    shop.project.write({"models/totals.sql": TOTALS})
    assert shop.run("totals")
    query = json.loads((shop.project.root / "store/queries/totals/v1/checkpoint/metadata").read_text())["id"]
    left, other = (f"_sqlstream_{name.replace('-', '')}_0123abcd" for name in (query, "0" * 32))
    shop.server.run(f"create table {left} (n int); create table {left}_beside (n int); create table {other} (n int)")
    shop.project.rows("in/orders/2.json", order_rows(2, 1), modified=2)
    assert shop.run("totals")

    assert shop.tables() == [other, "_sqlstream_batches", "totals"]
    assert shop.rows("totals") == [["a", "7", "12"], ["b", "4", "8"]]


@pytest.mark.slow
def test_a_server_that_lacks_a_driver(
    shop: Shop, tmp_path: Path, connect: ConnectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine or a server without the driver in Python, and a server without the jar, are refused with the way out
    before the first batch.
    """
    shop.project.write({"models/totals.sql": TOTALS})
    with monkeypatch.context() as here:
        here.setitem(PYTHON_DRIVERS, "postgresql", "no_such_driver")
        with pytest.raises(FindingsError) as refused:
            shop.project.run(env=ENV)
    (finding,) = refused.value.findings
    assert (finding.code, "sqlstream[databases]" in finding.fix) == ("missing-package", True)

    plain = start_connect(tmp_path)
    try:
        write_target(shop.project, plain.address)
        with pytest.raises(FindingsError) as refused:
            shop.project.run(env=ENV)
    finally:
        plain.stop()
    (finding,) = refused.value.findings
    assert (finding.code, "--packages org.postgresql:postgresql:" in finding.fix) == ("spark-start", True)

    hidden = tmp_path / "hidden"
    (hidden / "pg8000").mkdir(parents=True)
    (hidden / "pg8000/__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'pg8000'\")\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(hidden), os.environ.get("PYTHONPATH", "")]))
    without = start_connect(tmp_path, spark__jars=connector_jars("postgresql"))
    try:
        write_target(shop.project, without.address)
        result = shop.project.result("totals", env=ENV)
    finally:
        without.stop()
    assert result.finding is not None
    assert result.finding.code == "unsupported-target", result.finding
    assert "with its extra `databases`" in result.finding.fix
    assert shop.rows("totals") == []


@pytest.mark.slow
@servers
def test_kills_leave_exact_tables(shop: Shop, tmp_path_factory: pytest.TempPathFactory) -> None:
    """After `kill -9` of the server or of the run in a batch, the next run continues with exact rows and totals."""
    server = start_connect(tmp_path_factory.mktemp("connect"), spark__jars=connector_jars("postgresql", "mariadb"))
    order = random.Random(43)
    rows = [row for number in range(2) for row in order_rows(number)]
    plain = "{{ config(sink='db') }} select id, kind, amount from {{ source('shop', 'orders') }}"
    shop.project.write({"models/totals.sql": TOTALS, "models/added.sql": plain})
    write_target(shop.project, server.address, ", spark: {spark.sqlstream.connect.patience: 5}")
    try:
        for number in range(KILLS):
            for file in range(2 + 6 * number, 8 + 6 * number):
                rows += order_rows(file % 10)
                shop.project.rows(f"in/orders/{file}.json", order_rows(file % 10), modified=file)
            process = shop.project.command("run", "--log-format", "json", env=ENV)
            for _ in range(order.randint(1, 4)):
                wait_for(process, '"event": "batch"')
            kill_in_turns(process, server, number)
        assert shop.run()
    finally:
        server.stop()

    kinds = {kind: [row["amount"] for row in rows if row["kind"] == kind] for kind in ("a", "b")}
    assert shop.rows("totals") == [[kind, str(len(found)), str(sum(found))] for kind, found in kinds.items()]
    assert shop.rows("added") == sorted([str(row["id"]), row["kind"], str(row["amount"])] for row in rows)
    assert shop.tables() == ["_sqlstream_batches", "added", "totals"]
