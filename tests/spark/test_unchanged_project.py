"""`sqlstream plan` on a project with queries of all kinds: unchanged after a run, then with changed sinks."""

from __future__ import annotations

import os

import pytest

from sqlstream.app.plan.plan import plan_project
from sqlstream.app.request import PlanRequest, ProjectRequest
from sqlstream.errors import FindingsError
from sqlstream.state.verdicts import QueryVerdict, Verdict
from tests.spark.conftest import ProjectFolder

ORDERS = "{{ source('shop', 'orders') }}"
TOTALS = f"{{{{ config(sink='tables', output_mode='update', unique_key='kind') }}}}\nselect kind, sum(amount) as total from {ORDERS} group by kind"
MODELS = {
    "clean": f"select /*+ WATERMARK(ts, '1 minute') */ id, ts, kind, amount from {ORDERS}",
    "plain": "{{ config(sink='lake') }} select id, amount from {{ ref('clean') }}",
    "moved": "{{ config(sink='lake') }} select id, amount from {{ ref('clean') }}",
    "totals": TOTALS,
    "windows": "{{ config(sink='lake') }} select window.start as at, count(*) as n from {{ ref('clean') }} group by window(ts, '1 minute')",
    "distinct": "{{ config(sink='lake', deduplicate=['id', 'ts']) }} select * from {{ ref('clean') }}",
    "joined": "{{ config(sink='lake') }} select a.id, b.amount from {{ ref('clean') }} a join {{ ref('clean') }} b "
    "on a.id = b.id and b.ts between a.ts and a.ts + interval 1 minute",
    "named": "{{ config(sink='lake') }} select o.id, n.name, k.label from {{ ref('clean') }} o "
    "join {{ ref('names') }} n on o.kind = n.kind join {{ source('shop', 'kinds') }} k on o.kind = k.kind",
    "both": f"{{{{ config(sink=['lake', 'tables'], fan_out='shared') }}}} select id, kind from {ORDERS}",
    "each": f"{{{{ config(sink=['lake', 'nowhere']) }}}} select id, kind from {ORDERS}",
    "shown": "{{ config(sink='table') }} select id from {{ ref('clean') }}",
    "bronze": "{{ config(sink='lake', materialized='stored', partition_by=['kind']) }} select * from {{ ref('clean') }}",
    "silver": "{{ config(sink='lake', materialized='stored') }} select id, Kind, amount * 2 as amount from {{ ref('bronze') }}",
    "gold": "{{ config(sink='lake', materialized='stored', output_mode='complete') }} select kind, count(*) as n from {{ ref('silver') }} group by kind",
    "top": "{{ config(sink='lake') }} select kind, n from {{ ref('gold') }} order by n limit 1",
    "labels": "{{ config(sink='lake') }} select upper(name) as label from {{ ref('names') }}",
}


@pytest.fixture
def project(orders: ProjectFolder) -> ProjectFolder:
    """A project that has run."""
    orders.write({f"models/{name}.sql": f"{sql}\n" for name, sql in MODELS.items()})
    orders.write(
        {
            "models/python_rows.py": "def model(sqlstream, spark):\n    sqlstream.config(sink='lake')\n"
            "    return sqlstream.ref('clean').where('amount > 1')\n",
            "models/_sinks.yml": "sinks:\n  - {name: tables, format: sqlite, path: '{{ model.name }}.sqlite'}\n",
            "seeds/names.csv": "kind,name\na,alpha\nb,beta\n",
        }
    )
    sources = orders.root / "sources.yml"
    sources.write_text(
        sources.read_text()
        + "      - {name: kinds, format: json, path: kinds, mode: batch, schema: 'kind string, label string'}\n"
    )
    orders.rows("kinds/0.json", [{"kind": "a", "label": "A"}])
    assert orders.run().succeeded
    return orders


def plan(folder: ProjectFolder, *, check: bool) -> dict[str, QueryVerdict]:
    """Returns the verdicts on a project, by model."""
    found = plan_project(PlanRequest(ProjectRequest(folder.root, env=os.environ), check=check))
    return {query.model: query for query in found.queries}


@pytest.mark.slow
def test_an_unchanged_project_is_unchanged(project: ProjectFolder) -> None:
    """Each query of an unchanged project is unchanged, with and without Spark; then changed sinks are noticed."""
    for check in (False, True):
        found = plan(project, check=check)
        assert len(found) == len(MODELS) + 1
        assert {
            name: (str(each.verdict), each.reason) for name, each in found.items() if each.verdict != "unchanged"
        } == {}

    project.run("bronze", full_refresh=True)
    project.write(
        {
            "models/totals.sql": TOTALS.replace("'kind'", "'category'").replace(
                "select kind", "select kind as category"
            ),
            "models/plain.sql": MODELS["plain"].replace("lake", "nowhere"),
            "models/moved.sql": MODELS["moved"].replace("lake", "tables"),
            "models/windows.sql": MODELS["windows"].replace("lake", "nowhere"),
        }
    )
    found = plan(project, check=False)
    assert {name: each.verdict for name, each in found.items() if each.verdict is not Verdict.UNCHANGED} == {
        "silver": Verdict.REFUSE,  # its input is another version now
        "totals": Verdict.REFUSE,
        "plain": Verdict.REBUILD,
        "moved": Verdict.REBUILD,
        "windows": Verdict.REFUSE,
    }
    assert found["totals"].findings[0].fix.startswith("set unique_key back to [kind], and select kind again; or ")

    with pytest.raises(FindingsError) as caught:
        project.run("totals", "plain", "moved", "windows")
    assert sorted(finding.code for finding in caught.value.findings) == ["output-columns"] + ["sink-change"] * 3
