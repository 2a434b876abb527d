"""The references and configuration of a Python model, read without running it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sqlstream import FindingsError, ProjectRequest
from sqlstream.app.loading.load import Loaded, load
from sqlstream.compiler.manifest.manifest import build_manifest
from sqlstream.compiler.manifest.state_method import find_states
from sqlstream.compiler.sql.sql_text import python_fingerprint

FILES = {
    "project.yml": "name: shop\nvars: {least: 2}\n",
    "sources.yml": "sources: [{name: shop, tables: [{name: orders, format: json, path: in, schema: id int}]}]\n",
    "sinks.yml": "sinks: [{name: lake, format: json, path: '{{ model.name }}'}]\n",
    "models/after.sql": "{{ config(sink='lake') }} select anything from {{ ref('large') }}",
}
LARGE = """import nothing_that_is_installed


def model(sqlstream, spark):
    sqlstream.config(sink="lake", tags=["a"], deduplicate=["id"])
    one = sqlstream.source("shop", "orders")
    return one.join(sqlstream.source("shop", "orders"), "id").where(f"id > {sqlstream.var('least')}")
"""


def loaded(folder: Path, text: str) -> Loaded:
    """Returns the project with the Python model `large`."""
    for name, content in {**FILES, "models/deep/large.py": text}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return load(ProjectRequest(folder))


def manifest(project: Loaded) -> dict[str, Any]:
    """Returns the project's manifest."""
    return build_manifest(project.compiled, generated_at="now", invocation_id="one")


def test_a_python_model_is_compiled_without_imports(tmp_path: Path) -> None:
    """A Python model has its sink, its parents and a read for each reference, and its imports are not run."""
    compiled = loaded(tmp_path, LARGE).compiled
    model = compiled.models["model.shop.large"]

    assert (model.config.sink, model.config.tags, model.streaming) == ("lake", ("a",), True)
    assert [read.view for read in model.reads] == ["shop__orders", "shop__orders#2"]
    assert compiled.graph.parents["model.shop.after"] == ("model.shop.large",)
    assert compiled.columns == {"model.shop.large": None, "model.shop.after": compiled.columns["model.shop.after"]}
    assert model.compiled_path == "compiled/shop/models/deep/large.py"
    assert model.sql == LARGE + "# sqlstream: deduplicate by id\n"


def test_a_python_model_is_compared_by_its_text(tmp_path: Path) -> None:
    """Any change of a Python model's text marks it as modified, except white space around the text."""
    old = manifest(loaded(tmp_path, LARGE))
    same = find_states(old, manifest(loaded(tmp_path, LARGE)))
    new = find_states(old, manifest(loaded(tmp_path, LARGE + "# a comment\n")))

    assert "unmodified" in same["model.shop.large"]
    assert {"modified", "modified.body"} <= new["model.shop.large"]


def test_the_fingerprint_of_a_python_model_has_its_code_and_variables() -> None:
    """Comments and layout do not count, code and the values of variables do."""
    found = python_fingerprint("a = 1\n", {})

    assert found == python_fingerprint("a = 1  # one", {})
    assert found not in (python_fingerprint("a = 2", {}), python_fingerprint("a = 1", {"least": "2"}))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("return sqlstream.ref('larg')", ["unknown-ref 2:12"]),
        ("return sqlstream.ref('large')", ["cycle 2:12"]),
        ("return sqlstream.source('shop', 'order')", ["unknown-source 2:12"]),
        ("sqlstream.config(snik='lake')", ["unknown-key 2:22"]),
        ("sqlstream.config(**{})", ["python-model 2:5"]),
        ("sqlstream.config({})", ["python-model 2:5"]),
        ("x = sqlstream", ["python-model 2:9"]),
        ("é = 'é'; x = sqlstream.ref", ["python-model 2:18"]),
        ("sqlstream.var('missing', 1); sqlstream.var('missing')", ["missing-var 2:34"]),
        ("return (", ["python-model 2:12"]),
    ],
)
def test_a_mistake_is_found_at_its_place(tmp_path: Path, line: str, expected: list[str]) -> None:
    """A mistake in a Python model is found at its line and column, counted in characters."""
    with pytest.raises(FindingsError) as caught:
        loaded(tmp_path, f"def model(sqlstream, spark):\n    {line}\n")
    found = [item for item in caught.value.findings if item.location]
    assert [f"{item.code} {item.location.line}:{item.location.column}" for item in found if item.location] == expected


def test_allow_comments_work_in_python(tmp_path: Path) -> None:
    """A Python comment can be an allow comment; one that allows nothing gives an info."""
    text = LARGE + "# sqlstream: allow repeated-state because there are few orders\n"
    assert loaded(tmp_path, text).findings == ()
    text = text.replace("repeated", "unbounded")
    assert {item.code for item in loaded(tmp_path, text).findings} == {"repeated-state", "unused-allow"}
