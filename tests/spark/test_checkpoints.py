"""A run never mixes state silently: what it does with a checkpoint that a different query made."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqlstream import ProjectRequest, RunRequest, run_models
from sqlstream.app.plan.plan import plan_project
from sqlstream.app.request import PlanRequest
from sqlstream.errors import FindingsError
from sqlstream.state.runs.events import Notice, QueryStarted, RunEvent, Status, TableShown
from sqlstream.state.spark_settings import SOURCE_EVOLUTION
from sqlstream.state.verdicts import Verdict
from tests.spark.conftest import ProjectFolder, order_rows

Rows = Callable[[Path], list[dict[str, Any]]]

SUMS = """{{{{ config(sink='lake') }}}}
select /*+ WATERMARK(ts, '10 minutes') */ window.start as hour, {aggregate} as total
from {{{{ source('shop', 'orders') }}}}
group by window(ts, '1 hour')
"""

DAYS = """{{ config(sink='nowhere', output_mode='update') }}
select date(ts) as day, count(*) as n from {{ source('shop', 'orders') }} group by date(ts)
"""


@pytest.fixture
def sums(orders: ProjectFolder) -> ProjectFolder:
    """A stateful query that has run once: its checkpoint holds sums of amounts."""
    orders.write({"models/sums.sql": SUMS.format(aggregate="sum(amount)")})
    orders.result()
    orders.rows("in/orders/2.json", order_rows(2), modified=2)
    return orders


def ledger(folder: ProjectFolder, query: str, version: int) -> dict[str, Any]:
    """Returns a query's ledger."""
    text = (folder.root / f"store/queries/{query}/v{version}/ledger.json").read_text()
    return dict(json.loads(text))


def refused(folder: ProjectFolder, **wishes: Any) -> tuple[str, str]:
    """Returns the code and location of the only finding that refuses a run."""
    with pytest.raises(FindingsError) as caught:
        folder.run(**wishes)
    (finding,) = caught.value.findings
    return finding.code, str(finding.location)


@pytest.mark.slow
def test_a_changed_stateful_query_is_refused(sums: ProjectFolder) -> None:
    """A changed stateful query is refused, although Spark would accept it on the old state; nothing is touched."""
    before = sums.committed("sums")
    sums.write({"models/sums.sql": SUMS.format(aggregate="sum(amount * 1000)")})

    assert refused(sums) == ("state-change", "models/sums.sql:2:65")
    assert sums.committed("sums") == before


@pytest.mark.slow
def test_formatting_changes_resume(sums: ProjectFolder) -> None:
    """Changes to comments, white space or the case of keywords do not affect the state."""
    cosmetic = SUMS.format(aggregate="SUM( amount )  -- the sum\n").replace("select", "SELECT")
    sums.write({"models/sums.sql": cosmetic})

    assert sums.result().rows_in == 5


@pytest.mark.slow
def test_an_accepted_change_is_recorded_in_the_ledger(sums: ProjectFolder) -> None:
    """`--accept-state-change` keeps the old state; after the first committed batch the ledger has the new SQL."""
    sums.write({"models/sums.sql": SUMS.format(aggregate="sum(amount * 1000)")})

    assert sums.result(accept_state_change=("sums",)).rows_in == 5

    written = ledger(sums, "sums", 1)
    assert "1000" in written["identity"]["models"]["sums"]
    assert written["accepted"][0]["changes"] == ["the SQL of `sums` changed"]
    assert sums.result().rows_in == 0


@pytest.mark.slow
def test_a_full_refresh_keeps_the_old_version(sums: ProjectFolder, read_parquet: Rows) -> None:
    """`--full-refresh` uses a new checkpoint and a new output folder; the old ones stay the same, byte for byte."""
    old = sorted(path.read_bytes() for path in (sums.root / "store/sums").rglob("*.parquet"))
    sums.write({"models/sums.sql": SUMS.format(aggregate="sum(amount * 1000)")})

    result = sums.result(full_refresh=True)

    assert result.output == str(sums.root / "store/sums")
    for name in ("sums", "sums.v2"):
        assert [row["total"] for row in read_parquet(sums.root / "store" / name)] == [10000]
    assert sorted(path.read_bytes() for path in (sums.root / "store/sums.v1").rglob("*.parquet")) == old
    assert ledger(sums, "sums", 2)["reason"] == "refresh"
    assert sums.result().output == str(sums.root / "store/sums")


@pytest.mark.slow
def test_a_changed_stateless_query_resumes(orders: ProjectFolder, read_parquet: Rows) -> None:
    """A stateless query may change its filter; the rows written before stay."""
    model = "{{ config(sink='lake') }} select id from {{ source('shop', 'orders') }} where amount > "
    orders.write({"models/big.sql": model + "3"})
    orders.result()
    orders.rows("in/orders/2.json", order_rows(2), modified=2)
    orders.write({"models/big.sql": model + "2"})

    orders.result()

    assert sorted(row["id"] for row in read_parquet(orders.root / "store/big")) == [4, 14, 23, 24]


@pytest.mark.slow
def test_a_change_in_an_upstream_view_counts(orders: ProjectFolder) -> None:
    """A query's identity includes the SQL of the views that it reads."""
    orders.write(
        {
            "models/positive.sql": "select * from {{ source('shop', 'orders') }} where amount > 0",
            "models/sums.sql": SUMS.format(aggregate="sum(amount)").replace(
                "source('shop', 'orders')", "ref('positive')"
            ),
        }
    )
    orders.result()
    orders.write({"models/positive.sql": "select * from {{ source('shop', 'orders') }} where amount > 1"})

    assert refused(orders) == ("state-change", "models/positive.sql:1:52")


@pytest.mark.slow
def test_queries_over_a_changed_view_share_one_finding(orders: ProjectFolder) -> None:
    """All queries with state over a changed view share one finding, which is at the view and names them."""
    sums = SUMS.replace("source('shop', 'orders')", "ref('positive')")
    view = "select * from {{ source('shop', 'orders') }} where amount > "
    orders.write(
        {
            "models/positive.sql": f"{view}0",
            "models/sums.sql": sums.format(aggregate="sum(amount)"),
            "models/counts.sql": sums.format(aggregate="count(*)"),
        }
    )
    orders.run()
    orders.write({"models/positive.sql": f"{view}1"})

    with pytest.raises(FindingsError) as caught:
        orders.run()

    (finding,) = caught.value.findings
    assert (finding.code, str(finding.location)) == ("state-change", "models/positive.sql:1:52")
    assert all(name in finding.message for name in ("`positive`", "`sums`", "`counts`"))
    assert "`amount > 0` is now `amount > 1`" in finding.why
    assert "--select counts sums" in finding.fix


@pytest.mark.slow
def test_a_changed_variable_is_named(orders: ProjectFolder) -> None:
    """When only a variable has changed, the finding names it with its old and new value."""
    orders.write({"models/sums.sql": SUMS.format(aggregate="sum(amount * {{ var('factor') }})")})
    orders.run(variables={"factor": 3})

    with pytest.raises(FindingsError) as caught:
        orders.run(variables={"factor": 5})

    (finding,) = caught.value.findings
    assert finding.code == "state-change"
    assert "the variable `factor` changed from 3 to 5" in finding.message


@pytest.mark.slow
def test_a_change_that_spark_refuses_does_not_change_the_ledger(sums: ProjectFolder) -> None:
    """An accepted change takes effect with its first committed batch; until then the old query resumes."""
    wrong = SUMS.format(aggregate="sum(amount)").replace("'1 hour')", "'1 hour'), kind")
    sums.write({"models/sums.sql": wrong})

    failed = sums.result(accept_state_change=("sums",))
    assert (failed.status, failed.finding and failed.finding.code) == (Status.ERROR, "state-change")
    assert failed.finding is not None
    assert "window struct, but those of the query are now window struct, kind string" in failed.finding.why

    sums.write({"models/sums.sql": SUMS.format(aggregate="sum(amount)")})
    assert sums.result().rows_in == 5
    assert ledger(sums, "sums", 1)["pending"] is None


@pytest.mark.slow
def test_an_accepted_change_without_a_batch_is_announced(sums: ProjectFolder) -> None:
    """If an accepted change had no batch, the run warns that the next run refuses the change again."""
    sums.result()  # reads everything
    sums.write({"models/sums.sql": SUMS.format(aggregate="sum(amount * 1000)")})

    assert sums.result(accept_state_change=("sums",)).batches == 0

    notices = [event.text for event in sums.events if isinstance(event, Notice)]
    assert "not in effect yet" in notices[-1]
    assert "`--accept-state-change sums` again" in notices[-1]
    assert refused(sums)[0] == "state-change"


@pytest.mark.slow
def test_an_accepted_change_survives_a_kill_after_its_commit(sums: ProjectFolder) -> None:
    """A run that is killed between the commit and the ledger still applies the change: the next run detects it."""
    path = sums.root / "store/queries/sums/v1/ledger.json"
    sums.write({"models/sums.sql": SUMS.format(aggregate="sum(id)")})
    written: list[str] = []

    def notify(event: RunEvent) -> None:
        if isinstance(event, QueryStarted):
            written.append(path.read_text())

    request = RunRequest(ProjectRequest(sums.root), available_now=True, accept_state_change=("sums",))
    run_models(request, notify)
    path.write_text(written[0])  # as before the first commit

    assert "sum(id)" in json.loads(written[0])["pending"]["ledger"]["identity"]["models"]["sums"]
    assert "sum(amount)" in json.loads(written[0])["identity"]["models"]["sums"]
    assert sums.result().status is Status.SUCCESS
    sums.write({"models/sums.sql": SUMS.format(aggregate="sum(amount)")})
    assert refused(sums)[0] == "state-change"


@pytest.mark.slow
@pytest.mark.parametrize("full_refresh", [False, True])
def test_a_first_run_without_a_commit_starts_over(
    orders: ProjectFolder, read_parquet: Rows, *, full_refresh: bool
) -> None:
    """After a first run without a commit, a corrected model needs no flag: the failed checkpoint is archived."""
    orders.write({"models/sums.sql": SUMS.format(aggregate="sum(cast(kind as int))")})
    assert orders.result().status is Status.ERROR
    left = "part-00000-1b8f4fb2-f5bf-457e-a0d4-62650feb4d1f-c000.snappy.parquet"
    orders.write({f"store/sums/{left}": "as a task of the batch wrote it", "store/sums/notes.txt": "not Spark's"})
    orders.write({"models/sums.sql": SUMS.format(aggregate="sum(amount)")})
    orders.rows("in/orders/2.json", order_rows(2), modified=2)

    result = orders.result(full_refresh=full_refresh)

    assert (result.rows_in, result.output) == (15, str(orders.root / "store/sums"))
    assert [row["total"] for row in read_parquet(orders.root / "store/sums")] == [10]
    (archived,) = (orders.root / "store/queries/sums/v1/archive").iterdir()
    assert {path.name for path in archived.iterdir()} == {"checkpoint", "ledger.json"}
    assert (orders.root / "store/_archive/sums" / archived.name / left).exists()
    assert (orders.root / "store/sums/notes.txt").exists()
    assert orders.result().rows_in == 0


@pytest.mark.slow
def test_a_changed_type_of_a_stateless_query_is_refused(orders: ProjectFolder, read_parquet: Rows) -> None:
    """A changed or renamed column is refused and the output stays; a new column is allowed and announced once."""
    model = "{{{{ config(sink='lake') }}}}\nselect id, {} from {{{{ source('shop', 'orders') }}}}"
    orders.write({"models/all.sql": model.format("amount")})
    orders.result()
    orders.rows("in/orders/2.json", order_rows(2), modified=2)

    for changed in ("cast(amount as string) as amount", "amount as total"):
        orders.write({"models/all.sql": model.format(changed)})
        with pytest.raises(FindingsError) as caught:
            orders.run(accept_state_change=("all",))
        (finding,) = caught.value.findings
        assert (finding.code, str(finding.location)) == (
            "output-columns",
            f"models/all.sql:2:{13 + changed.rindex(' ')}",
        )

    orders.write({"models/all.sql": model.format("amount, kind")})
    orders.result()
    notices = [event.text for event in orders.events if isinstance(event, Notice)]
    assert "column `kind` is new" in notices[-1]
    assert len(read_parquet(orders.root / "store/all")) == 15


def test_changed_partitions_are_refused(orders: ProjectFolder) -> None:
    """Changed partition columns are refused, because readers would miss the rows in the other folders."""
    model = "{{{{ config(sink='lake'{}) }}}} select id, kind from {{{{ source('shop', 'orders') }}}}"
    orders.write({"models/all.sql": model.format("")})
    orders.result()
    orders.write({"models/all.sql": model.format(", partition_by=['kind']")})

    with pytest.raises(FindingsError) as caught:
        orders.run()

    assert [finding.code for finding in caught.value.findings] == ["output-columns"]


@pytest.mark.slow
def test_other_options_of_text_files_are_said(orders: ProjectFolder) -> None:
    """The query resumes and says it, without Spark too. A stored model is refused, because its readers would misread
    the earlier files, until the options are as before.
    """
    sink = "sinks: [{{name: text, format: csv, path: '{{{{ model.name }}}}', options: {}}}]\n"
    model = "{{{{ config(sink='text'{}) }}}} select id, amount from {{{{ source('shop', 'orders') }}}}"
    orders.write({"sinks.yml": sink.format("{header: true}"), "models/all.sql": model.format("")})
    orders.write({"models/kept.sql": model.format(", materialized='stored'")})
    assert orders.run().succeeded
    orders.write({"sinks.yml": sink.format("{header: true, sep: ';', compression: gzip}")})

    planned = plan_project(PlanRequest(ProjectRequest(orders.root, env=os.environ))).queries
    assert [query.verdict for query in planned] == [Verdict.RESUME, Verdict.REBUILD]
    assert "sep ','" in planned[0].columns[0]
    assert refused(orders) == ("output-columns", "models/kept.sql:1:1")
    orders.rows("in/orders/2.json", order_rows(2), modified=2)
    assert orders.run("all").succeeded
    notices = [event.text for event in orders.events if isinstance(event, Notice) and "sep ','" in event.text]
    assert len(notices) == 1
    assert orders.run("all").succeeded
    assert not [event for event in orders.events if isinstance(event, Notice) and "sep ','" in event.text]


def test_an_output_of_another_checkpoint_is_refused(orders: ProjectFolder) -> None:
    """An output of another checkpoint is refused: Spark would skip the batches in its log and lose their rows."""
    orders.write({"models/all.sql": "{{ config(sink='lake') }} select id from {{ source('shop', 'orders') }}"})
    orders.result()
    (orders.root / "store/queries").rename(orders.root / "elsewhere")

    assert refused(orders) == ("output-not-empty", "models/all.sql:1:1")


@pytest.mark.slow
def test_an_unreadable_ledger_is_refused(sums: ProjectFolder) -> None:
    """A torn or missing ledger refuses the run, because nobody can tell what the checkpoint contains."""
    path = sums.root / "store/queries/sums/v1/ledger.json"
    text = path.read_text()
    path.write_text(text[: len(text) // 2])
    assert refused(sums) == ("ledger-unreadable", "models/sums.sql:1:1")
    path.unlink()
    assert refused(sums) == ("ledger-unreadable", "models/sums.sql:1:1")


@pytest.mark.slow
def test_a_failed_first_start_allows_changes(orders: ProjectFolder) -> None:
    """A ledger without a batch does not bind the query: after a correction of the SQL it simply starts."""
    orders.write({"models/sums.sql": SUMS.format(aggregate="sum(amount)"), "store/sums": "a file in the way"})
    orders.run()
    (orders.root / "store/sums").unlink()
    orders.write({"models/sums.sql": SUMS.format(aggregate="max(amount)")})

    assert orders.result().rows_in == 10


@pytest.mark.slow
def test_frozen_settings_come_from_the_checkpoint(sums: ProjectFolder) -> None:
    """The target's number of shuffle partitions does not change a query that already has state."""
    project = (
        (sums.root / "project.yml")
        .read_text()
        .replace("storage: store", "storage: store, spark: {spark.sql.shuffle.partitions: 7}")
    )
    sums.write({"project.yml": project})

    sums.result()

    assert ledger(sums, "sums", 1)["identity"]["settings"]["spark.sql.shuffle.partitions"] == "2"


@pytest.mark.slow
def test_a_changed_time_zone_is_refused_where_it_matters(sums: ProjectFolder) -> None:
    """A changed time zone is refused if a key is a date, which would mean different days; windows are the same."""
    sums.write({"models/days.sql": DAYS})
    sums.run("days")
    project = (
        (sums.root / "project.yml")
        .read_text()
        .replace("storage: store", "storage: store, spark: {spark.sql.session.timeZone: Europe/Berlin}")
    )
    sums.write({"project.yml": project})

    with pytest.raises(FindingsError) as caught:
        sums.run("days")

    assert [(finding.code, str(finding.location)) for finding in caught.value.findings] == [
        ("state-change", "models/days.sql:1:1")
    ]


@pytest.mark.smoke
def test_a_memory_query_starts_over_on_each_run(orders: ProjectFolder) -> None:
    """A memory query reads all files again on each run, because Spark cannot restart it; each run says so once."""
    orders.write({"models/shown.sql": "{{ config(sink='table') }} select id from {{ source('shop', 'orders') }}"})

    for _ in range(2):
        assert orders.result().rows_out == 10
        notices = [event.text for event in orders.events if isinstance(event, Notice)]
        assert len(notices) == 1
        assert "new checkpoint" in notices[0]
    (shown,) = [event for event in orders.events if isinstance(event, TableShown)]
    assert shown.count == 10


@pytest.mark.slow
def test_old_checkpoints_of_a_memory_query_are_removed(orders: ProjectFolder) -> None:
    """Each run removes a memory query's old checkpoints, but keeps what the query made with another sink."""
    model = "{{{{ config(sink='{}') }}}} select id from {{{{ source('shop', 'orders') }}}}"
    versions = orders.root / "store/queries/shown"
    orders.write({"models/shown.sql": model.format("lake")})
    orders.result()
    orders.write({"models/shown.sql": model.format("table")})

    for newest in ("v2", "v3", "v4"):
        orders.result()
        assert sorted(path.name for path in versions.iterdir() if path.is_dir()) == ["v1", newest]


@pytest.mark.slow
def test_except_keeps_state(orders: ProjectFolder) -> None:
    """A change to EXCEPT is refused like that of any other aggregation, because Spark plans it as one."""
    model = "{{{{ config(sink='nowhere', output_mode='update') }}}} select {} from {{{{ source('shop', 'orders') }}}} except select 'b' from range(1)"
    orders.write({"models/kinds.sql": model.format("kind")})
    orders.result()
    orders.write({"models/kinds.sql": model.format("upper(kind)")})

    assert refused(orders) == ("state-change", "models/kinds.sql:1:59")


def test_a_renamed_query_resumes(orders: ProjectFolder, read_parquet: Rows) -> None:
    """`previous_name` keeps the checkpoint, and the output whose path contains the model's old name."""
    model = "{{{{ config(sink='lake'{}) }}}} select id from {{{{ source('shop', 'orders') }}}}"
    orders.write({"models/before.sql": model.format("")})
    orders.result()
    (orders.root / "models/before.sql").unlink()
    orders.write({"models/after.sql": model.format(", previous_name='before'")})
    orders.rows("in/orders/2.json", order_rows(2), modified=2)

    result = orders.result()

    assert (result.model, result.rows_in) == ("after", 5)
    assert len(read_parquet(orders.root / "store/before")) == 15


@pytest.mark.slow
def test_a_changed_stateless_query_is_announced(orders: ProjectFolder) -> None:
    """When a stateless query has changed, the run says so once."""
    model = "{{ config(sink='nowhere') }} select id from {{ source('shop', 'orders') }}"
    orders.write({"models/all.sql": model})
    orders.result()
    orders.write({"models/all.sql": f"{model} where id > 1"})
    announced = []
    for number in (2, 3):
        orders.rows(f"in/orders/{number}.json", order_rows(number), modified=number)
        orders.result()
        announced.append([event.text for event in orders.events if isinstance(event, Notice)])

    assert [len(texts) for texts in announced] == [1, 0]
    assert "the SQL of `all` changed" in announced[0][0]


@pytest.mark.slow
def test_a_fresh_checkpoint_has_current_settings(orders: ProjectFolder) -> None:
    """A fresh checkpoint ignores the frozen settings of an older version of a query that Spark cannot restart."""
    orders.write({"models/shown.sql": "{{ config(sink='table') }} select id from {{ source('shop', 'orders') }}"})
    orders.result()
    project = orders.root / "project.yml"
    project.write_text(project.read_text().replace("store}", "store, spark: {spark.sql.shuffle.partitions: 7}}"))

    orders.result()

    settings = ledger(orders, "shown", 2)["identity"]["settings"]
    assert settings["spark.sql.shuffle.partitions"] == "7"


@pytest.mark.parametrize("storage", ["nofs://bucket/x", "s3a://bucket/x", "/dev/null/x"])
def test_unreachable_storage_is_a_finding(orders: ProjectFolder, storage: str) -> None:
    """An unknown file system scheme, a missing package and a file in place of a folder each give a finding."""
    orders.write(
        {
            "models/all.sql": "{{ config(sink='nowhere') }} select id from {{ source('shop', 'orders') }}",
            "project.yml": f"name: shop\ntargets:\n  local: {{storage: '{storage}'}}\n",
        }
    )

    assert refused(orders) == ("storage-unusable", "project.yml:3:3")


@pytest.mark.slow
@pytest.mark.parametrize("prefix", ["", "file:", "file://"])
def test_storage_can_have_any_local_path(orders: ProjectFolder, prefix: str) -> None:
    """Spaces, non-ASCII letters and `%20` are literal in a storage path and in a URI; both lead to the same folder."""
    storage = orders.root / "ein Ordner é%20x"
    orders.write(
        {
            "models/all.sql": "{{ config(sink='lake') }} select id from {{ source('shop', 'orders') }}",
            "project.yml": f"name: shop\ntargets: {{local: {{storage: '{prefix}{storage}'}}}}\n",
        }
    )

    assert [orders.result().rows_in, orders.result().rows_in] == [10, 0]
    assert {path.name for path in storage.iterdir()} >= {"all", "queries"}
    assert {path.name for path in (storage / "queries/all/v1").iterdir()} == {"checkpoint", "ledger.json"}


@pytest.mark.smoke
def test_an_older_spark_refuses_named_sources(orders: ProjectFolder) -> None:
    """An older Spark refuses a checkpoint from Spark 4.3, because it would match its sources by order."""
    orders.write({"models/all.sql": "{{ config(sink='nowhere') }} select id from {{ source('shop', 'orders') }}"})
    orders.result()
    written = ledger(orders, "all", 1)
    can_name = written["identity"]["settings"][SOURCE_EVOLUTION] == "true"
    written["identity"]["settings"][SOURCE_EVOLUTION] = "true"
    orders.write({"store/queries/all/v1/ledger.json": json.dumps(written)})

    if can_name:
        assert orders.result().rows_in == 0
    else:
        assert refused(orders) == ("unsupported-version", "models/all.sql:1:1")
