"""Models with `materialized: stored`: other queries read what their own query has committed, each with a checkpoint."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sqlstream.errors import FindingsError
from sqlstream.state.runs.events import Notice, RunEvent, Status, TableShown
from sqlstream.state.runs.progress import BatchProgress
from tests.spark.conftest import ProjectFolder, order_rows

BRONZE = """{{ config(sink='lake', materialized='stored', partition_by=['kind']) }}
select /*+ WATERMARK(ts, '1 minute') */ id, ts, kind, amount from {{ source('shop', 'orders') }}"""
SILVER = """{{ config(sink='text', materialized='stored') }}
select id, ts, kind, amount * 2 as amount from {{ ref('bronze') }} where amount > 0"""
GOLD = """{{ config(sink='lake', materialized='stored', output_mode='complete') }}
select kind, count(*) as n, sum(amount) as total from {{ ref('silver') }} group by kind"""
TOP = "{{ config(sink='table') }} select kind, total from {{ ref('gold') }} order by total desc limit 1"
SINK = "  - {name: text, format: json, path: 'texts/{{ model.name }}', options: {encoding: UTF-16LE, lineSep: '|'}}\n"
ALL_IDS = "{{ config(sink='table') }} select id, kind, amount from {{ ref('bronze') }}"


@pytest.fixture
def layers(orders: ProjectFolder) -> ProjectFolder:
    """A project of four stages: two streams of files, a stream in complete mode, and a batch model."""
    sinks = orders.root / "sinks.yml"
    sinks.write_text(sinks.read_text() + SINK)
    names = {"bronze": BRONZE, "silver": SILVER, "gold": GOLD, "top": TOP}
    orders.write({f"models/{name}.sql": text for name, text in names.items()})
    return orders


def table(events: list[RunEvent]) -> list[tuple[object, ...]]:
    """Returns the rows of the only memory sink of a run."""
    (shown,) = (event for event in events if isinstance(event, TableShown))
    return sorted(shown.rows)


@pytest.mark.slow
def test_a_run_goes_stage_by_stage(layers: ProjectFolder) -> None:
    """Each query reads what the stage before has committed in the same run; a later run reads only what is new."""
    first = layers.run()
    assert [result.batches for result in first.results] == [2, 1, 1, 1]
    assert [result.rows_out for result in first.results] == [10, 8, 2, 1]
    assert table(layers.events) == [("a", 24)]

    layers.rows("in/orders/2.json", order_rows(2), modified=2)
    again = layers.run()
    assert [result.rows_in for result in again.results] == [5, 5, 4, None]
    assert table(layers.events) == [("a", 36)]


def test_a_query_alone_reads_what_is_committed(layers: ProjectFolder) -> None:
    """A new query reads all committed rows of another one, and no file that a killed batch has left."""
    with pytest.raises(FindingsError) as caught:
        layers.run("silver")
    assert [finding.code for finding in caught.value.findings] == ["stored-missing"]

    layers.run("bronze")
    (written,) = list((layers.root / "store/bronze/kind=b").glob("part-00000*.parquet"))[:1]
    shutil.copy(written, written.with_name(written.name.replace("part-00000", "part-00009")))
    layers.write({"models/late.sql": ALL_IDS})

    (late,) = layers.run("late").results
    assert (late.rows_in, late.rows_out) == (10, 10)
    assert table(layers.events)[:2] == [(0, "a", 0), (1, "b", 1)]


@pytest.mark.slow
def test_a_query_follows_an_output_that_has_started_over(layers: ProjectFolder) -> None:
    """After a full refresh of the stored model, its readers are refused until they start over, too."""
    layers.run("bronze", "silver")
    layers.run("bronze", full_refresh=True)

    with pytest.raises(FindingsError) as caught:
        layers.run("silver")
    (finding,) = caught.value.findings
    assert (finding.code, "store/bronze.v2" in finding.why) == ("source-change", True)

    refreshed = layers.run("bronze", "silver", full_refresh=True)
    assert [result.output for result in refreshed.results] == [
        str(layers.root / path) for path in ("store/bronze", "store/texts/silver")
    ]
    assert [result.rows_out for result in refreshed.results] == [10, 8]


def test_empty_text_in_a_partition_is_not_read_as_null(layers: ProjectFolder) -> None:
    """A stored model with an empty text in a column of partition_by fails; one with null continues."""
    empty = "{{{{ config(sink='lake', materialized='stored', partition_by='k', retries=0) }}}} select id, {} as k from {{{{ source('shop', 'orders') }}}}"
    layers.write(
        {
            "models/bronze.sql": empty.format("if(id = 3, '', 'x')"),
            "models/silver.sql": empty.format("nullif(if(id = 3, '', 'x'), '')"),
        }
    )

    outcome = layers.run("bronze", "silver")

    assert [(result.status, result.finding and result.finding.code) for result in outcome.results] == [
        (Status.ERROR, "query-failed"),
        (Status.SUCCESS, None),
    ]


def test_queries_of_all_stages_run_together(layers: ProjectFolder) -> None:
    """Without a trigger that ends, a query starts once the output exists that it reads, and gets its rows."""
    outcome = layers.run_until(
        lambda events: any(isinstance(event, BatchProgress) and event.model == "silver" for event in events),
        "bronze",
        "silver",
    )

    assert [result.status for result in outcome.results] == [Status.STOPPED, Status.STOPPED]


def test_a_failure_skips_the_next_stages(layers: ProjectFolder) -> None:
    """If the query of a stored model fails, the queries that read it do not start."""
    failing = BRONZE.replace("amount from", "assert_true(amount < 0) as amount from").replace(
        "'lake',", "'lake', retries=0,"
    )
    layers.write(
        {
            "models/bronze.sql": failing,
            "models/silver.sql": SILVER.replace("amount * 2", "id").replace("amount > 0", "id > 0"),
        }
    )

    outcome = layers.run()

    assert [result.status for result in outcome.results] == [Status.ERROR, *[Status.SKIPPED] * 3]
    notices = [event.text for event in layers.events if isinstance(event, Notice)]
    assert "silver is skipped: bronze, whose stored output it reads, failed or was skipped" in notices


TEST = """unit_tests:
  - name: doubles
    model: silver
    given:
      - input: ref('bronze')
        rows:
          - {id: 1, ts: 2024-01-01 00:00:00, kind: a, amount: 2}
          - {id: 2, ts: 2024-01-01 00:00:00, kind: a, amount: 0}
    expect:
      rows:
        - {id: 1, ts: 2024-01-01 00:00:00, kind: a, amount: 4}
"""


@pytest.mark.slow
def test_a_unit_test_gives_the_rows_of_a_stored_model(layers: ProjectFolder) -> None:
    """A unit test gives rows for a stored model as for a source."""
    layers.write({"models/tests.yml": TEST})
    process = layers.command("test")

    out, _ = process.communicate()
    assert process.returncode == 0, out
    assert "PASS=1" in out
    assert Path(layers.root, "store").exists() is False
