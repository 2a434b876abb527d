"""Data tests of models: what YAML can say, the conditions that they become, and where their mistakes are shown."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest

from sqlstream import FindingsError, ProjectRequest, compile_models
from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.connectors import needed_connectors
from sqlstream.compiler.rewrite.data_tests import kept_rows, offset_of_test, passes, without_tests

FILES = {
    "project.yml": "name: shop\n",
    "sources.yml": "sources:\n  - name: shop\n    tables:\n      - {name: orders, format: json, path: in, schema: "
    "'id bigint, amount double, status string, tags array<string>'}\n",
    "sinks.yml": "sinks:\n  - {name: out, format: noop}\n",
    "models/orders.sql": "{{ config(sink='out') }}\nselect id, amount, status, tags\nfrom {{ source('shop', 'orders') }}\n",
}


def compiled(root: Path, columns: str = "", own: str = "", model: str = FILES["models/orders.sql"]) -> CompiledProject:
    """Compiles a project whose model has data tests of `columns` (lines of YAML), and its `own`."""
    text = "models:\n  - name: orders\n"
    text += "    columns:\n" + textwrap.indent(columns, " " * 6) + "\n" if columns else ""
    text += "    data_tests:\n" + textwrap.indent(own, " " * 6) + "\n" if own else ""
    for name, content in {**FILES, "models/orders.sql": model, "models/orders.yml": text}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return compile_models(ProjectRequest(root)).loaded.compiled


def findings(root: Path, columns: str = "", own: str = "") -> list[str]:
    """Returns the code, the place and the message of each error."""
    with pytest.raises(FindingsError) as caught:
        compiled(root, columns, own)
    return [f"{found.code} {found.location}: {found.message}" for found in caught.value.findings]


def conditions(root: Path, columns: str = "", own: str = "") -> dict[str, str]:
    """Returns the condition of each test by its name."""
    (model,) = compiled(root, columns, own).models.values()
    return {test.name: passes(test) for test in model.file.data_tests}


@pytest.mark.parametrize(
    ("test", "condition"),
    [
        ("not_null", "`status` is not null"),
        ("not_null: {config: {severity: warn}}", "`status` is not null"),
        ("not_null: {config: {store_failures_as: view}}", None),
        ("accepted_values: {values: [paid, open]}", "`status` in ('paid', 'open')"),
        ("accepted_values: {arguments: {values: [\"it's\", 'a\\b']}}", r"`status` in ('it\'s', 'a\\b')"),
        ("accepted_values: {values: [1, 2.5, true], quote: false}", "`status` in (1, 2.5, true)"),
        ("accepted_values: {values: [upper('a')], quote: false}", "`status` in (upper('a'))"),
        ("accepted_range: {min_value: 0, max_value: 'length(status)'}", "`status` >= 0 and `status` <= length(status)"),
        ("accepted_range: {max_value: 5, inclusive: false}", "`status` < 5"),
        ("accepted_length: {min_value: 1, max_value: 3}", "char_length(`status`) >= 1 and char_length(`status`) <= 3"),
        (r"matches_regex: {regex: '^\d+$'}", r"`status` rlike '^\\d+$'"),
        ("expression_is_true: {expression: \"<> ''\"}", "`status` <> ''"),
    ],
)
def test_a_test_of_a_column_becomes_a_condition(tmp_path: Path, test: str, condition: str | None) -> None:
    """Each test becomes a condition of SQL that is never null; keys below `arguments` count, as in dbt."""
    columns = f"- name: status\n  data_tests:\n    - {test}"
    if condition is None:
        assert [found.split(":")[0] for found in findings(tmp_path, columns)] == ["unknown-key models/orders.yml"]
        return
    kind = test.partition(":")[0]
    assert conditions(tmp_path, columns) == {f"{kind}_orders_status": f"coalesce(({condition}), true)"}


def test_a_test_of_the_row_has_a_name_and_a_condition(tmp_path: Path) -> None:
    """A test of the whole row is an expression; `where` says which rows it is about; a comment ends with its line."""
    own = """
    - expression_is_true: {name: paid, expression: amount > 0, where: status = 'paid'}
    - expression_is_true:
        name: noted
        expression: "id > 0 -- positive"
        config: {where: id is not null}
    - expression_is_true: {expression: id < 10}
    """
    assert conditions(tmp_path, own=textwrap.dedent(own).strip()) == {
        "paid": "(coalesce((amount > 0), true) or not coalesce((status = 'paid'), false))",
        "noted": "(coalesce((id > 0 -- positive\n), true) or not coalesce((id is not null), false))",
        "expression_is_true_orders": "coalesce((id < 10), true)",
    }


def test_the_compiled_sql_shows_the_tests(tmp_path: Path) -> None:
    """The compiled SQL ends with a comment about each test; a disabled one has none."""
    own = (
        "- expression_is_true: {name: small, expression: id < 10, on_violation: drop}\n"
        "- expression_is_true: {name: unused, expression: id < 10, config: {enabled: false}}"
    )
    (model,) = compiled(tmp_path, own=own).models.values()
    assert model.sql.splitlines()[3:] == ["-- sqlstream: data test small (drop): id < 10"]


def test_sql_with_the_words_of_a_note_stays_whole(tmp_path: Path) -> None:
    """What a ledger compares ends where the SQL ends, also if the SQL has the words of a note."""
    own = "- expression_is_true: {name: small, expression: id < 10, on_violation: drop}"
    sql = FILES["models/orders.sql"] + "where status <> ' sqlstream: data test small (drop): id < 10'\n"
    (model,) = compiled(tmp_path, own=own, model=sql).models.values()
    (plain,) = compiled(tmp_path, model=sql).models.values()

    assert without_tests(model.sql, model.file.data_tests) == plain.sql
    assert offset_of_test(model.sql, model.file.data_tests[0]) > len(plain.sql)


@pytest.mark.parametrize(
    ("columns", "own", "found"),
    [
        ("- {name: id, data_tests: [not_nul]}", "", "invalid-value 4:33: `not_nul` is not a data test"),
        ("- {name: id, data_tests: [{unique: {on_violation: drop}}]}", "", "data-test 4:57: `unique` cannot have"),
        (
            "- {name: id, data_tests: [{unique: {config: {on_violation: fail}}}]}",
            "",
            "data-test 4:66: `unique` cannot have",
        ),
        ("- {name: idd, data_tests: [unique]}", "", "unknown-column 4:34: `idd` is not a column"),
        ("- {name: id, data_tests: [{unique: {where: idd > 1}}]}", "", "unknown-column 4:34: `idd` is not a column"),
        (
            "- {name: id, data_tests: [unique_combination_of_columns]}",
            "",
            "missing-key 4:33: a data test needs the key",
        ),
        (
            "",
            "- unique_combination_of_columns: {combination_of_columns: [a]}",
            "unknown-column 4:9: `a` is not a column",
        ),
        ("", "- unique", "invalid-value 4:9: `unique` has no column"),
        (
            "- {name: id, data_tests: [{unique_combination_of_columns: {combination_of_columns: [id]}}]}",
            "",
            "invalid-value 4:34: `unique_combination_of_columns` cannot be a test of one column",
        ),
        ("- {name: id, data_tests: [{relationships: {field: id}}]}", "", "missing-key 4:34: a data test needs the key"),
        (
            "- {name: id, data_tests: [{relationships: {to: orders, field: id}}]}",
            "",
            "invalid-value 4:54: `to` must be",
        ),
        (
            "- {name: id, data_tests: [{relationships: {to: ref('order'), field: id}}]}",
            "",
            "unknown-ref 4:34: `order` is not a model",
        ),
        (
            "- {name: id, data_tests: [{relationships: {to: \"source('shop', 'order')\", field: id}}]}",
            "",
            "unknown-source 4:34: `shop.order` is not a declared",
        ),
        (
            "- {name: id, data_tests: [{not_null: {config: {warn_if: many}}}]}",
            "",
            "invalid-value 4:63: `warn_if` must be",
        ),
        ("- {name: id, data_tests: [{not_null: {error_if: '> -1'}}]}", "", "invalid-value 4:55: `error_if` must be"),
        ("- {name: id, data_tests: [{not_null: {severity: bad}}]}", "", "invalid-value 4:55: `severity`"),
        ("- {name: id, data_tests: [accepted_range]}", "", "missing-key 4:33: `accepted_range` has no limit"),
        (
            "- {name: id, data_tests: [{accepted_values: {}}]}",
            "",
            "missing-key 4:34: a data test needs the key `values`",
        ),
        ("- {name: id, data_tests: [{matches_regex: {regexp: a, regex: b}}]}", "", "unknown-key 4:50: `regexp`"),
        ("", "- not_null", "invalid-value 4:9: `not_null` has no column"),
        ("", "- expression_is_true: {expression: statuz = 1}", "unknown-column 4:9: `statuz` is not a column"),
        ("", "- expression_is_true: {expression: amount}", "type-mismatch 4:9: the condition of WHERE has type double"),
        ("", "- expression_is_true: {expression: 'tags > id'}", "type-mismatch 4:9: `tags > id` compares"),
        ("", "- expression_is_true: {expression: 'sum(id) > 1'}", "misplaced-function 4:9: the aggregate function"),
        ("", "- expression_is_true: {expression: 'id > (1'}", "sql-syntax 4:9:"),
        ("", "- expression_is_true: {expression: 'id > 1) or (true'}", "sql-syntax 4:9: `)` has no opening bracket"),
        ("", "- expression_is_true: {expression: 'null'}", "type-mismatch 4:9: the condition of WHERE has type void"),
        ("", "- expression_is_true: {expression: 'id > 1', on_violation: dropp}", "invalid-value 4:66: `on_violation`"),
        ("- {name: statuz, data_tests: [not_null]}", "", "unknown-column 4:37: `statuz` is not a column"),
    ],
)
def test_a_mistake_is_shown_at_the_test(tmp_path: Path, columns: str, own: str, found: str) -> None:
    """A mistake in YAML or in a condition is an error at the test."""
    code, _, rest = found.partition(" ")
    assert findings(tmp_path, columns, own)[0].startswith(f"{code} models/orders.yml:{rest}")


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ("status = 'x", "a string starts here and is never closed: `'x"),
        ('status = "x', 'a string starts here and is never closed: `"x'),
        ("id > `status", "a quoted identifier starts here and is never closed: `"),
        ("id > 0 /* x", "a comment starts here and is never closed: `/* x"),
    ],
)
@pytest.mark.parametrize(
    ("columns", "own"),
    [
        ("", "- expression_is_true: {expression: CONDITION}"),
        ("", "- expression_is_true: {expression: CONDITION, on_violation: drop}"),
        ("- {name: id, data_tests: [{not_null: {where: CONDITION}}]}", ""),
        ("- {name: id, data_tests: [{unique: {config: {where: CONDITION}}}]}", ""),
        ("- {name: id, data_tests: [{accepted_values: {quote: false, values: [CONDITION]}}]}", ""),
        ("- {name: id, data_tests: [{accepted_range: {min_value: CONDITION}}]}", ""),
    ],
)
def test_a_condition_without_an_end_is_an_error_at_the_test(
    tmp_path: Path, columns: str, own: str, condition: str, why: str
) -> None:
    """A string or a comment that is not closed is an error wherever a test takes SQL."""
    with pytest.raises(FindingsError) as caught:
        compiled(tmp_path, *(each.replace("CONDITION", json.dumps(condition)) for each in (columns, own)))
    found = caught.value.findings[0]
    assert (found.code, str(found.location).partition(":")[0]) == ("sql-syntax", "models/orders.yml")
    assert found.why.startswith(why)


@pytest.mark.parametrize("condition", ["", " ", "-- id > 0"])
def test_an_empty_condition_is_refused(tmp_path: Path, condition: str) -> None:
    """A test without a condition would count nothing."""
    (found,) = findings(tmp_path, "", f"- expression_is_true: {{name: x, expression: {json.dumps(condition)}}}")
    assert found == "sql-syntax models/orders.yml:4:9: the data test `x` cannot be read"


@pytest.mark.parametrize("condition", ["id > 0 limit 1", "id > 0 group by id", "id >"])
def test_a_condition_that_only_spark_can_parse_is_no_error(tmp_path: Path, condition: str) -> None:
    """Without Spark's parser, a condition that sqlglot cannot parse gives a warning."""
    columns, own = "", f"- expression_is_true: {{expression: '{condition}'}}"
    compiled(tmp_path, columns, own)
    assert [each.code for each in compile_models(ProjectRequest(tmp_path)).loaded.warnings] == ["not-followed"]


def test_spark_decides_about_conditions_if_rules_do_not_apply(tmp_path: Path) -> None:
    """With settings that turn the rules off, a condition without an end is left to Spark's parser, too."""
    settings = "targets: {local: {spark: {spark.sql.caseSensitive: 'true'}}}\n"
    compiled(tmp_path)
    (tmp_path / "project.yml").write_text(f"name: shop\n{settings}")
    (tmp_path / "models/orders.yml").write_text(
        'models: [{name: orders, data_tests: [expression_is_true: {expression: "status = \'x"}]}]\n'
    )
    found = compile_models(ProjectRequest(tmp_path)).loaded.warnings
    assert [each.code for each in found] == ["rules-off", "not-followed"]


def test_two_tests_of_a_name_are_refused(tmp_path: Path) -> None:
    """The names of the tests of a model are unique, because counts and alerts refer to them."""
    own = "- expression_is_true: {expression: id < 10}\n- expression_is_true: {expression: id < 20}"
    assert findings(tmp_path, own=own) == [
        "duplicate-name models/orders.yml:5:9: there are two data tests of `orders` named `expression_is_true_orders`"
    ]


def test_a_whole_source_has_no_data_tests(tmp_path: Path) -> None:
    """Tables of a source have data tests, the source has none; the fix says where they belong."""
    compiled(tmp_path)
    text = FILES["sources.yml"].replace("name: shop\n", "name: shop\n    data_tests: []\n")
    (tmp_path / "sources.yml").write_text(text)
    with pytest.raises(FindingsError) as caught:
        compile_models(ProjectRequest(tmp_path))
    (found,) = caught.value.findings
    assert (found.code, found.fix.partition(",")[0]) == ("unknown-key", "use `data_tests:` of a table of the source")


QUARANTINE = "- expression_is_true: {name: small, expression: id < 10, on_violation: quarantine}"


@pytest.mark.parametrize(
    ("model", "found"),
    [
        ("{{ config(sink='out') }} select id, amount from {{ source('shop', 'orders') }}", "has no quarantine_sink"),
        ("select id, amount from {{ source('shop', 'orders') }}", "`orders` is a view"),
        (
            (
                "{{ config(sink='out', quarantine_sink='out', output_mode='complete') }} select count(*) as id from "
                "{{ source('shop', 'orders') }}"
            ),
            "in complete mode each batch has all rows again",
        ),
        (
            (
                "{{ config(sink='out', quarantine_sink='out', trigger={'continuous': '1 second'}) }} select id from "
                "{{ source('shop', 'orders') }}"
            ),
            "the query has a continuous trigger",
        ),
        ("{{ config(sink='out', quarantine_sink='out') }} select 1 as id", "`orders` is a batch model"),
    ],
)
def test_a_quarantine_needs_a_query_of_batches(tmp_path: Path, model: str, found: str) -> None:
    """A test that quarantines rows needs a stream with micro-batches and a sink for them; its place is that of the test."""
    with pytest.raises(FindingsError) as caught:
        compiled(tmp_path, own=QUARANTINE, model=model)
    (finding,) = [each for each in caught.value.findings if each.code == "quarantine"]
    assert str(finding.location) == "models/orders.yml:4:9"
    assert found in finding.why


@pytest.mark.parametrize(
    ("model", "sinks", "found"),
    [
        ("quarantine_sink='bad'", "{name: bad, format: memory}", "sink `bad` cannot be the quarantine of `orders`"),
        ("quarantine_sink='bad'", "{name: bad, format: parquet}", "sink `bad` has no path"),
        ("quarantine_sink='gone'", "{name: bad, format: noop}", "`gone` is not a declared sink"),
        (
            "quarantine_sink='out', sink='bad'",
            "{name: bad, format: memory}",
            "so it cannot write to sink `bad`",
        ),
    ],
)
def test_the_sink_of_a_quarantine_is_checked(tmp_path: Path, model: str, sinks: str, found: str) -> None:
    """The sink of a quarantine is checked like that of a model, at `quarantine_sink`; the other sink must share its query."""
    compiled(tmp_path)
    (tmp_path / "sinks.yml").write_text(f"{FILES['sinks.yml']}  - {sinks}\n")
    sink = "" if "sink='bad'" in model and "quarantine_sink='bad'" not in model else "sink='out', "
    text = f"{{{{ config({sink}{model}) }}}} select id, amount from {{{{ source('shop', 'orders') }}}}"
    (tmp_path / "models/orders.sql").write_text(text)
    (tmp_path / "models/orders.yml").write_text(f"models:\n  - name: orders\n    data_tests:\n      {QUARANTINE}\n")
    with pytest.raises(FindingsError) as caught:
        compile_models(ProjectRequest(tmp_path))
    assert any(found in finding.message for finding in caught.value.findings), caught.value.findings


LATE = "select count(*) as id from {{ source('shop', 'orders') }} group by id"


@pytest.mark.parametrize(
    ("config", "sql", "found"),
    [
        ("sink='out', output_mode='update'", LATE, "has no quarantine_sink"),
        ("output_mode='update'", LATE, "`orders` is a view"),
        ("sink='out', quarantine_sink='out', output_mode='complete'", LATE, "in complete mode each batch has all rows"),
        ("sink='out', quarantine_sink='out'", "select 1 as id", "`orders` is a batch model"),
        ("sink='out', quarantine_sink='out'", "select id from {{ source('shop', 'orders') }}", "but keeps no state"),
    ],
)
def test_late_rows_need_a_state_and_a_query_of_batches(tmp_path: Path, config: str, sql: str, found: str) -> None:
    """`late_rows: quarantine` needs a stream with a state, with micro-batches and with a sink for the rows."""
    model = f"{{{{ config({config}, late_rows='quarantine') }}}}\n{sql}"
    with pytest.raises(FindingsError) as caught:
        compiled(tmp_path, model=model)
    (finding,) = [each for each in caught.value.findings if each.code == "quarantine"]
    assert found in finding.why
    assert finding.location is not None
    assert finding.location.path == "models/orders.sql"


def test_late_rows_have_an_output_of_their_own(tmp_path: Path) -> None:
    """Late rows have another name than the quarantine, and both need only one sink."""
    config = "sink='out', quarantine_sink='out', late_rows='quarantine', output_mode='update'"
    own = QUARANTINE.replace("quarantine", "warn")
    found = compiled(tmp_path, own=own, model=f"{{{{ config({config}) }}}} {LATE}")
    assert [(node, rows.name) for node, rows in found.late_rows.items()] == [("model.shop.orders", "orders__late")]
    assert not found.quarantines
    assert len(found.outputs_of(found.models["model.shop.orders"])) == 2


def test_a_quarantine_is_part_of_the_manifest_and_of_kept_rows(tmp_path: Path) -> None:
    """Rows in quarantine are left out of the model; the quarantine has another name and output."""
    model = "{{ config(sink='out', quarantine_sink='out') }} select id from {{ source('shop', 'orders') }}"
    found = compiled(tmp_path, own=QUARANTINE, model=model)
    ((unique_id, quarantine),) = found.quarantines.items()
    assert (unique_id, quarantine.name) == ("model.shop.orders", "orders__quarantine")
    assert kept_rows(found.models[unique_id].file.data_tests) == ("coalesce((id < 10), true)",)


def test_a_query_needs_the_connector_of_its_quarantine(tmp_path: Path) -> None:
    """The connector of a quarantine is that of the query which writes it, and of no other."""
    model = "{{ config(sink='out', quarantine_sink='bus') }} select id from {{ source('shop', 'orders') }}"
    compiled(tmp_path)
    (tmp_path / "sinks.yml").write_text(
        f"{FILES['sinks.yml']}  - {{name: bus, format: kafka, options: {{topic: bad, "
        "kafka.bootstrap.servers: 'localhost:1'}}\n"
    )
    (tmp_path / "models/other.sql").write_text(FILES["models/orders.sql"])
    (tmp_path / "models/orders.sql").write_text(model)
    (tmp_path / "models/orders.yml").write_text(f"models:\n  - name: orders\n    data_tests:\n      {QUARANTINE}\n")
    found = compile_models(ProjectRequest(tmp_path)).loaded.compiled
    assert set(needed_connectors(found, ["model.shop.orders"])) == {"kafka"}
    assert not needed_connectors(found, ["model.shop.other"])
    assert set(needed_connectors(found)) == {"kafka"}


def test_a_view_has_no_rows_to_compare_with(tmp_path: Path) -> None:
    """`relationships` to a view is refused at the test, because a view has no stored rows."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models/seen.sql").write_text("select id from {{ source('shop', 'orders') }}")
    columns = "- {name: id, data_tests: [{relationships: {to: ref('seen'), field: id}}]}"
    assert "data-test models/orders.yml:4:34: `relationships_orders_id` cannot compare with `seen`" in findings(
        tmp_path, columns
    )


@pytest.mark.parametrize(
    ("config", "results"),
    [
        ("{}", {0: "pass", 1: "fail"}),
        ("{severity: warn}", {0: "pass", 1: "warn"}),
        ("{severity: WARN, error_if: '> 0', warn_if: '>2'}", {2: "pass", 3: "warn"}),
        ("{error_if: '> 10'}", {0: "pass", 1: "warn", 10: "warn", 11: "fail"}),
        ("{error_if: '>= 10', warn_if: '> 5'}", {5: "pass", 6: "warn", 10: "fail"}),
        ("{warn_if: '= 0', error_if: '<> 0'}", {0: "warn", 1: "fail"}),
        ("{warn_if: '< 2', error_if: '== 7'}", {1: "warn", 2: "pass", 7: "fail"}),
        ("{warn_if: '<= 2', error_if: '> 7'}", {2: "warn", 3: "pass"}),
    ],
)
def test_severity_and_thresholds_judge_failures(tmp_path: Path, config: str, results: dict[int, str]) -> None:
    """`error_if` counts with the severity `error`, and then `warn_if`, as in dbt; also beside `name`."""
    for text in (f"unique: {{config: {config}}}", f"unique: {config}"):
        (model,) = compiled(tmp_path, f"- name: id\n  data_tests:\n    - {text}").models.values()
        (test,) = model.file.data_tests
        assert {number: test.judge(number) for number in results} == results
        assert model.file.row_tests == ()


def test_a_test_of_stored_rows_changes_no_query(tmp_path: Path) -> None:
    """Tests that compare rows are notes in the compiled SQL, and not part of what a ledger compares."""
    own = "- unique_combination_of_columns: {combination_of_columns: [id, status], where: id > 0}"
    (model,) = compiled(tmp_path, own=own).models.values()
    (plain,) = compiled(tmp_path, own="").models.values()
    note = "-- sqlstream: data test unique_combination_of_columns_orders (test --data): "
    assert model.sql.splitlines()[3:] == [f"{note}`id`, `status` is unique, where id > 0"]
    assert without_tests(model.sql, model.file.data_tests) == plain.sql


GENERIC = """
{# {% test commented(model) %} #}
{% test is_positive(model, column_name, minimum=0, names=['(', ")"]) %}
  select * from {{ model }} where {{ column_name }} < {{ minimum }} -- small
{% endtest %}
{% data_test few(model, most) %}
select count(*) as n from {{ model }} having count(*) > {{ most }}
{% enddata_test %}
{% test known(model, column_name, to) %}
{{ config(severity='warn', limit=3) }}
select m.* from {{ model }} m left join {{ to }} k on m.{{ column_name }} = k.id where k.id is null
{% endtest %}
{% test free(model, condition) %}{{ condition }}{% endtest %}
"""


def generic_test(root: Path, body: str) -> Path:
    """Writes generic tests into the folder of dbt, and seeds that they read."""
    for name, text in {"tests/generic/own.sql": body, "seeds/kinds.csv": "id\n1\n"}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("test", "condition"),
    [
        ("is_positive", "not (amount < 0 -- small\n)"),
        ("shop.is_positive: {arguments: {minimum: 1.5}}", "not (amount < 1.5 -- small\n)"),
        ("is_positive: {minimum: \"length('a\\\\b')\"}", r"not (amount < length('a\b') -- small" + "\n)"),
    ],
)
def test_a_generic_test_that_only_filters_is_checked_in_the_stream(tmp_path: Path, test: str, condition: str) -> None:
    """A row fails if the WHERE of the test is true; a null passes."""
    columns = f"- name: amount\n  data_tests:\n    - {test}"
    found = conditions(generic_test(tmp_path, GENERIC), columns)

    assert found == {"is_positive_orders_amount": f"coalesce(({condition}\n), true)"}  # a comment ends with its line


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("select * from orders where id < 0", None),
        ("select * from orders as o where tags[0] = 'where' or id < 0", None),
        ("select id, amount from orders where id < 0", None),
        ("select * from orders", "has no WHERE"),
        ("select distinct id from orders where id < 0", "has DISTINCT"),
        ("select id from orders where id < 0 group by id", "has GROUP BY"),
        ("select id + 1 as n from orders where id < 0", "computes columns"),
        ("select * from orders o where o.id < 0", "names the table in its condition"),
        ("select * from orders join orders p on true where p.id < 0", "has JOIN"),
        ("select * from orders where id in (select 1)", "has a subquery or a second SELECT"),
        ("select * from orders where id < 0 union all select * from orders", "has a subquery or a second SELECT"),
        ("select * from orders tablesample (5 rows) where id < 0", "does not read the model alone"),
        ("select * from orders where id < 0 limit 3", "has LIMIT"),
        ("from orders |> where id < 0", "is not a plain SELECT"),
    ],
)
def test_only_a_plain_filter_is_checked_in_the_stream(tmp_path: Path, query: str, reason: str | None) -> None:
    """Any other query is only for `test --data`, which the note in the compiled SQL says; the reason is known."""
    own = f'- free:\n    arguments: {{condition: "{query}"}}'
    (model,) = compiled(generic_test(tmp_path, GENERIC), own=own).models.values()
    (test,) = model.file.data_tests

    assert (test.query, test.not_plain) == (query, reason or "")
    assert test.is_of_table == (reason is not None)
    assert model.file.row_tests == (() if reason else (test,))
    assert f"free_orders ({'test --data' if reason else 'warn'}): " in model.sql


def test_a_generic_test_reads_other_tables_and_has_its_own_defaults(tmp_path: Path) -> None:
    """An argument that calls ref() is this table; config() in the block is weaker than that in YAML."""
    columns = "- name: id\n  data_tests:\n    - known: {to: ref('kinds'), config: {limit: 5}}"
    (model,) = compiled(generic_test(tmp_path, GENERIC), columns).models.values()
    (test,) = model.file.data_tests

    assert (test.severity, test.limit) == ("warn", 5)
    assert [each.parts for each in test.references] == [("kinds",)]


def test_a_generic_test_can_end_with_a_semicolon(tmp_path: Path) -> None:
    """One at the end begins no second statement."""
    body = "{% test low(model, column_name) %}\nselect * from {{ model }} where {{ column_name }} < 3 ;\n{% endtest %}"
    found = conditions(generic_test(tmp_path, body), "- name: amount\n  data_tests: [low]")

    assert found == {"low_orders_amount": "coalesce((not (amount < 3)), true)"}


def test_a_projects_own_test_replaces_the_built_in_one(tmp_path: Path) -> None:
    """As in dbt, a test of the project with the name of a built-in one is used instead."""
    body = "{% test not_null(model, column_name) %}select * from {{ model }} where {{ column_name }} = ''{% endtest %}"
    found = conditions(generic_test(tmp_path, body), "- name: status\n  data_tests: [not_null]")

    assert found == {"not_null_orders_status": "coalesce((not (status = '')), true)"}


AT_COLUMN = "models/orders.yml:6:13"
"""Where the first test of the first column is."""


@pytest.mark.parametrize(
    ("body", "test", "expected"),
    [
        (GENERIC, "is_positiv", f"invalid-value {AT_COLUMN}"),
        (GENERIC, "is_positive: {minimun: 1}", "unknown-key models/orders.yml:6:27"),
        (GENERIC, "known", f"missing-key {AT_COLUMN}"),
        (GENERIC, "few: {most: 1}", f"invalid-value {AT_COLUMN}"),
        (GENERIC, "known: {to: ref('kind')}", f"unknown-ref {AT_COLUMN}"),
        (GENERIC, "known: {to: ref('kinds'), on_violation: drop}", "data-test models/orders.yml:6:53"),
        (GENERIC, "known: {to: ref('kinds'), config: {on_violation: fail}}", "data-test models/orders.yml:6:62"),
        (GENERIC, "is_positive: {minimum: 'rand()'}", f"data-test {AT_COLUMN}"),
        (GENERIC, "is_positive: {minimum: 'amoun'}", f"unknown-column {AT_COLUMN}"),
        (GENERIC, "is_positive: {minimum: .nan}", f"unknown-column {AT_COLUMN}"),
        ("{% test a(model, column_name) %}select {{ column_name }}x from {{ model }}{% endtest %}", "a", f"unknown-column {AT_COLUMN}"),
        ("{% test a(model, column_name) %}select 'x from {{ model }}{% endtest %}", "a", f"sql-syntax {AT_COLUMN}"),
        ("{% test a(model, column_name) %}  {% endtest %}", "a", f"data-test {AT_COLUMN}"),
        ("{% test a(model, column_name) %}{{ nothing }}{% endtest %}", "a", "jinja-undefined tests/generic/own.sql:1:36"),
        ("{% test a(model, column_name) %}{{ config(severty='warn') }}select 1{% endtest %}", "a", f"unknown-key {AT_COLUMN}"),
        ("{% test a(model, column_name) %}drop table x{% endtest %}", "a", f"no-query {AT_COLUMN}"),
        ("{% test a(model, column_name) %}select 1 from kinds{% endtest %}", "a", f"missing-ref {AT_COLUMN}"),
        ("{% test a(model, column_name) %}select 1 from nowhere{% endtest %}", "a", f"missing-ref {AT_COLUMN}"),
        ("{% test a(column_name) %}select 1{% endtest %}", "a", "data-test tests/generic/own.sql:1:9"),
        ("{% test a(model, where, column_name) %}select 1{% endtest %}", "a", "data-test tests/generic/own.sql:1:9"),
        ("{% test a(model) %}select 1", "a", "jinja-syntax tests/generic/own.sql:1:4"),
        ("{% test a(model, column_name) %}{% endtest %}{% test a(model) %}{% endtest %}", "a", "duplicate-name tests/generic/own.sql:1:49"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_generic_test_is_located(tmp_path: Path, body: str, test: str, expected: str) -> None:
    """Mistakes are errors of the compiler: at the test in YAML, or in the block where Jinja fails."""
    found = findings(generic_test(tmp_path, body), f"- name: amount\n  data_tests:\n    - {test}")

    assert expected in [each.split(": ")[0] for each in found]


def test_a_block_can_disable_its_tests(tmp_path: Path) -> None:
    """`enabled: false` in config() of the block is the default of its tests."""
    body = "{% test a(model) %}{{ config(enabled=false) }}select * from {{ model }} where id < 0{% endtest %}"
    own = "- a\n- a: {name: b, config: {enabled: true}}"

    assert list(conditions(generic_test(tmp_path, body), own=own)) == ["b"]


def test_a_test_block_in_a_model_is_refused(tmp_path: Path) -> None:
    """The template of a model cannot define a test."""
    with pytest.raises(FindingsError) as caught:
        compiled(tmp_path, model="{% test a(model) %}select 1{% endtest %} select 1 as id")

    (found,) = caught.value.findings
    assert f"{found.code} {found.location}" == "jinja-syntax models/orders.sql:1:4"


def test_a_changed_block_reaches_the_tests_that_use_it(tmp_path: Path) -> None:
    """The cache renders a test again if its block changes."""
    columns = "- name: amount\n  data_tests: [is_positive]"
    conditions(generic_test(tmp_path, GENERIC), columns)
    found = conditions(generic_test(tmp_path, GENERIC.replace("< {{ minimum", "<= {{ minimum")), columns)

    assert "amount <= 0" in found["is_positive_orders_amount"]
