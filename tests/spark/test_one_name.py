"""Readers keep one path: it shows the current version to Spark, DuckDB and pandas at any moment."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sqlstream.app.request import ProjectRequest
from sqlstream.app.state.files import state_files
from sqlstream.app.versions.publications import query_history
from sqlstream.app.versions.switch import promote, roll_back
from sqlstream.app.versions.versions_text import switched_text
from sqlstream.errors import FindingsError
from sqlstream.spark.publication.folders import FolderPublication
from tests.spark.conftest import LONGEST_WAIT_SECONDS, ProjectFolder, bare_session, order_rows

IDS = """{{{{ config(sink='lake'{}) }}}} select id * {} as id, kind from {{{{ source('shop', 'orders') }}}}"""
PARTITIONED = ", partition_by=['kind']"
BATCHES = 12
"""More than ten, after which Spark compacts the log of a file sink."""
Reader = Callable[[Path], list[int]]


def request(folder: ProjectFolder) -> ProjectRequest:
    """Returns the request for the project."""
    return ProjectRequest(folder.root, env=dict(os.environ))


def expected(factor: int, batches: int = BATCHES) -> list[int]:
    """Returns the ids in the output of the model with this factor."""
    return sorted(row["id"] * factor for number in range(batches) for row in order_rows(number % 10))


@pytest.fixture
def ids(folder: ProjectFolder) -> ProjectFolder:
    """A project with an output in one folder, and one in partitions. Version 2 runs beside version 1: its ids are a
    thousand times as high.
    """
    for number in range(BATCHES):
        folder.rows(f"in/orders/{number}.json", order_rows(number % 10), modified=number)
    write_models(folder, 1)
    assert folder.run().succeeded
    write_models(folder, 1000)
    assert folder.run(parallel=("flat", "parted"), full_refresh=True).succeeded
    return folder


def write_models(folder: ProjectFolder, factor: int) -> None:
    """Writes the two models."""
    parts = {"flat": "", "parted": PARTITIONED}
    folder.write({f"models/{name}.sql": IDS.format(part, factor) for name, part in parts.items()})


@contextmanager
def readers() -> Iterator[dict[str, Reader]]:
    """Yields each reader: of the files in the log, and of all files below the path."""
    import duckdb
    import pyarrow.parquet as pq

    def with_duckdb(path: Path) -> list[int]:
        found = duckdb.execute(f"select id from read_parquet('{path}/**/*.parquet')").fetchall()
        return sorted(row[0] for row in found)

    session = bare_session("local[1]")
    try:
        yield {
            "spark": lambda path: with_spark(session, path),
            "pandas": lambda path: sorted(pq.read_table(path, columns=["id"])["id"].to_pylist()),
            "duckdb": with_duckdb,
        }
    finally:
        session.stop()


def with_spark(session: SparkSession, path: Path) -> list[int]:
    """Returns the ids that Spark reads."""
    return sorted(row["id"] for row in session.read.parquet(str(path)).select("id").collect())


@pytest.mark.slow
def test_every_reader_keeps_the_plain_path(ids: ProjectFolder) -> None:
    """After each switch the plain path has the rows of the current version, and each version its own path."""
    store = ids.root / "store"
    with readers() as reads:
        for switch, factor in ((promote, 1000), (roll_back, 1), (promote, 1000)):
            for name in ("flat", "parted"):
                assert switch(request(ids), name).outputs == (str(store / name),)
                for reader, read in reads.items():
                    found = [read(store / path) for path in (name, f"{name}.v1", f"{name}.v2")]
                    assert found == [expected(factor), expected(1), expected(1000)], (reader, name)
        assert_never_mixed(ids, reads)

    names = {part.version: Path(part.output or "").name for part in query_history(request(ids), "flat").versions}
    assert names == {1: "flat.v1", 2: "flat"}
    assert state_files(request(ids), "flat", 1).output == str(store / "flat.v1")
    for number in range(BATCHES, BATCHES + 2):
        ids.rows(f"in/orders/{number}.json", order_rows(number % 10), modified=number)
    assert {result.output for result in ids.run().results} == {str(store / "flat"), str(store / "parted")}
    with readers() as reads:
        for read in reads.values():
            assert read(store / "parted") == expected(1000, BATCHES + 2)


def assert_never_mixed(folder: ProjectFolder, reads: dict[str, Reader]) -> None:
    """Switches several times, while each reader reads the output again and again, in a thread. Each time it gets all
    rows of a version. Only Spark may fail: if it has read the log of one version, and opens its files after the switch.
    The others resolve the link first, because they silently skip a file that disappears while they list the folder.
    """
    changed = threading.Condition()
    plain = folder.root / "store/parted"
    watched = [Watched("spark", partial(reads["spark"], plain), changed)]
    watched += [Watched(name, partial(read_resolved, reads[name], plain), changed) for name in ("pandas", "duckdb")]
    for reader in watched:
        reader.start()
    for switch in (roll_back, promote) * 3:
        before = [len(reader.seen) for reader in watched]
        switch(request(folder), "parted")
        with changed:
            assert changed.wait_for(partial(have_read, watched, before), LONGEST_WAIT_SECONDS)
    for reader in watched:
        reader.stops = True
        reader.join(LONGEST_WAIT_SECONDS)
        assert reader.error is None, reader.name
        mixed = [rows for rows in reader.seen if rows not in (expected(1), expected(1000))]
        assert not mixed, reader.name


def read_resolved(read: Reader, path: Path) -> list[int]:
    """Returns what a reader finds in the folder to which the link at `path` points now."""
    return read(Path(os.path.realpath(path)))


def have_read(watched: Sequence[Watched], before: Sequence[int]) -> bool:
    """Returns whether each reader has read the output since it had done so as often as in `before`."""
    return all(reader.error or len(reader.seen) > seen for reader, seen in zip(watched, before, strict=True))


class Watched(threading.Thread):
    """A thread that reads the same output until it is stopped."""

    def __init__(self, name: str, read: Callable[[], list[int]], changed: threading.Condition) -> None:
        super().__init__(name=name, daemon=True)
        self.seen: list[list[int]] = []
        self.stops = False
        self.error: Exception | None = None
        self._read, self._changed = read, changed

    def run(self) -> None:
        """Collects the results in `seen`, and ends at an unexpected error."""
        while not self.stops and self.error is None:
            try:
                self.seen.append(self._read())
            except Exception as error:
                self.error = None if self.name == "spark" and is_gone(error) else error
            with self._changed:
                self._changed.notify_all()


def is_gone(error: Exception) -> bool:
    """Returns whether a file does not exist any more that the log has named."""
    return any(sign in str(error) for sign in ("FILE_NOT_EXIST", "FileNotFoundException", "NoSuchFile"))


class KilledError(Exception):
    """Ends a command in the middle of a switch."""


@pytest.mark.slow
@pytest.mark.parametrize("next_command", ["run", "promote", "rollback"])
def test_the_next_command_completes_an_interrupted_switch(
    orders: ProjectFolder, next_command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """versions.json says which version is current; until the next command the plain path shows the one before."""
    orders.write({"models/flat.sql": IDS.format("", 1)})
    orders.run()
    orders.write({"models/flat.sql": IDS.format("", 1000)})
    orders.run(parallel=("flat",), full_refresh=True)
    with monkeypatch.context() as patched:
        patched.setattr(FolderPublication, "switch_to", killed)
        with pytest.raises(KilledError):
            promote(request(orders), "flat")
    store = orders.root / "store"
    assert listed(store / "flat") == listed(store / "flat.v1") == expected(1, 2)
    assert state_files(request(orders), "flat", 1).output == str(store / "flat.v1")

    if next_command == "run":
        assert orders.result().output == str(store / "flat")
    elif next_command == "promote":
        orders.run(parallel=("flat",), full_refresh=True)
        assert promote(request(orders), "flat").version == 3
    else:
        assert roll_back(request(orders), "flat").version == 1
        orders.write({"models/flat.sql": IDS.format("", 1)})
        orders.rows("in/orders/2.json", order_rows(2), modified=2)
        assert (orders.result().rows_in, listed(store / "flat")) == (5, expected(1, 3))
        return
    assert listed(store / "flat") == listed(store / "flat.v2") == expected(1000, 2)


def killed(*_: object) -> None:
    """Raises: KilledError."""
    raise KilledError


def listed(path: Path) -> list[int]:
    """Returns the ids that a reader finds which lists a folder."""
    import pyarrow.parquet as pq

    return sorted(pq.read_table(path, columns=["id"])["id"].to_pylist())


@pytest.mark.slow
def test_a_full_refresh_without_a_batch_changes_nothing_for_readers(orders: ProjectFolder) -> None:
    """Readers switch to the new version once it has committed a batch, also in a later run."""
    orders.write({"models/flat.sql": IDS.format("", 1)})
    orders.run()
    orders.write({"models/flat.sql": IDS.format("", "raise_error('broken')")})
    assert not orders.run(full_refresh=True).succeeded
    assert listed(orders.root / "store/flat") == expected(1, 2)

    orders.write({"models/flat.sql": IDS.format("", 1000)})
    assert orders.result().output == str(orders.root / "store/flat")
    assert listed(orders.root / "store/flat") == expected(1000, 2)
    assert listed(orders.root / "store/flat.v1") == expected(1, 2)


@pytest.mark.slow
def test_outputs_of_an_earlier_sqlstream_stay_until_the_next_switch(orders: ProjectFolder) -> None:
    """Readers that have followed an output to `<path>.v2` find it there, and the plain path has version 1."""
    orders.write({"models/flat.sql": IDS.format("", 1)})
    orders.run()
    orders.write({"models/flat.sql": IDS.format("", 1000)})
    orders.run(parallel=("flat",), full_refresh=True)
    file = orders.root / "store/queries/flat/versions.json"
    file.write_text('{"current": 2, "parallel": null, "previous": 1}')
    assert orders.result().output == str(orders.root / "store/flat.v2")
    assert listed(orders.root / "store/flat") == expected(1, 2)

    assert roll_back(request(orders), "flat").outputs == (str(orders.root / "store/flat"),)
    assert not (orders.root / "store/flat").is_symlink()
    assert promote(request(orders), "flat").outputs == (str(orders.root / "store/flat"),)
    assert listed(orders.root / "store/flat") == expected(1000, 2)


def test_storage_without_links_has_a_path_for_each_version(
    orders: ProjectFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run and `promote` say why, and where the rows are."""
    monkeypatch.setattr("sqlstream.spark.publication.folders.can_link", lambda _: False)
    orders.write({"models/flat.sql": IDS.format("", 1)})
    orders.run()
    orders.write({"models/flat.sql": IDS.format("", 1000)})
    assert orders.result(full_refresh=True).output == str(orders.root / "store/flat.v2")
    assert [text for text in notices(orders) if "has no links" in text]
    assert orders.result().output == str(orders.root / "store/flat.v2")
    assert roll_back(request(orders), "flat").outputs == (str(orders.root / "store/flat"),)
    promoted = promote(request(orders), "flat")
    assert promoted.outputs == (str(orders.root / "store/flat.v2"),)
    assert "has no links" in switched_text(promoted)
    assert listed(orders.root / "store/flat") == expected(1, 2)


def notices(folder: ProjectFolder) -> list[str]:
    """Returns the notices of the last run."""
    from sqlstream.state.runs.events import Notice

    return [event.text for event in folder.events if isinstance(event, Notice)]


@pytest.mark.slow
def test_a_reader_of_the_stored_output_never_mixes_versions(orders: ProjectFolder) -> None:
    """A query that reads the plain path has to stop before the first switch, and to start over behind it."""
    stored = IDS.replace("sink='lake'", "sink='lake', materialized='stored'")
    reading: dict[str, Any] = {"models/top.sql": "{{ config(sink='lake') }} select id from {{ ref('flat') }}"}
    orders.write({"models/flat.sql": stored.format("", 1), **reading})
    orders.run()
    orders.write({"models/flat.sql": stored.format("", 1000)})
    orders.run("flat", parallel=("flat",), full_refresh=True)
    with orders_locked(orders, "top"), pytest.raises(FindingsError) as caught:
        promote(request(orders), "flat")
    (found,) = caught.value.findings
    assert (found.code, "reads the stored output of `flat`" in found.message) == ("query-in-use", True)
    assert listed(orders.root / "store/flat") == expected(1, 2)

    promote(request(orders), "flat")
    for version in ("v2", "v1"):
        with pytest.raises(FindingsError) as caught:
            orders.run("top")
        (found,) = caught.value.findings
        assert (found.code, f"store/flat.{version}" in found.why) == ("source-change", True)
        if version == "v2":
            roll_back(request(orders), "flat")
    orders.run("top", full_refresh=True)
    assert listed(orders.root / "store/top") == expected(1, 2)


@contextmanager
def orders_locked(folder: ProjectFolder, name: str) -> Iterator[None]:
    """Locks version 1 of a query, as a run in another process does."""
    from sqlstream.spark.storage.local import LocalStorage
    from sqlstream.spark.storage.query_locks import folder_lock

    with folder_lock(LocalStorage(), str(folder.root / f"store/queries/{name}/v1")):
        yield
