"""Rows come out in the batch that `compile --explain` names, not in the one before."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from sqlstream import ProjectRequest
from sqlstream.app.compile.explain_model import explain_model
from sqlstream.compiler.emission import Emission, Example
from sqlstream.state.runs.progress import BatchProgress
from tests.spark.conftest import PROJECT, ProjectFolder

A_MOMENT = timedelta(milliseconds=1)

READ = "{{ source('in', 'NAME') }}"
HINT = "/*+ WATERMARK(ts, 'DELAY') */"
TIMED = {
    "tumbling": f"select {HINT} window.start as s, kind from {READ} group by window(ts, '10 minutes'), kind",
    "hourly": f"select {HINT} window.start as s, kind from {READ} group by window(ts, '1 hour'), kind",
    "sliding": f"select s from (select {HINT} window.start as s from {READ} "
    "group by window(ts, '10 minutes', '5 minutes', '2 minutes')) where s = timestamp'START'",
    "sessions": f"select {HINT} kind from {READ} group by session_window(ts, '5 minutes'), kind",
    "moments": f"select {HINT} ts, count(*) as n from {READ} group by ts",
    "distinct_rows": f"select distinct ts, kind from (select {HINT} ts, kind from {READ})",
    "of_the_source": "select window.start as s from {{ source('in', 'marked') }} group by window(ts, '10 minutes')",
    "chained": f"select window.start as s from (select window_time(window) as ts from (select {HINT} window from "
    f"{READ} group by window(ts, '5 minutes'))) group by window(ts, '1 hour')",
}
"""Append queries with one group per first event, which the watermark emits."""

DELAYS = {"hourly": "1 minute 30 seconds", "moments": "5 minutes", "sessions": "2 hours"}


def _sources(names: Sequence[str]) -> str:
    tables = "".join(
        f"      - {{name: {name}, format: json, path: in/{name}, schema: 'id int, ts timestamp, kind string',"
        f" options: {{maxFilesPerTrigger: 1}}{MARKS.get(name, '')}}}\n"
        for name in names
    )
    return f"sources:\n  - name: in\n    tables:\n{tables}"


MARKS = {"marked": ", watermark: {column: ts, delay: 7 minutes}"}


def _project(root: Path, models: Mapping[str, str], sources: Sequence[str]) -> ProjectFolder:
    folder = ProjectFolder(root)
    folder.write({"project.yml": PROJECT, "sinks.yml": "sinks:\n  - {name: nowhere, format: noop}\n"})
    folder.write({"sources.yml": _sources(sources)})
    folder.write({f"models/{name}.sql": text for name, text in models.items()})
    return folder


def _explained(folder: ProjectFolder, name: str) -> Emission:
    emission = explain_model(ProjectRequest(folder.root, env=dict(os.environ)), name).emission
    assert emission is not None
    return emission


def _example(folder: ProjectFolder, name: str) -> Example:
    (*_, step) = _explained(folder, name).steps
    assert step.example is not None
    return step.example


def _event(folder: ProjectFolder, source: str, number: int, moment: datetime, kind: str = "a") -> None:
    folder.rows(f"in/{source}/{number}.json", [{"id": 1, "ts": moment.isoformat(), "kind": kind}], modified=number)


def _rows_out(folder: ProjectFolder, *, available_now: bool = True) -> dict[str, list[int | None]]:
    """Returns the number of rows that came out of each batch of each model."""
    folder.run(available_now=available_now)
    found: dict[str, list[int | None]] = defaultdict(list)
    for event in folder.events:
        if isinstance(event, BatchProgress):
            found[event.model].append(event.rows_out)
    return found


def _timed_model(name: str, text: str) -> str:
    start = "2024-01-01 11:57:00"
    body = text.replace("NAME", name).replace("DELAY", DELAYS.get(name, "10 minutes")).replace("START", start)
    return f"{{{{ config(sink='nowhere', output_mode='append', trigger='available_now') }}}}\n{body}"


@pytest.mark.slow
def test_a_group_comes_out_after_the_named_event(tmp_path: Path) -> None:
    """A group comes out after the named event, not after one a millisecond earlier: windows, sessions, chains."""
    models = {name: _timed_model(name, text) for name, text in TIMED.items()}
    folder = _project(tmp_path, models, [*(name for name in TIMED if name != "of_the_source"), "marked"])
    for name in TIMED:
        example = _example(folder, name)
        source = "marked" if name == "of_the_source" else name
        for number, moment in enumerate((example.start, example.events[0] - A_MOMENT, example.events[0])):
            _event(folder, source, number, moment)

    found = _rows_out(folder)

    # the last batch reads nothing: Spark starts it to emit the rows that the watermark has closed
    assert found == {name: [0, 0, 0, 1] for name in TIMED}


@pytest.mark.slow
def test_the_slowest_input_holds_back_the_others(tmp_path: Path) -> None:
    """With several inputs, the window waits until every watermark has reached the event that is named."""
    union = (
        "{{ config(sink='nowhere', output_mode='append', trigger='available_now') }}\n"
        "select window.start as s from (select /*+ WATERMARK(ts, '10 minutes') */ ts from {{ source('in', 'fast') }} "
        "union all select /*+ WATERMARK(ts, '1 hour') */ ts from {{ source('in', 'slow') }}) group by window(ts, '10 minutes')"
    )
    folder = _project(tmp_path, {"both": union}, ["fast", "slow"])
    example = _example(folder, "both")
    delays = [delay.span for delay in _explained(folder, "both").delays]
    assert delays == [timedelta(minutes=10), timedelta(hours=1)]
    fast, slow = example.events
    for number, moments in enumerate(((example.start, example.start), (fast, slow - A_MOMENT), (fast, slow))):
        _event(folder, "fast", number, moments[0])
        _event(folder, "slow", number, moments[1])

    assert _rows_out(folder) == {"both": [0, 0, 0, 1]}


@pytest.mark.slow
def test_spark_moves_the_watermark_by_rows_that_a_condition_on_the_time_removes(tmp_path: Path) -> None:
    """A removed row moves the watermark where `--explain` says so, for each form of a condition; in front it does not."""
    behind = "select window.start as s from (select HINT *, year(ts) as y from READ) where {} group by window(ts, '10 minutes')"
    queries = {
        "by_kind": behind.format("kind = 'a'"),
        "by_time": behind.format("ts < timestamp'2024-01-01 12:15:00'"),
        "by_either": behind.format("kind = 'a' or ts < timestamp'2024-01-01 12:15:00'"),
        "by_both": behind.format("kind = 'a' and ts < timestamp'2030-01-01'"),
        "by_function": behind.format("y * 100 + extract(minute from ts) < 202420 and id > 0"),
        "by_window": "select HINT window.start as s from READ group by window(ts, '10 minutes') "
        "having window.end < timestamp'2024-01-01 12:20:00'",
        "by_key": "select HINT window.start as s, kind from READ group by window(ts, '10 minutes'), kind having kind = 'a'",
        "in_front": "select HINT window.start as s from (select * from READ where ts < timestamp'2024-01-01 12:15:00') "
        "group by window(ts, '10 minutes')",
    }
    advances = {"by_time", "by_either", "by_function", "by_window"}
    models = {
        name: _timed_model(name, sql.replace("HINT", HINT).replace("READ", READ)) for name, sql in queries.items()
    }
    folder = _project(tmp_path, models, list(models))
    for name in models:
        says = {item.column is not None for item in _explained(folder, name).filters}
        assert (True in says) == (name in advances | {"by_both"})
        example = _example(folder, name)
        for number, (moment, kind) in enumerate(((example.start, "a"), (example.events[0], "b"), (example.start, "a"))):
            _event(folder, name, number, moment, kind)

    # `b` came at 12:20: the window of 12:00 comes out only where that row was seen, and then the last row is late
    found = _rows_out(folder)
    assert found == {name: [0, 0, 1] if name in advances else [0, 0, 0] for name in models}


@pytest.mark.slow
def test_a_trigger_of_one_batch_waits_for_a_run_with_new_rows(tmp_path: Path) -> None:
    """A `once` run without new rows has no batch, so closed groups wait for a run that has some."""
    text = _timed_model("once", TIMED["tumbling"]).replace("'available_now'", "'once'")
    folder = _project(tmp_path, {"once": text}, ["once"])
    example = _example(folder, "once")
    _event(folder, "once", 0, example.start)
    _event(folder, "once", 1, example.events[0])

    found = [_rows_out(folder, available_now=False)]
    found.append(_rows_out(folder, available_now=False))
    _event(folder, "once", 2, example.events[0])
    found.append(_rows_out(folder, available_now=False))

    assert found == [{"once": [0]}, {}, {"once": [1]}]


@pytest.mark.smoke
def test_output_without_a_watermark_comes_out_at_once(tmp_path: Path) -> None:
    """Stateless rows, update-mode groups, complete-mode groups and joined pairs come out at once."""

    def model(mode: str, text: str) -> str:
        return f"{{{{ config(sink='nowhere', output_mode='{mode}', trigger='available_now') }}}}\n{text}"

    left, right = "{{ source('in', 'one') }}", "{{ source('in', 'two') }}"
    models = {
        "plain": model("append", f"select id from {left}"),
        "changed": model("update", f"select ts, count(*) as n from {left} group by ts"),
        "whole": model("complete", f"select ts, count(*) as n from {left} group by ts"),
        "pairs": model("append", f"select a.id from {left} a join {right} b on a.ts = b.ts"),
    }
    folder = _project(tmp_path, models, ["one", "two"])
    releases = {name: [step.release.value for step in _explained(folder, name).steps] for name in models}
    assert releases == {"plain": ["row"], "changed": ["change"], "whole": ["whole"], "pairs": ["match"]}
    noon = datetime.fromisoformat("2024-01-01T12:00:00+00:00")
    for number, source, minutes in ((0, "one", 0), (1, "one", 1), (0, "two", 9), (1, "two", 0)):
        _event(folder, source, number, noon + timedelta(minutes=minutes))

    assert _rows_out(folder) == {"plain": [1, 1], "changed": [1, 1], "whole": [1, 2], "pairs": [0, 1]}
