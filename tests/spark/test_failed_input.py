"""A query that fails on a bad value names its batch, the file, the row and the value, also in run_results.json."""

from __future__ import annotations

import json
from typing import Any

from tests.spark.conftest import ProjectFolder

MODEL = "{{ config(sink='lake') }}\nselect id, amount\nfrom {{ source('shop', 'orders') }}\n"


def entry(folder: ProjectFolder) -> dict[str, Any]:
    """Returns the entry of the only query in run_results.json."""
    (found,) = json.loads((folder.root / "target/run_results.json").read_text())["results"]
    return dict(found)


def test_a_bad_value_in_a_file(folder: ProjectFolder) -> None:
    """A value that does not have the declared type fails the batch that reads its file, which the failure names."""
    folder.write({"models/paid.sql": MODEL})
    folder.rows("in/orders/good.json", [{"id": 1, "amount": 5}], modified=0)
    assert folder.result().finding is None
    folder.rows("in/orders/bad one's.json", [{"id": 2, "amount": 7}, {"id": 3, "amount": "many"}], modified=1)

    failed = folder.result().finding

    assert failed is not None
    assert failed.failure is not None
    assert failed.failure.batch == 1
    assert failed.failure.file == str(folder.root / "in/orders/bad one's.json")
    assert "3" in (failed.failure.row or "")
    found = entry(folder)
    assert found["error"]["failure"] == found["last_failure"]["failure"]
    assert found["error"]["failure"]["file"] == failed.failure.file
    assert found["failed_at"] >= found["started_at"]


def test_a_value_that_cannot_be_cast(folder: ProjectFolder) -> None:
    """A cast in the SQL fails with the value, the SQL of the cast, and its line."""
    sql = "{{ config(sink='lake') }}\nselect id,\n  cast(kind as int) as kind\nfrom {{ source('shop', 'orders') }}\n"
    folder.write({"models/kinds.sql": sql})
    folder.rows("in/orders/0.json", [{"id": 1, "kind": "7"}, {"id": 2, "kind": "n/a"}])

    failed = folder.result().finding

    assert failed is not None
    assert failed.failure is not None
    assert (failed.failure.batch, failed.failure.value) == (0, "'n/a'")
    assert failed.failure.sql == "cast(kind as int)"
    assert (failed.location and failed.location.line) == 3
