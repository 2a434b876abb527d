"""Columns declared in properties files are compared with the columns that the compiler infers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from sqlstream import ProjectRequest, compile_models
from sqlstream.app.loading.load import try_load

SCHEMA = "id bigint, name char(5), s struct<a: int, b: array<string>>, m map<string, double>"
FILES = {
    "project.yml": "name: shop\n",
    "sources.yml": f"sources:\n  - name: shop\n    tables: [{{name: orders, format: json, path: in, schema: '{SCHEMA}'}}]\n",
    "sinks.yml": "sinks:\n  - {name: out, format: noop}\n",
    "models/orders.sql": "{{ config(sink='out') }} select id, name, s, m from {{ source('shop', 'orders') }}",
}


def warnings(root: Path, declared: str) -> list[str]:
    """Returns the code and place of each warning about a model with this declared column."""
    files = {**FILES, "models/orders.yml": f"models:\n  - name: orders\n    columns:\n      - {declared}\n"}
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    found = compile_models(ProjectRequest(root)).loaded.warnings
    return [f"{finding.code} {finding.location}" for finding in found]


@pytest.mark.parametrize(
    "declared",
    [
        "{name: id}",
        "{name: ID, data_type: long}",
        "{name: name, data_type: string}",
        "{name: name, data_type: varchar(10)}",
        "{name: s, data_type: 'struct<A: integer not null, b: array<string>>'}",
        "{name: m, data_type: 'map<string, double>'}",
    ],
)
def test_matching_columns_have_no_finding(tmp_path: Path, declared: str) -> None:
    """Declared columns match in any letter case, with any alias of the type and with or without `not null`."""
    assert warnings(tmp_path, declared) == []


@pytest.mark.parametrize(
    ("declared", "place"),
    [
        ("{name: idd}", "4:16"),
        ("{name: id, data_type: int}", "4:31"),
        ("{name: id, data_type: bigin}", "4:31"),
        ("{name: s, data_type: 'struct<a: int, c: array<string>>'}", "4:30"),
        ("{name: s, data_type: 'struct<a: int, b: array<int>>'}", "4:30"),
        ("{name: m, data_type: 'map<string, int>'}", "4:30"),
        ("{name: m, data_type: string}", "4:30"),
    ],
)
def test_different_columns_give_a_warning(tmp_path: Path, declared: str, place: str) -> None:
    """An unknown column, a different type or an invalid type gives a warning at its place."""
    assert warnings(tmp_path, declared) == [f"declared-column models/orders.yml:{place}"]


def test_unknown_columns_are_not_compared(tmp_path: Path) -> None:
    """Declared columns are not compared if the model's columns are unknown, as for Python models and Delta sources."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "python_model.py").write_text(
        "def model(sqlstream, spark):\n    sqlstream.config(sink='out')\n    return sqlstream.source('shop', 'orders')\n"
    )
    (tmp_path / "models" / "more.yml").write_text(
        "models:\n  - {name: python_model, columns: [{name: anything}]}\n  - {name: from_hudi, columns: [{name: anything}]}\n"
        "sources:\n  - {name: lake, tables: [{name: orders, format: hudi, path: in}]}\n"
    )
    (tmp_path / "models" / "from_hudi.sql").write_text(
        "{{ config(sink='out') }} select * from {{ source('lake', 'orders') }}"
    )

    assert warnings(tmp_path, "{name: id}") == []


ORDERS = "{{ config(sink='out', contract={'enforced': true}) }}\n"


def contract(root: Path, sql: str, columns: str, more: Mapping[str, str] = {}) -> list[str]:
    """Returns the code and place of each finding about a model with an enforced contract."""
    properties = f"models:\n  - name: orders\n    columns: [{columns}]\n"
    for name, text in {**FILES, "models/orders.sql": ORDERS + sql, "models/orders.yml": properties, **more}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return [f"{finding.code} {finding.location}" for finding in try_load(ProjectRequest(root)).findings]


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("select id, name from {{ source('shop', 'orders') }}", "{name: id, data_type: long}, {name: name, data_type: string}"),
        ("select id as ID from {{ source('shop', 'orders') }}", "{name: id, data_type: bigint}"),
        ("select s, m from {{ source('shop', 'orders') }}", "{name: s, data_type: 'struct<a: int, b: array<string>>'}, {name: m, data_type: 'map<string, double>'}"),
        ("select count(*) from {{ source('shop', 'orders') }}", "{name: count(1), data_type: bigint}"),
        ("select my_function(id) as x from {{ source('shop', 'orders') }}", "{name: x, data_type: date}"),
    ],
)  # fmt: skip
def test_a_model_that_keeps_its_contract_has_no_finding(tmp_path: Path, sql: str, columns: str) -> None:
    """Names match in any letter case, and types with any alias; what only Spark knows is no finding."""
    found = contract(tmp_path, sql, columns)

    assert [finding for finding in found if finding.startswith("contract")] == []


SOURCE = " from {{ source('shop', 'orders') }}"


@pytest.mark.parametrize(
    ("sql", "columns", "places"),
    [
        (f"select id, name{SOURCE}", "{name: id, data_type: bigint}", ["2:11"]),
        (f"select id{SOURCE}", "{name: id, data_type: bigint}, {name: idd, data_type: bigint}", ["3:53"]),
        (f"select id{SOURCE}", "{name: id, data_type: int}", ["3:37"]),
        (f"select id{SOURCE}", "{name: id}", ["3:22"]),
        (f"select id{SOURCE}", "", ["models/orders.sql:1:23"]),
        (
            f"select name, id{SOURCE}",
            "{name: id, data_type: bigint}, {name: name, data_type: string}",
            ["3:22"],
        ),
        (f"select id, id{SOURCE}", "{name: id, data_type: bigint}", ["2:11"]),
        (f"select s, name{SOURCE}", "{name: s, data_type: 'struct<a: int>'}, {name: n, data_type: string}", ["2:11", "3:36", "3:62"]),
    ],
)  # fmt: skip
def test_each_difference_is_an_error_at_the_declaration(
    tmp_path: Path, sql: str, columns: str, places: list[str]
) -> None:
    """An enforced contract makes each difference in names, types and order an error."""
    expected = {f"contract {place if 'sql' in place else f'models/orders.yml:{place}'}" for place in places}

    assert set(contract(tmp_path, sql, columns)) == expected


def test_a_contract_of_a_folder_can_be_turned_off(tmp_path: Path) -> None:
    """Like every other key, the last place that sets `contract` counts: project.yml, properties, then config()."""
    more = {
        "project.yml": "name: shop\nmodels:\n  +contract: {enforced: true}\n",
        "models/orders.sql": "{{ config(sink='out', contract={'enforced': false}) }} select id" + SOURCE,
        "models/others.sql": "{{ config(sink='out') }} select id" + SOURCE,
        "models/third.sql": "{{ config(sink='out') }} select id" + SOURCE,
        "models/others.yml": "models:\n  - {name: others, config: {contract: {enforced: false}}}\n",
    }

    assert contract(tmp_path, "", "", more) == ["contract project.yml:3:3"]


def test_a_query_of_a_further_sink_has_the_contract_of_its_model(tmp_path: Path) -> None:
    """The columns of the queries of further sinks are those of the model, which is checked once."""
    more = {
        "sinks.yml": "sinks:\n  - {name: out, format: noop}\n  - {name: also, format: noop}\n",
        "models/orders.sql": "{{ config(sink=['out', 'also'], contract={'enforced': true}) }} select id" + SOURCE,
    }

    assert contract(tmp_path, "", "{name: id, data_type: int}", more) == ["contract models/orders.yml:3:37"]


def test_the_message_names_the_place_in_the_select_list(tmp_path: Path) -> None:
    """A finding about one column says where the model selects it."""
    sql = f"with a as (select id{SOURCE})\nselect all\n  id,\n  (select 1) as one\nfrom a"
    contract(tmp_path, sql, "{name: id, data_type: int}, {name: one, data_type: int}")

    (finding,) = try_load(ProjectRequest(tmp_path)).findings
    assert "models/orders.sql:4:3" in finding.why


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("id > 0 and name like 'a%'", ""),
        ("id > 0 -- positive", ""),
        ("upper(NAME) = 'A' and `s`.a > 0 and m['x'] > 0", ""),
        ("idd > 0", "unknown-column"),
        ("s.c > 0", "unknown-field"),
        ("id + 1", "type-mismatch"),
        ("count(*) > 0", "misplaced-function"),
        ("(id > 0", "sql-syntax"),
        ("name like 'a", "sql-syntax"),
    ],
)
def test_expressions_of_constraints_are_checked(tmp_path: Path, expression: str, code: str) -> None:
    """A mistake in the expression of a check constraint, of a column or of the model, is found at the constraint, once."""
    columns = "".join(
        f"      - {{name: {name}, data_type: '{type_}'}}\n"
        for name, type_ in (("name", "string"), ("s", "struct<a: int, b: array<string>>"), ("m", "map<string, double>"))
    )
    check = f'{{type: check, expression: "{expression}"}}'
    for place, of_column, of_model in (("4:53", check, ""), ("9:9", "", check)):
        more = {
            "sinks.yml": "sinks:\n  - {name: out, format: noop}\n  - {name: also, format: noop}\n",
            "models/orders.sql": "{{ config(sink=['out', 'also'], contract={'enforced': true}) }} select id, name, s, m"
            + SOURCE,
            "models/orders.yml": "models:\n  - name: orders\n    columns:\n"
            f"      - {{name: id, data_type: bigint, constraints: [{of_column}]}}\n{columns}"
            + (f"    constraints:\n      - {of_model}\n" if of_model else ""),
        }
        found = contract(tmp_path, "", "", more)

        assert found == ([f"{code} models/orders.yml:{place}"] if code else [])


def test_an_expression_that_only_spark_can_parse_is_no_error(tmp_path: Path) -> None:
    """Without Spark's parser, an expression that sqlglot cannot parse gives a warning."""
    check = "constraints: [{type: check, expression: id > 0 and}]"
    sql = f"select id{SOURCE}"

    assert contract(tmp_path, sql, f"{{name: id, data_type: bigint, {check}}}") == [
        "not-followed models/orders.sql:1:1"
    ]
