"""Commands in a process without Java, which fails if it loads Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]

RUN = """
import sys
from sqlstream.cli.main import main
try:
    main(sys.argv[1:])
finally:
    loaded = sorted(name for name in sys.modules if name.split(".")[0] in ("pyspark", "py4j", "pandas", "pyarrow"))
    assert not loaded, loaded
"""
"""Runs the command in a process that fails if a Spark module was imported."""


def run_without_java(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the command in an environment without Java or any other program, and returns the finished process."""
    return subprocess.run(
        [sys.executable, "-c", RUN, *arguments, "--project-dir", str(folder)],
        env={"PATH": "/nowhere", "PYTHONPATH": str(REPOSITORY), "PYTHONIOENCODING": "utf-8"},
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
