"""`late_rows: quarantine`: each row behind the watermark is in the quarantine sink once, and each other row counts."""

from __future__ import annotations

import json
import os
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import PROJECT, ProjectFolder

SOURCE = (
    "sources: [{name: shop, tables: [{name: orders, format: json, path: in/orders, options: {maxFilesPerTrigger: 1}, "
    "schema: 'id int, ts timestamp', watermark: {column: ts, delay: 30 minutes}}]}]\n"
)
SINKS = """sinks:
  - {name: lake, format: parquet, path: '{{ model.name }}'}
  - {name: files, format: json, path: 'late/{{ model.name }}'}
  - {name: tables, format: sqlite, path: late.sqlite}
  - {name: notes, format: python, function: 'notes:note'}
"""
NOTES = """import json, os
def note(rows, batch):
    if os.path.exists('broken'):
        raise ValueError('the late rows are broken')
    with open('notes.txt', 'a') as file:
        file.writelines(f'{line}\\n' for line in rows.toJSON().collect())
"""
NO_EMPTY_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled: 'false'"
ORDERS = "{{ source('shop', 'orders') }}"
QUERIES = {
    "hours": f"select window.start as at, count(*) as n from {ORDERS} group by window(ts, '1 hour')",
    "half_hours": f"select window.start as at, count(*) as n from {ORDERS} group by window(ts, '1 hour', '30 minutes')",
    "visits": f"select session_window.start as at, count(*) as n from {ORDERS} "
    "group by session_window(ts, '5 minutes'), id > 0",
    "times": f"select distinct ts, id from {ORDERS}",
    "once": f"select ts as at, 1 as n, id from {ORDERS}",
}
BATCHES: list[list[tuple[int, str | None]]] = [
    [(1, "10:00"), (2, "12:00")],
    [(3, "10:05"), (4, "12:10")],
    [(5, "10:05"), (6, "11:05"), (7, None), (8, "11:55")],
    [(9, "15:00"), (10, "09:00")],
]
LATE = {"hours": [5, 10], "half_hours": [5, 10], "visits": [5, 6, 10], "times": [5, 6, 10], "once": [5, 6, 10]}
"""The late rows of each query: the third batch has the watermark 11:30, and the fourth 11:40."""


@pytest.fixture
def shop(folder: ProjectFolder, monkeypatch: pytest.MonkeyPatch) -> ProjectFolder:
    """A project with four files of orders, each a batch."""
    monkeypatch.chdir(folder.root)
    folder.write({"sources.yml": SOURCE, "sinks.yml": SINKS, "python/notes.py": NOTES})
    folder.batches("in/orders", [[order(*row) for row in batch] for batch in BATCHES])
    return folder


def order(id_: int, time: str | None) -> dict[str, Any]:
    """Returns an order at a time of day."""
    return {"id": id_, "ts": time and f"2026-01-01T{time}:00Z"}


def model(name: str, sink: str, more: str = "") -> str:
    """Returns a query that keeps its late rows in `sink`."""
    deduplicate = ", deduplicate=['id']" if name == "once" else ""
    config = f"sink='lake', quarantine_sink='{sink}', late_rows='quarantine'{deduplicate}{more}"
    return f"{{{{ config({config}) }}}}\n{QUERIES[name]}"


def late_rows(folder: ProjectFolder, name: str) -> list[dict[str, Any]]:
    """Returns the late rows of a query in files, by their ids."""
    files = (folder.root / f"store/late/{name}__late").rglob("*.json")
    return sorted((json.loads(line) for file in files for line in file.open()), key=lambda row: row["id"])


def shown(folder: ProjectFolder, *options: str) -> dict[str, Any]:
    """Returns what `quarantine show --late` prints about `hours` as JSON."""
    done = folder.invoke("quarantine", "show", "hours", "--late", "--output", "json", *options)
    assert done.code == 0, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


@pytest.mark.smoke
def test_rows_behind_the_watermark_are_kept(shop: ProjectFolder) -> None:
    """Late rows of windows, sessions, plain times and deduplications are kept as they were, with the reason."""
    shop.write({f"models/{name}.sql": model(name, "files") for name in QUERIES})
    done = shop.run()

    assert done.succeeded
    for name, ids in LATE.items():
        assert [row["id"] for row in late_rows(shop, name)] == ids, name
    hour, time = late_rows(shop, "hours")[0], late_rows(shop, "times")[0]
    assert hour["_errors"] == [
        {
            "name": "late_rows",
            "message": "its window ends at 2026-01-01 11:00:00, and the watermark was already at 2026-01-01 11:30:00",
            "columns": ["ts"],
        }
    ]
    assert time["_errors"][0]["message"].startswith("`ts` is 2026-01-01 10:05:00, and the watermark")
    assert (hour["ts"][:16], hour["_query"]) == ("2026-01-01T10:05", "hours")


@pytest.mark.slow
@pytest.mark.parametrize("sink", ["files", "tables"])
def test_a_repeated_batch_has_its_late_rows_once(shop: ProjectFolder, sink: str) -> None:
    """Spark runs the last batch again if it is not committed: its late rows are there once. `quarantine show --late`
    shows those of committed batches.
    """
    shop.write({"models/hours.sql": model("hours", sink)})
    shop.write({"project.yml": PROJECT.replace("storage: store", f"storage: store, spark: {{{NO_EMPTY_BATCHES}}}")})
    assert shop.result().batches == 4
    (shop.root / "store/queries/hours/v1/checkpoint/commits/3").unlink()
    assert [row["id"] for row in shown(shop)["rows"]] == LATE["hours"][:1]
    assert shop.result().batches == 1
    assert [row["id"] for row in shown(shop)["rows"]] == LATE["hours"]
    found = shown(shop, "--where", "ts < timestamp '2026-01-01T10:00:00Z'")
    assert (found["late"], found["quarantined_rows"], found["rows"][0]["id"]) == (True, 1, 10)
    text = shop.invoke("quarantine", "show", "hours", "--late").out
    assert text.startswith("`hours`, version 1: 2 late rows\n\nhours__late, 2 rows\n")
    assert "its window ends at 2026-01-01 11:00:00, and the watermark was already" in text
    without = shop.invoke("quarantine", "show", "hours")
    assert (without.code, "`quarantine show hours --late` shows them" in without.err) == (2, True)
    if sink == "files":
        assert [row["id"] for row in late_rows(shop, "hours")] == LATE["hours"]
        return
    with sqlite3.connect(shop.root / "store/late.sqlite") as connection:
        assert [id_ for (id_,) in connection.execute("select id from hours__late order by id")] == LATE["hours"]


@pytest.mark.slow
def test_late_rows_that_cannot_be_written_are_not_lost(
    shop: ProjectFolder, read_parquet: Callable[[Path], list[dict[str, Any]]]
) -> None:
    """A batch whose late rows cannot be written is repeated: the sink ignores it then."""
    shop.write({"models/hours.sql": model("hours", "notes", ", retries=0")})
    (shop.root / "broken").touch()
    finding = shop.result().finding
    assert finding is not None
    assert "the late rows are broken" in finding.why
    (shop.root / "broken").unlink()

    assert shop.result().finding is None
    noted = [json.loads(line)["id"] for line in (shop.root / "notes.txt").read_text().splitlines()]
    assert sorted(noted) == LATE["hours"]
    assert sum(row["n"] for row in read_parquet(shop.root / "store/hours")) == 6


@pytest.mark.slow
def test_late_rows_begin_and_end_on_the_same_checkpoint(shop: ProjectFolder) -> None:
    """The key is no part of the state: a query keeps its late rows from the next batch on, and no longer."""
    hidden = [(shop.root / f"in/orders/{number}.json").rename(shop.root / f"{number}.json") for number in (2, 3)]
    shop.write({"models/hours.sql": model("hours", "files").replace(", late_rows='quarantine'", "")})
    assert shop.result().finding is None
    shop.write({"models/hours.sql": model("hours", "files")})
    hidden[0].rename(shop.root / "in/orders/2.json")
    assert shop.result().finding is None
    shop.write({"models/hours.sql": model("hours", "files").replace(", late_rows='quarantine'", "")})
    hidden[1].rename(shop.root / "in/orders/3.json")
    assert shop.result().finding is None
    assert [row["id"] for row in late_rows(shop, "hours")] == [5]
    assert not (shop.root / "store/queries/hours/v2").exists()


@pytest.mark.slow
def test_each_late_row_is_kept_once_through_kills(
    folder: ProjectFolder, read_parquet: Callable[[Path], list[dict[str, Any]]]
) -> None:
    """SQLSTREAM_KILLS runs are killed: each row is in a group or among the late rows, and none in both or twice."""
    kills = int(os.environ.get("SQLSTREAM_KILLS", "2"))
    folder.write({"sources.yml": SOURCE, "sinks.yml": SINKS, "python/notes.py": NOTES})
    places = random.Random(3)
    batches = 4 * kills
    for batch in range(batches):
        times = [60 * batch - places.choice((0, 10, 200)) for _ in range(50)]
        rows = [
            {"id": 50 * batch + number, "ts": f"2026-01-{1 + time // 1440:02}T{time // 60 % 24:02}:{time % 60:02}:00Z"}
            for number, time in enumerate(max(time, 0) for time in times)
        ]
        folder.rows(f"in/orders/{batch:03}.json", rows, modified=batch)
    # a row that closes all windows, and waits in its own
    folder.rows("in/orders/999.json", [{"id": -1, "ts": "2026-03-01T00:00:00Z"}], modified=batches)
    groups = QUERIES["hours"].replace("count(*) as n", "collect_list(id) as ids")
    config = "{{{{ config(sink='lake', quarantine_sink='{}', late_rows='quarantine') }}}}\n"
    folder.write({f"models/in_{sink}.sql": config.format(sink) + groups for sink in ("files", "tables")})
    folder.run_through_kills(kills, 3, 6)
    assert folder.run().succeeded

    with sqlite3.connect(folder.root / "store/late.sqlite") as connection:
        stored = [id_ for (id_,) in connection.execute("select id from in_tables__late")]
    late = [row["id"] for row in late_rows(folder, "in_files")]
    assert sorted(stored) == late
    assert late
    grouped = [id_ for row in read_parquet(folder.root / "store/in_files") for id_ in row["ids"]]
    assert sorted(grouped + late) == list(range(50 * batches))
