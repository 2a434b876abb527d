"""Node selection: dbt's results for tests/projects/selection, and sqlstream's additions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from sqlstream.compiler.selection.select import (
    SelectableNode,
    SelectionGraph,
    SelectorError,
    select_nodes,
    unmatched_criteria,
)

TESTS = Path(__file__).parents[2]
PROJECT = TESTS / "projects" / "selection"
ROWS: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("selectors.yml").read_text(encoding="utf-8"))


def read_yaml(path: Path) -> dict[str, Any]:
    """Returns the mapping in a YAML file."""
    return cast("dict[str, Any]", yaml.safe_load(path.read_text(encoding="utf-8")))


def merge_config(patches: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Merges `patches` in ascending precedence: tags are added, meta is merged, other keys are replaced."""
    config: dict[str, Any] = {"enabled": True, "tags": [], "meta": {}}
    for patch in patches:
        tags = [*config["tags"], *patch.get("tags", [])]
        meta = {**config["meta"], **patch.get("meta", {})}
        config |= {**patch, "tags": tags, "meta": meta}
    return config


def folder_patches(folders: tuple[str, ...]) -> list[Mapping[str, Any]]:
    """Returns the patches in project.yml for a folder below models/, outermost first."""
    level = read_yaml(PROJECT / "project.yml")["models"]
    patches: list[Mapping[str, Any]] = []
    for folder in (*folders, None):
        patches.append({key[1:]: value for key, value in level.items() if key.startswith("+")})
        level = level.get(folder, {})
    return patches


def inline_patch(sql: str) -> Mapping[str, Any]:
    """Returns the arguments of a model's config() call, or an empty mapping."""
    match = re.search(r"\{\{\s*config\((.*?)\)\s*\}\}", sql, re.DOTALL)
    text = re.sub(r"\b(true|false)\b", lambda word: word[0].title(), match[1] if match else "")
    call = cast("ast.Call", ast.parse(f"config({text})", mode="eval").body)
    return {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}


def properties(kind: str) -> dict[str, tuple[str, Mapping[str, Any]]]:
    """Returns the path and configuration in the properties files for each model or seed name."""
    return {
        item["name"]: (path.relative_to(PROJECT).as_posix(), item.get("config", {}))
        for path in sorted(PROJECT.glob("*/**/*.yml"))
        for item in read_yaml(path).get(kind, [])
    }


def source_nodes() -> Iterator[SelectableNode]:
    """Yields the source tables declared in all YAML files of the project."""
    for path in [PROJECT / "sources.yml", *sorted((PROJECT / "models").rglob("*.yml"))]:
        file = path.relative_to(PROJECT)
        for source in read_yaml(path).get("sources", []):
            for table in source["tables"]:
                patches = [{key: said.get(key, {}) for key in ("tags", "meta")} for said in (source, table)]
                config = merge_config(patches)
                ids = (source["name"], table["name"])
                yield SelectableNode(
                    unique_id=".".join(("source", "selection", *ids)),
                    resource_type="source",
                    name=table["name"],
                    fqn=("selection", *file.parts[1:-1], *ids),
                    path=file.as_posix(),
                    tags=frozenset(config["tags"]),
                    config=config,
                    source_name=source["name"],
                )


def file_nodes(kind: str, pattern: str) -> Iterator[SelectableNode]:
    """Yields the models or seeds, named by their files, including disabled ones."""
    said = properties(f"{kind}s")
    for path in sorted((PROJECT / f"{kind}s").rglob(pattern)):
        file = path.relative_to(PROJECT)
        folders = file.parts[1:-1]
        properties_path, patch = said.get(path.stem, (None, {}))
        is_model = kind == "model"
        below, above = (folder_patches(folders), [inline_patch(path.read_text("utf-8"))]) if is_model else ([], [])
        config = merge_config([*below, patch, *above])
        yield SelectableNode(
            unique_id=f"{kind}.selection.{path.stem}",
            resource_type=kind,
            name=path.stem,
            fqn=("selection", *folders, path.stem),
            path=file.as_posix(),
            tags=frozenset(config["tags"]),
            config=config,
            sinks=tuple(filter(None, [config.get("sink")])),
            properties_path=properties_path,
        )


def read_parents(node: SelectableNode, ids: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the unique ids in a model's ref() and source() calls; `ids` maps names of models and seeds to ids."""
    sql = (PROJECT / node.path).read_text(encoding="utf-8") if node.resource_type == "model" else ""
    refs = [ids[name] for name in re.findall(r"ref\('(\w+)'\)", sql)]
    sources = [f"source.selection.{source}.{table}" for source, table in re.findall(r"source\('(\w+)', '(\w+)'\)", sql)]
    return tuple(dict.fromkeys([*refs, *sources]))


def build_graph() -> SelectionGraph:
    """Returns the graph of tests/projects/selection, built without sqlstream's own loader."""
    everything = [*source_nodes(), *file_nodes("seed", "*.csv"), *file_nodes("model", "*.sql")]
    enabled = [node for node in everything if node.config["enabled"]]
    ids = {node.name: node.unique_id for node in everything if node.resource_type != "source"}
    parents = {node.unique_id: read_parents(node, ids) for node in enabled}
    return SelectionGraph({node.unique_id: node for node in enabled}, parents)


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
    if row.get("error"):
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
