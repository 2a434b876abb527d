"""The history has the lag of a query that reads files, which Spark does not report."""

from __future__ import annotations

import json
from itertools import count

from sqlstream.app.observe.record import journal_files
from sqlstream.history.reads import changed_queries
from sqlstream.history.series import SeriesRequest, read_series
from sqlstream.history.store import History
from sqlstream.state.runs.events import RunEvent
from sqlstream.state.runs.progress import BatchProgress
from tests.spark.conftest import ProjectFolder

FILES = 200
SLOWLY = "{{ config(sink='nowhere', trigger='100 milliseconds') }}\nselect id from {{ source('shop', 'orders') }}"


def test_the_history_has_the_lag_of_files(folder: ProjectFolder) -> None:
    """A query that reads one file in each batch has fewer files left after each batch, without an alert or metrics."""
    assert "maxFilesPerTrigger: 1" in (folder.root / "sources.yml").read_text()
    folder.write({"models/slowly.sql": SLOWLY})
    folder.batches("in/orders", ([{"id": number}] for number in range(FILES)))
    more = count(FILES)
    journal = folder.root / "logs/events.jsonl"

    def has_two_lags(events: list[RunEvent]) -> bool:
        if isinstance(events[-1], BatchProgress):
            number = next(more)  # there is always something to read
            folder.rows(f"in/orders/{number}.json", [{"id": number}], modified=number)
        return journal.read_text().count('"event": "lag"') == 2

    folder.run_until(has_two_lags, "slowly")

    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    written = [line for line in lines if line["event"] == "lag"]
    assert all(set(line["lag"]) == {"files", "bytes"} for line in written)
    history = History(folder.root / "logs", journal_files(folder.root / "logs"))
    history.ingest()
    with history.reading() as connection:
        (query,) = changed_queries(connection, -1)
        (first,) = connection.execute("SELECT min(at_ms) FROM batches").fetchone()
        request = SeriesRequest(query.number, first, 1 << 53, names=("lag_files", "lag_bytes", "lag"))
        found = read_series(connection, request)
    history.close()
    files, sizes = (list(filter(None, found.values[name])) for name in ("lag_files", "lag_bytes"))
    assert files == [line["lag"]["files"] for line in written]
    assert sizes == [line["lag"]["bytes"] for line in written]
    assert all(0 < left <= FILES for left in files)
    assert set(found.values["lag"]) == {None}
