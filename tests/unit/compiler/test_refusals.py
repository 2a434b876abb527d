"""Which of Spark's refusals the compiler's own errors already explain."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream import ProjectRequest
from sqlstream.app.loading.load import try_load
from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.spark_findings import SparkRefusal, unexplained
from sqlstream.errors import Finding
from sqlstream.location import Location

FILES = {
    "project.yml": "name: shop\nversion: 1.0.0\ntargets: {local: {master: 'local[2]', storage: store}}\n",
    "sources.yml": "sources:\n  - name: shop\n    tables:\n      - {name: orders, format: json, path: in, schema: id int}\n",
    "sinks.yml": "sinks:\n  - {name: nowhere, format: noop}\n",
    "models/base.sql": "select id\nfrom {{ source('shop', 'orders') }}\nwhere id > 0\n",
    "models/top.sql": "{{ config(sink='nowhere',\n  output_mode='append') }}\nselect id\nfrom {{ ref('base') }}\n",
    "models/other.sql": "{{ config(sink='nowhere') }}\nselect id\nfrom {{ ref('base') }}\n",
}


@pytest.fixture
def compiled(tmp_path: Path) -> CompiledProject:
    """Returns a project with a source, a view over it, and two queries over the view."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    loaded = try_load(ProjectRequest(tmp_path, env={})).loaded
    assert loaded is not None
    return loaded.compiled


def _error(code: str, path: str, line: int, column: int = 1, *, calls: tuple[Location, ...] = ()) -> Finding:
    return Finding(code, "message", "why", "fix", Location(path, line, column), calls=calls)


def _is_explained(compiled: CompiledProject, error: Finding, refusal: SparkRefusal) -> bool:
    return unexplained(compiled, [error], [refusal]) == ()


ANALYSIS = SparkRefusal("model.shop.base", False, _error("sql-analysis", "models/base.sql", 3, 7))
UNPLACED = SparkRefusal("model.shop.base", False, _error("sql-analysis", "models/base.sql", 1))
BEGINNING = SparkRefusal("model.shop.top", False, _error("sql-analysis", "models/top.sql", 3, 1))
LEGALITY = SparkRefusal("model.shop.top", True, _error("output-mode", "models/top.sql", 2, 3))
SCHEMA = SparkRefusal("model.shop.top", True, _error("sink-schema", "models/top.sql", 1, 11))


@pytest.mark.parametrize(
    ("error", "refusal"),
    [
        (_error("unknown-column", "models/base.sql", 3, 20), ANALYSIS),
        (_error("not-grouped", "models/base.sql", 2), UNPLACED),
        (_error("unknown-column", "macros/m.sql", 2, calls=(Location("models/base.sql", 2, 1),)), UNPLACED),
        (_error("stream-subquery", "models/top.sql", 4, 6), BEGINNING),
        (_error("append-without-watermark", "models/base.sql", 2), LEGALITY),
        (_error("append-without-watermark", "models/top.sql", 3), LEGALITY),
        (_error("sink-schema", "models/top.sql", 3), SCHEMA),
    ],
)
def test_an_error_about_the_same_problem_explains_the_refusal(
    compiled: CompiledProject, error: Finding, refusal: SparkRefusal
) -> None:
    """An error on the same line, or in any model of the query if Spark gives no exact place, explains the refusal."""
    assert _is_explained(compiled, error, refusal)


@pytest.mark.parametrize(
    ("error", "refusal"),
    [
        (_error("unknown-column", "models/base.sql", 2), ANALYSIS),
        (_error("append-without-watermark", "models/base.sql", 2), UNPLACED),
        (_error("unknown-column", "models/base.sql", 2), BEGINNING),
        (_error("append-without-watermark", "models/top.sql", 4), BEGINNING),
        (_error("append-without-watermark", "models/other.sql", 2), LEGALITY),
        (_error("append-without-watermark", "models/top.sql", 3), SCHEMA),
        (_error("sink-schema", "models/other.sql", 3), SCHEMA),
    ],
)
def test_an_error_about_something_else_explains_nothing(
    compiled: CompiledProject, error: Finding, refusal: SparkRefusal
) -> None:
    """An error on another line, in another query or about another problem does not explain the refusal."""
    assert not _is_explained(compiled, error, refusal)


def test_an_error_at_a_source_explains_the_queries_that_read_it(compiled: CompiledProject) -> None:
    """An error about a source's watermark explains refusals of the queries that read the source."""
    error = Finding("two-watermarks", "message", "why", "fix", compiled.project.sources[0].location)
    assert _is_explained(compiled, error, LEGALITY)


def test_an_error_about_the_configuration_explains_no_query(compiled: CompiledProject) -> None:
    """An error about the configuration does not explain a refusal of the SQL in the same file."""
    place = compiled.models["model.shop.top"].config_locations["sink"]
    assert not _is_explained(compiled, Finding("shared-output", "message", "why", "fix", place), LEGALITY)


def test_a_refusal_without_a_place_is_kept(compiled: CompiledProject) -> None:
    """A refusal without a place is always kept."""
    refusal = SparkRefusal("model.shop.top", True, Finding("output-mode", "message", "why", "fix"))
    assert not _is_explained(compiled, _error("append-without-watermark", "models/top.sql", 3), refusal)
