"""`sqlstream maintain --merge-files`: the small files of file sinks, merged while every reader sees each row once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sqlstream.spark.storage.checkpoints import read_sink_log
from sqlstream.spark.storage.local import LocalStorage
from sqlstream.spark.storage.locks import file_lock
from sqlstream.spark.writing.merged_files import Merging
from sqlstream.state.layout import lock_path
from sqlstream.state.merged_files import small_folders
from sqlstream.state.output_files import sort_files
from tests.spark.conftest import ProjectFolder, bare_session

SOURCES = (
    "sources: [{name: shop, tables: [{name: orders, format: json, path: in/orders, options: {maxFilesPerTrigger: 1}, "
    "schema: 'id int, kind string, price decimal(10,2), at timestamp, tags array<string>'}]}]\n"
)
SINKS = "sinks:\n  - {name: lake, format: parquet, path: '{{ model.name }}'}\n"
ORDERS = "select * from {{ source('shop', 'orders') }}"
KINDS = ["a b", "50%/x=y", "Ünï", "[z]*", None]
BATCHES = 11
"""Enough for a compact entry of the log, 9.compact, and one entry after it."""


def order(number: int, kind: str | None) -> dict[str, Any]:
    """Returns an order."""
    at = f"2024-01-01T00:00:{number % 60:02}.123456Z"
    return {"id": number, "kind": kind, "price": f"{number}.50", "at": at, "tags": ["x", None, str(number)]}


def add_batches(folder: ProjectFolder, first: int, last: int) -> None:
    """Writes one file of orders for each batch."""
    for number in range(first, last):
        orders = [order(10 * number + i, kind) for i, kind in enumerate(KINDS)]
        folder.rows(f"in/orders/{number:03}.json", orders, modified=number)


@pytest.fixture
def shop(folder: ProjectFolder) -> ProjectFolder:
    """A project whose query has written small files into folders with odd names."""
    config = "{{ config(sink='lake', partition_by='kind') }} "
    folder.write({"sources.yml": SOURCES, "sinks.yml": SINKS, "models/orders.sql": config + ORDERS})
    add_batches(folder, 0, BATCHES)
    assert folder.result().finding is None
    return folder


def stored(folder: ProjectFolder, name: str = "orders") -> tuple[str, list[str]]:
    """Returns the schema and the rows of an output, as Spark reads them."""
    session = bare_session("local[2]")
    try:
        rows = session.read.parquet(str(folder.root / "store" / name))
        return rows.schema.json(), sorted(
            str(row) for row in rows.select("id", "kind", "price", "at", "tags").collect()
        )
    finally:
        session.stop()


def listed(folder: ProjectFolder) -> list[str]:
    """Returns the committed files of the output."""
    return folder.invoke("state", "files", "orders").out.splitlines()


def maintain(folder: ProjectFolder, *arguments: str) -> dict[str, Any]:
    """Returns what the command did to the only output."""
    done = folder.invoke("maintain", "--merge-files", "--output", "json", *arguments)
    assert done.code == 0, done.out + done.err
    (sink,) = json.loads(done.out)["sinks"]
    found: dict[str, Any] = sink
    return found


def test_merged_files_have_the_same_rows(shop: ProjectFolder) -> None:
    """Each folder has one file for the compacted batches, with the same rows and types; the query continues, and a
    second command has nothing to merge. Replaced files go to the archive once their time is over.
    """
    before, files = stored(shop), listed(shop)
    looked = maintain(shop, "--dry-run")
    assert looked["before"] == looked["after"]
    assert looked["done"] == ["would merge 50 files into 5 files"]
    assert listed(shop) == files

    done = maintain(shop)

    assert (done["before"]["files"], done["after"]["files"]) == (55, 10)
    assert done["after"]["log_bytes"] < done["before"]["log_bytes"] / 2
    assert done["done"][0] == "merged 50 files into 5 files"
    assert stored(shop) == before
    assert all(Path(path).exists() for path in files)

    add_batches(shop, BATCHES, BATCHES + 10)
    assert shop.result().finding is None
    rows = stored(shop)
    assert len(rows[1]) == 5 * (BATCHES + 10)
    assert len(listed(shop)) == 5 + 5 * 11

    again = maintain(shop, "--retain", "1 millisecond")

    assert (again["before"]["files"], again["after"]["files"]) == (60, 10)
    assert again["done"][1] == "moved 105 replaced files to the archive"
    assert stored(shop) == rows
    on_disk = sorted(map(str, (shop.root / "store/orders").rglob("part-*")))
    assert on_disk == sorted(listed(shop))
    third = maintain(shop)
    assert third["done"] == []
    assert third["left"] == ["there are no small files to merge in the part of the log that Spark has compacted"]


class KilledError(BaseException):
    """Ends the command as a kill does: nothing catches it, and nothing is cleaned up."""


class KillingStorage(LocalStorage):
    """A storage that is killed before its change number `last`."""

    def __init__(self, last: int) -> None:
        self.left = last

    def _step(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise KilledError

    def write_text(self, path: str, text: str) -> None:
        """Writes the file, or is killed."""
        self._step()
        super().write_text(path, text)

    def move(self, source: str, destination: str) -> None:
        """Moves the file, or is killed."""
        self._step()
        super().move(source, destination)

    def remove(self, folder: str) -> None:
        """Removes the folder, or is killed."""
        self._step()
        super().remove(folder)


def test_a_kill_at_any_step_leaves_the_rows(folder: ProjectFolder) -> None:
    """After a kill before each change of the storage, readers see the same rows, and the next command completes."""
    config = "{{ config(sink='lake') }} "
    folder.write({"sources.yml": SOURCES, "sinks.yml": SINKS, "models/orders.sql": config + ORDERS})
    add_batches(folder, 0, BATCHES)
    assert folder.result().finding is None
    output = str(folder.root / "store/orders")
    session = bare_session("local[2]")
    try:
        before = sorted(map(str, session.read.parquet(output).collect()))
        step, is_done = 0, False
        while not is_done:
            step += 1
            storage = KillingStorage(step)
            log = read_sink_log(storage, output)
            files = sort_files(storage.files(output), log, with_retention=False)
            small = small_folders(log.texts[9], files.committed)
            if not small:  # the last kill came after the log was replaced
                break
            try:
                Merging(session, storage, output, "parquet", {}, log).merge(small, lambda: None)
                is_done = True
            except KilledError:
                pass
            assert sorted(map(str, session.read.parquet(output).collect())) == before, step
    finally:
        session.stop()

    assert step > 5
    add_batches(folder, BATCHES, BATCHES + 1)
    assert folder.result().finding is None
    assert len(stored(folder)[1]) == 5 * (BATCHES + 1)
    assert maintain(folder, "--retain", "1 millisecond")["left"]
    assert sorted(map(str, (folder.root / "store/orders").rglob("part-*"))) == sorted(listed(folder))


def test_what_cannot_be_merged_exactly_is_left_alone(folder: ProjectFolder) -> None:
    """Files that a stream of the project reads, files in formats without types, snapshots, young logs, and files without
    the option stay, each with the reason.
    """
    sinks = SINKS + "  - {name: texts, format: json, path: '{{ model.name }}'}\n"
    folder.write(
        {
            "sources.yml": SOURCES.replace(
                "]}]\n",
                "]},\n  {name: own, tables: [{name: copied, format: parquet, "
                "path: store/orders, schema: 'id int'}]}]\n",
            ),
            "sinks.yml": sinks,
        }
    )
    models = {
        "orders": "{{ config(sink='lake') }} " + ORDERS,
        "texts": "{{ config(sink='texts') }} " + ORDERS,
        "counts": "{{ config(sink='lake', output_mode='complete') }} "
        "select count(*) as n from {{ source('shop', 'orders') }}",
        "reader": "{{ config(sink='lake') }} select id from {{ source('own', 'copied') }}",
        "young": "{{ config(sink='lake') }} " + ORDERS,
    }
    folder.write({f"models/{name}.sql": sql for name, sql in models.items()})
    add_batches(folder, 0, 2)
    assert folder.run("young").succeeded
    add_batches(folder, 2, BATCHES)
    assert folder.run("orders texts counts").succeeded

    def left(*arguments: str) -> dict[str, list[str]]:
        done = folder.invoke("maintain", "--output", "json", *arguments)
        assert done.code == 0, done.out + done.err
        return {sink["model"]: sink["left"] for sink in json.loads(done.out)["sinks"]}

    found = left("--merge-files")
    assert found["orders"] == ["`reader` reads the files as a stream, and would read merged rows again"]
    assert found["texts"] == ["files of format json are not merged, only those of parquet and orc"]
    assert found["counts"] == ["each run or batch replaces its files"]
    assert found["reader"] == ["the query has not run yet"]
    assert found["young"] == ["Spark has not compacted the log yet, which it does in each tenth batch"]
    (folder.root / "models/reader.sql").unlink()
    assert left("-s", "orders")["orders"] == ["its files are merged only with --merge-files"]
    shown = folder.invoke("maintain", "-s", "texts").out.splitlines()
    assert shown[0] == f"texts: sink `texts` (json), {folder.root / 'store/texts'}"
    assert shown[2:] == [
        "  left alone: files of format json are not merged, only those of parquet and orc.",
        "Maintained 1 output; 0 changed.",
    ]


def test_a_running_query_is_refused(shop: ProjectFolder) -> None:
    """While another process has the query, nothing is changed."""
    files = listed(shop)
    with file_lock(Path(lock_path(str(shop.root / "store/queries/orders/v1")))):
        done = shop.invoke("maintain", "--merge-files", "--output", "json")
    assert (done.code, json.loads(done.out)["findings"][0]["code"]) == (1, "query-in-use")
    assert listed(shop) == files
