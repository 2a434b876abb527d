"""A source has the columns of its declared schema, also if the data has others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import ProjectFolder

Rows = Callable[[Path], list[dict[str, Any]]]


@pytest.mark.parametrize(("schema", "columns"), [("id int", {"id"}), ("day date, id int", {"day", "id"})])
def test_partition_columns_need_a_declaration(
    folder: ProjectFolder, read_parquet: Rows, schema: str, columns: set[str]
) -> None:
    """Partition columns in folder names need a declaration; otherwise `select *` would change with the data."""
    folder.rows("in/orders/day=2024-01-01/0.json", [{"id": 1}])
    folder.write({"models/every.sql": "{{ config(sink='lake') }} select * from {{ source('shop', 'orders') }}"})
    sources = folder.root / "sources.yml"
    declared = "schema: id int, ts timestamp, kind string, amount int"
    sources.write_text(sources.read_text().replace(declared, f"schema: {schema}"))

    folder.result()

    assert [set(row) for row in read_parquet(folder.root / "store/every")] == [columns]
