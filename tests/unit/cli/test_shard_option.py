"""`--shard` of `ls`, `plan` and `run` divides the queries of a selection."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqlstream.app.last_command import command_line, read_selection, selection_arguments
from sqlstream.app.request import Selection
from sqlstream.cli.main import main
from sqlstream.state.runs.shards import Shard
from tests.support.compiling import write_files

TABLE = "{name: a, format: json, path: in, schema: id int, on_corrupt: quarantine, quarantine_sink: lake}"
QUERIES = {"first", "second", "third", "s__a__corrupt"}
FILES = {
    "project.yml": "name: p\nversion: 1.0.0\n",
    "sources.yml": f"sources:\n  - name: s\n    tables:\n      - {TABLE}\n",
    "sinks.yml": "sinks:\n  - {name: lake, format: parquet, path: '{{ model.name }}'}\n",
    "models/view.sql": "select id from {{ source('s', 'a') }}",
    **{
        f"models/{name}.sql": "{{ config(sink='lake') }} select id from {{ ref('view') }}"
        for name in ("first", "second", "third")
    },
}


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four queries, one of them a quarantine, and a view; in the current folder."""
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, FILES)
    return tmp_path


def exit_code(*arguments: str) -> int:
    """Runs the command in this process and returns its exit code."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return int(ended.value.code or 0)


def listed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """Returns the names of the nodes that `ls` lists."""
    assert exit_code("ls", *arguments) == 0
    return [line.rsplit(".", 1)[-1] for line in capsys.readouterr().out.splitlines()]


def shards(capsys: pytest.CaptureFixture[str], count: int, *arguments: str) -> list[list[str]]:
    """Returns what each shard has."""
    return [listed(capsys, *arguments, "--shard", f"{number}/{count}") for number in range(1, count + 1)]


def an_empty_shard(capsys: pytest.CaptureFixture[str]) -> str:
    """Returns a shard of eight that has no query of the project, of which there are at least four."""
    return f"{shards(capsys, 8).index([]) + 1}/8"


@pytest.mark.parametrize("count", [1, 2, 8])
def test_shards_are_disjoint_and_complete(count: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Each query, also a quarantine, is in one shard; a view is no query."""
    assert sorted(name for names in shards(capsys, count) for name in names) == sorted(QUERIES)


def test_a_selection_keeps_its_shards(capsys: pytest.CaptureFixture[str]) -> None:
    """A query is in the same shard in each selection, and the quarantine follows the selection as without shards."""
    every, some = shards(capsys, 3), shards(capsys, 3, "--select", "second", "--exclude", "s__a__corrupt")

    assert sorted(some) == [[], [], ["second"]]
    assert "second" in every[some.index(["second"])]


def test_other_models_move_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Models that are added, removed, changed, or renamed with `previous_name` leave the others where they are."""
    before = shards(capsys, 5)
    (project / "models/third.sql").unlink()
    for index in range(10):
        write_files(project, {f"models/new_{index}.sql": FILES["models/first.sql"]})
    write_files(project, {"models/first.sql": FILES["models/first.sql"] + " where id > 1"})
    (project / "models/second.sql").unlink()
    renamed = FILES["models/second.sql"].replace("sink='lake'", "sink='lake', previous_name='second'")
    write_files(project, {"models/renamed.sql": renamed})

    names = {"first": "first", "renamed": "second", "s__a__corrupt": "s__a__corrupt"}
    after = [{names[name] for name in shard if name in names} for shard in shards(capsys, 5)]

    assert after == [set(shard) - {"third"} for shard in before]


def test_plan_has_the_queries_of_a_shard(capsys: pytest.CaptureFixture[str]) -> None:
    """`plan` compares the queries that `ls` lists."""
    expected = shards(capsys, 2)
    for number, names in enumerate(expected, start=1):
        assert exit_code("plan", "--shard", f"{number}/2", "--output", "json") == 0
        assert [query["model"] for query in json.loads(capsys.readouterr().out)["queries"]] == names


def test_an_empty_shard_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    """A run of an empty shard ends well, says so in one line and needs no Java. `plan` has no queries."""
    shard = an_empty_shard(capsys)

    assert exit_code("run", "--shard", shard) == 0
    printed = capsys.readouterr()
    assert f"shard {shard} has none of the selected queries (4)" in printed.out + printed.err
    assert exit_code("plan", "--shard", shard) == 0


def test_options_of_a_run_can_name_queries_of_other_shards(capsys: pytest.CaptureFixture[str]) -> None:
    """All shards accept one command line, so that one manifest starts them all."""
    shard = an_empty_shard(capsys)

    assert exit_code("run", "--shard", shard, "--available-now", "--parallel", "first") == 0


def test_an_empty_selection_stays_an_error() -> None:
    """A selector that matches nothing is an error in each shard."""
    for command in ("run", "plan", "ls"):
        assert exit_code(command, "--select", "nothing_such", "--shard", "1/2") == 1


@pytest.mark.parametrize("command", ["run", "plan", "ls"])
@pytest.mark.parametrize("text", ["0/8", "9/8", "2/", "a/b", "2/8/1", ""])
def test_a_wrong_shard_is_a_usage_error(command: str, text: str) -> None:
    """A text that is no shard is a wrong command line."""
    assert exit_code(command, "--shard", text) == 2


def test_the_variable_names_a_shard(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLSTREAM_SHARD works like the option."""
    expected = listed(capsys, "--shard", "2/3")
    monkeypatch.setenv("SQLSTREAM_SHARD", "2/3")
    assert listed(capsys) == expected


def test_build_and_other_resources_have_no_shards() -> None:
    """`build` has no shards, because it starts queries after the tests upstream; sources are in no shard."""
    assert exit_code("build", "--shard", "1/2") == 2
    assert exit_code("ls", "--shard", "1/2", "--resource-type", "source") == 2


def test_retry_keeps_the_shard() -> None:
    """The record of a command has its shard, and records of earlier versions have none."""
    selection = Selection(("first",), shard=Shard(2, 8))
    arguments = selection_arguments(selection)

    assert read_selection(arguments) == selection
    assert command_line({"which": "run", **arguments}) == "sqlstream run --select first --shard 2/8"
    del arguments["shard"]
    assert read_selection(arguments).shard is None
