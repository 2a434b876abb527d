"""Warnings and infos: what goes nowhere, what nothing uses, what grows for ever, and how a project lowers them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream import FindingsError, ProjectRequest, compile_models
from sqlstream.errors import Severity

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
    """Returns the severity, code and place of each finding of the project with these files besides."""
    for name, text in {**FILES, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found = compile_models(ProjectRequest(root)).findings
    return sorted(f"{finding.severity} {finding.code} {finding.location}" for finding in found)


def errors(root: Path, files: dict[str, str]) -> list[str]:
    """Returns the code and place of each error."""
    with pytest.raises(FindingsError) as raised:
        advice(root, files)
    return [f"{finding.code} {finding.location}" for finding in raised.value.findings if finding.is_error]


def test_a_model_that_goes_nowhere(tmp_path: Path) -> None:
    """One that another model reads is used, and one that names a sink is written."""
    files = {
        "models/inner.sql": f"select id from {ORDERS}",
        "models/leaf.sql": "select id from {{ ref('inner') }}",
    }

    assert advice(tmp_path, files) == ["warning unwritten-model models/leaf.sql:1:1"]


def test_what_nothing_uses(tmp_path: Path) -> None:
    """Sources, sinks and macros; a macro that calls itself by name counts as used, one in a Jinja comment is none."""
    files = {
        "models/more.yml": "sources:\n  - {name: old, tables: [{name: refunds, format: json, path: in, schema: a int}]}\n"
        "sinks:\n  - {name: archive, format: noop}\n",
        "macros/money.sql": "{# {% macro draft() %} #}\n{% macro cents(x) %}{{ x }}{% endmacro %}\n"
        "{% macro used() %}1{% endmacro %}\n",
        "models/orders_out.sql": SINK % "append" + f"select id, {{{{ used() }}}} as one from {ORDERS}",
    }

    assert advice(tmp_path, files) == [
        "info unused-macro macros/money.sql:2:10",
        "info unused-sink models/more.yml:4:12",
        "info unused-source models/more.yml:2:33",
    ]


def test_a_disabled_model_uses_what_it_names(tmp_path: Path) -> None:
    """It may be enabled on another target."""
    files = {
        "models/more.yml": "sources:\n  - {name: old, tables: [{name: refunds, format: json, path: in, schema: a int}]}\n"
        "sinks:\n  - {name: archive, format: noop}\n",
        "models/off.sql": "{{ config(enabled=false, sink='archive') }} select * from {{ source('old', 'refunds') }}",
    }

    assert advice(tmp_path, files) == []


def test_infos_are_for_compile_alone(tmp_path: Path) -> None:
    """Other commands show warnings only, and a project with errors shows no infos."""
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
def test_state_that_grows_for_ever(tmp_path: Path, mode: str, sql: str, grows: bool) -> None:
    """An aggregation in update mode without a watermark, and a join that keeps a side's rows."""
    found = advice(tmp_path, {"models/asked.sql": SINK % mode + sql})

    assert [item.split()[1] for item in found] == (["unbounded-state"] if grows else [])


GROWING = SINK % "update" + f"select id, count(*) as n from {ORDERS} group by id"


def test_a_project_lowers_a_warning(tmp_path: Path) -> None:
    """To an info, or to nothing."""
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
    """Also one that lies in a macro which the model calls; in each form that SQL and Jinja have for comments."""
    files = {
        "models/asked.sql": GROWING.replace("\n", "\n" + allowed),
        "models/called.sql": allowed + SINK % "update" + "{{ counted() }}",
        "macros/counted.sql": "{% macro counted() %}select id, count(*) as n from {{ source('shop', 'orders') }} group by id"
        "{% endmacro %}",
    }

    assert advice(tmp_path, files) == []


def test_a_comment_that_allows_nothing_is_said(tmp_path: Path) -> None:
    """It would hide what somebody brings in later."""
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
        "-- sqlstream: allow unknown-column because we may",
        "/* sqlstream: allow unbounded-state because */",
        "{# sqlstream: allow unbounded-state #}",
    ],
)
def test_a_comment_of_another_form_is_an_error(tmp_path: Path, comment: str) -> None:
    """No reason, no such code, or the code of an error."""
    files = {"models/asked.sql": GROWING + "\n" + comment}

    assert errors(tmp_path, files) == ["invalid-allow models/asked.sql:3:1"]


@pytest.mark.parametrize("code", ["unknown-column", "unbound-state"])
def test_a_rule_for_what_cannot_be_lowered_is_an_error(tmp_path: Path, code: str) -> None:
    """An error stays one."""
    assert errors(tmp_path, {"project.yml": f"name: shop\nrules:\n  {code}: info\n"}) == [
        "invalid-allow project.yml:3:3"
    ]


def test_an_unread_form_is_noted(tmp_path: Path) -> None:
    """Nothing is refused where the rules cannot follow; the place is where they stopped reading."""
    sql = f"from {ORDERS} map id, amount using 'cat' as id, amount"

    assert advice(tmp_path, {"models/asked.sql": SINK % "append" + sql}) == ["info not-followed models/asked.sql:2:41"]


def test_an_unread_form_in_a_macro_is_allowed_where_it_is_called(tmp_path: Path) -> None:
    """As every finding that lies in a macro."""
    files = {
        "macros/read.sql": "{% macro read(column) %}\n  {{ column }}:x::string{% endmacro %}",
        "models/asked.sql": SINK % "append" + f"select {{{{ read('id') }}}} as x from {ORDERS}",
    }
    assert advice(tmp_path, files) == ["info not-followed macros/read.sql:2:17"]

    files["models/asked.sql"] += "\n-- sqlstream: allow not-followed because Spark reads it"
    assert advice(tmp_path, files) == []
