"""Known escapes from Jinja's sandbox execute nothing in any kind of file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.run_escapes import SETTINGS, read_escapes

ESCAPES = {escape["name"]: escape for escape in read_escapes()}
CANARIES = (
    "canary-4711",
    "canary-0815",
    "root:",
    "<class",
    "<module",
    "<bound method",
    "<built-in",
    "<frame",
    "<code",
    " at 0x",
)
"""Values of secrets, the start of /etc/passwd, and the way Python prints its internal objects."""


class Outcome(NamedTuple):
    """The outcome of an escape in one kind of file: a finding's code and texts, or None and the rendered value."""

    code: str | None
    text: str
    events: tuple[str, ...]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the working directory of the process that renders the escapes."""
    return tmp_path_factory.mktemp("escapes")


@pytest.fixture(scope="module")
def outcomes(folder: Path) -> dict[tuple[str, str], Outcome]:
    """Returns the outcomes of all escapes by name and kind of file, from one process."""
    path = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "PYTHONPATH": path, "ONLY_OF_THE_PROCESS": "canary-0815"}
    command = [sys.executable, "-m", "tests.support.run_escapes"]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=300, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {(name, setting): Outcome(code, text, tuple(events)) for name, setting, code, text, events in lines}


def test_the_table_is_complete() -> None:
    """Escape names are unique, and there are at least 150 escapes."""
    assert len(ESCAPES) == len(read_escapes()) >= 150


@pytest.mark.parametrize("name", ESCAPES)
def test_an_escape_is_refused_or_harmless(name: str, outcomes: dict[tuple[str, str], Outcome]) -> None:
    """A model with an escape gives the finding or the harmless text that the table lists."""
    code, text, _ = outcomes[name, "model"]
    assert (code or f"text:{text}") == ESCAPES[name]["gives"]


@pytest.mark.parametrize("name", ESCAPES)
def test_an_escape_executes_nothing(name: str, outcomes: dict[tuple[str, str], Outcome]) -> None:
    """No escape in any kind of file opens a file, imports a module, starts a process or reveals a secret."""
    for setting in SETTINGS:
        code, text, events = outcomes[name, setting]
        assert events == (), setting
        assert not [canary for canary in CANARIES if canary in text], setting
        if ESCAPES[name]["gives"] == "jinja-unsafe":
            assert code is not None, setting


def test_no_escape_left_a_file(folder: Path, outcomes: dict[tuple[str, str], Outcome]) -> None:
    """The working directory is empty after all escapes, so none of their commands ran."""
    assert len(outcomes) == len(ESCAPES) * len(SETTINGS)
    assert list(folder.iterdir()) == []


def test_the_audit_hook_reports_forbidden_actions(folder: Path) -> None:
    """The audit hook reports opening a file, importing a module and running a command."""
    script = (
        "import sys; from tests.support.run_escapes import WATCHED; seen = []\n"
        "sys.addaudithook(lambda event, _: seen.append(event) if event.startswith(WATCHED) else None)\n"
        "open('/dev/null').close(); import os, colorsys; os.system('true'); os.listdir('.')\n"
        "print(*sorted(set(seen)))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=60, check=True)
    assert {"open", "import", "os.system", "os.listdir"} <= set(done.stdout.split())
