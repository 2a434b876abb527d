"""The run_results.json of a run that Spark refuses."""

from __future__ import annotations

import json

import pytest

from sqlstream import FindingsError
from tests.spark.conftest import ProjectFolder


def test_a_run_that_spark_refuses_leaves_its_findings(orders: ProjectFolder) -> None:
    """A refused run replaces the results of the previous run with its findings and no queries."""
    model = "{{ config(sink='nowhere') }} select id from {{ source('shop', 'orders') }}"
    orders.write({"models/a.sql": model})
    orders.run()
    before = json.loads((orders.root / "target/run_results.json").read_text())
    orders.write({"models/a.sql": model.replace("id", "array_contains(array(id), array(id)) as n")})

    with pytest.raises(FindingsError):
        orders.run()

    after = json.loads((orders.root / "target/run_results.json").read_text())
    assert (before["status"], len(before["results"]), before["findings"]) == ("success", 1, [])
    assert (after["status"], after["results"], after["metadata"]["target"]) == ("error", [], "local")
    assert [finding["code"] for finding in after["findings"]] == ["sql-analysis"]
    assert after["metadata"]["invocation_id"] != before["metadata"]["invocation_id"]
