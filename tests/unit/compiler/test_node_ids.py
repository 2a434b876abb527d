"""Unique ids of nodes."""

from __future__ import annotations

from sqlstream.compiler.node_ids import kind_of, model_id, seed_id, view_of


def test_a_node_id_tells_its_kind_and_view() -> None:
    """Ids are dbt's; the view of a source's table has both names."""
    nodes = [model_id("p", "orders"), seed_id("p", "regions"), "source.p.shop.orders"]

    assert nodes == ["model.p.orders", "seed.p.regions", "source.p.shop.orders"]
    assert [kind_of(node) for node in nodes] == ["model", "seed", "source"]
    assert [view_of(node) for node in nodes] == ["orders", "regions", "shop__orders"]
