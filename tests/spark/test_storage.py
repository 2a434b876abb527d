"""The small files in a target's storage behind a URI, which only Hadoop's file systems can reach."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sqlstream.spark.storage.hadoop import HadoopStorage

IMPLEMENTATION = "fs.AbstractFileSystem.file.impl"


@pytest.fixture(params=[True, False], ids=["replaces", "creates only"])
def storage(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[HadoopStorage]:
    """Storage in a file system that can replace a file, and in one that cannot, such as some object stores."""
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    before = configuration.get(IMPLEMENTATION)
    if not request.param:
        configuration.unset(IMPLEMENTATION)
    yield HadoopStorage(spark)
    configuration.set(IMPLEMENTATION, before)


def test_a_written_text_is_read_back(storage: HadoopStorage, tmp_path: Path) -> None:
    """A write creates parent folders and replaces the previous text; no other files are left behind."""
    folder = f"file://{tmp_path}/queries/größe/v1"

    storage.write_text(f"{folder}/ledger.json", "first")
    storage.write_text(f"{folder}/ledger.json", "zweite Größe")

    assert storage.read_text(f"{folder}/ledger.json") == "zweite Größe"
    assert [name for name in storage.names(folder) if not name.endswith(".crc")] == ["ledger.json"]


def test_a_folder_is_removed_with_its_content(storage: HadoopStorage, tmp_path: Path) -> None:
    """Removing a folder removes everything in it, and nothing beside it."""
    for version in ("v1", "v2"):
        storage.write_text(f"file://{tmp_path}/{version}/checkpoint/metadata", "{}")

    storage.remove(f"file://{tmp_path}/v1")

    assert storage.names(f"file://{tmp_path}") == ("v2",)


def test_missing_files_are_none(storage: HadoopStorage, tmp_path: Path) -> None:
    """A query that has never run has no ledger and no folder."""
    assert storage.read_text(f"file://{tmp_path}/none/ledger.json") is None
    assert storage.names(f"file://{tmp_path}/none") == ()
