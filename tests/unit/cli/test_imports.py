"""A command loads only what it needs, because a user waits for its start each time."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from sqlstream.app.compile.compile import compile_models
from sqlstream.app.request import ProjectRequest
from sqlstream.cli import commands
from sqlstream.cli.main import COMMANDS, cli

ROOT = Path(__file__).parents[3]

LIBRARIES = frozenset(
    {"asyncio", "email", "importlib.metadata", "jinja2", "pydantic", "pydantic_core", "pyspark", "rich", "sqlglot"}
    | {"sqlite3", "ssl", "subprocess", "yaml"}
)
"""Libraries that take long to load."""

OPERATORS = frozenset(
    f"sqlstream.compiler.{name}"
    for name in ("trees", "emission", "flow.nodes", "flow.functions", "rules.query", "rules.streams", "rewrite.sql")
)
"""What builds and checks the operators of queries, which the cache makes unnecessary."""

USE_CASES = "sqlstream.app."
DECLARED = {"sqlstream.app.request", "sqlstream.app.systems"}
"""What declares a command needs of `app/`: requests, no use case."""

LOADED = """
import sys
from sqlstream.cli.main import cli, main
{}
print(*sys.modules, file=sys.stderr)
"""
RUN = """
try:
    main({!r})
except SystemExit as ended:
    assert not ended.code, ended.code
"""
EVERY_COMMAND = "for name in cli.list_commands(None): cli.get_command(None, name)"


def loaded_by(code: str, **variables: str) -> set[str]:
    """Returns the modules that a new process has loaded after `code`."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED.format(code)],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.split())


def test_the_help_loads_no_command() -> None:
    """`sqlstream --help` lists the commands without loading them, and needs only click."""
    modules = loaded_by(RUN.format(["--help"]))

    assert not modules & LIBRARIES
    assert not {name for name in modules if name.startswith(commands.__name__)}


@pytest.mark.parametrize("words", ["sqlstream ", "sqlstream comp"])
def test_the_completion_of_a_command_loads_no_command(words: str) -> None:
    """A shell that completes the name of a command loads no command."""
    position = str(len(words.split(" ")) - 1)
    variables = {"_SQLSTREAM_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": position}
    modules = loaded_by(RUN.format([]), **variables)

    assert "click.shell_completion" in modules
    assert not modules & LIBRARIES
    assert not {name for name in modules if name.startswith(commands.__name__)}


def test_the_help_and_completion_of_a_command_load_nothing_that_runs_it() -> None:
    """Loading a command, as its help and the completion of its options do, loads only its declaration."""
    modules = loaded_by(EVERY_COMMAND)

    assert not modules & LIBRARIES
    assert {name for name in modules if name.startswith(USE_CASES)} == DECLARED


def test_every_command_is_in_the_help() -> None:
    """The table of commands has each module of a command, so that its help shows it."""
    modules = {path.stem for path in Path(commands.__path__[0]).rglob("*.py") if path.stem != "__init__"}

    assert modules == COMMANDS.keys()
    assert all(isinstance(cli.get_command(click.Context(cli), name), click.Command) for name in COMMANDS)


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples, which have SQL and Python models and templates in YAML, after they have been compiled."""
    folder = tmp_path_factory.mktemp("unchanged")
    for name in ("models", "macros", "seeds"):
        shutil.copytree(ROOT / name, folder / name)
    for name in ("project.yml", "sources.yml", "sinks.yml"):
        shutil.copy(ROOT / name, folder)
    compile_models(ProjectRequest(folder))
    return folder


@pytest.mark.parametrize("command", ["compile", "ls"])
def test_an_unchanged_project_loads_nothing_that_compiles_prints_tables_or_runs(unchanged: Path, command: str) -> None:
    """`compile` and `ls` of an unchanged project load no parser of SQL, no operators and rules of queries, no tables for a
    terminal and no other command.

    Jinja renders the templates in its YAML, as in each command.
    """
    modules = loaded_by(RUN.format([command, "--project-dir", str(unchanged)]))

    assert modules & LIBRARIES <= {
        *("email", "importlib.metadata", "jinja2", "pydantic", "pydantic_core", "sqlite3", "yaml")
    }
    assert not modules & OPERATORS
    assert not {name for name in modules if name.startswith(("sqlstream.testing", "sqlstream.state.signature"))}
    loaded = {name for name in modules if name.startswith(USE_CASES)}
    assert {name for name in loaded if not name.startswith("sqlstream.app.loading")} == {
        *DECLARED,
        "sqlstream.app.compile",
        f"sqlstream.app.compile.{command}",
    }


def test_the_plan_of_an_unchanged_project_parses_no_sql(unchanged: Path) -> None:
    """`plan` of an unchanged project loads no parser of SQL, and does not build the operators of its queries."""
    modules = loaded_by(RUN.format(["plan", "--project-dir", str(unchanged)]))

    assert not modules & {"sqlglot", "pyspark", "sqlstream.compiler.trees"}


def test_a_run_loads_no_extra() -> None:
    """A run works without the packages that only an extra of sqlstream installs."""
    modules = loaded_by("import sqlstream.app.run.run")

    assert "sqlstream.app.run.followers" in modules
    assert not any(name.startswith("opentelemetry") for name in modules)
