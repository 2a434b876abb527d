"""`sqlstream status` without a record of a run: offsets and lags of sources, from the checkpoint and the broker."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyspark
import pytest

from sqlstream import ProjectRequest
from sqlstream.app.plan.plan import plan_project
from sqlstream.app.request import PlanRequest, Selection
from sqlstream.app.status.status import read_status
from sqlstream.compiler.spark_versions import minor_version
from sqlstream.state.runs.events import RunEvent
from sqlstream.state.runs.progress import BatchProgress
from sqlstream.state.sources.lag import FileLag, QueryProgress, RecordLag, VersionProgress
from sqlstream.state.verdicts import Verdict
from tests.services.kafka_topics import Message, Topic
from tests.spark.conftest import PROJECT, ProjectFolder, order_rows
from tests.tools.make_checkpoints import FOLDER, ROOT, with_root, write_project, write_rows

HOURLY = """{{ config(sink='lake', trigger='100 milliseconds') }}
select /*+ WATERMARK(ts, '10 minutes') */ window.start as hour, count(*) as n
from {{ source('shop', 'orders') }} group by window(ts, '1 hour')"""

READABLE = Verdict.UNCHANGED if minor_version(pyspark.__version__) >= (4, 3) else Verdict.REFUSE
"""The verdict on a query of the corpus of Spark 4.3: an older Spark does not read its checkpoint."""

EVENTS = "{{ config(sink='lake') }}\nselect cast(value as string) as value from {{ source('bus', 'events') }}"


def forget_runs(folder: ProjectFolder) -> None:
    """Makes the folder as on another machine with the same storage."""
    shutil.rmtree(folder.root / "logs")
    shutil.rmtree(folder.root / "target")


def query(folder: ProjectFolder, *, check: bool = False) -> tuple[QueryProgress, VersionProgress]:
    """Returns the progress of the only query, and of its current version."""
    (found,) = read_status(ProjectRequest(folder.root, env=os.environ), check=check).progress
    (version,) = found.versions
    return found, version


@pytest.mark.smoke
def test_a_stopped_query_with_new_files(folder: ProjectFolder) -> None:
    """After a stop, the status has the offset, the watermark, and the files that arrived since; a resumed query has
    read them.
    """
    folder.write({"models/hourly.sql": HOURLY})
    for number in range(2):
        folder.rows(f"in/orders/{number}.json", order_rows(number), modified=number)

    def has_read_all(events: list[RunEvent]) -> bool:
        return sum(event.rows_in or 0 for event in events if isinstance(event, BatchProgress)) == 10

    folder.run_until(has_read_all)
    forget_runs(folder)
    folder.rows("in/orders/2.json", order_rows(2), modified=2)
    folder.rows("in/orders/_3.json", order_rows(3), modified=3)

    _, version = query(folder)

    (source,) = version.sources
    size = (folder.root / "in/orders/2.json").stat().st_size
    assert (source.name, source.lag, source.position.offset) == ("shop.orders", FileLag(1, size), {"logOffset": 1})
    assert (version.holder, version.position.version, version.position.problem) == (None, 1, None)
    assert str(version.position.batch) == max(folder.committed("hourly"), key=int)

    folder.run()

    _, version = query(folder)
    assert version.position.watermark_ms == 1704074040000  # 2024-01-01 01:54, 10 minutes before the last order
    assert version.sources[0].lag == FileLag(0, 0)


def test_remote_storage(tmp_path: Path) -> None:
    """Spark reads a checkpoint in remote storage without --check, also with the master of a cluster that nobody can
    reach, and says why it starts. The plan is that of `plan --check` on this machine.
    """
    with_root(FOLDER / "spark-4.3", tmp_path, ROOT, str(tmp_path))
    write_project(tmp_path)
    write_rows(tmp_path, 1)
    write_rows(tmp_path, 2)
    settings = f"{{spark.hadoop.fs.viewfs.mounttable.status.link./store: 'file://{tmp_path}/store'}}"
    (tmp_path / "project.yml").write_text(
        PROJECT.replace("storage: store", f"storage: 'viewfs://status/store', spark: {settings}")
    )
    notices: list[str] = []
    request = ProjectRequest(tmp_path, env=os.environ, notify=notices.append)
    selection = Selection(("pairs",))
    explicit = plan_project(PlanRequest(request, selection, check=True))
    (tmp_path / "project.yml").write_text(
        (tmp_path / "project.yml").read_text().replace("master: local[2]", "master: 'spark://127.0.0.1:1'")
    )

    (found,) = read_status(request, selection).progress
    planned = plan_project(PlanRequest(request, selection))

    assert planned == explicit
    assert [query.verdict for query in planned.queries] == [READABLE]
    because = ", because only Spark can read viewfs://status/store"
    started = [notice for notice in notices if "because" in notice]
    assert started == [f"Starting Spark to {verb} 1 query, without data{because}" for verb in ("check", "plan")]
    assert (found.stored, found.problem) == ((1,), None)
    (version,) = found.versions
    assert (version.position.batch, version.position.watermark_ms) == (1, 1703988000000)
    assert version.position.committed_at is not None
    assert [(source.name, source.lag) for source in version.sources] == [
        (f"shop.{name}", FileLag(1, (tmp_path / f"in/{name}/2.json").stat().st_size)) for name in ("orders", "refunds")
    ]


@pytest.fixture
def events(folder: ProjectFolder, topic: Topic) -> ProjectFolder:
    """A project whose one query has read three records of the topic, in two partitions."""
    options = f"{{kafka.bootstrap.servers: '{topic.servers}', subscribe: {topic.name}, startingOffsets: earliest}}"
    source = f"sources: [{{name: bus, tables: [{{name: events, format: kafka, options: {options}}}]}}]\n"
    folder.write({"models/_bus.yml": source, "models/events.sql": EVENTS})
    topic.send_bytes([Message(b"a"), Message(b"b"), Message(b"c", partition=1)])
    assert folder.run("events").succeeded
    forget_runs(folder)
    return folder


@pytest.mark.smoke
def test_the_lag_of_kafka(events: ProjectFolder, topic: Topic) -> None:
    """With --check the brokers are asked for the end of each partition; without it the lag is unknown."""
    topic.send_bytes([Message(b"d"), Message(b"e", partition=1), Message(b"f", partition=1)])

    _, offline = query(events)
    _, asked = query(events, check=True)

    for version in (offline, asked):
        assert [source.position.offset for source in version.sources] == [{topic.name: {"0": 2, "1": 1}}]
    assert [source.lag for source in offline.sources] == [None]
    assert [source.lag for source in asked.sources] == [RecordLag(3, {topic.name: {"0": 1, "1": 2}})]


@pytest.mark.slow
def test_brokers_that_do_not_respond(events: ProjectFolder, topic: Topic) -> None:
    """Without brokers the rest is shown, and the reason is below the table. The JSON has it, too."""
    source = events.root / "models/_bus.yml"
    source.write_text(source.read_text().replace(topic.servers, "127.0.0.1:1"))

    process = events.command("status", "--check", "--output", "json")
    out, _ = process.communicate()

    content: Mapping[str, Any] = json.loads(out[out.index("{") :])
    ((found,),) = (version["sources"] for version in content["checkpoints"][0]["versions"])
    assert process.returncode == 0
    assert (found["lag"], found["offset"]) == (None, {topic.name: {"0": 2, "1": 1}})
    assert found["problem"] == "no broker responds: 127.0.0.1:1: Connection refused"
