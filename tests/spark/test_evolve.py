"""`schema_changes: evolve`: a run writes the declaration of new fields; once it is applied, all sinks get the columns."""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqlstream.app.plan.plan import plan_project
from sqlstream.app.request import PlanRequest, ProjectRequest
from sqlstream.app.run.recorded import RunOutcome
from sqlstream.errors import Finding
from sqlstream.state.verdicts import Verdict
from tests.services.kafka_topics import Message, Topic
from tests.spark.conftest import ProjectFolder

Rows = Callable[[Path], list[dict[str, Any]]]

PATCH = "target/schema_changes/shop.orders.patch"

DECLARED = """\
sources:
  - name: shop
    tables:
      - name: orders
        TABLE
        schema_changes: evolve
        columns:
          - {name: id, data_type: int}  # the key
          - name: item
            data_type: "struct<sku: string>"
"""

MODELS = {
    "models/plain.sql": "{{ config(sink='lake') }} select * except (_rescued_data) from {{ source('shop', 'orders') }}",
    "models/kept.sql": "{{ config(sink='db', unique_key='id') }} select id, * except (id, item, _rescued_data), "
    "item.sku from {{ source('shop', 'orders') }}",
    "models/counted.sql": "{{ config(sink='db', output_mode='update', unique_key='half') }} select id % 2 as half, count(*) as n "
    "from {{ source('shop', 'orders') }} group by all",
}

FIRST = [
    {"id": 1, "item": {"sku": "a"}},
    {"id": 2, "color": "red", "item": {"sku": "a", "lot": 7}, "at": "2026-01-01T00:00:00Z", "gone": None},
    {"id": 3, "color": "blue", "size": 1.5, "Id": 4},
]


def _apply(folder: ProjectFolder) -> str:
    text = (folder.root / PATCH).read_text()
    subprocess.run(["git", "apply", PATCH], cwd=folder.root, check=True)
    return text


def _new_fields(outcome: RunOutcome) -> list[Finding]:
    return [finding for finding in outcome.warnings if finding.code == "new-fields"]


@pytest.mark.smoke
def test_new_fields_become_columns(folder: ProjectFolder, read_parquet: Rows) -> None:
    """The run goes on with the new fields in `_rescued_data`, and names the patch. Once it is applied, queries go on
    from their checkpoints, also those with state; files and databases have the new columns.
    """
    sinks = "  - {name: db, format: sqlite, path: '{{ model.name }}.sqlite'}\n"
    folder.write({"sources.yml": DECLARED.replace("TABLE", "format: json\n        path: in"), **MODELS})
    folder.write({"sinks.yml": (folder.root / "sinks.yml").read_text() + sinks})
    folder.rows("in/1.json", FIRST, modified=1)

    outcome = folder.run()

    assert outcome.succeeded
    (finding,) = _new_fields(outcome)
    assert (finding.code, str(finding.location)) == ("new-fields", "sources.yml:7:25")
    assert finding.message == (
        "source `shop.orders` has new fields: item.lot bigint, at timestamp, color string, size double"
    )
    assert "that no column can have: Id, gone" in finding.why
    assert PATCH in finding.fix
    text = _apply(folder)
    changed = [line for line in text.splitlines()[3:] if line[:1] in "+-"]
    assert changed == [
        '-            data_type: "struct<sku: string>"',
        "+            data_type: 'struct<sku: string, lot: bigint>'",
        "+          - name: at",
        "+            data_type: timestamp",
        "+          - name: color",
        "+            data_type: string",
        "+          - name: size",
        "+            data_type: double",
    ]
    plan = plan_project(PlanRequest(ProjectRequest(folder.root)))
    assert {each.model: each.verdict for each in plan.queries} == {
        "plain": Verdict.RESUME,
        "kept": Verdict.UNDECIDED,  # without Spark, a changed table of a database is not looked at
        "counted": Verdict.RESUME,
    }
    folder.rows("in/2.json", [{**FIRST[1], "id": 5}], modified=2)
    outcome = folder.run()
    assert (outcome.succeeded, _new_fields(outcome)) == (True, [])
    rows = {row["id"]: row for row in read_parquet(folder.root / "store/plain")}
    assert (len(rows), rows[5]["color"], rows[5]["item"]["lot"]) == (4, "red", 7)
    assert str(rows[5]["at"]).startswith("2026-01-01 00:00:00")
    with sqlite3.connect(folder.root / "store/kept.sqlite") as connection:
        found = connection.execute("select id, color, size, sku from kept order by id").fetchall()
    assert found == [(1, None, None, "a"), (2, None, None, "a"), (3, None, None, None), (5, "red", None, "a")]
    with sqlite3.connect(folder.root / "store/counted.sqlite") as connection:
        assert sorted(connection.execute("select half, n from counted")) == [(0, 1), (1, 3)]
    assert not (folder.root / PATCH).exists()


@pytest.mark.slow
def test_a_run_that_fails_or_goes_on_writes_the_patch(folder: ProjectFolder, topic: Topic) -> None:
    """Messages have the same; the patch is there as soon as a batch has found a field, and also if the query fails
    later. A continuous run shows it in its status.
    """
    topic.send_bytes([Message(b'{"id": 1, "color": "red", "_kafka_own": 1}')])
    table = (
        f"format: kafka\n        value_format: json\n        options: {{kafka.bootstrap.servers: '{topic.servers}', "
        f"subscribe: {topic.name}, startingOffsets: earliest, maxOffsetsPerTrigger: 1}}"
    )
    model = (
        "{{ config(sink='lake') }} select *, if(id = 2, raise_error('two'), 1) as x from {{ source('shop', 'orders') }}"
    )
    folder.write({"sources.yml": DECLARED.replace("TABLE", table), "models/plain.sql": model})
    shown: list[str] = []

    def is_reported(_events: list[Any]) -> bool:
        if not shown and (folder.root / PATCH).exists():
            shown.append(folder.invoke("status").out)
            topic.send_bytes([Message(b'{"id": 2, "size": 1}')])
        return False

    outcome = folder.run_until(is_reported)

    assert not outcome.succeeded
    assert [finding.message for finding in _new_fields(outcome)] == [
        "source `shop.orders` has new fields: color string"
    ]
    assert f"shop.orders has new fields, see {PATCH}" in shown[0]
    assert "color" in _apply(folder)
