"""A new version of a query runs in parallel with the current one, until it is promoted; a rollback goes back."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from sqlstream.app.plan.plan import plan_project
from sqlstream.app.request import PlanRequest, ProjectRequest
from sqlstream.app.status.status import read_status
from sqlstream.app.versions.publications import query_history
from sqlstream.app.versions.switch import promote, roll_back
from sqlstream.cli.main import cli
from sqlstream.errors import FindingsError, UsageError
from sqlstream.state.runs.events import Notice, RunEvent
from sqlstream.state.runs.progress import BatchProgress
from sqlstream.state.verdicts import QueryVerdict, Verdict
from tests.spark.conftest import ProjectFolder, order_rows, wait_for

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


def every_total(folder: ProjectFolder) -> tuple[list[int] | None, ...]:
    """Returns what such a reader finds under the plain path, and under the paths of two versions, None if there is no
    such path.
    """
    names = ("sums", "sums.v1", "sums.v2")
    return tuple(totals(folder, name) if (folder.root / "store" / name).exists() else None for name in names)


def planned(folder: ProjectFolder, *parallel: str) -> QueryVerdict:
    """Returns the verdict on the query without Spark."""
    (found,) = plan_project(PlanRequest(request(folder), parallel=parallel)).queries
    return found


def request(folder: ProjectFolder) -> ProjectRequest:
    """Returns the request for the project."""
    return ProjectRequest(folder.root, env=dict(os.environ))


@pytest.mark.smoke
def test_a_parallel_version_is_promoted_and_rolled_back(sums: ProjectFolder) -> None:
    """Both versions read on; runs continue the old one until the promotion, and after the rollback."""
    with pytest.raises(FindingsError) as caught:
        sums.run()
    assert "`sqlstream run --select sums --parallel sums` runs the new version" in caught.value.findings[0].fix

    assert [planned(sums, *parallel).verdict for parallel in ((), ("sums",))] == [Verdict.REFUSE, Verdict.NEW]

    assert sums.result(parallel=("sums",)).output == str(sums.root / "store/sums.v2")
    assert (totals(sums), totals(sums, "sums.v2")) == ([10], [10000])
    found = planned(sums, "sums")
    assert (found.verdict, found.version, found.reason) == (
        Verdict.UNCHANGED,
        2,
        "version 2 continues in parallel with the current version",
    )
    assert "in parallel with the current one" in next(event.text for event in sums.events if isinstance(event, Notice))

    sums.rows("in/orders/3.json", order_rows(3), modified=3)
    done = promote(request(sums), "sums")
    assert (done.version, done.before, done.outputs) == (2, 1, (str(sums.root / "store/sums"),))
    (behind,) = done.behind
    assert (behind.startswith("version 2 has not read 1 file, "), behind.endswith("of shop.orders yet")) == (True, True)
    assert done.holder is None
    assert every_total(sums) == ([10000], [10], [10000])

    assert sums.result().rows_in == 5
    assert every_total(sums) == ([10000, 10000], [10], [10000, 10000])

    same = sums.result(parallel=("sums",))
    assert (same.output, same.rows_in) == (str(sums.root / "store/sums"), 0)
    assert "its current version is the same query" in next(it.text for it in sums.events if isinstance(it, Notice))

    assert roll_back(request(sums), "sums").version == 1
    assert every_total(sums) == ([10], [10], [10000, 10000])
    sums.write({"models/sums.sql": OLD})
    assert (sums.result().rows_in, every_total(sums)) == (5, ([10, 10], [10, 10], [10000, 10000]))

    assert promote(request(sums), "sums").version == 2
    assert every_total(sums) == ([10000, 10000], [10, 10], [10000, 10000])
    with pytest.raises(UsageError, match=r"version 2 of `sums` is already the current one \(promoted "):
        promote(request(sums), "sums")

    switches = query_history(request(sums), "sums").switches
    assert [(each.action, each.version, each.before) for each in switches] == [
        ("promote", 2, 1),
        ("rollback", 1, 2),
        ("promote", 2, 1),
    ]
    assert "rollback" in CliRunner().invoke(cli, ["state", "history", "sums", "--project-dir", str(sums.root)]).stdout


@pytest.mark.slow
def test_versions_run_in_two_processes(sums: ProjectFolder) -> None:
    """Each version is locked for its own run. For the first switch version 1 has to stop; both go on through others."""
    old, new = started(sums, OLD), started(sums, NEW, "--parallel", "sums")
    for parallel, process in (((), old), (("sums",), new)):
        with pytest.raises(FindingsError) as caught:
            sums.run(parallel=parallel)
        assert f"process {process.pid} on " in caught.value.findings[0].why
    with pytest.raises(FindingsError) as caught:
        promote(request(sums), "sums")
    (found,) = caught.value.findings
    assert (found.code, found.message) == ("query-in-use", "version 1 of `sums` is running")
    plain = sums.root / "store/sums"
    assert f"moves that output to {plain}.v1 and makes {plain} show" in found.why
    assert every_total(sums) == ([10], None, [10000])

    stop(old)
    promote(request(sums), "sums")
    sums.rows("in/orders/3.json", order_rows(3), modified=3)
    wait_for(new, '"rows_out": 1')
    assert every_total(sums) == ([10000, 10000], [10], [10000, 10000])

    roll_back(request(sums), "sums")
    with pytest.raises(UsageError, match="`sqlstream promote sums` makes version 2 current again"):
        roll_back(request(sums), "sums")
    old = started(sums, OLD)
    assert f"process {old.pid} on " in (promote(request(sums), "sums").holder or "")
    (progress,) = read_status(request(sums)).progress
    assert [(each.position.version, each.is_previous) for each in progress.versions] == [(2, False), (1, True)]
    shown = CliRunner().invoke(cli, ["status", "--project-dir", str(sums.root)]).stdout
    assert f"the previous one: still in use by process {old.pid} on " in shown
    sums.rows("in/orders/4.json", order_rows(4), modified=4)
    for process in (old, new):
        wait_for(process, '"rows_out": 1')
        stop(process)
    assert every_total(sums) == ([10000] * 3, [10] * 3, [10000] * 3)


def started(folder: ProjectFolder, model: str, *options: str) -> subprocess.Popen[str]:
    """Starts a run of this text of the model, and waits until it has written rows, or has none to write."""
    folder.write({"models/sums.sql": model})
    process = folder.command("run", "--select", "sums", *options, "--log-format", "json")
    wait_for(process, '"event": "query_started"' if "--parallel" not in options else '"rows_out": 1')
    return process


def stop(process: subprocess.Popen[str]) -> None:
    """Stops a run after its batch."""
    os.kill(process.pid, signal.SIGTERM)
    process.communicate(timeout=60)


@pytest.mark.slow
def test_a_version_without_rows_is_not_promoted(sums: ProjectFolder) -> None:
    """A failed parallel version never becomes the current one."""
    sums.write({"models/sums.sql": SUMS.format(aggregate="sum(raise_error('broken'))")})
    assert str(sums.result(parallel=("sums",)).status) == "error"
    with pytest.raises(FindingsError) as caught:
        promote(request(sums), "sums")
    assert (caught.value.findings[0].code, totals(sums)) == ("version-empty", [10])

    sums.write({"models/sums.sql": OLD})
    assert sums.result().rows_in == 0  # the current version goes on


@pytest.mark.slow
def test_a_full_refresh_can_be_rolled_back(sums: ProjectFolder) -> None:
    """The version before a full refresh is complete, and its query goes on where it stopped."""
    assert sums.result(full_refresh=True).output == str(sums.root / "store/sums")
    assert every_total(sums) == ([10000], [10], [10000])

    roll_back(request(sums), "sums")
    sums.write({"models/sums.sql": OLD})
    sums.rows("in/orders/3.json", order_rows(3), modified=3)
    assert (sums.result().rows_in, every_total(sums)) == (5, ([10, 10], [10, 10], [10000]))


@pytest.mark.slow
def test_readers_wait_until_a_full_refresh_has_caught_up(orders: ProjectFolder) -> None:
    """Readers see the old version after the first batches of the new one, also when a run without the option continues
    it, and the new one when the sources have nothing left. A promotion does not wait.
    """
    rows = "{{{{ config(sink='lake', trigger='1 hour') }}}} select id, {} as amount from {{{{ source('shop', 'orders') }}}}"

    def shown() -> int:
        return int(sum(pq.read_table(orders.root / "store/rows")["amount"].to_pylist()))

    def waits() -> bool:
        return bool(json.loads((orders.root / "store/queries/rows/versions.json").read_text())["is_waiting"])

    orders.write({"models/rows.sql": rows.format("1")})
    assert orders.run().succeeded
    assert shown() == 10

    orders.write({"models/rows.sql": rows.format("2")})
    orders.run_until(has_batch, full_refresh=True, switch_when="caught-up")
    assert (shown(), waits()) == (10, True)  # the next batch would start in an hour
    assert orders.run().succeeded
    assert (shown(), waits()) == (20, False)

    orders.write({"models/rows.sql": rows.format("3"), "sources.yml": sources_of(orders, "{}")})
    orders.run_until(has_caught_up, full_refresh=True, switch_when="caught-up")  # one batch reads both files
    assert (shown(), waits()) == (30, False)

    orders.write({"models/rows.sql": rows.format("4"), "sources.yml": sources_of(orders, "{maxFilesPerTrigger: 1}")})
    orders.run_until(has_batch, full_refresh=True, switch_when="caught-up")
    assert (shown(), waits()) == (30, True)
    assert promote(request(orders), "rows").version == 4
    assert (shown(), waits()) == (20, False)
    assert roll_back(request(orders), "rows").version == 3
    assert shown() == 30


def sources_of(folder: ProjectFolder, options: str) -> str:
    """Returns sources.yml with these options of the source."""
    return re.sub(r"(?m)options: .*$", f"options: {options}", (folder.root / "sources.yml").read_text())


def has_batch(events: list[RunEvent]) -> bool:
    """Returns whether a batch has ended."""
    return any(isinstance(event, BatchProgress) for event in events)


def has_caught_up(events: list[RunEvent]) -> bool:
    """Returns whether a run has said that a version has caught up."""
    return any(isinstance(event, Notice) and event.text == "rows: has caught up" for event in events)


@pytest.mark.slow
def test_a_refused_parallel_version_can_start_over(sums: ProjectFolder) -> None:
    """A parallel version is judged like any other; with a full refresh, another one takes its place."""
    sums.run(parallel=("sums",))
    sums.write({"models/sums.sql": SUMS.format(aggregate="max(amount)")})
    with pytest.raises(FindingsError):
        sums.run(parallel=("sums",))
    assert sums.result(parallel=("sums",), full_refresh=True).output == str(sums.root / "store/sums.v3")
    assert promote(request(sums), "sums").version == 3
    assert roll_back(request(sums), "sums").version == 1


@pytest.mark.slow
def test_snapshots_have_versions(orders: ProjectFolder) -> None:
    """Complete mode replaces all rows of its own version with each batch."""
    model = "{{{{ config(sink='lake', output_mode='complete') }}}} select sum(amount{}) as total from {}"
    source = "{{ source('shop', 'orders') }}"
    orders.write({"models/sums.sql": model.format("", source)})
    orders.result()
    orders.write({"models/sums.sql": model.format(" * 1000", source)})
    orders.result(parallel=("sums",))
    assert every_total(orders) == ([20], None, [20000])

    promote(request(orders), "sums")
    assert every_total(orders) == ([20000], [20], [20000])
    orders.rows("in/orders/2.json", order_rows(2), modified=2)
    orders.result()
    assert every_total(orders) == ([30000], [20], [30000])

    roll_back(request(orders), "sums")
    orders.write({"models/sums.sql": model.format("", source)})
    orders.result()
    assert every_total(orders) == ([30], [30], [30000])
