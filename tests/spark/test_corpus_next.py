"""`make corpus-next`: the corpus on a Spark version other than the one on record."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tests" / "corpus" / "run_corpus.py"
VERDICTS = SCRIPT.with_name("verdicts.json")


@pytest.mark.slow
def test_another_spark_is_compared_without_recording() -> None:
    """The comparison names both versions and leaves the recorded verdicts unchanged."""
    before = VERDICTS.read_bytes()
    command = [sys.executable, str(SCRIPT), "--other-spark", "windowed_count_append"]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert "compared with the recorded verdicts of Spark 4.3" in done.stdout
    assert "1 cases in" in done.stdout
    assert VERDICTS.read_bytes() == before
