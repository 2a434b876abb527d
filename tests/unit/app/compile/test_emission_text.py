"""The explanation of when rows come out."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream import ProjectRequest
from sqlstream.app.compile.emission_text import emission_text
from sqlstream.app.compile.explain_model import explain_model

GROUPED = "select count(*) as n\nfrom {{ source('shop', 'orders') }}\ngroup by "
EXAMPLE = (
    "  for example, the window 12:00-12:10 is emitted when an event with the time 12:20 or later has "
    "arrived, in the next batch (times in UTC)"
)
UNITED = (
    "select count(*) as n from (select /*+ WATERMARK(at, '1 day') */ at from {{ source('shop', 'plain') }}\n"
    "union all select at from {{ source('shop', 'orders') }}) group by window(at, '1 hour')"
)


def _text(root: Path, sql: str, *, mode: str = "append", trigger: str = "1 minute", spark: str = "{}") -> list[str]:
    columns = "format: json, path: in, schema: 'id int, at timestamp'"
    files = {
        "project.yml": f"name: shop\nversion: 1.0.0\ntargets: {{local: {{master: local, storage: s, spark: {spark}}}}}\n",
        "sources.yml": "sources:\n  - name: shop\n    tables:\n"
        f"      - {{name: plain, {columns}}}\n"
        f"      - {{name: orders, {columns}, watermark: {{column: at, delay: 10 minutes}}}}\n",
        "sinks.yml": "sinks:\n  - {name: nowhere, format: noop}\n",
        "models/asked.sql": f"{{{{ config(sink='nowhere', output_mode='{mode}', trigger='{trigger}') }}}}\n{sql}\n",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found = explain_model(ProjectRequest(root, env={}), "asked")
    assert found.emission is not None
    return emission_text(found.model, found.emission, found.locate, is_foreseen=found.is_foreseen).splitlines()


def test_a_window_is_explained_completely(tmp_path: Path) -> None:
    """A window is explained with its location, an example, its watermark and the batch, in the model's own names."""
    assert _text(tmp_path, f"{GROUPED}window(at, '10 minutes')") == [
        "asked -> nowhere, append mode",
        "  noop: nothing is kept (the rows are computed and dropped)",
        "",
        "GROUP BY window(at, '10 minutes') (models/asked.sql:4:10)",
        "  a window is emitted once, in the batch after the watermark reaches its end",
        EXAMPLE,
        "",
        "watermark: the latest `at` minus 10 minutes (sources.yml:5:80)",
        "  it advances only with new events: without new events, no more rows are emitted",
        "",
        "next batch: at the next trigger (1 minute), even without new rows",
    ]


def test_a_filter_above_the_watermark_is_named(tmp_path: Path) -> None:
    """A filter above the watermark is named with its location, and what the rows that it removes do to the watermark."""
    count = "select count(*) as n from {{ source('shop', 'orders') }} where CONDITION group by window(at, '1 day')"

    plain = _text(tmp_path, count.replace("CONDITION", "id > 1"))
    timed = _text(tmp_path, count.replace("CONDITION", "at < now() and id > 1"))

    first = "do not advance it, because Spark checks them first"
    assert f"  rows that the condition at models/asked.sql:2:64 removes {first}" in plain
    assert (
        "  rows that the condition on `at` at models/asked.sql:2:64 removes advance it, because Spark checks the event "
        "time after the watermark"
    ) in timed
    assert f"  rows that the other conditions at models/asked.sql:2:64 remove {first}" in timed


def test_times_on_several_days_have_dates(tmp_path: Path) -> None:
    """Times on several days include the date, and each of several watermarks has its own event."""
    lines = _text(tmp_path, UNITED)

    assert (
        "  for example, the window from 2024-01-01 12:00 to 2024-01-01 13:00 is emitted when an event has "
        "arrived, one with the time 2024-01-02 13:00 or later for `at` minus 1 day and one with the time 2024-01-01 13:10 or "
        "later for `at` minus 10 minutes, in the next batch (times in UTC)"
    ) in lines
    assert "  the lowest watermark counts: while one of the inputs has no new events, no more rows are emitted" in lines


def test_the_highest_watermark_can_apply(tmp_path: Path) -> None:
    """If the target uses the highest watermark, one event of any input is enough."""
    lines = _text(tmp_path, UNITED, spark="{spark.sql.streaming.multipleWatermarkPolicy: max}")

    assert any("minus 1 day or one with" in line for line in lines)
    assert any("the highest watermark counts" in line for line in lines)


@pytest.mark.parametrize(
    ("trigger", "end"),
    [
        ("available_now", "in the same run, even without new rows"),
        ("once", "in the next run that finds new rows, because this trigger has one batch per run"),
    ],
)
def test_the_trigger_determines_the_next_batch(tmp_path: Path, trigger: str, end: str) -> None:
    """One line at the end says when the trigger starts the next batch."""
    assert _text(tmp_path, f"{GROUPED}at", trigger=trigger)[-1] == f"next batch: {end}"


def test_output_without_a_watermark_is_explained(tmp_path: Path) -> None:
    """Output that waits for no watermark is explained without watermarks and batches."""
    assert _text(tmp_path, f"{GROUPED}id", mode="update") == [
        "asked -> nowhere, update mode",
        "  noop: nothing is kept (the rows are computed and dropped)",
        "",
        "GROUP BY id (models/asked.sql:4:10)",
        "  each batch emits the groups that it changes, with their current values",
    ]
    assert _text(tmp_path, "select id from {{ source('shop', 'plain') }}")[3:] == [
        "the query",
        "  emits each row in the batch that reads it",
    ]


def test_settings_of_the_target_are_mentioned(tmp_path: Path) -> None:
    """If the target changes Spark in a way that may matter, the explanation says that it ignores this."""
    sql = "select id from {{ source('shop', 'plain') }}"

    assert "settings" in _text(tmp_path, sql, spark="{spark.sql.caseSensitive: 'true'}")[-1]
