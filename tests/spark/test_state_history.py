"""`sqlstream state history`: the versions of a query and the changes with which it resumed."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from click.testing import CliRunner

from sqlstream import FindingsError
from sqlstream.app.request import ProjectRequest
from sqlstream.app.versions.publications import query_history
from sqlstream.app.versions.stored_versions import QueryHistory
from sqlstream.cli.main import cli
from sqlstream.state.ledger import read_ledger
from tests.spark.conftest import ProjectFolder, order_rows

TOTALS = (
    "{{{{ config(sink='tables', output_mode='update', unique_key='kind') }}}}\n"
    "select kind, {} as total from {{{{ source('shop', 'orders') }}}} group by kind{}\n"
)


def history(folder: ProjectFolder) -> QueryHistory:
    """Returns the history of the query `totals`."""
    return query_history(ProjectRequest(folder.root, env=os.environ), "totals")


@pytest.mark.slow
def test_the_history_of_a_query(orders: ProjectFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version begins with a start or a refresh; changes that resume or are accepted are listed in it."""
    orders.write({"models/_sinks.yml": "sinks: [{name: tables, format: sqlite, path: '{{ model.name }}.sqlite'}]\n"})
    files = iter(range(2, 9))

    def run(aggregate: str, having: str = "", **options: Any) -> None:
        number = next(files)
        orders.write({"models/totals.sql": TOTALS.format(aggregate, having)})
        orders.rows(f"in/orders/{number}.json", order_rows(number), modified=number)
        orders.run(**options)

    run("sum(amount)")
    run("sum(amount)")
    run("sum(amount)", " having sum(amount) > 1")
    run("sum(amount * 2)", " having sum(amount * 2) > 1", accept_state_change=("totals",))
    run("sum(amount * 2)", full_refresh=True)

    first, second = history(orders).versions
    assert [(entry.action, entry.accepted, len(entry.changes)) for entry in first.entries] == [
        ("start", False, 0),
        ("resume", False, 1),
        ("resume", True, 1),
    ]
    assert [entry.action for entry in second.entries] == ["refresh"]
    assert (first.version, second.version) == (1, 2)
    switches = history(orders).switches
    assert [(each.action, each.version, each.before) for each in switches] == [("refresh", 2, 1)]

    monkeypatch.chdir(orders.root)
    text = CliRunner().invoke(cli, ["state", "history", "totals"]).stdout
    assert text.startswith("version 2 (current): ")
    assert "resume (accepted)   the SQL of `totals` changed" in text
    found = json.loads(CliRunner().invoke(cli, ["state", "history", "totals", "--output", "json"]).stdout)
    assert [version["version"] for version in found["versions"]] == [1, 2]


def test_the_ledger_has_the_query_as_written(orders: ProjectFolder) -> None:
    """The ledger has the files of all models of the query, and the signature of its state."""
    orders.write({"models/totals.sql": TOTALS.format("sum(amount)", "").replace("'tables'", "'nowhere'")})
    orders.run()

    ledger = read_ledger((orders.root / "store/queries/totals/v1/ledger.json").read_text())

    assert ledger.written == {"totals": (orders.root / "models/totals.sql").read_text()}
    assert ledger.signature is not None
    assert [operator.kind for operator in ledger.signature.operators] == ["aggregation"]


def test_a_refused_change_leaves_the_history(orders: ProjectFolder) -> None:
    """A change that is refused is not in the history."""
    orders.write({"models/totals.sql": TOTALS.format("sum(amount)", "").replace("'tables'", "'nowhere'")})
    orders.run()
    before = history(orders)
    orders.write({"models/totals.sql": TOTALS.format("max(amount)", "").replace("'tables'", "'nowhere'")})

    with pytest.raises(FindingsError):
        orders.run()

    assert history(orders) == before
