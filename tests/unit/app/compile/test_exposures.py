"""Exposures in commands: the manifest, lists, selections and changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from sqlstream.app.compile.ls import list_nodes
from sqlstream.app.loading.load import load_for_reading
from sqlstream.app.request import ProjectRequest, Selection
from sqlstream.cli.main import cli
from sqlstream.compiler.manifest.manifest import build_manifest
from sqlstream.compiler.manifest.state_method import find_states
from sqlstream.errors import FindingsError

FILES = {
    "project.yml": "name: shop\n",
    "sources.yml": "sources: [{name: web, tables: [{name: clicks, format: json, path: in, schema: 'id int'}]}]\n",
    "sinks.yml": "sinks: [{name: lake, format: parquet, path: '{{ model.name }}'}]\n",
    "models/clean.sql": "select id from {{ source('web', 'clicks') }}\n",
    "models/wide.sql": "{{ config(sink='lake') }} select id from {{ ref('clean') }}\n",
    "models/boards/_exposures.yml": "exposures:\n  - name: board\n    type: dashboard\n"
    "    owner: {email: ada@example.com}\n    depends_on: [ref('wide')]\n"
    "    description: \"{{ doc('board') }}\"\n    tags: [weekly]\n",
    "models/texts.md": "{% docs board %}The *board*.{% enddocs %}\n",
}
BOARD = "exposure.shop.board"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with one exposure."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def manifest(root: Path) -> dict[str, object]:
    """Returns the manifest of a project, as it is read from its file."""
    compiled = load_for_reading(ProjectRequest(root)).compiled
    return dict(json.loads(json.dumps(build_manifest(compiled, generated_at="", invocation_id=""))))


def test_the_manifest_has_exposures_as_in_dbt(root: Path) -> None:
    """An exposure has dbt's keys, and is a node of the graph."""
    found = manifest(root)

    assert found["exposures"] == {
        BOARD: {
            "resource_type": "exposure",
            "name": "board",
            "package_name": "shop",
            "path": "boards/_exposures.yml",
            "original_file_path": "models/boards/_exposures.yml",
            "unique_id": BOARD,
            "fqn": ["shop", "boards", "board"],
            "type": "dashboard",
            "label": None,
            "owner": {"email": "ada@example.com"},
            "description": "The *board*.",
            "maturity": None,
            "url": None,
            "tags": ["weekly"],
            "meta": {},
            "config": {"enabled": True, "tags": ["weekly"], "meta": {}},
            "unrendered_config": {},
            "refs": [{"name": "wide"}],
            "sources": [],
            "depends_on": {"macros": [], "nodes": ["model.shop.wide"]},
            "declared_at": "models/boards/_exposures.yml:2:11",
        }
    }
    parents, children = found["parent_map"], found["child_map"]
    assert isinstance(parents, dict)
    assert isinstance(children, dict)
    assert (parents[BOARD], children[BOARD]) == (["model.shop.wide"], [])
    assert children["model.shop.wide"] == [BOARD]


@pytest.mark.parametrize(
    ("selection", "names"),
    [
        (Selection(), ["source:shop.web.clicks", "shop.clean", "shop.wide", "exposure:shop.board"]),
        (Selection(("+exposure:board",), resource_types=("model",)), ["shop.clean", "shop.wide"]),
        (Selection(resource_types=("exposure",)), ["exposure:shop.board"]),
        (Selection(("wide+",), excluded_types=("model",)), ["exposure:shop.board"]),
    ],
)
def test_exposures_are_listed(root: Path, selection: Selection, names: list[str]) -> None:
    """`ls` lists exposures as dbt does, after what they read."""
    assert list(list_nodes(ProjectRequest(root), selection).names) == names


@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_selection_of_only_exposures_has_no_query(root: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exposure alone starts nothing; the fix is the selection of everything upstream."""
    monkeypatch.chdir(root)

    done = CliRunner().invoke(cli, [command, "-s", "exposure:board"])

    assert isinstance(done.exception, FindingsError)
    (finding,) = done.exception.findings
    assert (finding.code, "`+exposure:board`" in finding.fix) == ("no-terminal-model", True)


def test_everything_upstream_of_an_exposure_is_planned(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`+exposure:board` selects the queries that it reads."""
    monkeypatch.chdir(root)

    done = CliRunner().invoke(cli, ["plan", "-s", "+exposure:board"])

    assert (done.exit_code, done.stdout.splitlines()[0]) == (0, "new: wide")


def test_an_older_manifest_without_exposures(root: Path) -> None:
    """A manifest of an sqlstream without exposures can be compared: all exposures are new."""
    new = manifest(root)
    old = {key: value for key, value in new.items() if key != "exposures"}

    assert find_states(old, new)[BOARD] == {"new", "modified", "modified.configs"}


def test_the_line_of_counts_has_exposures(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`compile` counts the exposures."""
    monkeypatch.chdir(root)

    assert "1 sink, 1 exposure" in CliRunner().invoke(cli, ["compile"]).stdout


def test_a_view_that_only_an_exposure_reads_is_not_written(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exposure does not make a view run, so the warning about it stays."""
    (root / "models/boards/_exposures.yml").write_text(
        FILES["models/boards/_exposures.yml"].replace("'wide'", "'seen'"), encoding="utf-8"
    )
    (root / "models/seen.sql").write_text("select id from {{ ref('clean') }}\n", encoding="utf-8")
    monkeypatch.chdir(root)

    assert "[unwritten-model]" in CliRunner().invoke(cli, ["compile"]).stderr
