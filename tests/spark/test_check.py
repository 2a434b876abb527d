"""`sqlstream compile --check`: all of Spark's findings together, on the model's own lines, without starting a query."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from sqlstream import FindingsError, ProjectRequest
from sqlstream.app.compile.check import check_models
from sqlstream.app.loading.load import load
from sqlstream.app.request import Selection
from sqlstream.app.session.session import spark_session
from sqlstream.errors import Finding
from sqlstream.spark.queries.model_check import check_with_spark
from sqlstream.spark.secrets import Secrets
from tests.spark.conftest import LONGEST_WAIT_SECONDS, ProjectFolder, wait_for

READS = "from {{ source('shop', 'orders') }}"
BROKEN = f"select id,\n  element_at(id, 1) as wrong\n{READS}"
"""A query whose types do not fit, which only Spark can detect."""


def _check(project: ProjectFolder, *select: str, env: dict[str, str] | None = None) -> str:
    request = ProjectRequest(project.root, env={**os.environ, **(env or {})})
    return check_models(request, Selection(tuple(select)))[1]


def _refused(project: ProjectFolder, *select: str) -> tuple[Finding, ...]:
    with pytest.raises(FindingsError) as refused:
        _check(project, *select)
    return tuple(finding for finding in refused.value.findings if finding.is_error)


def _heads(findings: tuple[Finding, ...]) -> list[str]:
    return sorted(f"{finding.location}: {finding.code}" for finding in findings)


def _files(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*")}


@pytest.mark.smoke
def test_a_check_writes_only_compiled_files(orders: ProjectFolder) -> None:
    """A check writes no checkpoint, output, ledger or table folder."""
    orders.write({"models/all.sql": f"{{{{ config(sink='lake') }}}}\nselect * {READS}"})
    before = _files(orders.root)

    version = _check(orders)

    assert version.startswith("4.")
    new = {name for name in _files(orders.root) - before if not name.startswith(("target", "logs"))}
    assert new == set()


@pytest.mark.smoke
def test_findings_of_all_models_come_together(orders: ProjectFolder) -> None:
    """Findings of views, queries and rules come together on their lines; a reader of a broken model gets no finding."""
    orders.write(
        {
            "models/broken.sql": BROKEN,
            "models/child.sql": "{{ config(sink='lake') }}\nselect wrong, id from {{ ref('broken') }}",
            "models/typed.sql": f"{{{{ config(sink='nowhere') }}}}\nselect\n  array_contains(array(id), array(id)) as wrong\n{READS}",
            "models/named.sql": f"select no_such_column\n{READS}",
            "models/split.sql": "{{ config(sink='lake', partition_by=['parts']) }}\n"
            f"select id, map('a', id) as parts {READS}",
            "models/grouped.sql": f"{{{{ config(sink='lake') }}}}\nselect kind, count(*) as n {READS} group by kind",
        }
    )

    assert _heads(_refused(orders)) == [
        "models/broken.sql:2:3: sql-analysis",
        "models/grouped.sql:2:73: append-without-watermark",
        "models/named.sql:1:8: unknown-column",
        "models/split.sql:1:24: partition-column",
        "models/typed.sql:3:3: sql-analysis",
    ]


def test_a_broken_source_is_one_finding(orders: ProjectFolder) -> None:
    """A broken source gives one finding: its models get none, and models over other sources are still checked."""
    orders.write(
        {
            "sources.yml": (orders.root / "sources.yml").read_text()
            + "      - {name: lost, format: json, path: in/nowhere, schema: id int}\n",
            "models/one.sql": "{{ config(sink='nowhere') }}\nselect id from {{ source('shop', 'lost') }}",
            "models/two.sql": "{{ config(sink='lake') }}\nselect id from {{ source('shop', 'lost') }}",
            "models/typed.sql": f"{{{{ config(sink='nowhere') }}}}\nselect element_at(id, 1) as wrong {READS}",
        }
    )

    assert _heads(_refused(orders)) == ["models/typed.sql:2:8: sql-analysis", "sources.yml:9:42: source-unreadable"]


@pytest.mark.slow
def test_only_selected_models_are_checked(orders: ProjectFolder) -> None:
    """A selected view is analysed even if nothing else is selected; unselected models are not."""
    orders.write(
        {
            "models/broken.sql": BROKEN,
            "models/good.sql": f"{{{{ config(sink='nowhere') }}}}\nselect id {READS}",
            "models/child.sql": "{{ config(sink='nowhere') }}\nselect id from {{ ref('broken') }}",
        }
    )

    _check(orders, "good")
    assert _heads(_refused(orders, "broken")) == ["models/broken.sql:2:3: sql-analysis"]
    assert _heads(_refused(orders, "child")) == ["models/broken.sql:2:3: sql-analysis"]


def test_only_missing_secrets_of_sources_are_findings(orders: ProjectFolder) -> None:
    """A missing secret of a source is a finding; a sink's secret is not needed, because nothing is written."""
    orders.write({"models/all.sql": f"{{{{ config(sink='safe') }}}}\nselect id {READS}"})
    sinks = "sinks:\n  - {name: safe, format: noop, options: {key: \"{{ env_var('SQLSTREAM_SECRET_KEY') }}\"}}\n"
    orders.write({"sinks.yml": sinks})
    _check(orders)

    sources = (orders.root / "sources.yml").read_text()
    orders.write(
        {"sources.yml": sources.replace("{maxFiles", "{key: \"{{ env_var('SQLSTREAM_SECRET_KEY') }}\", maxFiles")}
    )
    assert [finding.code for finding in _refused(orders)] == ["missing-env-var"]


@pytest.mark.slow
def test_findings_are_printed_as_json(orders: ProjectFolder) -> None:
    """With JSON output stdout has one object that includes the rules' warnings, and the exit code is 1."""
    orders.write({"models/broken.sql": BROKEN})
    process = orders.command("compile", "--check", "--output", "json", "--quiet")
    out, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)
    assert process.returncode == 1, out
    errors = [finding["code"] for finding in json.loads(out)["findings"] if finding["severity"] == "error"]
    assert errors == ["sql-analysis"]


@pytest.mark.slow
def test_a_check_plans_a_batch(orders: ProjectFolder) -> None:
    """What Spark refuses only when it plans the first batch is an error of the check, also in Python models."""
    joined = "select a.id from {{ source('shop', 'orders') }} a join {{ source('shop', 'orders') }} b on"
    config, grouped = (
        "{{ config(sink='nowhere', output_mode='update') }}\n",
        "select count(*) as n from g group by kind",
    )
    orders.write(
        {
            "models/coalesced.sql": f"{{{{ config(sink='nowhere') }}}}\n{joined} coalesce(a.id = b.id, false)",
            "models/keyed.sql": f"{{{{ config(sink='nowhere') }}}}\n{joined} (a.id = b.id) = true",
            "models/collated.sql": f"{config}with g as (select collate(kind, 'UTF8_LCASE') as kind {READS}) {grouped}",
            "models/bytes.sql": f"{config}with g as (select collate(kind, 'UTF8_BINARY') as kind {READS}) {grouped}",
            "models/renamed.sql": "{{ config(sink='nowhere') }}\n"
            f"with o as (select /*+ WATERMARK(ts, '1 hour') */ id, ts, ts as again {READS}) "
            "select o.ts, o.again as other from o join o as p on o.id = p.id",
            "models/crossed.py": "def model(sqlstream, spark):\n"
            "    sqlstream.config(sink='nowhere')\n"
            "    orders = sqlstream.source('shop', 'orders')\n"
            "    others = sqlstream.source('shop', 'orders').toDF('a', 'b', 'c', 'd')\n"
            "    return orders.join(others, orders.id > others.a)\n",
        }
    )

    found = {(finding.location.path, finding.code) for finding in _refused(orders) if finding.location}
    assert found == {
        ("models/coalesced.sql", "join-without-key"),
        ("models/collated.sql", "type-mismatch"),
        ("models/crossed.py", "join-without-key"),
        ("models/renamed.sql", "several-event-times"),
    }


def test_a_jvm_that_dies_is_one_finding(orders: ProjectFolder) -> None:
    """A JVM that dies gives one finding in total, and no traceback."""
    orders.write({f"models/m{number}.sql": f"select id {READS}" for number in range(3)})
    loaded = load(ProjectRequest(orders.root))
    models = tuple(loaded.compiled.models.values())

    with spark_session(loaded, Secrets({})) as runtime:
        checking = check_with_spark(loaded.compiled, models, runtime, Secrets({}))
        assert next(checking) == []
        gateway = runtime.session.sparkContext._gateway
        assert gateway is not None
        gateway.proc.kill()
        gateway.proc.wait()
        with pytest.raises(FindingsError) as refused:
            next(checking)

    (finding,) = refused.value.findings
    assert "Java process" in finding.why


def test_findings_of_rules_are_shown_without_java(orders: ProjectFolder, tmp_path: Path) -> None:
    """Missing Java adds one finding to those of the rules."""
    orders.write({"models/named.sql": f"select no_such_column\n{READS}"})
    process = orders.command("compile", "--check", env={"JAVA_HOME": "", "PATH": str(tmp_path / "empty")})
    out, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)
    assert process.returncode == 1, out
    assert "[java-missing]" in out
    assert "[unknown-column]" in out


@pytest.mark.slow
def test_ctrl_c_ends_a_check_with_code_1(orders: ProjectFolder) -> None:
    """Ctrl-C ends a check with exit code 1, also while Spark starts, so that it never looks like a clean check."""
    orders.write({"models/all.sql": f"select id {READS}"})
    process = orders.command("compile", "--check")
    wait_for(process, "Starting Spark")
    os.killpg(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)
    assert process.returncode == 1, out
    assert "Traceback" not in out
    assert "Stopped before any query started." in out
