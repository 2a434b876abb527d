"""Unknown columns: the relations that were searched, and where their columns are declared."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream import Finding, FindingsError, ProjectRequest, compile_models

FILES = {
    "project.yml": "name: shop\n",
    "sources.yml": """sources:
  - name: shop
    tables:
      - {name: orders, format: json, path: in, schema: 'id int, amount double'}
""",
    "seeds/places.csv": "id,city\n1,Berlin\n",
    "models/clean.sql": "select id, amount as total from {{ source('shop', 'orders') }}",
}


def unknown(root: Path, sql: str) -> Finding:
    """Returns the `unknown-column` finding of a model with this SQL."""
    for name, text in {**FILES, "models/asked.sql": sql}.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    with pytest.raises(FindingsError) as caught:
        compile_models(ProjectRequest(root))
    (finding,) = (item for item in caught.value.findings if item.code == "unknown-column")
    return finding


@pytest.mark.parametrize(
    ("sql", "message", "why"),
    [
        ("select amout from {{ source('shop', 'orders') }}", "of source `shop.orders`", "sources.yml:4 declares"),
        ("select c.totl from {{ ref('clean') }} c", "of model `clean`", "models/clean.sql has `id`, `total`"),
        ("select citty from {{ ref('places') }}", "of seed `places`", "seeds/places.csv has `id`, `city`"),
        ("with a as (\n select 1 as x)\nselect y from a", "of `a`", "models/asked.sql:2 has `x`"),
        ("select y from (select 1 as x)", "of the subquery", "models/asked.sql:1 has `x`"),
        (
            "select zz from {{ ref('clean') }} a join {{ ref('places') }} b on a.id = b.id",
            "of model `clean` or seed `places`",
            "models/clean.sql has `id`, `total`; seeds/places.csv has `id`, `city`",
        ),
        (
            "select id, (select max(zz) from {{ ref('places') }}) as m from {{ ref('clean') }}",
            "of seed `places` or model `clean`",
            "seeds/places.csv has",
        ),
        ("select zz from {{ ref('clean') }} join {{ ref('places') }} using (id)", "of model", "models/clean.sql"),
        ("select 1 from {{ ref('clean') }} join {{ ref('places') }} using (city)", "of model `clean`", "models/clean"),
    ],
)
def test_the_relation_is_named_with_its_place(tmp_path: Path, sql: str, message: str, why: str) -> None:
    """The finding names the searched relations with their file, and with the line for sources, CTEs and subqueries."""
    finding = unknown(tmp_path, sql)

    assert finding.message.endswith(message) or message in finding.message
    assert why in finding.why


@pytest.mark.parametrize(
    ("written", "fix"),
    [
        ("x.total", "did you mean `c.total`?"),
        ("x.id", "did you mean `c.id` or `p.id`?"),
        ("x.zz", "use one of `c`, `p`"),
        ("places.city", "did you mean `p.city`?"),
    ],
)
def test_a_wrong_alias_gets_the_relations_in_scope(tmp_path: Path, written: str, fix: str) -> None:
    """The fix for a wrong alias suggests the relations in scope with the column, or else all of them."""
    finding = unknown(
        tmp_path, f"select {written} from {{{{ ref('clean') }}}} c join {{{{ ref('places') }}}} p on c.id = p.id"
    )

    assert (
        finding.why
        == "the relations in scope are `c` (model `clean`, models/clean.sql) and `p` (seed `places`, seeds/places.csv)"
    )
    assert finding.fix == fix


def test_the_line_of_a_source_is_not_cached(tmp_path: Path) -> None:
    """The line of a source is up to date after a line is added above it, also with a cache."""
    unknown(tmp_path, "select amout from {{ source('shop', 'orders') }}")
    (tmp_path / "sources.yml").write_text("# sources\n" + FILES["sources.yml"])

    with pytest.raises(FindingsError) as caught:
        compile_models(ProjectRequest(tmp_path))

    assert [item.why[:13] for item in caught.value.findings if item.code == "unknown-column"] == ["sources.yml:5"]


def test_an_unknown_source_lists_the_files_with_sources(tmp_path: Path) -> None:
    """An unknown source table lists the files that declare the source, or all sources if the source is unknown."""
    tables = "tables: [{name: t, format: json, path: in, schema: 'id int'}]"
    files = {
        "project.yml": "name: shop\n",
        "models/a/_a.yml": f"sources: [{{name: a, {tables}}}]\n",
        "models/b/_b.yml": f"sources: [{{name: b, {tables}}}]\n",
        "models/one.sql": "select * from {{ source('a', 'u') }}",
        "models/two.sql": "select * from {{ source('c', 't') }}",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    with pytest.raises(FindingsError) as caught:
        compile_models(ProjectRequest(tmp_path))

    one, two = (item for item in caught.value.findings if item.code == "unknown-source")
    assert one.why.endswith("; see `models/a/_a.yml`")
    assert two.why.endswith("; see `models/a/_a.yml`, `models/b/_b.yml`")
