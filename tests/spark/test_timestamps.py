"""Numbers in the timestamps of JSON, and event times ahead of the clock: corrupt, unless the source declares them."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from sqlstream.errors import Finding, FindingsError
from tests.spark.conftest import PROJECT, ProjectFolder

pytestmark = pytest.mark.slow

Rows = Callable[[Path], list[dict[str, Any]]]

COLUMNS = "id int, ts timestamp, inside struct<at: timestamp, tags: array<struct<at: timestamp>>>"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECONDS = int(NOON.timestamp())
QUARANTINE = "on_corrupt: quarantine, quarantine_sink: lake"
LINES = (
    '{"id": 1, "ts": "2026-03-01T12:00:00Z"}',
    f'{{"id": 2, "ts": {SECONDS * 1000}}}',
    f'{{"id": 3, "inside": {{"at": {SECONDS * 1000}}}}}',
    f'{{"id": 4, "inside": {{"tags": [{{"at": null}}, {{"at": {SECONDS * 1000}}}]}}}}',
    '{"id": 5, "ts": "2026-03-01 13:00:00+01:00", "inside": {"at": "2026-03-01T12:00:00.123456Z"}}',
    '{"id": 6, "ts": null}',
    '{"id": 7, "ts": "9999-12-31T23:59:59-10:00"}',
    '{"id": 8, "ts": "no time"}',
)
"""Records with a text, a number of milliseconds at each depth, no time, the latest time, and a text that is no time."""


@pytest.fixture
def folder(tmp_path: Path) -> ProjectFolder:
    """Returns a project with one model over the source `made.rows`, whose files are in `in/`."""
    made = ProjectFolder(tmp_path)
    made.write(
        {
            "project.yml": PROJECT,
            "sinks.yml": 'sinks: [{name: lake, format: parquet, path: "{{ model.name }}"}, {name: table, format: noop}]\n',
            "models/all_rows.sql": "{{ config(sink='lake') }} select * from {{ source('made', 'rows') }}",
        }
    )
    return made


def _declare(folder: ProjectFolder, keys: str, columns: str = COLUMNS) -> None:
    table = f"{{name: rows, format: json, path: in, schema: '{columns}', {keys}}}"
    folder.write({"sources.yml": f"sources: [{{name: made, tables: [{table}]}}]\n"})


def _findings(folder: ProjectFolder, *, full_refresh: bool = False) -> list[Finding]:
    """Runs all queries, and returns why some of them failed."""
    results = folder.run(full_refresh=full_refresh).results
    return [result.finding for result in results if result.finding is not None]


def _ids(rows: list[dict[str, Any]]) -> list[int]:
    return sorted(row["id"] for row in rows)


def test_a_number_outside_the_calendar_is_a_corrupt_record(folder: ProjectFolder, read_parquet: Rows) -> None:
    """Milliseconds in a timestamp, also a nested one, are corrupt: quarantined, or the query fails and names the column."""
    folder.write({"in/0.json": "\n".join(LINES)})
    _declare(folder, QUARANTINE)

    assert _findings(folder) == []

    kept = read_parquet(folder.root / "store/made__rows__corrupt")
    assert _ids(read_parquet(folder.root / "store/all_rows")) == [1, 5, 6, 7]
    assert sorted(json.loads(row["record"])["id"] for row in kept) == [2, 3, 4, 8]

    _declare(folder, "on_corrupt: fail")
    folder.write({"in/0.json": LINES[0], "in/one [1].json": LINES[1]})
    (finding,) = _findings(folder, full_refresh=True)
    assert (finding.code, "`ts`" in finding.why) == ("corrupt-record", True)
    assert str(folder.root / "in/one [1].json") in finding.message


TEXTS = {
    "2026-03-01T12:00:00Z": "2026-03-01 12:00:00",
    "2026-03-01": "2026-03-01 00:00:00",
    "2026-03-01 12:00:00 Europe/Berlin": "2026-03-01 11:00:00",
    " 2026-3-1T1:2:3.4+01:00 ": "2026-03-01 00:02:03.4",
    "2026-03-01 12:00:00GMT+02:00": "2026-03-01 10:00:00",
}
WRONG = (
    SECONDS,
    -5,
    0,
    2026,
    20260,
    1_772_366_400_123_456,
    1.5,
    '"1772366400"',
    '"x"',
    '""',
    "true",
    '{"a": 1}',
    "[1]",
)


@pytest.mark.parametrize("policy", [QUARANTINE, "on_corrupt: drop"])
def test_a_number_in_the_calendar_is_corrupt_too(folder: ProjectFolder, read_parquet: Rows, policy: str) -> None:
    """Seconds, years, and microseconds that overflow to a time in the calendar are no times without a unit. Texts are
    times as Spark reads them, with any zone.
    """
    values = [*map(json.dumps, TEXTS), *map(str, WRONG)]
    folder.write({"in/0.json": "\n".join(f'{{"id": {number}, "ts": {value}}}' for number, value in enumerate(values))})
    _declare(folder, policy, "id int, ts timestamp")

    assert _findings(folder) == []

    rows = sorted(read_parquet(folder.root / "store/all_rows"), key=itemgetter("id"))
    assert [str(row["ts"])[:21] for row in rows] == list(TEXTS.values())


def test_an_option_for_times_holds_for_texts(folder: ProjectFolder, read_parquet: Rows) -> None:
    """With a format or a time zone Spark's parser reads the texts; numbers stay corrupt."""
    values = ('"01/03/2026 12:00"', SECONDS, '"2026-03-01 12:00"')
    folder.write({"in/0.json": "\n".join(f'{{"id": {number}, "ts": {value}}}' for number, value in enumerate(values))})
    options = 'options: {timestampFormat: "dd/MM/yyyy HH:mm", timeZone: Asia/Tokyo}'
    _declare(folder, f"{QUARANTINE}, {options}", "id int, ts timestamp")

    assert _findings(folder) == []

    (row,) = read_parquet(folder.root / "store/all_rows")
    assert (row["id"], str(row["ts"])[:16]) == (0, "2026-03-01 03:00")


def test_a_declared_unit_reads_numbers_and_texts(folder: ProjectFolder, read_parquet: Rows) -> None:
    """With `timestamp_unit` a number is a time of that unit, a text stays the time that it is, and others are corrupt."""
    more = (
        '{"id": 9, "ts": 1e400}',
        f'{{"id": 10, "ts": {SECONDS * 1000}.5}}',
        f'{{"id": 11, "ts": {SECONDS * 10**9}}}',
    )
    folder.write({"in/0.json": "\n".join((*LINES, *more))})
    _declare(folder, f"timestamp_unit: milliseconds, {QUARANTINE}")

    assert _findings(folder) == []

    rows = {row["id"]: row for row in read_parquet(folder.root / "store/all_rows")}
    assert sorted(rows) == [1, 2, 3, 4, 5, 6, 7, 10]
    times = [rows[1]["ts"], rows[2]["ts"], rows[3]["inside"]["at"], rows[4]["inside"]["tags"][1]["at"], rows[5]["ts"]]
    assert [str(time)[:19] for time in times] == ["2026-03-01 12:00:00"] * 5
    assert str(rows[5]["inside"]["at"])[:26] == "2026-03-01 12:00:00.123456"
    assert str(rows[10]["ts"])[:26] == "2026-03-01 12:00:00.000500"
    assert len(read_parquet(folder.root / "store/made__rows__corrupt")) == 3


def test_an_event_time_ahead_of_the_clock_does_not_move_the_watermark(
    folder: ProjectFolder, read_parquet: Rows
) -> None:
    """With `max_event_time` a row too far ahead of the clock is quarantined before it reaches the watermark."""
    now = datetime.now(UTC)
    times = {
        1: now - timedelta(hours=3),
        2: now + timedelta(hours=3),
        3: now - timedelta(hours=2),
        4: now - timedelta(hours=1),
    }
    for number, time in times.items():
        folder.rows(f"in/{number}.json", [{"id": number, "ts": time.isoformat()}], modified=number)
    _declare(
        folder, f"max_event_time: 1 hour, {QUARANTINE}, options: {{maxFilesPerTrigger: 1}}", "id int, ts timestamp"
    )
    folder.write(
        {
            "models/all_rows.sql": "{{ config(sink='lake', trigger='available_now') }} select /*+ WATERMARK(ts, '1 minute') */ "
            "ts, count(*) as n from {{ source('made', 'rows') }} group by ts"
        }
    )

    assert _findings(folder) == []

    assert len(read_parquet(folder.root / "store/all_rows")) == 2
    assert len(read_parquet(folder.root / "store/made__rows__corrupt")) == 1


def test_a_row_near_the_limit_is_either_good_or_quarantined(folder: ProjectFolder, read_parquet: Rows) -> None:
    """Queries that run at different times find the same rows wrong, also if they read other columns of the files: the
    clock is the modification time of each file. A column `_metadata` of the records is another one.
    """
    modified = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
    limit = modified + timedelta(hours=1)
    times = {1: limit - timedelta(seconds=1), 2: limit, 3: limit + timedelta(microseconds=1), 4: limit + timedelta(2)}
    text = "".join(
        json.dumps({"id": n, "ts": time.isoformat(), "_metadata": "mine"}) + "\n" for n, time in times.items()
    )
    folder.write({"in/a [1].json": text})
    (folder.root / "in/b.json.gz").write_bytes(gzip.compress(text.replace('"id": ', '"id": 1').encode()))
    for path in (folder.root / "in").iterdir():
        os.utime(path, (modified.timestamp(),) * 2)
    count = "{{ config(sink='table', output_mode='complete') }} select count(*) as n from {{ source('made', 'rows') }}"
    folder.write({"models/counted.sql": count})
    columns = "id int, ts timestamp, _metadata string"
    _declare(folder, "max_event_time: 1 hour, on_corrupt: drop", columns)
    assert _findings(folder) == []
    _declare(folder, f"max_event_time: 1 hour, {QUARANTINE}", columns)
    assert _findings(folder) == []

    rows = read_parquet(folder.root / "store/all_rows")
    assert ({row["_metadata"] for row in rows}, _ids(rows)) == ({"mine"}, [1, 2, 11, 12])
    kept = read_parquet(folder.root / "store/made__rows__corrupt")
    assert sorted(json.loads(row["record"])["id"] for row in kept) == [3, 4, 13, 14]

    _declare(folder, "max_event_time: 1 hour, mode: batch, on_corrupt: drop", columns)
    folder.write({"models/static.sql": "{{ config(sink='lake') }} select * from {{ source('made', 'rows') }}"})
    assert folder.result("static").rows_out == 4
    _declare(folder, "max_event_time: 1 hour, mode: batch", columns)
    finding = folder.result("static").finding
    assert finding is not None
    assert (finding.code, "after the file was modified" in finding.why) == ("corrupt-record", True)


def test_state_is_judged_beside_a_limit_of_event_times(folder: ProjectFolder) -> None:
    """An edit that changes no state resumes, and one that does is refused, with `max_event_time`, too. A query whose
    ledger has no signature, because an earlier sqlstream compared with the time of the batch, resumes.
    """
    folder.rows("in/1.json", [{"id": 1, "ts": datetime.now(UTC).isoformat()}])
    model = "{{ config(sink='table', output_mode='complete') }} select AGGREGATE from {{ source('made', 'rows') }}"

    def change(aggregate: str) -> str | None:
        folder.write({"models/all_rows.sql": model.replace("AGGREGATE", aggregate)})
        try:
            assert folder.result("all_rows").finding is None
        except FindingsError as error:
            return error.findings[0].code
        return None

    for keys in ("on_corrupt: fail", "on_corrupt: drop"):
        _declare(folder, f"max_event_time: 1 hour, {keys}", "id int, ts timestamp")
        assert [change("max(ts) as t"), change("max(ts) as time")] == [None, None]
        assert change("min(ts) as time") == "state-change"
    assert change("max(ts) as time") is None

    path = folder.root / "store/queries/all_rows/v1/ledger.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "signature": None}))
    assert change("max(ts) as time") is None
    assert change("min(ts) as time") == "state-change"


def test_a_watermark_far_ahead_of_the_clock_is_an_error_of_the_run(folder: ProjectFolder) -> None:
    """A row that moves the watermark days ahead of the clock fails the query at its end, unless the model allows it."""
    time = datetime.now(UTC) + timedelta(days=4)
    folder.rows("in/1.json", [{"id": 1, "ts": time.isoformat()}])
    _declare(folder, "mode: stream", "id int, ts timestamp")
    model = (
        "{{ config(sink='lake', trigger='TRIGGER') }}COMMENT\nselect /*+ WATERMARK(ts, '1 day') */ ts, count(*) as n "
    )
    model += "from {{ source('made', 'rows') }} group by ts"
    allowed = "\n-- sqlstream: allow watermark-ahead because these are forecasts"
    texts = {"now": ("available_now", ""), "once": ("once", ""), "allowed": ("available_now", allowed)}
    folder.write(
        {
            f"models/{name}.sql": model.replace("TRIGGER", how).replace("COMMENT", text)
            for name, (how, text) in texts.items()
        }
    )
    (folder.root / "models/all_rows.sql").unlink()

    found = {result.model: result.finding.code if result.finding else None for result in folder.run().results}

    assert found == {"now": "watermark-ahead", "once": "watermark-ahead", "allowed": None}
