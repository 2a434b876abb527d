"""The paths of checkpoints, ledgers and outputs."""

from __future__ import annotations

import pytest

from sqlstream.state.layout import (
    checkpoint_path,
    ledger_path,
    output_path,
    output_table,
    query_root,
    version_number,
    version_root,
)


@pytest.mark.parametrize(
    ("storage", "checkpoint", "expected"),
    [
        ("/data", None, "/data/queries/orders"),
        ("/data/", None, "/data/queries/orders"),
        ("s3a://bucket/x", None, "s3a://bucket/x/queries/orders"),
        ("/data", "own/place", "/data/own/place"),
        ("/data", "own/place/", "/data/own/place"),
        ("/data", "/elsewhere", "/elsewhere"),
        ("/data", "s3a://bucket/place/", "s3a://bucket/place"),
    ],
)
def test_a_query_has_a_folder_under_the_storage(storage: str, checkpoint: str | None, expected: str) -> None:
    """A query has a folder under the storage, or at its configured checkpoint."""
    assert query_root(storage, "orders", checkpoint) == expected


def test_a_version_contains_a_checkpoint_and_a_ledger() -> None:
    """Spark's folder contains only Spark's files."""
    assert version_root("/data/queries/orders", 2) == "/data/queries/orders/v2"
    assert checkpoint_path("/data/queries/orders", 2) == "/data/queries/orders/v2/checkpoint"
    assert ledger_path("/data/queries/orders", 2) == "/data/queries/orders/v2/ledger.json"


@pytest.mark.parametrize(
    ("path", "expected"),
    [("orders", "/data/orders"), ("./orders/", "/data/orders"), ("s3a://bucket/orders", "s3a://bucket/orders")],
)
def test_readers_find_an_output_at_its_plain_path(path: str, expected: str) -> None:
    """A relative path is below the target's storage."""
    assert output_path("/data", path) == expected


@pytest.mark.parametrize(
    ("folder", "expected"),
    [("v1", 1), ("v12", 12), ("v0", None), ("v01", None), ("v1\n", None), ("v1.old", None), ("x1", None), ("v", None)],
)
def test_only_version_folders_count(folder: str, expected: int | None) -> None:
    """Other names in a query's folder are ignored."""
    assert version_number(folder) == expected


@pytest.mark.parametrize(
    ("version", "name", "table"),
    [(1, "gold.orders", "gold.orders"), (3, "gold.orders", "gold.orders_v3"), (2, "`a b`.`c d`", "`a b`.`c d_v2`")],
)
def test_a_later_version_writes_to_its_own_table(version: int, name: str, table: str) -> None:
    """In the old table, Spark's sink would skip batches of the new checkpoint."""
    assert output_table(name, version) == table
