"""Queries and chains of models of any depth compile or are skipped, and never overflow Python's stack."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import pytest

from sqlstream.app.compile.compile import compile_models
from sqlstream.app.compile.lineage import trace
from sqlstream.app.request import ProjectRequest
from sqlstream.errors import FindingsError

PROJECT = "name: p\nversion: 1.0.0\ndefault_target: a\ntargets:\n  a: {master: 'local[*]', storage: .s}\n"
SOURCES = """\
sources:
  - name: s
    tables:
      - {name: t, format: rate}
"""
SINKS = "sinks:\n  - {name: k, format: console}\n"
SOURCE = "{{ source('s', 't') }}"
CONFIG = "{{ config(sink='k', output_mode='update') }}"


def project(folder: Path, **models: str) -> ProjectRequest:
    """Writes a project with one source, one sink and the given models."""
    (folder / "models").mkdir(parents=True)
    for path, text in (("project.yml", PROJECT), ("sources.yml", SOURCES), ("sinks.yml", SINKS)):
        (folder / path).write_text(text)
    for name, text in models.items():
        (folder / "models" / f"{name}.sql").write_text(text)
    return ProjectRequest(folder, env={})


@pytest.mark.parametrize("times", [300, 3000])
@pytest.mark.parametrize(
    ("start", "more"),
    [
        (f"select value from {SOURCE}", f" union all select value from {SOURCE}"),
        (f"select value from {SOURCE} where value = 1", " or value = 1"),
        (f"select value from {SOURCE} where 1", " + 1"),
        ("select value[0].a" + "::int", "::int"),
        ("select value", "[0]"),
        ("select value", ".a"),
        ("select value", " || 'a'"),
    ],
)
def test_a_long_chain_of_operators_compiles(start: str, more: str, times: int, tmp_path: Path) -> None:
    """A query that sqlglot reads as a tree of thousands of levels compiles."""
    end = "" if "from" in start else " as x from (select array(struct(1 as a)) as value)"
    compiled = compile_models(project(tmp_path, m=start + more * times + end))
    assert [model.name for model in compiled.models] == ["m"]


def test_a_long_chain_of_models_is_followed(tmp_path: Path) -> None:
    """Lineage traces a column through a chain of a thousand models from the sink back to the source."""
    models = {"m0": f"select timestamp, value from {SOURCE}"}
    models |= {f"m{at}": f"select timestamp, value from {{{{ ref('m{at - 1}') }}}}" for at in range(1, 1000)}
    models["last"] = CONFIG + "select value, count(*) as n from {{ ref('m999') }} group by value"
    request = project(tmp_path, **models)
    assert len(compile_models(request).models) == 1001
    (value, _) = trace(request, "last").columns
    assert value.origins == {("source.p.s.t", "value")}


@pytest.mark.parametrize(
    ("start", "more", "end"),
    [
        ("select ", "f(", ""),
        ("select a", ", from a", ""),
        ("select ", "substring(a), ", "1"),
        ("select sum(value)", " + 1", f" from {SOURCE} group by value + 1"),
        (f"select 1 from {SOURCE} where timestamp in (", "array(1), ", "array(1))"),
        ("select 1", " = 1", ""),
        ("select a", " ?", ""),
        ("select ", "/*+ broadcast(a) */ ", "1"),
        (f"select 1 from {SOURCE}", " lateral view explode(a) t as b", ""),
        (f"select 1 from {SOURCE}", " pivot (max(value) for value in (1))", ""),
        (f"select 1 from {SOURCE}", " join (select 1 as a)", ""),
        (f"select 1 from {SOURCE} s", ", lateral (select 1 as a)", ""),
    ],
)
def test_the_work_grows_with_the_length_of_a_text(start: str, more: str, end: str, tmp_path: Path) -> None:
    """Four times the text needs about four times the calls of functions; with its square it would be sixteen times.

    A chain of cross joins is not in the list, because each join looks at the columns of all before it.
    """
    calls_of(project(tmp_path / "warm", m="select 1"))
    least = calls_of(project(tmp_path / "least", m="select 1"))
    short = calls_of(project(tmp_path / "short", m=start + more * 250 + end)) - least
    long = calls_of(project(tmp_path / "long", m=start + more * 1_000 + end)) - least
    assert long < 8 * short


def calls_of(request: ProjectRequest) -> int:
    """Returns how many functions a compilation calls, whether it succeeds or not."""
    calls = 0

    def count(_frame: object, event: str, _value: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        with suppress(FindingsError):
            compile_models(request)
    finally:
        sys.setprofile(None)
    return calls
