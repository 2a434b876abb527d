"""`sqlstream debug`: each line is ok or explains how to fix the problem."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.spark.conftest import LONGEST_WAIT_SECONDS, ProjectFolder


@pytest.mark.slow
def test_all_checks_pass(folder: ProjectFolder) -> None:
    """All checks pass: Python, PySpark, Java, project, target, write access and a start of Spark."""
    process = folder.command("debug")
    out, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)

    assert process.returncode == 0, out
    lines = out.splitlines()
    assert [line.split()[1] for line in lines] == [
        "sqlstream", "Python", "PySpark", "Java", "project", "target", "target/", "logs/", "storage", "archive", "Spark",
    ]  # fmt: skip
    assert {line.split()[0] for line in lines} == {"OK"}


def test_failed_checks_have_a_fix(folder: ProjectFolder, tmp_path: Path) -> None:
    """Missing Java and a storage path that is a file are both reported, each with a fix."""
    folder.write({"store": "a file in the way"})

    process = folder.command("debug", env={"PATH": str(tmp_path / "empty"), "JAVA_HOME": ""})
    out, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)

    assert process.returncode == 1, out
    wrong = [line for line in out.splitlines() if line.startswith("ERROR")]
    assert [line.split()[1] for line in wrong] == ["Java", "storage"]
    assert out.count("fix: ") == 2


@pytest.mark.slow
def test_missing_secrets_and_packages_are_reported_as_json(folder: ProjectFolder) -> None:
    """Missing secrets are named even if a rule refuses a model; an unresolvable package is blamed, not Spark."""
    target = "name: shop\ntargets: {local: {master: 'local[1]', storage: store, packages: ['no.such:package_2.13:1'],"
    keys = "{spark.a: \"{{ env_var('SQLSTREAM_SECRET_A') }}\", spark.b: \"{{ env_var('SQLSTREAM_SECRET_B') }}\"}"
    offline = "spark.jars.ivySettings: ivy.xml"
    folder.write(
        {
            "project.yml": f"{target} spark: {keys[:-1]}, {offline}}}}}}}\n",
            "ivy.xml": "<ivysettings><settings defaultResolver='none'/><resolvers><filesystem name='none'>"
            f"<artifact pattern='{folder.root}/nowhere/[artifact].[ext]'/></filesystem></resolvers></ivysettings>",
            "models/wrong.sql": "select nothing from {{ source('shop', 'orders') }}",
        }
    )

    process = folder.command("debug", "--output", "json", env={"SQLSTREAM_SECRET_A": "a", "SQLSTREAM_SECRET_B": "b"})
    out, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)
    checks = {check["name"]: check for check in json.loads(out[out.index("{\n") :])["checks"]}
    assert process.returncode == 1
    assert checks["secrets"]["found"] == "set: SQLSTREAM_SECRET_A, SQLSTREAM_SECRET_B"
    assert [name for name, check in checks.items() if not check["ok"]] == ["packages"], out

    process = folder.command("debug", "--output", "json", env={"SQLSTREAM_SECRET_A": "a"})
    out, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)
    missing = [
        check
        for check in json.loads(out[out.index("{\n") :])["checks"]
        if check["name"] == "secrets" and not check["ok"]
    ]
    assert missing[0]["found"] == "`SQLSTREAM_SECRET_B` is not set"
