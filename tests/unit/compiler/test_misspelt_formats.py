"""Misspelt formats, and when Spark may know a format that sqlstream does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream.app.loading.load import load
from sqlstream.app.request import ProjectRequest
from sqlstream.errors import FindingsError

SOURCES = "sources:\n  - {{name: s, tables: [{{name: t, format: {}, schema: a int, path: in}}]}}\n"


def codes(root: Path, format_name: str, target: str = "") -> list[str]:
    """Returns the codes of the findings of a project whose one source has that format."""
    (root / "models").mkdir()
    (root / "project.yml").write_text(f"name: p\ntargets: {{local: {{{target}}}}}\n")
    (root / "sources.yml").write_text(SOURCES.format(format_name))
    (root / "models/m.sql").write_text("select * from {{ source('s', 't') }}")
    try:
        load(ProjectRequest(root))
    except FindingsError as error:
        return [finding.code for finding in error.findings if finding.is_error]
    return []


@pytest.mark.parametrize("name", ["jsn", "JSNO", "parqet", "txt", "kafak", "cvs"])
def test_a_near_miss_is_a_misspelling(tmp_path: Path, name: str) -> None:
    """Where the target adds no packages, nothing but Spark's own formats can be meant."""
    assert codes(tmp_path, name) == ["unknown-format"]


@pytest.mark.parametrize("name", ["json", "JSON", "iceberg", "org.example.Json", "console"])
def test_other_names_are_for_spark_to_judge(tmp_path: Path, name: str) -> None:
    """Its own in any case, and those that resemble none."""
    assert codes(tmp_path, name) == []


@pytest.mark.parametrize(
    "target",
    [
        "packages: ['org.example:jsn:1.0']",
        "spark: {spark.jars: jsn.jar}",
        "master: 'spark://host:7077', storage: 's3a://bucket/x'",
    ],
)
def test_a_package_may_have_any_format(tmp_path: Path, target: str) -> None:
    """And so may a cluster."""
    assert codes(tmp_path, "jsn", target) == []
