"""`sqlstream test --watch` as a process: which tests it runs again after a save, in the same Spark."""

from __future__ import annotations

import signal

import pytest

from tests.spark.conftest import ProjectFolder, descendants, wait_for

MODEL = "{{ config(sink='nowhere') }}\nselect id, amount * 2 as twice from {{ source('shop', 'orders') }}\n"

BELOW = "{{ config(sink='nowhere') }}\nselect id, twice * 2 as fourfold from {{ ref('doubled') }}\n"

CASE = """  - name: {name}
    model: {model}
    given: [{{input: "{given}", rows: [{{id: 1, {column}: 3}}]}}]
    expect: {{rows: [{{id: 1, {result}}}]}}
"""

CASES = "unit_tests:\n" + "".join(
    (
        CASE.format(
            name="twice", model="doubled", given="source('shop', 'orders')", column="amount", result="twice: 6"
        ),
        CASE.format(name="four", model="fourfold", given="ref('doubled')", column="twice", result="fourfold: 6"),
    )
)


@pytest.mark.slow
def test_a_save_runs_the_affected_tests_again(folder: ProjectFolder) -> None:
    """A save repeats the tests of the model and of the models below it in the same Spark; Ctrl-C ends it cleanly."""
    folder.write({"models/doubled.sql": MODEL, "models/fourfold.sql": BELOW, "tests/models/t.yml": CASES})
    watching = folder.command("test", "--watch")
    try:
        first = wait_for(watching, "Done.")
        spark = descendants(watching.pid)
        folder.write({"models/fourfold.sql": BELOW.replace("* 2", "* 3")})
        second = wait_for(watching, "Done.")
        folder.write({"models/doubled.sql": MODEL.replace("select", "selec")})
        third = wait_for(watching, "Done.")
        folder.write({"models/doubled.sql": MODEL.replace("* 2", "* 4")})
        fourth = wait_for(watching, "Done.")
        again = descendants(watching.pid)
    finally:
        watching.send_signal(signal.SIGINT)
        rest, _ = watching.communicate()

    assert "PASS=2 WARN=0 ERROR=0" in first[-1]
    assert any("models/fourfold.sql" in line for line in second)
    assert "PASS=0 WARN=0 ERROR=1 SKIP=0 TOTAL=1" in second[-1]
    assert not any("doubled.twice" in line for line in second)
    assert any("models/doubled.sql:2:1: [sql-syntax]" in line for line in third)
    assert any("models/doubled.sql" in line and "[unit-test-failed]" not in line for line in fourth)
    assert "PASS=0 WARN=0 ERROR=2 SKIP=0 TOTAL=2" in fourth[-1]
    assert spark[1] in again
    assert watching.returncode == 0
    assert "Traceback" not in rest
