"""A failed start of Spark is a finding at the target, not a traceback; JVM options do not break the start."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.spark.conftest import LONGEST_WAIT_SECONDS, ProjectFolder

MODEL = "{{ config(sink='nowhere') }} select * from {{ source('shop', 'orders') }}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "target",
    ["master: nonsense", "spark: {spark.driver.memory: much}", "spark: {spark.scheduler.mode: NONE_SUCH}"],
)
def test_refused_settings_are_a_finding_at_the_target(orders: ProjectFolder, target: str) -> None:
    """A setting that the launcher, the JVM or Spark refuses gives three lines and exit code 1."""
    orders.write(
        {
            "models/all.sql": MODEL,
            "project.yml": f"name: shop\nversion: 1.0.0\ntargets:\n  local: {{{target}, storage: /tmp}}\n",
        }
    )

    process = orders.command("run", "--available-now")
    out, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)

    assert process.returncode == 1, out
    lines = [line for line in out.splitlines() if line]
    assert len(lines) == 3, out
    assert lines[0].startswith("project.yml:4:3: [spark-start]")


@pytest.mark.slow
@pytest.mark.parametrize(("home", "path", "code"), [("", "EMPTY", "java-missing"), ("OLD", "", "java-too-old")])
def test_an_unusable_java_gives_one_message(
    orders: ProjectFolder, tmp_path: Path, home: str, path: str, code: str
) -> None:
    """If Java is missing or too old, one message says what to install, before Spark starts."""
    old = tmp_path / "old"
    (old / "bin").mkdir(parents=True)
    (old / "bin/java").write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    (old / "bin/java").chmod(0o755)
    orders.write({"models/all.sql": MODEL})
    env = {"JAVA_HOME": str(old) if home else "", "PATH": str(tmp_path / "empty") if path else os.environ["PATH"]}

    process = orders.command("run", "--available-now", env=env)
    out, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)

    assert process.returncode == 1
    assert f"[{code}]" in out
    assert "openjdk-17" in out
    assert len(out.splitlines()) == 3


def test_a_command_that_needs_the_jvm_is_refused_over_spark_connect(orders: ProjectFolder) -> None:
    """A command that works in Spark's Java process is refused for a target with `remote`, without asking the server."""
    orders.write(
        {
            "models/all.sql": MODEL,
            "project.yml": "name: shop\nversion: 1.0.0\ntargets:\n  far: {remote: 'sc://127.0.0.1:1', storage: /tmp/far}\n",
        }
    )

    refused = orders.invoke("source", "schema", "shop.orders", "--output", "json")

    assert (refused.code, '"code": "unsupported-target"' in refused.out) == (1, True), refused


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["spark.driver.extraJavaOptions", "spark.driver.defaultJavaOptions"])
def test_a_configured_garbage_collector_replaces_the_default(orders: ProjectFolder, setting: str) -> None:
    """A configured garbage collector replaces the default of a small run, because a JVM does not start with two."""
    orders.write(
        {
            "models/all.sql": MODEL,
            "project.yml": "name: shop\nversion: 1.0.0\ntargets:\n"
            f"  local: {{master: local, storage: store, spark: {{{setting}: '-XX:+UseG1GC'}}}}\n",
        }
    )

    process = orders.command("run", "--available-now", env={"JDK_JAVA_OPTIONS": ""})
    out, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)

    assert process.returncode == 0, out
