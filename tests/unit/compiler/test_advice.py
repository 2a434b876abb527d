"""Warnings and infos about unwritten models, unused nodes and unbounded state, and how a project lowers them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import sqlstream
from sqlstream import FindingsError, ProjectRequest, compile_models
from sqlstream.codes import ADVICE, CODES
from sqlstream.compiler.allowances import lower_findings
from sqlstream.errors import Finding, Severity
from sqlstream.location import Location
from sqlstream.project.values import Project
from sqlstream.report.findings import finding_text

PACKAGE = Path(sqlstream.__file__).parent

SINK = "{{ config(sink='out', output_mode='%s') }}\n"
ORDERS = "{{ source('shop', 'orders') }}"
MARKED = f"{ORDERS} watermark ts delay of interval 10 minutes"

FILES = {
    "project.yml": "name: shop\n",
    "sources.yml": """sources:
  - name: shop
    tables:
      - {name: orders, format: json, path: in, schema: 'id int, ts timestamp, amount double'}
""",
    "sinks.yml": "sinks:\n  - {name: out, format: noop}\n",
    "models/orders_out.sql": SINK % "append" + f"select id from {ORDERS}",
}


def advice(root: Path, files: dict[str, str]) -> list[str]:
    """Returns the severity, code and place of each finding of a project with these additional files."""
    for name, text in {**FILES, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found = compile_models(ProjectRequest(root)).findings
    return sorted(f"{finding.severity} {finding.code} {finding.location}" for finding in found)


def loaded(root: Path, files: dict[str, str]) -> Project:
    """Returns the project with these additional files."""
    advice(root, files)
    return compile_models(ProjectRequest(root)).loaded.compiled.project


def errors(root: Path, files: dict[str, str]) -> list[str]:
    """Returns the code and place of each error."""
    with pytest.raises(FindingsError) as raised:
        advice(root, files)
    return [f"{finding.code} {finding.location}" for finding in raised.value.findings if finding.is_error]


def test_an_unwritten_model_gives_a_warning(tmp_path: Path) -> None:
    """A model that no other model reads and that has no sink gives a warning."""
    files = {
        "models/inner.sql": f"select id from {ORDERS}",
        "models/leaf.sql": "select id from {{ ref('inner') }}",
    }

    assert advice(tmp_path, files) == ["warning unwritten-model models/leaf.sql:1:1"]


def test_unused_nodes_and_macros_give_infos(tmp_path: Path) -> None:
    """Unused sources, sinks and macros give one info each; a macro in a Jinja comment is ignored."""
    files = {
        "models/more.yml": "sources:\n  - {name: old, tables: [{name: refunds, format: json, path: in, schema: a int}]}\n"
        "sinks:\n  - {name: archive, format: noop}\n  - {name: attic, format: noop}\n",
        "macros/money.sql": "{# {% macro draft() %} #}\n{% macro cents(x) %}{{ x }}{% endmacro %}\n"
        "{% macro used() %}1{% endmacro %}\n",
        "models/orders_out.sql": SINK % "append" + f"select id, {{{{ used() }}}} as one from {ORDERS}",
    }

    assert advice(tmp_path, files) == [
        "info unused-macro macros/money.sql:2:10",
        "info unused-sink models/more.yml:4:12",
        "info unused-source models/more.yml:2:33",
    ]
    sinks = next(item for item in compile_models(ProjectRequest(tmp_path)).findings if item.code == "unused-sink")
    assert (
        finding_text(sinks)
        == "models/more.yml:4:12: info: [unused-sink] no model writes to the sinks `archive`, `attic`"
    )


def test_a_project_without_enabled_models_gives_a_warning(tmp_path: Path) -> None:
    """A project whose models are all disabled gives a warning."""
    disabled = {
        "models/orders_out.sql": "{{ config(enabled=false, sink='out') }} select * from {{ source('shop', 'orders') }}"
    }

    assert advice(tmp_path, disabled) == ["warning no-models None"]


def test_a_disabled_model_uses_what_it_names(tmp_path: Path) -> None:
    """Sources and sinks of a disabled model are used, because another target may enable the model."""
    files = {
        "models/more.yml": "sources:\n  - {name: old, tables: [{name: refunds, format: json, path: in, schema: a int}]}\n"
        "sinks:\n  - {name: archive, format: noop}\n",
        "models/off.sql": "{{ config(enabled=false, sink='archive') }} select * from {{ source('old', 'refunds') }}",
    }

    assert advice(tmp_path, files) == []


def test_only_compile_shows_infos(tmp_path: Path) -> None:
    """Only compile shows infos, and only if the project has no errors."""
    files = {"models/more.yml": "sinks:\n  - {name: archive, format: noop}\n"}
    advice(tmp_path, files)

    assert compile_models(ProjectRequest(tmp_path)).loaded.warnings == ()
    (tmp_path / "models/wrong.sql").write_text(SINK % "append" + f"select nothing from {ORDERS}")
    with pytest.raises(FindingsError) as raised:
        compile_models(ProjectRequest(tmp_path))
    assert {finding.severity for finding in raised.value.findings} == {Severity.ERROR}


@pytest.mark.parametrize(
    ("mode", "sql", "grows"),
    [
        ("update", f"select id, count(*) as n from {ORDERS} group by id", True),
        ("update", f"select distinct id from {ORDERS}", True),
        (
            "update",
            f"select window(ts, '1 hour') as w, count(*) as n from {ORDERS} group by window(ts, '1 hour')",
            True,
        ),
        ("update", f"select ts, count(*) as n from {MARKED} group by ts", False),
        ("update", f"select window(ts, '1 hour') as w, count(*) as n from {MARKED} group by 1", False),
        ("update", f"select count(*) as n from {ORDERS}", False),
        ("complete", f"select id, count(*) as n from {ORDERS} group by id", False),
        ("update", f"select id, amount from {ORDERS}", False),
        ("append", f"select a.id from {ORDERS} a join {ORDERS} b on a.id = b.id", True),
        ("append", f"select a.id from {MARKED} a join {MARKED} b on a.id = b.id", True),
        ("append", f"select a.id from {MARKED} a join {MARKED} b on a.id = b.id and a.ts = b.ts", False),
        (
            "append",
            f"select a.id from {MARKED} a join {MARKED} b on a.id = b.id and a.ts between b.ts - interval 1 hour and b.ts",
            False,
        ),
        (
            "append",
            f"select a.id from {MARKED} a join {MARKED} b on a.id = b.id and a.ts <= b.ts + interval 1 hour",
            True,
        ),
    ],
)
def test_unbounded_state_gives_a_warning(tmp_path: Path, mode: str, sql: str, grows: bool) -> None:
    """A stateful operator that never removes old state gives a warning."""
    found = advice(tmp_path, {"models/asked.sql": SINK % mode + sql})

    assert [item.split()[1] for item in found] == (["unbounded-state"] if grows else [])


WINDOWED = f"(select id, window(ts, '1 hour') as w from {MARKED})"


@pytest.mark.parametrize(
    ("left", "right", "bound"),
    [
        (MARKED, MARKED, "b.ts <= a.ts + interval 1 hour and a.ts <= b.ts + interval 1 hour"),
        (WINDOWED, WINDOWED, "a.w = b.w"),
        (WINDOWED, MARKED, "a.w = b.w, where a subquery over `b` has window(ts, ...) as w"),
        (MARKED, WINDOWED, "b.w = a.w, where a subquery over `a` has window(ts, ...) as w"),
        (f"(select id, window(ts, '1 hour') as w, ts from {MARKED})", MARKED, "b.ts <= a.ts + interval 1 hour"),
    ],
)
def test_the_fix_of_an_endless_join_bounds_its_state(tmp_path: Path, left: str, right: str, bound: str) -> None:
    """Spark bounds the state by plain times or by equal windows, and a project that follows the fix has no warning."""
    sql = f"{SINK % 'append'}select a.id from {left} a join {right} b on a.id = b.id"
    advice(tmp_path, {"models/asked.sql": sql})
    (fix,) = [each.fix for each in compile_models(ProjectRequest(tmp_path)).findings if each.code == "unbounded-state"]
    assert f"add to the join condition: {bound}" in fix
    condition = fix.partition("join condition: ")[2].partition(";")[0].partition(", where")[0]
    sides = [WINDOWED if "where" in bound else side for side in (left, right)]
    followed = f"{SINK % 'append'}select a.id from {sides[0]} a join {sides[1]} b on a.id = b.id and {condition}"
    assert advice(tmp_path, {"models/asked.sql": followed}) == []


GROWING = SINK % "update" + f"select id, count(*) as n from {ORDERS} group by id"


def test_a_project_lowers_a_warning(tmp_path: Path) -> None:
    """A rule in project.yml lowers a warning to an info or hides it."""
    rules = "name: shop\nrules: {unbounded-state: info, unused-sink: ignore}\n"
    files = {
        "project.yml": rules,
        "models/asked.sql": GROWING,
        "models/more.yml": "sinks:\n  - {name: a, format: noop}\n",
    }

    assert advice(tmp_path, files) == ["info unbounded-state models/asked.sql:2:71"]


@pytest.mark.parametrize(
    "allowed",
    [
        "-- sqlstream: allow unbounded-state because there are few ids\n",
        "/* sqlstream: allow unbounded-state because there are few ids */\n",
        "/*\nsqlstream: allow unbounded-state because there are few ids\n*/\n",
        "{# sqlstream: allow unbounded-state because there are few ids #}\n",
        "{#- sqlstream: allow unbounded-state because there are few ids -#}\n",
    ],
)
def test_a_comment_allows_a_warning_in_its_file(tmp_path: Path, allowed: str) -> None:
    """A SQL or Jinja allow comment hides a warning in its file, also one from a macro that the model calls."""
    files = {
        "models/asked.sql": GROWING.replace("\n", "\n" + allowed),
        "models/called.sql": allowed + SINK % "update" + "{{ counted() }}",
        "macros/counted.sql": "{% macro counted() %}select id, count(*) as n from {{ source('shop', 'orders') }} group by id"
        "{% endmacro %}",
    }

    assert advice(tmp_path, files) == []


def test_an_unused_allow_comment_gives_an_info(tmp_path: Path) -> None:
    """An allow comment without a matching finding gives an info, because it would hide later findings."""
    allowed = "-- sqlstream: allow unbounded-state because there are few ids\n"
    files = {"models/orders_out.sql": FILES["models/orders_out.sql"] + "\n" + allowed}

    assert advice(tmp_path, files) == ["info unused-allow models/orders_out.sql:3:1"]


@pytest.mark.parametrize(
    "comment",
    [
        "-- sqlstream: allow unbounded-state",
        "-- sqlstream: allow unbounded-state because",
        "-- sqlstream: ignore unbounded-state because we may",
        "--sqlstream: allow unbound-state because we may",
        "-- sqlstream: allow unknown-ref because we may",
        "/* sqlstream: allow unbounded-state because */",
        "{# sqlstream: allow unbounded-state #}",
        "-- sqlstream allow unbounded-state because we may",
        "-- sqlstream: alow unbounded-state because we may",
        "-- sqlstream : allow unbounded-state because we may",
        "-- sqlstrem: allow unbounded-state because we may",
        "-- SQLSTREAM: Allow unbounded-state",
        "{# sqlstream allow: unbounded-state #}",
    ],
)
def test_an_invalid_allow_comment_is_an_error(tmp_path: Path, comment: str) -> None:
    """An allow comment with a typo, without a reason, or with a code that cannot be allowed is an error."""
    files = {"models/asked.sql": GROWING + "\n" + comment}

    assert errors(tmp_path, files) == ["invalid-allow models/asked.sql:3:1"]


@pytest.mark.parametrize(
    "comment", ["-- sqlstream allows this", "-- stream allow lists", "-- dbt: allow unbounded-state"]
)
def test_other_comments_are_ignored(tmp_path: Path, comment: str) -> None:
    """Comments that only mention sqlstream or address another tool are ignored."""
    path = "models/orders_out.sql"

    assert advice(tmp_path, {path: f"{FILES[path]}\n{comment}"}) == []


@pytest.mark.parametrize("code", ["unknown-ref", "unbound-state"])
def test_a_rule_for_a_code_that_cannot_be_lowered_is_an_error(tmp_path: Path, code: str) -> None:
    """A rule for an unknown code, or for an error that does not depend on Spark, is an error."""
    assert errors(tmp_path, {"project.yml": f"name: shop\nrules:\n  {code}: info\n"}) == [
        "invalid-allow project.yml:3:3"
    ]


def test_sql_that_cannot_be_parsed_is_a_warning_without_java(tmp_path: Path) -> None:
    """Without Java, SQL that sqlglot cannot parse gives a warning at the place where parsing stopped."""
    sql = f"from {ORDERS} map id, amount using 'cat' as id, amount"

    assert advice(tmp_path, {"models/asked.sql": SINK % "append" + sql}) == [
        "warning not-followed models/asked.sql:2:41"
    ]


def test_doubtful_sql_is_one_warning_without_java(tmp_path: Path) -> None:
    """Without Java, one warning names all models whose SQL sqlglot reads although Spark may not."""
    files = {
        "models/asked.sql": SINK % "append" + f"select id as 'a' from {ORDERS}",
        "models/more.sql": SINK % "append" + f"select id from {ORDERS} as 'x'",
    }

    assert advice(tmp_path, files) == ["warning not-followed models/asked.sql:1:1"]


def test_sql_that_cannot_be_parsed_is_a_warning_without_rules(tmp_path: Path) -> None:
    """SQL that sqlglot cannot parse also gives a warning on a target whose settings turn the rules off."""
    files = {
        "project.yml": "name: shop\ntargets: {local: {master: 'local[1]', spark: {spark.sql.ansi.enabled: 'false'}}}\n",
        "models/asked.sql": SINK % "append" + f"select id form {ORDERS} o where id > 1",
    }

    assert advice(tmp_path, files) == [
        "warning not-followed models/asked.sql:2:19",
        "warning rules-off project.yml:2:11",
    ]


def test_a_warning_in_a_macro_is_allowed_in_the_calling_model(tmp_path: Path) -> None:
    """An allow comment in a model also hides a `not-followed` warning in a macro that the model calls."""
    files = {
        "macros/read.sql": "{% macro read(column) %}\n  {{ column }}:x::string{% endmacro %}",
        "models/asked.sql": SINK % "append" + f"select {{{{ read('id') }}}} as x from {ORDERS}",
    }
    assert advice(tmp_path, files) == ["warning not-followed macros/read.sql:2:17"]

    files["models/asked.sql"] += "\n-- sqlstream: allow not-followed because Spark reads it"
    assert advice(tmp_path, files) == []


@pytest.mark.parametrize("value", ["ignore", "off", "info"])
@pytest.mark.parametrize("code", sorted(ADVICE))
def test_every_code_of_a_warning_can_be_lowered_by_a_rule(tmp_path: Path, code: str, value: str) -> None:
    """A rule in project.yml lowers every warning, in models and in YAML files."""
    project = loaded(tmp_path, {"project.yml": f"name: shop\nrules: {{{code}: {value}}}\n"})
    found = [
        Finding(code, "m", "w", "f", Location(path, 1, 1), Severity.WARNING) for path in ("models/a.sql", "sinks.yml")
    ]

    lowered = lower_findings(project, found, spark="4.3.0", complete=False)

    assert [finding.severity for finding in lowered] == ([Severity.INFO] * 2 if value == "info" else [])


@pytest.mark.parametrize("code", sorted(ADVICE))
def test_every_code_of_a_warning_can_be_allowed_by_a_comment(tmp_path: Path, code: str) -> None:
    """An allow comment hides every warning in its file: a SQL model, a YAML file or a Python model."""
    allowed = f"sqlstream: allow {code} because we know"
    files = {
        "models/orders_out.sql": FILES["models/orders_out.sql"] + f"\n-- {allowed}",
        "sinks.yml": FILES["sinks.yml"] + f"# {allowed}\n",
        "models/python.py": f"def model(sqlstream, spark):\n    # {allowed}\n    return sqlstream.source('shop', 'orders')\n",
    }
    project = loaded(tmp_path, files)
    found = [Finding(code, "m", "w", "f", Location(path, 1, 1), Severity.WARNING) for path in (*files, "sources.yml")]

    kept = lower_findings(project, found, spark="4.3.0", complete=False)

    assert [finding.location for finding in kept] == [Location("sources.yml", 1, 1)]


def test_every_code_below_an_error_can_be_lowered() -> None:
    """Every code that the package uses for a warning or an info can be lowered."""
    found = {path: codes for path in sorted(PACKAGE.rglob("*.py")) for codes in [codes_below_errors(path)] if codes}

    assert {code for codes in found.values() for code in codes} <= ADVICE
    assert set().union(*found.values()) == ADVICE


def codes_below_errors(path: Path) -> set[str]:
    """Returns the codes used in functions (or their decorators) that mention a severity below error."""
    tree = ast.parse(path.read_text())
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    codes: set[str] = set()
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        nodes = list(ast.walk(function))
        if any(isinstance(node, ast.Attribute) and node.attr in ("WARNING", "INFO") for node in nodes):
            texts = [node.value for node in nodes if isinstance(node, ast.Constant)]
            texts += [constants.get(node.id) for node in nodes if isinstance(node, ast.Name)]
            codes |= {text for text in texts if isinstance(text, str) and text in CODES}
    return codes


def test_a_comment_in_yaml_allows_an_unknown_option(tmp_path: Path) -> None:
    """An allow comment in YAML hides a warning about an option, and gives an info if it hides nothing."""
    sources = FILES["sources.yml"].replace("path: in,", "path: in, options: {maxFilePerTrigger: 1},")
    assert advice(tmp_path, {"sources.yml": sources}) == ["warning unknown-option sources.yml:4:77"]

    comment = "# sqlstream: allow unknown-option because a patched Spark knows it\n"
    assert advice(tmp_path, {"sources.yml": comment + sources}) == []
    assert advice(tmp_path, {"sources.yml": comment + FILES["sources.yml"]}) == ["info unused-allow sources.yml:1:1"]


@pytest.mark.parametrize("value", ["off", "ignore"])
def test_a_rule_allows_unknown_options(tmp_path: Path, value: str) -> None:
    """A rule in project.yml hides `unknown-option` in the whole project."""
    sources = FILES["sources.yml"].replace("path: in,", "path: in, options: {maxFilePerTrigger: 1},")
    rules = f"name: shop\nrules: {{unknown-option: {value}}}\n"

    assert advice(tmp_path, {"project.yml": rules, "sources.yml": sources}) == []


def test_a_mistake_in_a_view_is_one_finding_for_all_queries(tmp_path: Path) -> None:
    """A mistake in a view gives one finding with the first query's name and the number of other queries."""
    files = {
        "models/sorted.sql": f"select id from {ORDERS} order by id",
        **{f"models/q{number}.sql": SINK % "append" + "select id from {{ ref('sorted') }}" for number in (1, 2, 3)},
    }

    with pytest.raises(FindingsError) as raised:
        advice(tmp_path, files)

    (finding,) = raised.value.findings
    assert finding.message == "`q1` sorts a stream; 2 more queries have the same problem"
