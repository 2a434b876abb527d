"""Data tests in selections: listed, and selected by name, kind, model and source."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream import FindingsError, ProjectRequest
from sqlstream.app.compile.ls import list_nodes
from sqlstream.app.data_tests.check_data import check_data
from sqlstream.app.data_tests.results import DataTestRequest
from sqlstream.app.request import Selection

FILES = {
    "project.yml": "name: shop\n",
    "sources.yml": "sources:\n  - name: shop\n    tables:\n      - {name: orders, format: json, path: in, "
    "columns: [{name: id, data_type: bigint, data_tests: [not_null]}]}\n",
    "sinks.yml": "sinks:\n  - {name: out, format: noop}\n",
    "models/orders.sql": "{{ config(sink='out') }}\nselect id from {{ source('shop', 'orders') }}\n",
    "models/orders.yml": "models:\n  - name: orders\n    columns: [{name: id, data_tests: [not_null, unique]}]\n"
    "    data_tests: [{expression_is_true: {name: positive, expression: id > 0, config: {tags: [nightly]}}}]\n",
}
OF_SOURCE = "test:shop__orders.not_null_shop_orders_id"
NOT_NULL, UNIQUE, POSITIVE = (f"test:orders.{name}" for name in ("not_null_orders_id", "unique_orders_id", "positive"))


@pytest.fixture
def project(tmp_path: Path) -> ProjectRequest:
    """A project with data tests of a model and of a source."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return ProjectRequest(tmp_path)


@pytest.mark.parametrize(
    ("selected", "expected"),
    [
        ((), {OF_SOURCE, NOT_NULL, UNIQUE, POSITIVE}),
        (("orders",), {NOT_NULL, UNIQUE, POSITIVE}),
        (("source:shop.orders",), {OF_SOURCE}),
        (("tag:nightly",), {POSITIVE}),
        (("test_name:not_null",), {OF_SOURCE, NOT_NULL}),
        (("test_name:orders.positive",), {POSITIVE}),
        (("orders,test_name:*_id",), {NOT_NULL, UNIQUE}),
        (("positive",), {POSITIVE}),
    ],
)
def test_tests_are_listed_by_type(project: ProjectRequest, selected: tuple[str, ...], expected: set[str]) -> None:
    """`ls --resource-type test` lists the tests of the selected models and sources, and tests by name and kind."""
    found = list_nodes(project, Selection(select=selected, resource_types=("test",)))
    assert set(found.names) == expected
    assert {entry["resource_type"] for entry in found.entries} == {"test"}


def test_a_named_test_is_listed_without_its_type(project: ProjectRequest) -> None:
    """`ls -s test_name:…` lists data tests; without a name of a test `ls` lists none."""
    assert list_nodes(project, Selection(select=("test_name:unique",))).names == (UNIQUE,)
    assert not any(name.startswith("test:") for name in list_nodes(project).names)
    with pytest.raises(FindingsError) as caught:
        list_nodes(project, Selection(select=("test_name:uniqe",)))
    (found,) = caught.value.findings
    assert (found.code, found.fix) == ("empty-selection", "did you mean `test_name:unique`?")


SELECTORS = """selectors:
  - {name: unique, definition: 'test_name:unique'}
  - {name: indirect, definition: {method: selector, value: unique}}
  - name: fast
    definition:
      union: ["fqn:orders", {exclude: ["test_name:unique"]}]
  - name: both
    definition:
      union: [{method: selector, value: fast}, "test_name:unique"]
"""


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(selector="unique"), {UNIQUE}),
        (Selection(selector="indirect"), {UNIQUE}),
        (Selection(selector="fast"), {NOT_NULL, POSITIVE}),
        (Selection(selector="both"), {NOT_NULL, POSITIVE, UNIQUE}),
        (Selection(exclude=("test_name:unique",)), {OF_SOURCE, NOT_NULL, POSITIVE}),
        (Selection(select=("orders",), exclude=("test_name:not_null test_name:positive",)), {UNIQUE}),
        (Selection(exclude=("orders",)), set()),
    ],
)
def test_selectors_and_exclude_name_tests(project: ProjectRequest, selection: Selection, expected: set[str]) -> None:
    """`ls --selector` and `ls --exclude` find data tests that a criterion names, as `--select` does, and `test --data`
    checks the same tests.
    """
    (project.folder / "selectors.yml").write_text(SELECTORS)
    assert {name for name in list_nodes(project, selection).names if name.startswith("test:")} == expected
    if expected:
        checked = check_data(DataTestRequest(project, selection))
        assert {f"test:{each.model}.{each.name}" for each in checked.results} == expected
