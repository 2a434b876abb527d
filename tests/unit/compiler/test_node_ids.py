"""Unique ids of nodes."""

from __future__ import annotations

from sqlstream.compiler.graph import kind_of, model_id, seed_id, view_of


def test_a_node_id_gives_its_kind_and_view() -> None:
    """Node ids have dbt's form and give the node's kind and view."""
    nodes = [model_id("p", "orders"), seed_id("p", "regions"), "source.p.shop.orders"]

    assert nodes == ["model.p.orders", "seed.p.regions", "source.p.shop.orders"]
    assert [kind_of(node) for node in nodes] == ["model", "seed", "source"]
    assert [view_of(node) for node in nodes] == ["orders", "regions", "shop__orders"]
