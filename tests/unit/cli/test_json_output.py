"""Every command that a script uses prints one JSON object with `--output json`, also when it is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest

from sqlstream.app.init import init_project
from sqlstream.cli.main import main
from tests.tools.make_commands import commands

ROOT = Path(__file__).parents[3]
COMMANDS: dict[str, click.Command] = dict(commands())

NEVER_END = {"dev", "docs serve", "ui"}
"""These commands answer until Ctrl-C and have no result."""

RESULTS: dict[str, tuple[list[str], set[str]]] = {
    "init": (["init", "another"], {"project", "files"}),
    "debug": (["debug"], {"succeeded", "checks"}),
    "deps": (["deps"], {"spark", "connectors", "written"}),
    "compile": (["compile"], {"succeeded", "models", "findings"}),
    "explain": (["explain", "cycle"], {"code", "summary", "markdown"}),
    "lineage": (["lineage", "orders_per_minute"], {"model", "columns"}),
    "contract export": (["contract", "export", "orders_per_minute"], {"kind", "schema"}),
    "contract import": (["contract", "import", "shipments.yaml"], {"files", "notes"}),
    "plan": (["plan"], {"queries"}),
    "docs generate": (["docs", "generate"], {"page", "nodes", "bytes", "findings"}),
    "clean": (["clean"], {"removed"}),
    "retry": (["retry"], {"command", "succeeded", "findings", "results"}),
}
"""Commands whose result needs no Java, with keys of the object."""

REFUSED: dict[str, list[str]] = {
    "build": ["build", "--select", "missing"],
    "run": ["run", "--select", "missing"],
    "test": ["test", "--select", "missing"],
    "show": ["show", "--select", "missing"],
    "source freshness": ["source", "freshness", "--select", "missing"],
    "status": ["status", "--select", "missing"],
    "maintain": ["maintain", "--select", "missing"],
}
"""Commands that need Java or a run, refused before that."""

OF_A_MODEL = [
    "backfill",
    "quarantine show",
    "quarantine release",
    "path",
    "promote",
    "replay",
    "rollback",
    "source schema",
    "state files",
    "state history",
    "state show",
    "state size",
    "state repartition",
    "state repair",
]
"""Commands about one model, refused because the project has an error."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new project as the current folder, whose last command has succeeded."""
    root = init_project("shop", tmp_path).root
    (root / "target").mkdir()
    results = {
        "metadata": {"invocation_id": "i", "started_at": "", "target": "local", "pid": 1, "process_start": "x"},
        "args": {"which": "run"},
        "status": "success",
        "results": [],
    }
    (root / "target/run_results.json").write_text(json.dumps(results))
    (root / "shipments.yaml").write_text("kind: DataContract\nschema: [{name: shipments, properties: [{name: id}]}]\n")
    monkeypatch.chdir(root)
    return root


def invoke(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> tuple[int, Any]:
    """Returns the exit code of a command and what it prints on stdout, as one JSON object."""
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--output", "json"])
    return int(ended.value.code or 0), json.loads(capsys.readouterr().out)


def test_each_command_has_json_output_or_never_ends() -> None:
    """Each command with a result has `--output json`, and a test below; `submit` in tests/unit/app/submit."""
    with_json = {
        name
        for name, command in COMMANDS.items()
        for option in command.params
        if option.name == "output" and isinstance(option.type, click.Choice) and "json" in option.type.choices
    }

    assert with_json == COMMANDS.keys() - NEVER_END
    assert with_json == {*RESULTS, *REFUSED, *OF_A_MODEL, "ls", "submit"}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_one_json_object(project: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    """The output is exactly one JSON object with the documented keys."""
    arguments, keys = RESULTS[name]

    _, found = invoke(capsys, arguments)

    assert keys <= found.keys()


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_one_json_object(project: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    """A refused command ends with code 1, and its findings are JSON on stdout."""
    code, found = invoke(capsys, REFUSED[name])

    assert (code, found["succeeded"], found["findings"][0]["code"]) == (1, False, "empty-selection")


@pytest.mark.parametrize("name", ["build", "run"])
def test_a_refused_run_has_all_keys(project: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    """A run that findings refuse has the keys of one that ran, with no results, so that a script needs no special case."""
    _, found = invoke(capsys, REFUSED[name])

    del found["findings"]
    assert found == {"command": name, "invocation_id": None, "succeeded": False, "results": []}


@pytest.mark.parametrize("name", OF_A_MODEL)
def test_a_broken_project_is_one_json_object(project: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    """A command about a model also prints the errors of the project as JSON."""
    (project / "project.yml").write_text("name: [")
    more = {"replay": ["--batch", "0"], "backfill": ["--full-range"]}.get(name, [])
    arguments = [*name.split(), "orders_per_minute", *(["2"] if name == "state repartition" else []), *more]

    code, found = invoke(capsys, arguments)

    assert (code, found["succeeded"], bool(found["findings"])) == (1, False, True)


def test_ls_prints_an_object_for_each_node(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`ls` prints one object per line, as dbt does."""
    with pytest.raises(SystemExit):
        main(["ls", "--output", "json"])

    lines = capsys.readouterr().out.splitlines()
    assert {json.loads(line)["resource_type"] for line in lines} >= {"model", "seed", "source"}
