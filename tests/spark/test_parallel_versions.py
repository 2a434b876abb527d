"""A new version of a query runs beside the current one, until it is promoted; a rollback goes back."""

from __future__ import annotations

import os
import signal

import pyarrow.parquet as pq
import pytest
from conftest import ProjectFolder, order_rows, wait_for

from sqlstream.app.request import ProjectRequest
from sqlstream.app.state.switch import promote, roll_back
from sqlstream.errors import FindingsError, UsageError
from sqlstream.state.runs.events import Notice

SUMS = """{{{{ config(sink='lake', trigger='100 milliseconds') }}}}
select /*+ WATERMARK(ts, '10 minutes') */ window.start as hour, {aggregate} as total
from {{{{ source('shop', 'orders') }}}}
group by window(ts, '1 hour')
"""
OLD, NEW = SUMS.format(aggregate="sum(amount)"), SUMS.format(aggregate="sum(amount * 1000)")


@pytest.fixture
def sums(orders: ProjectFolder) -> ProjectFolder:
    """A query that has summed the amounts of the first hour: 10. Its SQL then changes to sums of 10,000."""
    orders.write({"models/sums.sql": OLD})
    orders.rows("in/orders/2.json", order_rows(2), modified=2)
    orders.result()
    orders.write({"models/sums.sql": NEW})
    return orders


def totals(folder: ProjectFolder, name: str = "sums") -> list[int]:
    """Returns what a reader finds that lists the files of a folder."""
    return sorted(pq.read_table(folder.root / "store" / name)["total"].to_pylist())


def request(folder: ProjectFolder) -> ProjectRequest:
    """Returns the request for the project."""
    return ProjectRequest(folder.root, env=dict(os.environ))


@pytest.mark.smoke
def test_a_parallel_version_is_promoted_and_rolled_back(sums: ProjectFolder) -> None:
    """Both versions read on; runs continue the old one until the promotion, and after the rollback."""
    with pytest.raises(FindingsError) as caught:
        sums.run()
    assert "`sqlstream run --select sums --parallel sums` runs the new version" in caught.value.findings[0].fix

    assert sums.result(parallel=("sums",)).output == str(sums.root / "store/sums.v2")
    assert (totals(sums), totals(sums, "sums.v2")) == ([10], [10000])
    assert "beside the current one" in next(event.text for event in sums.events if isinstance(event, Notice))

    done = promote(request(sums), "sums")
    assert (done.version, done.before, done.outputs) == (2, 1, (str(sums.root / "store/sums.v2"),))

    sums.rows("in/orders/3.json", order_rows(3), modified=3)
    assert sums.result().rows_in == 5
    assert (totals(sums), totals(sums, "sums.v2")) == ([10], [10000, 10000])

    same = sums.result(parallel=("sums",))
    assert (same.output, same.rows_in) == (str(sums.root / "store/sums.v2"), 0)
    assert "its current version is the same query" in next(it.text for it in sums.events if isinstance(it, Notice))

    assert roll_back(request(sums), "sums").version == 1
    sums.write({"models/sums.sql": OLD})
    assert (sums.result().rows_in, totals(sums)) == (5, [10, 10])

    assert promote(request(sums), "sums").version == 2
    with pytest.raises(UsageError, match="no parallel version"):
        promote(request(sums), "sums")


def test_versions_run_in_two_processes(sums: ProjectFolder) -> None:
    """Each version is locked for its own run, and both go on through a promotion."""
    sums.write({"models/sums.sql": OLD})
    old = sums.command("run", "--select", "sums", "--log-format", "json")
    wait_for(old, '"event": "query_started"')
    sums.write({"models/sums.sql": NEW})
    new = sums.command("run", "--select", "sums", "--parallel", "sums", "--log-format", "json")
    wait_for(new, '"rows_out": 1')

    for parallel, process in (((), old), (("sums",), new)):
        with pytest.raises(FindingsError) as caught:
            sums.run(parallel=parallel)
        assert f"process {process.pid} on " in caught.value.findings[0].why

    promote(request(sums), "sums")
    sums.rows("in/orders/3.json", order_rows(3), modified=3)
    for process in (old, new):
        wait_for(process, '"rows_out": 1')
        os.kill(process.pid, signal.SIGTERM)
        process.communicate(timeout=60)
    assert (totals(sums), totals(sums, "sums.v2")) == ([10, 10], [10000, 10000])


def test_a_version_without_rows_is_not_promoted(sums: ProjectFolder) -> None:
    """A failed parallel version never becomes the current one."""
    sums.write({"models/sums.sql": SUMS.format(aggregate="sum(raise_error('broken'))")})
    assert str(sums.result(parallel=("sums",)).status) == "error"
    with pytest.raises(FindingsError) as caught:
        promote(request(sums), "sums")
    assert (caught.value.findings[0].code, totals(sums)) == ("version-empty", [10])

    sums.write({"models/sums.sql": OLD})
    assert sums.result().rows_in == 0  # the current version goes on


def test_a_full_refresh_can_be_rolled_back(sums: ProjectFolder) -> None:
    """The version before a full refresh is complete, and its query goes on where it stopped."""
    assert sums.result(full_refresh=True).output == str(sums.root / "store/sums.v2")
    assert (totals(sums), totals(sums, "sums.v2")) == ([10], [10000])

    roll_back(request(sums), "sums")
    sums.write({"models/sums.sql": OLD})
    sums.rows("in/orders/3.json", order_rows(3), modified=3)
    assert (sums.result().rows_in, totals(sums)) == (5, [10, 10])


def test_a_refused_parallel_version_can_start_over(sums: ProjectFolder) -> None:
    """A parallel version is judged like any other; with a full refresh, another one takes its place."""
    sums.run(parallel=("sums",))
    sums.write({"models/sums.sql": SUMS.format(aggregate="max(amount)")})
    with pytest.raises(FindingsError):
        sums.run(parallel=("sums",))
    assert sums.result(parallel=("sums",), full_refresh=True).output == str(sums.root / "store/sums.v3")
    assert promote(request(sums), "sums").version == 3
    assert roll_back(request(sums), "sums").version == 1


def test_snapshots_have_versions(orders: ProjectFolder) -> None:
    """Complete mode replaces all rows of its own version with each batch."""
    model = "{{{{ config(sink='lake', output_mode='complete') }}}} select sum(amount{}) as total from {}"
    source = "{{ source('shop', 'orders') }}"
    orders.write({"models/sums.sql": model.format("", source)})
    orders.result()
    orders.write({"models/sums.sql": model.format(" * 1000", source)})
    orders.result(parallel=("sums",))
    assert (totals(orders), totals(orders, "sums.v2")) == ([20], [20000])
