"""`sqlstream debug`: each line is ok, or says how to mend it."""

from __future__ import annotations

from pathlib import Path

from conftest import LONGEST_WAIT_SECONDS, ProjectFolder


def test_all_is_well(folder: ProjectFolder) -> None:
    """Python, PySpark, Java, project, target, write access and a start of Spark."""
    process = folder.command("debug")
    out, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)

    assert process.returncode == 0, out
    lines = out.splitlines()
    assert [line.split()[1] for line in lines] == [
        "Python", "PySpark", "Java", "project", "target", "target/", "logs/", "storage", "Spark",
    ]  # fmt: skip
    assert {line.split()[0] for line in lines} == {"ok"}


def test_what_is_wrong_has_its_fix(folder: ProjectFolder, tmp_path: Path) -> None:
    """No Java, and a storage that is a file: both are said, each with what to do."""
    folder.write({"store": "a file in the way"})

    process = folder.command("debug", env={"PATH": str(tmp_path / "empty"), "JAVA_HOME": ""})
    out, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)

    assert process.returncode == 1, out
    wrong = [line for line in out.splitlines() if line.startswith("ERROR")]
    assert [line.split()[1] for line in wrong] == ["Java", "storage"]
    assert out.count("fix: ") == 2
