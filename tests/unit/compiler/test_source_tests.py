"""Data tests of sources: what YAML can say, which queries check them, and where their mistakes are shown."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from sqlstream import FindingsError, ProjectRequest, compile_models
from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.graph import view_of

SOURCES = """
sources:
  - name: shop
    tables:
      - name: orders
        format: json
        path: in
        columns:
          - {name: id, data_type: bigint, data_tests: [COLUMN]}
          - {name: amount, data_type: double}
        data_tests: [ROW]
      - {name: refunds, format: json, path: refunds, schema: id bigint}
"""
FILES = {
    "project.yml": "name: shop\n",
    "sinks.yml": "sinks:\n  - {name: out, format: noop}\n",
    "models/orders.sql": "{{ config(sink='out') }}\nselect id, amount from {{ source('shop', 'orders') }} o\n",
    "models/refunds.sql": "{{ config(sink='out') }}\nselect id from {{ source('shop', 'refunds') }}\n",
}
TESTED = "model.shop.shop__orders"


def compiled(root: Path, column: str = "", row: str = "", files: Mapping[str, str] = {}) -> CompiledProject:
    """Compiles a project whose source has a test of a column, and one of the row."""
    text = SOURCES.replace("COLUMN", column).replace("ROW", row)
    for name, content in {**FILES, "sources.yml": text, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return compile_models(ProjectRequest(root)).loaded.compiled


def test_models_read_a_source_through_its_tests(tmp_path: Path) -> None:
    """Each model that reads the source reads a view of the same name, whose tests have the names of the source."""
    found = compiled(tmp_path, "not_null: {on_violation: drop}", "expression_is_true: {expression: amount > 0}")
    tested = found.models[TESTED]
    assert [test.name for test in tested.file.data_tests] == [
        "not_null_shop_orders_id",
        "expression_is_true_shop_orders",
    ]
    orders = found.models["model.shop.orders"]
    assert [(read.view, read.node_id) for read in orders.reads] == [("shop__orders", TESTED)]
    assert [(read.view, read.node_id) for read in tested.reads] == [("shop__orders", "source.shop.shop.orders")]
    assert view_of(TESTED) == view_of("source.shop.shop.orders")
    assert [read.node_id for read in found.models["model.shop.refunds"].reads] == ["source.shop.shop.refunds"]
    assert [column.name for column in found.columns["model.shop.orders"] or ()] == ["id", "amount"]


def test_a_source_without_enabled_tests_is_read_as_before(tmp_path: Path) -> None:
    """Without tests, there is no view."""
    assert TESTED not in compiled(tmp_path).models


@pytest.mark.parametrize(
    ("column", "row", "expected"),
    [
        ("not_null: {on_violation: quarantine}", "", "quarantine sources.yml:9:56"),
        ("not_nul", "", "invalid-value sources.yml:9:56"),
        ("", "expression_is_true: {expression: amout > 0}", "unknown-column sources.yml:11:22"),
        ("", "not_null", "invalid-value sources.yml:11:22"),
        ("unique: {on_violation: drop}", "", "data-test sources.yml:9:79"),
    ],
)
def test_mistakes_are_shown_at_the_test(tmp_path: Path, column: str, row: str, expected: str) -> None:
    """A test of a source is checked as that of a model; only a query of a model can have a quarantine."""
    with pytest.raises(FindingsError) as caught:
        compiled(tmp_path, column, row)
    assert [f"{found.code} {found.location}" for found in caught.value.findings] == [expected]


def test_the_view_has_a_name_that_no_model_can_have(tmp_path: Path) -> None:
    """A model with the name of the view is refused."""
    with pytest.raises(FindingsError) as caught:
        compiled(tmp_path, "not_null", files={"models/shop__orders.sql": "select 1 as id"})
    assert {found.code for found in caught.value.findings} == {"duplicate-name"}


def test_a_generic_test_can_be_a_test_of_a_source(tmp_path: Path) -> None:
    """A `{% test %}` block of the project tests the rows of the source, too."""
    block = (
        "{% test is_positive(model, column_name) %}select * from {{ model }} where {{ column_name }} < 0{% endtest %}"
    )
    found = compiled(tmp_path, "is_positive: {on_violation: drop}", files={"tests/generic/t.sql": block})
    (test,) = found.models[TESTED].file.data_tests
    assert (test.fails_if, test.action) == ("id < 0", "drop")
