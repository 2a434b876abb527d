"""The compiler finds the keys of joins of two streams in the conditions in which Spark's planner finds them."""

from __future__ import annotations

import pytest

from sqlstream import FindingsError, ProjectRequest, compile_models
from tests.corpus.judged_queries import JOINED, judged_joins

SOURCES = f"""sources:
  - name: s
    tables:
      - {{name: a, format: json, path: in, schema: "{JOINED}"}}
      - {{name: b, format: json, path: in, schema: "{JOINED}"}}
"""


@pytest.fixture(scope="module")
def without_key(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    """The queries of `judged_joins` with the error that a join has no key."""
    root, queries = tmp_path_factory.mktemp("joins"), [query for _, query in judged_joins()]
    (root / "models").mkdir()
    (root / "project.yml").write_text("name: joins\n")
    (root / "sources.yml").write_text(SOURCES)
    (root / "sinks.yml").write_text("sinks: [{name: out, format: noop}]\n")
    for number, query in enumerate(queries):
        views = "a as (select * from {{ source('s', 'a') }}), b as (select * from {{ source('s', 'b') }})"
        (root / f"models/m{number}.sql").write_text(f"{{{{ config(sink='out') }}}} with {views} {query}")
    with pytest.raises(FindingsError) as refused:
        compile_models(ProjectRequest(root))
    codes = ((finding.location, finding.code) for finding in refused.value.findings)
    paths = {place.path for place, code in codes if place is not None and code == "join-without-key"}
    return frozenset(queries[int(path.removeprefix("models/m").removesuffix(".sql"))] for path in paths)


@pytest.mark.parametrize(("verdict", "has_error"), [("+", False), ("-", True), ("?", False)])
def test_keys_are_found_where_spark_finds_them(without_key: frozenset[str], verdict: str, has_error: bool) -> None:
    """A join has the error if and only if the list says that Spark refuses it and the compiler can know."""
    queries = [query for judged, query in judged_joins() if judged == verdict]

    assert [query for query in queries if (query in without_key) != has_error] == []
