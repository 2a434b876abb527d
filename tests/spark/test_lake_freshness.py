"""`sqlstream source freshness` on tables of Delta Lake and Iceberg that runs have written."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.spark.conftest import ProjectFolder
from tests.support.lake_tables import FORMATS, SINKS, lake_session

pytestmark = pytest.mark.smoke

LIMITS = "{warn_after: {count: 1, period: hour}, error_after: {count: 1, period: day}}"


def check(folder: ProjectFolder) -> dict[str, Any]:
    """Returns the results by table."""
    folder.invoke("source", "freshness")
    results = json.loads((folder.root / "target/sources.json").read_text())["results"]
    return {result["unique_id"].rpartition(".")[2]: result for result in results}


def test_tables_have_the_time_of_the_last_rows(folder: ProjectFolder) -> None:
    """The time is that of the last commit or snapshot with rows, and deleting rows does not change it."""
    tables = "".join(f"      - {{name: {each}, format: {each}, path: store/raw_{each}}}\n" for each in FORMATS)
    text = f"  - name: lake\n    freshness: {LIMITS}\n    tables:\n{tables}"
    folder.write({"sinks.yml": SINKS, "sources.yml": (folder.root / "sources.yml").read_text() + text})
    for each in FORMATS:
        raw = f"{{{{ config(sink='{each}') }}}} select id, kind from {{{{ source('shop', 'orders') }}}}"
        folder.write({f"models/raw/raw_{each}.sql": raw})
    for number in range(2):
        folder.rows(f"in/orders/{number}.json", [{"id": number, "kind": "a"}], modified=number)
    began = time.time()
    assert folder.run("raw").succeeded

    before = check(folder)
    with lake_session(folder) as session:
        session.sql(f"delete from delta.`{folder.root / 'store/raw_delta'}` where id = 1")
        session.sql("delete from files.raw_iceberg where id = 1")
    after = check(folder)

    for each in FORMATS:
        assert before[each]["status"] == "pass", before
        assert before[each]["max_loaded_at_time_ago_in_s"] <= time.time() - began
        assert after[each]["max_loaded_at"] == before[each]["max_loaded_at"]


@pytest.mark.slow
def test_a_source_of_changes_has_the_time_of_the_last_change(folder: ProjectFolder) -> None:
    """Deleted rows are changes, too. A column is that of the rows in the table."""
    source = f"""  - name: lake
    freshness: {LIMITS}
    tables:
      - {{name: changes, format: delta, path: store/raw, changes: true}}
      - {{name: by_field, format: delta, path: store/raw, changes: true, loaded_at_field: "timestamp '2024-01-01'"}}
"""
    sink = "{{ config(sink='delta', options={'delta.enableChangeDataFeed': 'true'}) }}"
    model = f"{sink} select id, kind from {{{{ source('shop', 'orders') }}}}"
    text = (folder.root / "sources.yml").read_text() + source
    folder.write({"sinks.yml": SINKS, "sources.yml": text, "models/raw.sql": model})
    folder.rows("in/orders/0.json", [{"id": 0, "kind": "a"}, {"id": 1, "kind": "a"}], modified=0)
    assert folder.run("raw").succeeded
    before = check(folder)
    with lake_session(folder) as session:
        session.sql(f"delete from delta.`{folder.root / 'store/raw'}` where id = 1")

    after = check(folder)

    assert after["changes"]["max_loaded_at"] > before["changes"]["max_loaded_at"]
    assert after["by_field"]["max_loaded_at"].startswith("2024-01-01")
