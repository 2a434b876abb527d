"""Node selection: dbt's results for tests/projects/selection, and sqlstream's additions."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from sqlstream.app.loading.load import load
from sqlstream.app.loading.selecting import selection_graph
from sqlstream.app.request import ProjectRequest
from sqlstream.compiler.selection.select import (
    SelectionGraph,
    SelectorError,
    select_nodes,
    unmatched_criteria,
)

TESTS = Path(__file__).parents[2]
PROJECT = TESTS / "projects" / "selection"
ROWS: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("selectors.yml").read_text(encoding="utf-8"))


def build_graph() -> SelectionGraph:
    """Returns the graph of tests/projects/selection."""
    with tempfile.TemporaryDirectory() as folder:
        project = shutil.copytree(PROJECT, Path(folder) / "selection")
        return selection_graph(load(ProjectRequest(project)).compiled, {}, None)


GRAPH = build_graph()


def flags(value: str | list[str]) -> list[str]:
    """Returns the values of a flag as a list."""
    return [value] if isinstance(value, str) else value


def short_ids(unique_ids: frozenset[str]) -> list[str]:
    """Returns sorted ids without the project's name, as in selectors.yml."""
    return sorted(unique_id.replace(".selection.", ".", 1) for unique_id in unique_ids)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.get('select', '')!s} - {row.get('exclude', '')!s}")
def test_a_selection_gives_the_same_nodes_as_dbt(row: dict[str, Any]) -> None:
    """Each selection in selectors.yml gives the same nodes as in dbt, or an error if dbt refuses it."""
    select, exclude = flags(row.get("select", [])), flags(row.get("exclude", []))
    if select == ["config.output_mode:append"]:  # every model has an output mode, in dbt only those that set one
        assert {*short_ids(select_nodes(GRAPH, select, exclude))} > {*row["expect"]}
    elif row.get("error"):
        with pytest.raises(SelectorError):
            select_nodes(GRAPH, select, exclude)
    else:
        assert short_ids(select_nodes(GRAPH, select, exclude)) == row["expect"]


def test_the_table_is_large_enough() -> None:
    """selectors.yml has at least 80 selections, and some of them are errors."""
    assert len(ROWS) >= 80
    assert any(row.get("error") for row in ROWS)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("sink:screen", ["model.revenue_by_region"]),
        ("sink:scr*", ["model.revenue_by_region"]),
        ("1+sink:screen", ["model.big_orders", "model.revenue_by_region"]),
        ("sink:*,cloudtrail", ["model.cloudtrail_hourly", "model.ec2_calls"]),
        ("sink:Screen", []),
    ],
)
def test_a_sink_selects_its_models(selector: str, expected: list[str]) -> None:
    """`sink:` selects models by the name of their sink, with wildcards."""
    assert short_ids(select_nodes(GRAPH, [selector], [])) == expected


def test_disabled_parents_are_skipped() -> None:
    """A disabled parent is not selected, and neither are its own parents."""
    nodes = {name: GRAPH.nodes[name] for name in ("model.selection.orders", "model.selection.shop")}
    graph = SelectionGraph(nodes, {"model.selection.shop": ("model.selection.orders_by_hour",)})
    assert select_nodes(graph, ["+reporting.shop"], []) == {"model.selection.shop"}


@pytest.mark.parametrize(
    ("selector", "nearest"),
    [
        ("tags:core", ("tag",)),
        ("Source:aws", ("source",)),
        ("qqq:core", ()),
        ("state:modifed", ("state:modified",)),
        ("selecter:nightly", ("selector",)),
        ("resource_type:models", ("model",)),
        ("/models/shop", ("models/shop",)),
        ("@orders+", ("orders+",)),
    ],
)
def test_an_invalid_criterion_gets_suggestions(selector: str, nearest: tuple[str, ...]) -> None:
    """The error for an invalid criterion has the criterion as written and the most similar words."""
    with pytest.raises(SelectorError) as caught:
        select_nodes(GRAPH, ["orders"], [f"customers orders,{selector}"])
    assert caught.value.criterion == selector
    assert caught.value.nearest[: len(nearest)] == nearest


@pytest.mark.parametrize(
    ("selector", "nearest"),
    [
        ("order", "orders"),
        ("+ORDERS+", "orders"),
        ("old_logins", "root_logins"),
        ("marts", "shop.marts"),
        ("shop.mart", "shop.marts"),
        ("shop.ordrs", "shop.orders"),
        ("aws", "source:aws"),
        ("payments", "source:shop.payments"),
        ("security", "tag:security"),
        ("fqn:custmers", "fqn:customers"),
        ("tag:Securty", "tag:security"),
        ("source:awz", "source:aws"),
        ("source:cloudtrail_logs", "source:aws.cloudtrail_logs"),
        ("sink:warehose", "sink:warehouse"),
        ("model/shop", "models/shop"),
        ("model/", "path:models"),
        ("path:shop", "path:models/shop"),
        ("shop/orders.sql", "models/shop/orders.sql"),
        ("ORDERS.sql", "orders.sql"),
        ("file:order.sql", "file:orders.sql"),
        ("config.sink:archives", "config.sink:archive"),
        ("config.meta.domains:sale", "config.meta.domains:sales"),
        ("config.meta.pager:tru", "config.meta.pager:true"),
        ("package:select", "package:selection"),
        ("orders,", "orders"),
    ],
)
def test_an_unmatched_criterion_gets_corrections(selector: str, nearest: str) -> None:
    """A criterion without matches gets corrections of the same kind, and each of them matches a node."""
    ((criterion, corrections, *_),) = unmatched_criteria(GRAPH, [f"orders {selector} tag:core"])
    assert (criterion, corrections[0]) == (selector, nearest)
    assert unmatched_criteria(GRAPH, list(corrections)) == ()


def test_each_unmatched_criterion_is_listed_once() -> None:
    """Each unmatched criterion of unions and intersections is listed once and in order."""
    found = unmatched_criteria(GRAPH, ["orders,qqq  zzz", " qqq ", "tag:core,tag:security"])
    assert [unmatched.text for unmatched in found] == ["qqq", "zzz"]


def test_an_invalid_criterion_is_an_error_in_unmatched_criteria() -> None:
    """An unknown method is an error also when listing unmatched criteria."""
    with pytest.raises(SelectorError):
        unmatched_criteria(GRAPH, ["unknown:orders"])
