"""Commands on a simulated Windows: `sys.platform` is win32, and POSIX-only modules are missing.

Paths, files and processes are those of the machine that runs the test, and third-party packages are loaded before the
simulation starts. Only a real Windows machine shows whether these work there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]

ON_WINDOWS = """
import importlib.abc, sys, sysconfig
import asyncio, ctypes, logging.handlers, multiprocessing, os, platform, select, signal, socket, sqlite3, subprocess
import tempfile, uuid
import click, jinja2, pydantic, rich.console, sqlglot, yaml

sysconfig.get_config_vars()
POSIX_MODULES = {"fcntl", "grp", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty"}

class Nowhere(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in POSIX_MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for name in POSIX_MODULES:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Nowhere())
ABSENT = {
    os: "O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK WNOHANG chown fchmod fchown fork forkpty getegid geteuid getgid "
    "getloadavg getpgid getpgrp getuid killpg mkfifo nice register_at_fork sched_getaffinity setpgid setsid "
    "sysconf uname wait4",
    signal: "SIGALRM SIGCHLD SIGHUP SIGKILL SIGPIPE SIGQUIT SIGTSTP SIGUSR1 SIGUSR2 SIGWINCH alarm pause "
    "pthread_sigmask setitimer",
    select: "epoll poll",
}
for module, names in ABSENT.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
del signal.Signals._member_map_["SIGHUP"]
signal.Signals._member_names_.remove("SIGHUP")
sys.platform = "win32"

from sqlstream.cli.main import main
main(sys.argv[1:])
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The examples of this repository."""
    for part in ("project.yml", "sources.yml", "sinks.yml"):
        shutil.copy(REPOSITORY / part, tmp_path)
    for part in ("models", "macros", "seeds"):
        shutil.copytree(REPOSITORY / part, tmp_path / part)
    return tmp_path


def run(project: Path, *arguments: str, windows: bool) -> tuple[int, str, str]:
    """Returns the exit code, stdout and stderr of a command without Java and without a cache.

    Reading or writing text in the machine's default encoding is an error, because on Windows that is not UTF-8.
    """
    shutil.rmtree(project / "target", ignore_errors=True)
    start = ["-c", ON_WINDOWS] if windows else ["-m", "sqlstream"]
    done = subprocess.run(
        [sys.executable, "-X", "warn_default_encoding", "-W", "error::EncodingWarning", *start, *arguments],
        cwd=project,
        env={**os.environ, "PATH": "/nowhere", "JAVA_HOME": "", "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("compile", "--explain", "device_sessions"),
        ("compile", "--output", "json"),
        ("ls", "--select", "+device_sessions", "--output", "json"),
        ("lineage", "device_windows"),
        ("plan", "--select", "device_windows"),
        ("explain", "java-missing"),
        ("run", "--help"),
    ],
    ids=" ".join,
)
def test_commands_without_spark_work(project: Path, arguments: tuple[str, ...]) -> None:
    """Commands that need no Spark work with the same output as on this machine."""
    here = run(project, *arguments, windows=False)

    assert run(project, *arguments, windows=True) == here
    assert here[0] == 0


def test_a_wrong_model_is_located(project: Path) -> None:
    """Paths in findings have slashes; SQL that only Spark can check is not checked, as without Java."""
    (project / "models" / "wordcount" / "wrong.sql").write_text("select nothing from {{ ref('word_counts') }}\n")
    (project / "models" / "wordcount" / "unread.sql").write_text("select 1 as x y\n")

    code, _, err = run(project, "compile", windows=True)

    assert code == 1
    assert "models/wordcount/wrong.sql:1:8: [unknown-column]" in err
    assert "models/wordcount/unread.sql" in err


@pytest.mark.parametrize(
    "command",
    ["run", "test", "show --select word_counts", "dev --select word_counts", "debug", "compile --check"],
)
def test_commands_with_spark_say_where_they_work(project: Path, command: str) -> None:
    """Commands that need Spark are a usage error in one line that says where they work, before any file is touched."""
    code, out, err = run(project, *command.split(), windows=True)

    words = command.partition(" --select")[0]
    assert (code, out) == (2, "")
    assert err == f"Error: `sqlstream {words}` needs Linux or macOS; on Windows, use it in WSL 2\n"
    assert not (project / "target").exists()


@pytest.mark.parametrize("command", ["plan", "status"])
def test_storage_that_only_spark_reads(project: Path, command: str) -> None:
    """Commands that usually need no Spark refuse storage that only Spark can read, and say where they work."""
    declared = (project / "project.yml").read_text()
    (project / "project.yml").write_text(declared.replace("targets:\n", "targets:\n  far: {storage: 'hdfs://a/b'}\n"))

    code, out, err = run(project, command, "-s", "word_counts", "--target", "far", windows=True)

    assert (code, out) == (1, "")
    assert "[storage-unusable] the ledgers of target `far` cannot be read on Windows" in err
    assert "why: only Spark can read hdfs://a/b, and Spark starts only on Linux and macOS" in err
