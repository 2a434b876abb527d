"""Files in complete mode: each batch replaces all rows at once, for every reader, through restarts and kills."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sqlstream.errors import FindingsError
from tests.spark.conftest import ProjectFolder, bare_session, order_rows

TOTALS = """{{ config(sink='lake', output_mode='complete') }}
select kind, count(*) as n, sum(amount) as total from {{ source('shop', 'orders') }} group by kind order by kind"""


@pytest.fixture
def totals(orders: ProjectFolder) -> ProjectFolder:
    """A project whose query has written two snapshots: one for each file of orders."""
    orders.write({"models/totals.sql": TOTALS})
    assert orders.result().batches == 2
    return orders


def rows(folder: ProjectFolder) -> list[tuple[object, ...]]:
    """Returns the rows of the output, as a reader that knows nothing of sqlstream sees them."""
    return [tuple(row.values()) for row in pq.read_table(folder.root / "store/totals").to_pylist()]


def snapshots(folder: ProjectFolder) -> list[int]:
    """Returns the batches whose snapshots exist."""
    return sorted(int(path.name.split("-")[0]) for path in (folder.root / "store/_snapshots/totals").iterdir())


def undo_commit(folder: ProjectFolder, batch: int) -> None:
    """Removes the last commit, so that the next run repeats the batch, as after a kill."""
    (folder.root / f"store/queries/totals/v1/checkpoint/commits/{batch}").unlink()


@pytest.mark.slow
def test_each_batch_replaces_the_output(totals: ProjectFolder) -> None:
    """The output has the rows of the last batch, in their order."""
    assert rows(totals) == [("a", 6, 12), ("b", 4, 8)]

    totals.rows("in/orders/2.json", order_rows(2), modified=2)
    assert totals.result().rows_out == 2

    assert rows(totals) == [("a", 9, 18), ("b", 6, 12)]


@pytest.mark.slow
def test_a_snapshot_stays_for_a_minute_after_its_replacement(totals: ProjectFolder) -> None:
    """Readers may still list its files. The previous snapshot stays longer."""
    totals.rows("in/orders/2.json", order_rows(2), modified=2)
    assert totals.result().batches == 1
    assert snapshots(totals) == [0, 1, 2]

    for name in (totals.root / "store/_snapshots/totals").glob("*/_snapshot"):
        os.utime(name, (time.time() - 3600, time.time() - 3600))
    totals.rows("in/orders/3.json", order_rows(3), modified=3)
    assert totals.result().batches == 1

    assert snapshots(totals) == [2, 3]


@pytest.mark.slow
def test_a_repeated_batch_changes_nothing(totals: ProjectFolder) -> None:
    """A batch that was killed before its commit gives the same output, whether or not it had switched the link."""
    undo_commit(totals, 1)
    assert totals.result().batches == 1
    assert (rows(totals), snapshots(totals)) == ([("a", 6, 12), ("b", 4, 8)], [0, 1])

    (previous,) = (path for path in (totals.root / "store/_snapshots/totals").iterdir() if path.name[0] == "0")
    link = totals.root / "store/totals"
    link.unlink()
    link.symlink_to(Path("_snapshots/totals") / previous.name)
    assert rows(totals) == [("a", 3, 6), ("b", 2, 4)]
    undo_commit(totals, 1)

    assert totals.result().batches == 1
    assert (rows(totals), snapshots(totals)) == ([("a", 6, 12), ("b", 4, 8)], [0, 1])


def test_spark_reads_the_output_by_its_path(totals: ProjectFolder) -> None:
    """Spark reads the output like any folder; through the link's target it reads one snapshot, also after a switch."""
    session = bare_session("local[1]")
    frame = session.read.parquet(str(totals.root / "store/totals"))
    assert sorted(tuple(row) for row in frame.collect()) == [("a", 6, 12), ("b", 4, 8)]

    resolved = (totals.root / "store/totals").resolve()
    assert sorted(tuple(row) for row in session.read.parquet(str(resolved)).collect()) == [("a", 6, 12), ("b", 4, 8)]
    session.stop()


def test_the_output_of_another_mode_is_refused(totals: ProjectFolder) -> None:
    """A query in append mode does not add files to a snapshot."""
    appending = TOTALS.replace("output_mode='complete'", "output_mode='append'").replace("order by kind", "")
    appending = appending.replace("select", "select /*+ WATERMARK(ts, '1 minute') */ window(ts, '1 hour') as hour,")
    totals.write({"models/totals.sql": appending.replace("group by", "group by window(ts, '1 hour'),")})

    with pytest.raises(FindingsError) as caught:
        totals.run()

    (finding,) = caught.value.findings
    assert finding.code == "sink-change"
    assert "from parquet `totals` in complete mode to parquet `totals`" in finding.why


@pytest.mark.slow
def test_readers_never_see_half_a_snapshot(folder: ProjectFolder) -> None:
    """While eight batches replace a partitioned output, every read that succeeds has the rows of exactly one batch."""
    for number in range(8):
        folder.rows(f"in/orders/{number}.json", order_rows(number), modified=number)
    model = TOTALS.replace("'lake'", "'lake', partition_by=['kind']").replace(" order by kind", "")
    folder.write({"models/totals.sql": model})
    has_ended, seen = threading.Event(), set[int]()

    def read() -> None:
        while not has_ended.is_set():
            with suppress(FileNotFoundError):
                table = pq.read_table(folder.root / "store/totals")
                seen.add(sum(table["n"].to_pylist()))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        assert folder.result().batches == 8
    finally:
        has_ended.set()
        reader.join()

    assert seen
    assert {count % 5 for count in seen} == {0}
