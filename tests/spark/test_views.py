"""Each SQL text of a query reads its own inputs, independently of the other texts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.spark.conftest import ProjectFolder

Rows = Callable[[Path], list[dict[str, Any]]]


def test_a_model_can_share_a_view_name_with_a_source(orders: ProjectFolder, read_parquet: Rows) -> None:
    """Model `shop__orders` is read although another input later reads a source that has the same view name."""
    orders.write(
        {
            "models/shop__orders.sql": "select 1000 + id as id from {{ source('shop', 'orders') }}",
            "models/small.sql": "select id from {{ source('shop', 'orders') }} where amount < 1",
            "models/both.sql": "{{ config(sink='lake') }}\nselect id from {{ ref('shop__orders') }}\n"
            "union all select id from {{ ref('small') }}",
        }
    )

    orders.result()

    ids = sorted(row["id"] for row in read_parquet(orders.root / "store/both"))
    assert ids == [0, 10, *range(1000, 1005), *range(1010, 1015)]


def test_a_source_and_a_view_over_it_have_separate_readers(orders: ProjectFolder) -> None:
    """A source and a view over it have separate readers."""
    orders.write(
        {
            "models/small.sql": "select id from {{ source('shop', 'orders') }} where amount < 1",
            "models/both.sql": "{{ config(sink='nowhere') }}\nselect id from {{ source('shop', 'orders') }}\n"
            "union all select id from {{ ref('small') }}",
        }
    )

    assert orders.result().rows_out == 12
