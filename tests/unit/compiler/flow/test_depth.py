"""Queries and chains of models of any depth compile or are skipped, and never overflow Python's stack."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import pytest

from sqlstream.app.compile import compile_models
from sqlstream.app.lineage import trace
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
    (folder / "models").mkdir()
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
    "text",
    [
        "select " + "f(" * 20_000,
        "select a" + ", from a" * 10_000,
        "select " + "substring(a), " * 5_000 + "1",
        f"select sum(value){' + 1' * 10_000} from {SOURCE} group by value + 1",
        f"select 1 from {SOURCE} where timestamp in ({'array(1), ' * 10_000} array(1))",
        "select 1" + " = 1" * 3_000,
        "select a" + " ?" * 3_000,
        "select " + "/*+ broadcast(a) */ " * 5_000 + "1",
        f"select 1 from {SOURCE}" + " lateral view explode(a) t as b" * 3_000,
        f"select 1 from {SOURCE}" + " pivot (max(value) for value in (1))" * 3_000,
        f"select 1 from {SOURCE}" + " join (select 1 as a)" * 5_000,
        f"select 1 from {SOURCE}" + " cross join (select 1 as a)" * 5_000,
        f"select 1 from {SOURCE} s" + ", lateral (select 1 as a)" * 5_000,
        f"select 1 from {SOURCE}" + f", {SOURCE}" * 5_000,
    ],
)
def test_a_long_text_takes_little_time(text: str, tmp_path: Path) -> None:
    """Compile time does not grow with the square of the text: even extreme texts take less than five seconds."""
    request = project(tmp_path, m=text)
    started = time.process_time()
    with suppress(FindingsError):
        compile_models(request)
    assert time.process_time() - started < 5
