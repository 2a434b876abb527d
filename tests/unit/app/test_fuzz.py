"""A short version of `make fuzz`: mutated projects give findings, never a traceback, a hang or excessive memory use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sqlstream.errors import Finding
from sqlstream.location import Location
from tests.fuzz.fuzz_cases import KINDS, make_case
from tests.fuzz.fuzz_check import check_project, finding_faults
from tests.fuzz.fuzz_watch import fuzz, watch
from tests.fuzz.peak_memory import peak_megabytes
from tests.fuzz.run_fuzz import statistics_table

PROJECTS = 80

WORKER = """
import sys, time
from tests.fuzz.fuzz_worker import FuzzResult, work
BYTES = []
def check(seed):
    {body}
    return FuzzResult(seed, "sql", "", "refused", (), (), 0.1, 100.0)
work([7, 8], check, seconds=0.5)
"""
"""A worker whose seed 8 misbehaves instead of giving findings."""


def test_mutated_projects_give_findings() -> None:
    """Each project compiles or is refused within time and memory limits, and all findings have valid locations."""
    outcomes = list(fuzz(0, PROJECTS, workers=1))
    assert [done.case + ": " + "; ".join(done.faults) for done in outcomes if done.faults] == []
    assert sorted(done.seed for done in outcomes) == list(range(PROJECTS))
    assert {done.kind for done in outcomes} == set(KINDS)
    assert {"compiled", "refused"} == {done.result for done in outcomes}


def test_a_seed_always_gives_the_same_project() -> None:
    """A seed always gives the same project, so that failures can be reproduced."""
    assert [make_case(seed) for seed in range(50)] == [make_case(seed) for seed in range(50)]
    assert len({str(make_case(seed).files) for seed in range(50)}) == 50


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("while seed == 8: pass", "more than 5 s of processor time"),
        ("seed == 8 and __import__('ctypes').string_at(0)", "a crash of the process"),
        ("seed == 8 and sys.exit(3)", "exit code 3"),
    ],
)
def test_a_crashed_worker_is_an_outcome(body: str, expected: str) -> None:
    """A hang or crash, in Python or in native code, is attributed to the project that caused it."""
    seven, eight = watch([sys.executable, "-c", WORKER.format(body=body)])
    assert (seven.seed, list(seven.faults)) == (7, [])
    assert (eight.seed, eight.result) == (8, "broke")
    assert eight.faults[0].startswith(expected)
    assert "1 broke" in statistics_table([seven, eight])


def test_faults_of_findings_are_detected(tmp_path: Path) -> None:
    """The checks detect an unknown code, an empty line and a location that the file does not have."""
    (tmp_path / "a.sql").write_text("select 1\n")
    sound = Finding("sql-syntax", "a", "b", "c", Location("a.sql", 1, 9))
    wrong = Finding("nope", "a.", " ", "c", Location("a.sql", 1, 10), calls=(Location("a.sql", 3, 1),))
    assert finding_faults(sound, tmp_path) == []
    assert len(finding_faults(wrong, tmp_path)) == 5
    assert check_project(tmp_path).codes == {"project-not-found"}


def test_the_peak_memory_excludes_the_parent() -> None:
    """A child of a large process reports only its own peak memory."""
    script = (
        "import sys; sys.path[:] = {!r}; from tests.fuzz.peak_memory import peak_megabytes; print(peak_megabytes())"
    )
    large = bytearray(200 << 20)
    done = subprocess.run(
        [sys.executable, "-c", script.format(sys.path)], capture_output=True, text=True, timeout=60, check=True
    )
    assert peak_megabytes() > len(large) >> 20 > float(done.stdout)
