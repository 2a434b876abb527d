"""Changed sources on real checkpoints: what is read again is said or refused, and nothing is there twice."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from sqlstream.app.plan.plan import plan_project
from sqlstream.app.request import PlanRequest, ProjectRequest
from sqlstream.errors import FindingsError
from sqlstream.state.runs.events import QueryResult
from sqlstream.state.verdicts import QueryVerdict, Verdict
from tests.services.kafka_topics import Topic, create_topic
from tests.spark.conftest import ProjectFolder, shop_project

Rows = Callable[[Path], list[dict[str, Any]]]

READ_TWICE = """{{ config(sink='lake') }}
select id from {{ source('bus', 'events') }}"""


def plan(folder: ProjectFolder) -> dict[str, QueryVerdict]:
    """Returns the verdicts without Spark, by model."""
    found = plan_project(PlanRequest(ProjectRequest(folder.root, env=os.environ)))
    return {query.model: query for query in found.queries}


def ids(rows: list[dict[str, Any]]) -> list[int]:
    """Returns the ids of rows, sorted."""
    return sorted(row["id"] for row in rows)


@pytest.mark.slow
def test_names_stay_behind_renames(folder: ProjectFolder, read_parquet: Rows) -> None:
    """With `previous_name`, the quarantine of a renamed source and the reader of a renamed stored model continue."""
    source = (
        "sources: [{name: bus, tables: [{name: NAME, format: json, path: in/events, schema: 'id int', "
        "on_corrupt: quarantine, quarantine_sink: lake}]}]\n"
    )
    stored = "{{ config(sink='lake', materialized='stored'MORE) }} select id from {{ source('bus', 'NAME') }}"
    top = "{{ config(sink='lake') }} select id from {{ ref('STORED') }}"
    folder.write(
        {
            "models/_bus.yml": source.replace("NAME", "events"),
            "models/bronze.sql": stored.replace("NAME", "events").replace("MORE", ""),
            "models/top.sql": top.replace("STORED", "bronze"),
            "in/events/1.json": '{"id": 1}\nno json\n',
        }
    )
    folder.run()
    (folder.root / "models/bronze.sql").unlink()
    folder.write(
        {
            "models/_bus.yml": source.replace("NAME", "happenings, previous_name: events"),
            "models/silver.sql": stored.replace("NAME", "happenings").replace("MORE", ", previous_name='bronze'"),
            "models/top.sql": top.replace("STORED", "silver"),
            "in/events/2.json": '{"id": 2}\nmore\n',
        }
    )

    assert {name: verdict.findings for name, verdict in plan(folder).items()} == dict.fromkeys(
        ("silver", "top", "bus__happenings__corrupt"), ()
    )
    outcome = folder.run()

    assert [result.finding for result in outcome.results] == [None, None, None]
    written = {path.name: path for path in (folder.root / "store").iterdir() if (path / "_spark_metadata").exists()}
    assert {name: len(read_parquet(path)) for name, path in written.items()} == dict.fromkeys(written, 2)
    assert len(written) == 3


def test_the_plan_tells_of_changed_files_of_static_tables(folder: ProjectFolder) -> None:
    """The state keeps what it has read of a static table, so the plan says that its files changed; a path in other words
    is no change.
    """
    static = "sources: [{name: fixed, tables: [{name: zones, format: json, path: PATH, mode: batch, schema: 'id int, zone int'}]}]\n"
    folder.rows("in/orders/1.json", [{"id": 1}, {"id": 2}], modified=1)
    folder.rows("zones/1.json", [{"id": 1, "zone": 5}], modified=1)
    folder.write(
        {
            "models/_fixed.yml": static.replace("PATH", "zones"),
            "models/_sinks.yml": "sinks: [{name: tables, format: sqlite, path: '{{ model.name }}.sqlite'}]\n",
            "models/zoned.sql": "{{ config(sink='tables', output_mode='update', unique_key='zone') }}\n"
            "select zone, count(*) as n from {{ source('shop', 'orders') }} o join {{ source('fixed', 'zones') }} z "
            "on o.id = z.id group by zone\n",
        }
    )
    folder.result()
    unchanged = plan(folder)["zoned"]
    folder.write({"models/_fixed.yml": static.replace("PATH", f"{folder.root}/./zones")})
    folder.rows("zones/2.json", [{"id": 2, "zone": 6}], modified=2)

    (note,) = plan(folder)["zoned"].reads

    assert (unchanged.verdict, unchanged.reads) == (Verdict.UNCHANGED, ())
    assert ("`fixed.zones`" in note, "1 file" in note, "2 files" in note) == (True, True, True)
    assert plan(folder)["zoned"].verdict is Verdict.UNCHANGED
    assert folder.result().finding is None


@pytest.mark.slow
def test_topics_are_read_once(folder: ProjectFolder, topic: Topic, read_parquet: Rows) -> None:
    """A topic can be added and, without `failOnDataLoss`, removed; one that returns, other topics and other brokers are
    refused, and so is a renamed source.
    """
    other = create_topic(topic.servers, f"{topic.name}-other")
    topic.send([{"id": 1}])
    other.send([{"id": 100}])

    def declare(subscribe: str, *, name: str = "events", servers: str = topic.servers, more: str = "") -> None:
        options = f"kafka.bootstrap.servers: '{servers}', subscribe: '{subscribe}', startingOffsets: earliest{more}"
        folder.write(
            {
                "models/_bus.yml": f"sources: [{{name: bus, tables: [{{name: {name}, format: kafka, value_format: json, "
                f"schema: 'id int', options: {{{options}}}}}]}}]\n",
                "models/ids.sql": READ_TWICE.replace("'events'", f"'{name.partition(',')[0]}'"),
            }
        )

    def refused() -> str:
        with pytest.raises(FindingsError) as caught:
            folder.run()
        (finding,) = caught.value.findings
        assert finding.code == "source-change", json.dumps(str(finding))
        assert plan(folder)["ids"].findings[0].code == "source-change"
        return str(finding)

    def done() -> QueryResult:
        result = folder.result()
        assert result.finding is None
        return result

    declare(topic.name)
    done()
    declare(topic.name, name="happenings")
    assert "previous_name: events" in refused()
    declare(other.name)
    refused()
    declare(topic.name, servers="127.0.0.1:1")
    assert "brokers" in plan(folder)["ids"].findings[0].message
    both = f"{topic.name},{other.name}"
    declare(both, name="happenings, previous_name: events")
    topic.send([{"id": 2}])
    done()
    assert ids(read_parquet(folder.root / "store/ids")) == [1, 2, 100]
    declare(topic.name, name="happenings")
    assert "failOnDataLoss" in refused()
    declare(topic.name, name="happenings", more=", failOnDataLoss: false")
    topic.send([{"id": 3}])
    done()
    declare(both, name="happenings", more=", failOnDataLoss: false")
    assert "again" in refused()
    assert ids(read_parquet(folder.root / "store/ids")) == [1, 2, 3, 100]


@pytest.mark.slow
def test_a_stored_stream_in_a_folder_that_looks_like_a_pattern(tmp_path: Path) -> None:
    """Its reader continues after a change, and after the stored output has started over it is refused."""
    folder = shop_project(tmp_path / "depot [v2] a{b,c}")
    stored = "{{ config(sink='lake', materialized='stored') }} select id, kind from {{ source('shop', 'orders') }}"
    top = "{{ config(sink='lake') }} select id from {{ ref('bronze') }}"
    folder.write({"models/bronze.sql": stored, "models/top.sql": top})

    def run(*arguments: str) -> str:
        with folder.command("run", "--available-now", *arguments) as process:
            printed, _ = process.communicate(timeout=300)
        return printed

    folder.rows("in/orders/0.json", [{"id": 0, "kind": "a"}], modified=0)
    run()
    folder.write({"models/top.sql": f"{top} where id >= 0"})
    folder.rows("in/orders/1.json", [{"id": 1, "kind": "a"}], modified=1)
    assert plan(folder)["top"].verdict is Verdict.RESUME
    run()
    files = (folder.root / "store/top").glob("*.parquet")
    assert ids([row for file in files for row in pq.ParquetFile(file).read().to_pylist()]) == [0, 1]

    run("--full-refresh", "--select", "bronze")
    assert plan(folder)["top"].verdict is Verdict.REFUSE
    assert "[source-change]" in run("--select", "top")
