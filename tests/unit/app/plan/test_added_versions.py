"""`plan` after versions are added to a model that had none: its query has a checkpoint, and no model has its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream.app.plan.plan import plan_project
from sqlstream.app.request import PlanRequest, ProjectRequest
from sqlstream.state.verdicts import Verdict

ORDERS = "{{ config(sink='lake') }} select id from {{ source('shop', 'orders') }}\n"
VERSIONS = "models:\n  - name: orders\n    versions: [{v: 10}, {v: 2}]\n"
FILES = {
    "project.yml": "name: shop\ntargets: {local: {master: 'local[2]', storage: store}}\n",
    "sinks.yml": "sinks: [{name: lake, format: parquet, path: '{{ model.name }}'}]\n",
    "sources.yml": "sources: [{name: shop, tables: [{name: orders, format: json, path: in, schema: 'id int'}]}]\n",
    "models/orders_v2.sql": ORDERS,
    "models/orders_v10.sql": ORDERS,
    "models/_models.yml": VERSIONS,
}


def reasons(root: Path, **more: str) -> dict[str, str]:
    """Returns the reason of each new query, by its model."""
    for name, text in {**FILES, **more}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    planned = plan_project(PlanRequest(ProjectRequest(root)))
    return {query.model: query.reason for query in planned.queries if query.verdict is Verdict.NEW}


def test_the_first_version_can_continue_the_query(tmp_path: Path) -> None:
    """Only the first version names `previous_name`, only if there is a checkpoint, and not if it has it."""
    before = reasons(tmp_path)
    (tmp_path / "store/queries/orders/v1").mkdir(parents=True)
    after = reasons(tmp_path)
    named = VERSIONS.replace("{v: 2}", "{v: 2, config: {previous_name: orders}}")
    continued = reasons(tmp_path, **{"models/_models.yml": named})

    advice = "with `config: {previous_name: orders}`, version 2 continues the query `orders` and keeps its output"
    assert after == {**before, "orders_v2": f"{before['orders_v2']}; {advice}"}
    assert "previous_name" not in str(before) + str(continued)


@pytest.mark.parametrize("file", ["models/orders.sql", "models/other.sql"])
def test_a_model_with_the_name_continues_it(tmp_path: Path, file: str) -> None:
    """Nothing is suggested if a model has the name, or if another query has lost its model."""
    name = "orders" if file == "models/orders.sql" else "customers"
    (tmp_path / f"store/queries/{name}/v1").mkdir(parents=True)
    versions = VERSIONS.replace("{v: 10}", f"{{v: 10, defined_in: {Path(file).stem}}}")

    found = reasons(tmp_path, **{file: ORDERS, "models/_models.yml": versions})

    assert "previous_name" not in str(found)
