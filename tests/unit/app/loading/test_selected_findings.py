"""Which warnings a command with a selection prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream import ProjectRequest, compile_models
from sqlstream.app.compile.ls import list_nodes
from sqlstream.app.request import Selection

COUNT = "select id, count(*) as n from {{ source('shop', 'orders') }} group by id"
FILES = {
    "project.yml": "name: shop\nmodels:\n  oders: {+tags: [x]}\n",
    "sources.yml": "sources:\n  - name: shop\n    tables:\n"
    "      - {name: orders, format: json, path: in, schema: 'id int'}\n"
    "      - {name: more, format: json, path: in, schema: 'id int', options: {multiline: yes, lineseb: x}}\n",
    "sinks.yml": "sinks:\n  - {name: out, format: noop}\n  - {name: lake, format: json, path: x, options: {compresion: gzip}}\n",
    "models/plain.sql": "{{ config(sink='out') }} select id from {{ source('shop', 'orders') }}",
    "models/counted.sql": COUNT,
    "models/written.sql": "{{ config(sink='out', output_mode='update') }} select n from {{ ref('counted') }}",
    "models/leaf.sql": "select id from {{ source('shop', 'more') }}",
    "models/kept.sql": "{{ config(sink='lake') }} select id from {{ source('shop', 'orders') }}",
}
OF_THE_PROJECT = "unused-config"


@pytest.fixture
def shop(tmp_path: Path) -> ProjectRequest:
    """A project with one warning each about a model, a source, a sink and the project."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return ProjectRequest(tmp_path)


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        ((), [OF_THE_PROJECT, "unknown-option", "unknown-option", "unbounded-state", "unwritten-model"]),
        (("plain",), [OF_THE_PROJECT]),
        (("written",), [OF_THE_PROJECT, "unbounded-state"]),
        (("counted",), [OF_THE_PROJECT, "unbounded-state"]),
        (("leaf",), [OF_THE_PROJECT, "unknown-option", "unwritten-model"]),
        (("source:shop.more",), [OF_THE_PROJECT, "unknown-option"]),
        (("kept",), [OF_THE_PROJECT, "unknown-option"]),
    ],
)
def test_warnings_are_about_the_selection_and_the_project(
    shop: ProjectRequest, select: tuple[str, ...], expected: list[str]
) -> None:
    """Each command warns about the selected nodes, their inputs and sinks, and the project."""
    selection = Selection(select)

    assert sorted(item.code for item in compile_models(shop, selection).findings) == sorted(expected)
    assert sorted(item.code for item in list_nodes(shop, selection).warnings) == sorted(expected)
