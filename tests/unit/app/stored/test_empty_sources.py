"""Sources without files are named once, with the queries that read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream import ProjectRequest
from sqlstream.app.loading.load import load
from sqlstream.app.stored.local_sources import empty_source_lines

MODEL = "{{{{ config(sink='nowhere') }}}} select * from {{{{ {} }}}}"
FILES = {
    "project.yml": "name: shop\ntargets: {local: {master: local, storage: s}, cluster: {master: 'spark://h:7077', storage: /s}}\n",
    "sources.yml": "sources:\n  - name: shop\n    tables:\n"
    "      - {name: orders, format: json, path: in/orders, schema: 'value string'}\n"
    "      - {name: items, format: json, path: 'in/items/*.json', schema: 'value string'}\n"
    "      - {name: ticks, format: rate}\n",
    "sinks.yml": "sinks:\n  - {name: nowhere, format: noop}\n",
    "models/a.sql": MODEL.format("source('shop', 'orders')"),
    "models/v.sql": "select * from {{ source('shop', 'orders') }}",
    "models/b.sql": MODEL.format("ref('v')"),
    "models/c.sql": MODEL.format("source('shop', 'items')"),
    "models/d.sql": MODEL.format("source('shop', 'ticks')"),
}


def lines(root: Path, *files: str, target: str = "local") -> list[str]:
    """Returns the messages of a run of all models when these files exist."""
    for name, text in {**FILES, **dict.fromkeys(files, "{}")}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    compiled = load(ProjectRequest(root, target, env={})).compiled
    return list(empty_source_lines(compiled, [model for model in compiled.models.values() if model.output]))


ORDERS = "shop.orders has no files in in/orders yet; a, b have no data to read from it"
ITEMS = "shop.items has no files in in/items/*.json yet; c has no data to read from it"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ([], [ITEMS, ORDERS]),
        (["in/orders/.hidden", "in/orders/_SUCCESS", "in/items/0.txt"], [ITEMS, ORDERS]),
        (["in/orders/day=1/0.json"], [ITEMS]),
        (["in/orders/0.json", "in/items/0.json"], []),
    ],
)
def test_each_empty_source_is_named_once(tmp_path: Path, files: list[str], expected: list[str]) -> None:
    """An empty source is named with all queries that read it, also through views; hidden files do not count."""
    assert lines(tmp_path, *files) == expected


def test_paths_of_a_cluster_are_not_checked(tmp_path: Path) -> None:
    """On a cluster target the paths are not checked, because they may be on another machine."""
    assert lines(tmp_path, target="cluster") == []
