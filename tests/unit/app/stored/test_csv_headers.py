"""The headers of CSV files are compared with the declared columns, which Spark reads by position."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from sqlstream import ProjectRequest
from sqlstream.app.loading.load import load
from sqlstream.app.plan.plan import plan_project
from sqlstream.app.request import PlanRequest
from sqlstream.app.stored.local_sources import header_findings
from sqlstream.location import Location
from sqlstream.state.verdicts import Verdict

FILES = {
    "project.yml": "name: shop\ntargets: {local: {master: local, storage: s}}\n",
    "sinks.yml": "sinks:\n  - {name: nowhere, format: noop}\n",
    "models/a.sql": "{{ config(sink='nowhere') }} select * from {{ source('shop', 'prices') }}",
}
SOURCE = "sources:\n  - name: shop\n    tables:\n      - name: prices\n        format: csv\n        path: in\n"
HEADER = "header: true"


def found(root: Path, schema: str, text: str, options: str = HEADER, name: str = "in/0.csv") -> list[Location | None]:
    """Returns where a project with this source and this file is refused."""
    source = f"{SOURCE}        schema: {schema}\n        options: {{{options}}}\n"
    for path, content in {**FILES, "sources.yml": source, name: text}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        opened = gzip.open if path.endswith(".gz") else open
        with opened(root / path, "wt", encoding="latin-1" if "8859" in options and path == name else "utf-8") as file:
            file.write(content)
    compiled = load(ProjectRequest(root, env={})).compiled
    findings = header_findings(compiled, compiled.sources)
    assert {finding.code for finding in findings} <= {"csv-header"}
    return [finding.location for finding in findings]


REFUSED = [Location("sources.yml", 7, 17)]


@pytest.mark.parametrize(
    ("schema", "text", "options"),
    [
        ("a int, b int", "b,a\n1,2\n", HEADER),
        ("a int, b int, c int", "a,c,b\n", HEADER),
        ("b int, c int", "a,b,c\n1,2,3\n", HEADER),
        ("a int, b int", "A,x,B\n", HEADER),
        ("a int, b int", "# comment\n\nb;a\n", "header: true, sep: ';', comment: '#'"),
        ("a int, b int", "'b','a'\n", 'header: true, quote: "\'"'),
        ("a int, b int", "b\ta\n", r"header: true, sep: '\t'"),
        ("a int, `größe` int", "größe,a\n", "header: true, encoding: ISO-8859-1"),
        ("a int, b int", "\ufeffb,a\n", HEADER),
    ],
)
def test_a_declared_column_in_another_position_is_refused(tmp_path: Path, schema: str, text: str, options: str) -> None:
    """Spark would give the column the values of another one, with any separator, quotes and encoding."""
    assert found(tmp_path, schema, text, options) == REFUSED
    (tmp_path / "in/0.csv").unlink()
    assert found(tmp_path, schema, text, options, "in/0.csv.gz") == REFUSED


@pytest.mark.parametrize(
    ("schema", "text", "options"),
    [
        ("a int, b int", "a,b\n1,2\n", HEADER),
        ("a int, b int", "A, b \n1,2\n", HEADER),
        ("a int, b int", "\ufeffa,b\n1,2\n", HEADER),
        ("a int, b int", "a,b,c\n1,2,3\n", HEADER),
        ("a int, b int", "a\n1\n", HEADER),
        ("a int, total int", "a,sum\n1,2\n", HEADER),
        ("a int, b int", "", HEADER),
        ("a int, b int", "b,a\n1,2\n", "header: true, enforceSchema: true"),
        ("a int, b int", "b,a\n1,2\n", "header: false"),
        ("a int, b int", "b,a,a\n1,2,3\n", "header: true, pathGlobFilter: '*.txt'"),
        ("a int, b int", "x::y\n", "header: true, sep: '::'"),
    ],
)
def test_what_spark_reads_rightly_is_not_refused(tmp_path: Path, schema: str, text: str, options: str) -> None:
    """Renamed columns, further ones and missing ones keep their positions; without a header there is nothing to compare."""
    assert found(tmp_path, schema, text, options) == []


def test_columns_in_folder_names_have_no_position(tmp_path: Path) -> None:
    """A declared column that is in the names of folders is not in the files."""
    assert found(tmp_path, "day date, a int, b int", "a,b\n1,2\n", name="in/day=2024-01-01/0.csv") == []


def test_the_newest_file_counts_too(tmp_path: Path) -> None:
    """One file in another order among right ones is found."""
    assert found(tmp_path, "a int, b int", "a,b\n1,2\n") == []
    assert found(tmp_path, "a int, b int", "b,a\n1,2\n", name="in/1.csv") == REFUSED


def test_a_plan_without_spark_refuses_what_a_run_refuses(tmp_path: Path) -> None:
    """`plan` reads the headers of local files, too, also for a query without a checkpoint."""
    assert found(tmp_path, "a int, b int", "b,a\n1,2\n") == REFUSED

    (query,) = plan_project(PlanRequest(ProjectRequest(tmp_path, env={}))).queries

    assert query.verdict is Verdict.REFUSE
    assert [(each.code, each.location) for each in query.findings] == [("csv-header", REFUSED[0])]
    (tmp_path / "in/0.csv").write_text("a,b\n1,2\n")
    (query,) = plan_project(PlanRequest(ProjectRequest(tmp_path, env={}))).queries
    assert query.verdict is Verdict.NEW
