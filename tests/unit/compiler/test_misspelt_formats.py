"""Misspelt formats, and formats that only Spark may know."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream.app.loading.load import load
from sqlstream.app.request import ProjectRequest
from sqlstream.errors import FindingsError

SOURCES = "sources:\n  - {{name: s, tables: [{{name: t, format: {}, schema: a int, path: in}}]}}\n"


def codes(root: Path, format_name: str, target: str = "") -> list[str]:
    """Returns the error codes of a project whose only source has this format."""
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
def test_a_similar_name_is_an_error(tmp_path: Path, name: str) -> None:
    """On a target without packages, a format similar to one of Spark's formats is an error."""
    assert codes(tmp_path, name) == ["unknown-format"]


@pytest.mark.parametrize("name", ["json", "JSON", "hudi", "org.example.Json", "console"])
def test_other_names_give_no_error(tmp_path: Path, name: str) -> None:
    """Spark's formats in any letter case, and names unlike any of them, give no error."""
    assert codes(tmp_path, name) == []


@pytest.mark.parametrize(
    "target",
    [
        "packages: ['org.example:jsn:1.0']",
        "spark: {spark.jars: jsn.jar}",
        "master: 'spark://host:7077', storage: 's3a://bucket/x'",
    ],
)
def test_a_package_or_cluster_may_provide_any_format(tmp_path: Path, target: str) -> None:
    """A misspelt format gives no error on a cluster or a target with packages, which may provide it."""
    assert codes(tmp_path, "jsn", target) == []
