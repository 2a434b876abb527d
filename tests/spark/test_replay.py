"""`sqlstream replay`: a past batch runs again with exactly its data and its state, and changes no file."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sqlstream import FindingsError, UsageError
from sqlstream.app.replay.replay_batch import ReplayRequest, replay_batch
from sqlstream.app.replay.replayed_batch import Replayed, ReplayedNode, replayed_text
from sqlstream.app.request import ProjectRequest, UnitTestRequest
from sqlstream.app.test.unit_tests import run_tests
from sqlstream.cli.main import cli
from tests.services.kafka_topics import Topic
from tests.spark.conftest import ProjectFolder, order_rows

ReadParquet = Callable[[Path], list[dict[str, Any]]]

PAID = "select id, ts, kind, amount from {{ source('shop', 'orders') }} where amount > 0"
HOURS = """select /*+ WATERMARK(ts, '10 minutes') */ window.start as hour, kind, count(*) as n, sum(amount) as total
from {{ ref('paid') }} group by window(ts, '1 hour'), kind
"""
BIG = "{{ config(sink='lake') }}\nselect kind, n from {{ ref('hours') }} where n > 1"


@pytest.fixture
def shop(folder: ProjectFolder) -> ProjectFolder:
    """A project with a query behind an aggregation (`big`) and a stateless one (`flat`), not yet run."""
    for number in range(4):
        folder.rows(f"in/orders/{number}.json", order_rows(number), modified=number)
    folder.write(
        {
            "models/paid.sql": PAID,
            "models/hours.sql": HOURS,
            "models/big.sql": BIG,
            "models/flat.sql": "{{ config(sink='lake') }}\nselect id, kind from {{ ref('paid') }}",
        }
    )
    return folder


def request(folder: ProjectFolder) -> ProjectRequest:
    """Returns the request for a project."""
    return ProjectRequest(folder.root, env=os.environ)


def replay(folder: ProjectFolder, model: str, batch: int | None = None, **options: Any) -> Replayed:
    """Returns a replayed batch, by default the last one."""
    return replay_batch(ReplayRequest(request(folder), model, batch, **options))


def refusal(folder: ProjectFolder, model: str, batch: int, **options: Any) -> str:
    """Returns the code with which a replay is refused."""
    with pytest.raises(FindingsError) as refused:
        replay(folder, model, batch, **options)
    (finding,) = refused.value.findings
    return finding.code


def node(found: Replayed, name: str) -> ReplayedNode:
    """Returns a source, view or model of a replay."""
    return next(each for each in found.nodes if each.name == name)


def values(found: Replayed, name: str) -> list[tuple[object, ...]]:
    """Returns the shown rows of a source, view or model in a fixed order."""
    rows = node(found, name).rows
    assert rows is not None
    return sorted(rows.rows, key=str)


def files_of(root: Path) -> dict[str, tuple[bytes, int]]:
    """Returns the content and the time of all files below a folder."""
    found = (path for path in sorted(root.rglob("*")) if path.is_file())
    return {str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mtime_ns) for path in found}


@pytest.mark.smoke
def test_a_batch_with_state_runs_again_and_changes_no_file(shop: ProjectFolder) -> None:
    """Sources, views before and behind the state, and the model have the rows of that batch; storage stays as it is."""
    shop.run("big", "flat")
    before = files_of(shop.root / "store")

    found = replay(shop, "big", 3)

    assert files_of(shop.root / "store") == before
    assert [each.name for each in found.nodes] == ["shop.orders", "paid", "hours", "big"]
    assert [row[0] for row in values(found, "shop.orders")] == [30, 31, 32, 33, 34]
    assert [row[0] for row in values(found, "paid")] == [31, 32, 33, 34]
    assert values(found, "hours") == [("2024-01-01 00:00:00", "a", 2), ("2024-01-01 00:00:00", "b", 2)]
    assert "other columns" in (node(found, "hours").note or "")
    assert values(found, "big") == [("a", 2), ("b", 2)]
    assert found.watermark == "2024-01-01T01:54:00.000Z"
    assert found.notes == ()


@pytest.mark.slow
def test_late_rows_are_counted(shop: ProjectFolder) -> None:
    """The result of a run and a replay of its last batch say how many rows were dropped behind the watermark."""
    shop.run("big")
    late = {"id": 90, "ts": "2024-01-01T00:30:00Z", "kind": "a", "amount": 1}
    shop.rows("in/orders/9.json", [late], modified=9)

    (result,) = shop.run("big").results
    found = replay(shop, "big")

    assert (result.rows_in, result.late_rows) == (1, 1)
    assert (node(found, "big").count, node(found, "big").late_rows) == (0, 1)
    assert "model big: no rows, 1 late row dropped" in replayed_text(found, None)


@pytest.mark.slow
def test_a_failed_batch_has_the_sql_that_failed(shop: ProjectFolder) -> None:
    """A batch that fails after a change of the SQL is replayed with the new SQL, although the ledger has the old one."""
    shop.write({"models/flat.sql": "{{ config(sink='lake', retries=0) }}\nselect id, kind from {{ ref('paid') }}"})
    shop.run("flat")
    shop.write({"models/paid.sql": PAID.replace("id,", "cast(if(id < 50, string(id), 'x') as int) as id,")})
    shop.rows("in/orders/5.json", order_rows(5), modified=9)
    assert not shop.run("flat").succeeded

    done = shop.invoke("replay", "flat")

    assert (done.code, "source shop.orders: 5 rows" in done.out) == (1, True)
    assert "fails again, at `paid`" in done.err


@pytest.mark.slow
def test_the_last_batch_is_the_one_that_failed(shop: ProjectFolder) -> None:
    """Without a number, the batch that has begun last is replayed: it fails again, and a later, torn entry is no batch."""
    shop.write(
        {
            "models/flat.sql": "{{ config(sink='lake', retries=0) }}\nselect id, assert_true(id < 30) as ok from {{ ref('paid') }}"
        }
    )
    assert not shop.run("flat").succeeded
    (shop.root / "store/queries/flat/v1/checkpoint/offsets/4").write_text("v1")

    found = replay(shop, "flat")

    assert [each.name for each in found.nodes] == ["shop.orders", "paid"]
    assert "batch 3 of `flat` fails again, at `flat`" in found.failures[0].message


@pytest.mark.slow
def test_every_batch_of_a_stateless_query_returns_what_it_wrote(shop: ProjectFolder, read_parquet: ReadParquet) -> None:
    """The rows of all batches together are the output, and `--limit` cuts only what is shown."""
    shop.run("flat")
    every = [row for number in range(4) for row in values(replay(shop, "flat", number), "flat")]

    written = read_parquet(shop.root / "store/flat")
    assert sorted(every) == sorted((row["id"], row["kind"]) for row in written)
    short = replay(shop, "flat", 1, limit=2)
    assert (len(values(short, "flat")), node(short, "flat").count) == (2, 4)


@pytest.mark.slow
def test_a_changed_model_is_replayed_with_the_sql_that_ran(shop: ProjectFolder) -> None:
    """The ledger's SQL decides, and a note says so; other changes of the query are refused."""
    shop.run("flat")
    shop.write({"models/paid.sql": PAID.replace("> 0", "> 2")})

    found = replay(shop, "flat", 0)

    assert len(values(found, "paid")) == 4
    assert any("`paid`" in note for note in found.notes)
    sources = shop.root / "sources.yml"
    sources.write_text(sources.read_text().replace("amount int", "amount bigint"))
    assert refusal(shop, "flat", 0) == "replay-changed"


@pytest.mark.slow
def test_batches_that_cannot_be_read_again_are_refused(shop: ProjectFolder) -> None:
    """A batch that is not in the log, missing files and a source without stored data each have a finding."""
    shop.run("flat")
    assert refusal(shop, "flat", 9) == "replay-batch"
    with pytest.raises(UsageError):
        replay(shop, "flat", 0, version=7)
    (shop.root / "in/orders/1.json").unlink()
    assert refusal(shop, "flat", 1) == "source-file-gone"
    assert len(values(replay(shop, "flat", 2), "flat")) == 4
    shop.write(
        {
            "models/_clock.yml": "sources: [{name: clock, tables: [{name: ticks, format: rate-micro-batch, "
            "options: {rowsPerBatch: 3}}]}]\n",
            "models/ticks.sql": "{{ config(sink='lake') }}\nselect value from {{ source('clock', 'ticks') }}",
        }
    )
    shop.run("ticks", available_now=True)
    assert refusal(shop, "ticks", 0) == "replay-source"


@pytest.mark.slow
def test_without_its_state_the_rows_before_it_are_still_shown(shop: ProjectFolder) -> None:
    """Where Spark has removed the state, the model's rows are unknown, and the note names the first possible batch."""
    shop.run("big")
    for path in (shop.root / "store/queries/big/v1/checkpoint/state").rglob("*.delta*"):
        if path.name.strip(".").startswith(("1.", "2.", "3.")):
            path.unlink()

    found = replay(shop, "big", 3)

    assert len(values(found, "paid")) == 4
    assert (node(found, "big").rows, node(found, "hours").rows) == (None, None)
    assert "Spark has removed the state before batch 3" in (node(found, "big").note or "")


@pytest.mark.slow
def test_a_batch_becomes_a_unit_test_that_passes(shop: ProjectFolder) -> None:
    """A stateless batch expects what came out; a query with state gets all earlier batches. Both tests pass."""
    shop.run("big", "flat")

    flat = replay(shop, "flat", 2, test="")
    big = replay(shop, "big", 3, test="closed_hours")

    assert flat.test == ("tests/models/flat_replayed.yml", "batch_2", True)
    assert big.test == ("tests/models/big_replayed.yml", "closed_hours", True)
    assert "{id: 21, kind: b}" in (shop.root / flat.test[0]).read_text()
    outcome = run_tests(UnitTestRequest(request(shop)), lambda _result, _total: None)
    assert [str(result.outcome) for result in outcome.results] == ["passed", "passed"]
    shop.write({"models/paid.sql": PAID.replace("> 0", "> 2")})
    assert not run_tests(UnitTestRequest(request(shop)), lambda _result, _total: None).succeeded


@pytest.mark.slow
def test_a_large_batch_does_not_become_a_unit_test(shop: ProjectFolder) -> None:
    """A unit test has at most 1,000 rows of an input."""
    shop.rows("in/orders/9.json", [{"id": number, "amount": 1} for number in range(1001)], modified=9)
    shop.run("flat")
    assert refusal(shop, "flat", 4, test="") == "replay-test"


@pytest.mark.slow
def test_the_command_prints_tables_or_json(shop: ProjectFolder) -> None:
    """Text has a table for each part, JSON an object for each."""
    shop.run("flat")
    arguments = ["replay", "flat", "--batch", "0", "--project-dir", str(shop.root)]

    text = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    found = CliRunner().invoke(cli, [*arguments, "--output", "json"], catch_exceptions=False)

    assert text.exit_code == found.exit_code == 0
    assert "source shop.orders: 5 rows" in text.stdout
    assert "model flat: 4 rows" in text.stdout
    result = json.loads(found.stdout)
    assert [each["kind"] for each in result["results"]] == ["source", "view", "model"]
    assert result["results"][2]["rows"][0] == {"id": 1, "kind": "b"}


@pytest.mark.slow
def test_a_batch_of_kafka_has_its_offsets_only(folder: ProjectFolder, topic: Topic) -> None:
    """Later records of the topic are not in a replayed batch, and parsed values are shown."""
    options = f"{{kafka.bootstrap.servers: '{topic.servers}', subscribe: {topic.name}, startingOffsets: earliest}}"
    folder.write(
        {
            "models/_bus.yml": f"sources: [{{name: bus, tables: [{{name: events, format: kafka, options: {options}, "
            "value_format: json, columns: [{name: id, data_type: int}]}]}]\n",
            "models/events.sql": "{{ config(sink='lake') }}\nselect id from {{ source('bus', 'events') }}",
        }
    )
    for ids in (range(3), range(3, 5)):
        topic.send([{"id": number} for number in ids])
        folder.run()
    topic.send([{"id": 9}])
    shutil.rmtree(folder.root / "store/events")

    found = [values(replay(folder, "events", batch), "events") for batch in (0, 1)]

    assert found == [[(0,), (1,), (2,)], [(3,), (4,)]]
