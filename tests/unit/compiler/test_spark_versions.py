"""On a Spark later than every tested version, findings based on lists of known names are warnings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sqlstream import FindingsError, ProjectRequest, compile_models
from sqlstream.app.loading.load import try_load
from sqlstream.app.plan.plan import plan_project
from sqlstream.app.request import PlanRequest
from sqlstream.codes import CODES, LOWERABLE, SPARK_DECIDES
from sqlstream.compiler.allowances import lower_findings
from sqlstream.compiler.spark_versions import LISTED, TESTED, installed_spark, is_later, minor_version, on_spark
from sqlstream.errors import Finding, Severity
from sqlstream.location import Location
from sqlstream.project.values import Project
from sqlstream.state.plan import sql_judgement

FILES = {
    "project.yml": "name: shop\n",
    "sources.yml": """sources:
  - name: shop
    tables:
      - {name: orders, format: json, path: in, schema: 'id int, ts timestamp', options: {compression: brotli}}
""",
    "sinks.yml": "sinks:\n  - {name: out, format: noop}\n",
    "models/orders_out.sql": """{{ config(sink='out') }}
select upper(id, 2) as name from {{ source('shop', 'orders') }}
""",
    "models/places_out.sql": """{{ config(sink='out') }}
select to_geohash(id) as place from {{ source('shop', 'orders') }}
""",
}
ON_LISTS = ["argument-count", "option-value", "unknown-function"]
LATER = "4.4.0.dev1"


def project(root: Path, spark: str, **files: str) -> ProjectRequest:
    """Returns the request to compile the project, with these additional files, on this version of Spark."""
    for name, text in {**FILES, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return ProjectRequest(root, env={}, spark_version=lambda: spark)


def errors(request: ProjectRequest) -> list[str]:
    """Returns the error codes of a project that does not compile."""
    with pytest.raises(FindingsError) as raised:
        compile_models(request)
    return sorted(finding.code for finding in raised.value.findings if finding.is_error)


def warnings(request: ProjectRequest) -> list[str]:
    """Returns the warning codes of a project that compiles."""
    found = compile_models(request).findings
    return sorted(finding.code for finding in found if finding.severity is Severity.WARNING)


@pytest.mark.parametrize("version", ["4.1.0", "4.2.1", "4.3.0", "4.3.9", "4.3.1.dev2"])
def test_unlisted_names_are_errors_on_a_tested_spark(tmp_path: Path, version: str) -> None:
    """On a tested version of Spark, or a patch release of it, unknown functions and options are errors."""
    assert errors(project(tmp_path, version)) == ON_LISTS


@pytest.mark.parametrize("version", ["4.4.0", LATER, "4.10.1", "5.0.0"])
def test_unlisted_names_are_warnings_on_a_later_spark(tmp_path: Path, version: str) -> None:
    """On a later Spark they are warnings, and one more warning names the installed and the tested versions."""
    found = compile_models(project(tmp_path, version)).findings

    (said,) = [finding for finding in found if finding.code == "untested-spark"]
    assert f"Spark {version} is later" in said.message
    assert f"({TESTED[0]} to {TESTED[-1]})" in said.message
    assert sorted(finding.code for finding in found if finding is not said) == ON_LISTS
    assert {finding.severity for finding in found} == {Severity.WARNING}


def test_other_errors_stay_errors_on_a_later_spark(tmp_path: Path) -> None:
    """An unknown column is an error on every version of Spark."""
    model = "{{ config(sink='out') }}\nselect idd from {{ source('shop', 'orders') }}\n"

    assert errors(project(tmp_path, LATER, **{"models/wrong.sql": model})) == ["unknown-column"]


def test_the_cache_works_for_every_spark(tmp_path: Path) -> None:
    """A cache from one version of Spark does not change the findings on another."""
    tested = project(tmp_path, "4.3.0")
    later = replace(tested, spark_version=lambda: LATER)

    for _ in range(2):
        assert errors(tested) == ON_LISTS
        assert warnings(later) == [*ON_LISTS, "untested-spark"]


def test_the_warning_about_an_untested_spark_can_be_hidden(tmp_path: Path) -> None:
    """A rule in project.yml hides the warning about an untested Spark."""
    rules = "name: shop\nrules: {untested-spark: ignore}\n"

    assert warnings(project(tmp_path, LATER, **{"project.yml": rules})) == ON_LISTS


def test_a_warning_on_a_later_spark_can_be_lowered_too(tmp_path: Path) -> None:
    """A rule or an allow comment lowers the warnings on a later Spark."""
    files = {
        "project.yml": "name: shop\nrules: {unknown-function: ignore, option-value: info}\n",
        "models/orders_out.sql": FILES["models/orders_out.sql"] + "-- sqlstream: allow argument-count because of 4.4\n",
    }

    assert warnings(project(tmp_path, LATER, **files)) == ["untested-spark"]


@pytest.mark.parametrize(
    ("setting", "value", "is_off"),
    [
        ("caseSensitive", "true", True),
        ("caseSensitive", "false", False),
        ("ansi.doubleQuotedIdentifiers", "true", True),
        ("ansi.enabled", "TRUE", False),
        ("streaming.unsupportedOperationCheck", "false", True),
        ("streaming.unsupportedOperationCheck", "true", False),
        ("lateralColumnAlias.enableImplicitResolution", "false", True),
        ("decimalOperations.allowPrecisionLoss", "true", False),
        ("shuffle.partitions", "8", False),
    ],
)
def test_a_setting_that_switches_rules_off_is_a_warning(tmp_path: Path, setting: str, value: str, is_off: bool) -> None:
    """Settings with which most rules do not run give a warning at the target, also in a plan, which does not judge SQL
    there; those with Spark's default do not.
    """
    files = {
        "project.yml": f"name: shop\ntargets:\n  dev: {{spark: {{spark.sql.{setting}: '{value}'}}}}\ndefault_target: dev\n",
        "sources.yml": FILES["sources.yml"].replace(", options: {compression: brotli}", ""),
        "models/orders_out.sql": "{{ config(sink='out') }}\nselect idd from {{ source('shop', 'orders') }}\n",
        "models/places_out.sql": "select 1 as a\n",
    }
    request = project(tmp_path, "4.3.0", **files)
    if not is_off:
        assert errors(request) == ["unknown-column"]
        return
    (said,) = [finding for finding in compile_models(request).findings if finding.code == "rules-off"]
    assert (str(said.location), said.severity) == ("project.yml:3:3", Severity.WARNING)
    assert plan_project(PlanRequest(request)).warnings == (said,)
    compiled = try_load(request).readable().compiled
    judge: Any = sql_judgement
    assert judge(compiled, next(iter(compiled.models.values())), None, None, ()) is None


@pytest.mark.parametrize("version", ["4.2.1", "4.3.0", "4.4.0"])
def test_inner_joins_in_update_mode_need_spark_42(tmp_path: Path, version: str) -> None:
    """Spark 4.1 refuses stream-stream joins in update mode, and its cached verdict is not used for later versions."""
    stream = "{{ source('shop', 'orders') }}"
    model = f"""{{{{ config(sink='out', output_mode='update') }}}}
-- sqlstream: allow unbounded-state because it is a test
select a.id from {stream} as a join {stream} as b on a.id = b.id
"""
    sources = FILES["sources.yml"].replace(", options: {compression: brotli}", "")
    old = project(tmp_path, "4.1.4", **{"sources.yml": sources, "models/joined.sql": model})
    for name in ("orders_out", "places_out"):
        (tmp_path / f"models/{name}.sql").unlink()

    for _ in range(2):
        assert errors(old) == ["stream-join-mode"]
        assert set(warnings(replace(old, spark_version=lambda: version))) <= {"untested-spark"}


@pytest.mark.parametrize("code", sorted(LISTED))
def test_every_listed_code_is_a_warning_on_a_later_spark(code: str) -> None:
    """Every code in LISTED is an error on a tested Spark and a warning on a later one."""
    finding = Finding(code, "m", "w", "f", Location("models/a.sql", 1, 1))

    assert list(on_spark([finding], "4.3.0")) == [finding]
    assert next(on_spark([finding], "4.4.0")).severity is Severity.WARNING


def test_every_listed_code_is_checked_by_spark() -> None:
    """Every code in LISTED is one that Spark itself checks, so that a warning hides no accepted mistake."""
    assert LISTED <= SPARK_DECIDES


def test_the_installed_spark_is_tested() -> None:
    """The installed Spark, read from the package's metadata, is a tested version."""
    assert minor_version(installed_spark()) in {minor_version(version) for version in TESTED}


@pytest.mark.parametrize("version", ["", "unknown", "4"])
def test_an_unknown_version_is_not_a_later_one(version: str) -> None:
    """An unknown version of Spark, as without PySpark, does not count as later."""
    assert not is_later(version)


def compiled(root: Path, rules: str) -> Project:
    """Returns a project with these `rules:`."""
    model = "{{ config(sink='out') }}\nselect id from {{ source('shop', 'orders') }}\n"
    sources = FILES["sources.yml"].replace("brotli", "gzip")
    models = dict.fromkeys(("models/orders_out.sql", "models/places_out.sql"), model)
    files = {"project.yml": f"name: shop\nrules: {rules}\n", "sources.yml": sources, **models}
    return compile_models(project(root, "4.3.0", **files)).loaded.compiled.project


@pytest.mark.parametrize(("value", "severity"), [("warn", Severity.WARNING), ("info", Severity.INFO), ("off", None)])
def test_every_error_that_spark_checks_can_be_lowered(tmp_path: Path, value: str, severity: Severity | None) -> None:
    """A rule in project.yml lowers every error that Spark itself checks, on every version."""
    shop = compiled(tmp_path, "{" + ", ".join(f"{code}: {value}" for code in SPARK_DECIDES) + "}")
    found = [Finding(code, "m", "w", "f", Location("models/a.sql", 1, 1)) for code in sorted(SPARK_DECIDES)]

    lowered = lower_findings(shop, found, spark="4.3.0", complete=False)

    assert lowered == tuple(replace(finding, severity=severity) for finding in found if severity)


def test_a_rule_does_not_raise_a_severity(tmp_path: Path) -> None:
    """A rule does not raise the severity of an info."""
    shop = compiled(tmp_path, "{not-followed: warn}")
    found = (Finding("not-followed", "m", "w", "f", Location("models/a.sql", 1, 1), Severity.INFO),)

    assert lower_findings(shop, found, spark="4.3.0", complete=False) == found


@pytest.mark.parametrize("code", ["unknown-ref", "yaml-syntax", "missing-path", "python-name"])
def test_other_errors_cannot_be_lowered(tmp_path: Path, code: str) -> None:
    """Errors in the project's structure, and mistakes with which Spark would lose rows, cannot be lowered."""
    assert code in CODES
    assert code not in LOWERABLE
    rules = f"name: shop\nrules: {{{code}: ignore}}\n"
    assert errors(project(tmp_path, LATER, **{"project.yml": rules})) == ["invalid-allow"]


def test_lowered_errors_allow_findings_about_the_whole_project(tmp_path: Path) -> None:
    """If the errors are lowered, unused sinks and unused allow comments are reported as in a valid project."""
    files = {
        "project.yml": "name: shop\nrules: {unknown-function: warn, argument-count: ignore, option-value: ignore}\n",
        "sinks.yml": "sinks:\n  - {name: out, format: noop}\n  - {name: other, format: noop}\n",
        "sources.yml": FILES["sources.yml"] + "# sqlstream: allow unknown-option because of nothing\n",
    }

    found = compile_models(project(tmp_path, "4.3.0", **files)).findings

    assert {finding.code for finding in found} == {"unknown-function", "unused-sink", "unused-allow"}
