"""`sqlstream init` as a command: its output and exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream.cli.main import main
from sqlstream.cli.output import DONE, UNUSABLE


def test_creates_a_project_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without --project-dir the project is created below the current folder, also if the environment names another one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SQLSTREAM_PROJECT_DIR", str(tmp_path / "other"))
    with pytest.raises(SystemExit) as ended:
        main(["init", "shop"])
    assert ended.value.code == DONE
    assert (tmp_path / "shop/project.yml").is_file()
    printed = capsys.readouterr().out
    assert "cd shop " in printed
    page = Path(__file__).parents[3] / "docs/commands/init.md"
    assert printed.splitlines()[0] in page.read_text().splitlines()


def test_creates_a_project_in_a_given_folder(tmp_path: Path) -> None:
    """With --project-dir the project's folder is created below the given folder."""
    with pytest.raises(SystemExit) as ended:
        main(["init", "shop", "--project-dir", str(tmp_path)])
    assert ended.value.code == DONE
    assert (tmp_path / "shop/project.yml").is_file()


def test_a_refusal_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An invalid name exits with code 2 and one line on stderr."""
    with pytest.raises(SystemExit) as ended:
        main(["init", "my shop", "--project-dir", str(tmp_path)])
    assert ended.value.code == UNUSABLE
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("Error: ")
    assert printed.err.count("\n") == 1
