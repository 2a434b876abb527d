"""`sqlstream compile` over tests/projects/broken and warned: the exact output that the user reads, without Java.

After a change of wording, `SQLSTREAM_WRITE_EXPECTED=1 pytest tests/unit/app/compile/test_compile_broken_projects.py` writes
the `expected.txt` files; read the changes before you commit them.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from tests.support.without_java import REPOSITORY, run_without_java

BROKEN = REPOSITORY / "tests" / "projects" / "broken"
PROJECTS = sorted(folder.name for folder in BROKEN.iterdir() if folder.is_dir())
BROKEN_TESTS = REPOSITORY / "tests" / "projects" / "broken_tests" / "devices"
WARNED = sorted(folder for folder in (REPOSITORY / "tests" / "projects" / "warned").iterdir() if folder.is_dir())


def expected_text(folder: Path, printed: str) -> str:
    """Returns the expected text of a project; a run with SQLSTREAM_WRITE_EXPECTED writes it first."""
    expected = folder / "expected.txt"
    if os.environ.get("SQLSTREAM_WRITE_EXPECTED"):
        expected.write_text(printed, encoding="utf-8")
    return expected.read_text(encoding="utf-8")


def copied(name: str, into: Path) -> Path:
    """Returns a copy of a broken project, because compiling writes a log next to it."""
    folder = into / name
    shutil.copytree(BROKEN / name, folder)
    if name == "link_out_of_the_project":  # a link cannot be committed here: it would lead out of every other checkout
        (into / "shared").mkdir()
        (into / "shared" / "payments.sql").write_text("select 1 as one\n")
        (folder / "models" / "shared").symlink_to(into / "shared")
        (folder / "models" / "payments.sql").symlink_to(into / "shared" / "payments.sql")
    return folder


@pytest.mark.parametrize("name", PROJECTS)
def test_a_broken_project_is_explained(name: str, tmp_path: Path) -> None:
    """A broken project gives exit code 1, nothing on stdout, and exactly the expected findings on stderr."""
    result = run_without_java(copied(name, tmp_path), "compile")

    assert result.stderr == expected_text(BROKEN / name, result.stderr)
    assert (result.returncode, result.stdout) == (1, "")


@pytest.mark.parametrize("project", WARNED, ids=lambda folder: str(folder.name))
def test_a_project_with_warnings_compiles(project: Path, tmp_path: Path) -> None:
    """A project with warnings gives exit code 0, and exactly the expected warnings and infos on stderr."""
    folder = tmp_path / project.name
    shutil.copytree(project, folder)

    result = run_without_java(folder, "compile")

    assert result.stderr == expected_text(project, result.stderr)
    assert result.returncode == 0


def test_broken_unit_tests_are_explained(tmp_path: Path) -> None:
    """`sqlstream test` prints all findings of broken unit tests on stdout without starting Spark."""
    folder = tmp_path / "devices"
    shutil.copytree(BROKEN_TESTS, folder)

    result = run_without_java(folder, "test")
    printed = re.sub(r" in [\d.]+ s\]", " in 0.00 s]", result.stdout)

    assert printed == expected_text(BROKEN_TESTS, printed)
    assert (result.returncode, result.stderr) == (1, "")


@pytest.mark.parametrize("command", ["compile", "ls"])
def test_the_examples_need_neither_java_nor_pyspark(command: str, tmp_path: Path) -> None:
    """The examples in the repository root compile and are listed in a process without Spark."""
    for part in ("project.yml", "sources.yml", "sinks.yml"):
        shutil.copy(REPOSITORY / part, tmp_path)
    for part in ("models", "macros", "seeds"):
        shutil.copytree(REPOSITORY / part, tmp_path / part)

    result = run_without_java(tmp_path, command)

    assert (result.returncode, result.stderr) == (0, "")
    assert "examples" in result.stdout
