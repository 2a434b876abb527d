"""Code blocks of the documentation are valid: they parse, load, compile, or run and print what the page shows."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest
import yaml

from sqlstream.app.loading.load import try_load
from sqlstream.app.request import ProjectRequest
from sqlstream.codes import BRIEF, CODES
from tests.tools.command_lines import check_command_line
from tests.tools.doc_blocks import KINDS, Block, blocks, sqlstream_arguments
from tests.tools.doc_runs import copied_examples, fresh_shop, missing_lines, needs_spark, normalize, run_block

ROOT_FILES = ("project.yml", "sources.yml", "sinks.yml", "selectors.yml")

MISTAKES = {"unknown-key", "missing-key", "invalid-value", "duplicate-name", "jinja-syntax", "secret-not-allowed"}
"""Codes of mistakes that a YAML block must not have, even if it is only part of a project."""


WHOLE_PROJECT = "docs/testing.md"
"""A page whose blocks form one project, which tests/spark/test_testing_page.py runs."""


def named(kinds: list[Block]) -> list[object]:
    """Returns the blocks as parameters with their locations as ids."""
    return [pytest.param(block, id=str(block)) for block in kinds]


@pytest.mark.parametrize("block", named(blocks()))
def test_every_block_has_a_known_kind(block: Block) -> None:
    """Every block has a known kind, which decides how it is tested; no block stays untested."""
    assert block.kind in KINDS


def lines_with_commands() -> list[object]:
    """Returns every line of a block with a sqlstream command, with continuation lines joined."""
    found: list[object] = []
    for block in blocks("console", "text", "sh", "ini", "cron", "dockerfile", "python"):
        text = re.sub(r"\\\n\s*", "", block.text)
        if block.kind in ("console", "text"):
            lines = [line[2:] for line in text.splitlines() if line.startswith("$ ")]
        else:
            lines = re.sub(r'"sqlstream", ', "sqlstream ", text).splitlines()
        found += [pytest.param(line, id=f"{block} {line[:60]}") for line in lines if sqlstream_arguments(line)]
    return found


@pytest.mark.parametrize("line", lines_with_commands())
def test_every_command_is_valid(line: str) -> None:
    """The options of each command exist and accept the values shown."""
    arguments = sqlstream_arguments(line.replace('", "', " ").replace('"]', ""))
    assert arguments is not None
    if set(arguments[:1]) <= {"--version", "--help", "COMMAND"}:
        return
    try:
        check_command_line(arguments)
    except click.exceptions.Exit:
        return  # --help
    except click.BadParameter as error:
        assert "does not exist" in error.message  # noqa: PT017 - a folder of the reader's


@pytest.mark.parametrize("block", named(blocks("sh")))
def test_shell_commands_are_well_formed(block: Block) -> None:
    """Shell commands have valid syntax; the shell reads them without running them."""
    assert "\n$ " not in f"\n{block.text}"
    subprocess.run(["sh", "-n", "-c", block.text], check=True)


@pytest.mark.parametrize("block", named(blocks("json")))
def test_json_is_json(block: Block) -> None:
    """JSON blocks are complete JSON documents."""
    json.loads(block.text)


@pytest.mark.parametrize("block", named(blocks("python")))
def test_python_compiles(block: Block) -> None:
    """Python blocks compile; imports are not resolved, because schedulers are not installed here."""
    compile(block.text, str(block), "exec")


def files_of(text: str) -> dict[str, str]:
    """Returns the project files in a YAML block: those that comments name, or the file that its keys belong to."""
    parts = re.split(r"(?m)^# (\w+\.yml)\n", text)
    if len(parts) == 1:
        keys = set(re.findall(r"(?m)^(\w+):", text))
        is_list = re.search(r"(?m)^(sources|sinks|models|seeds|exposures|unit_tests):\n  - ", text)
        parts = ["", "selectors.yml" if keys == {"selectors"} else "more.yml" if is_list else "project.yml", text]
    files = {"project.yml": "name: documented\n"}
    for name, part in zip(parts[1::2], parts[2::2], strict=True):
        has_name = name != "project.yml" or re.search(r"(?m)^name:", part)
        files[name if name in ROOT_FILES else f"models/{name}"] = part if has_name else f"name: documented\n{part}"
    return files


@pytest.mark.parametrize("block", named(blocks("yml")))
def test_files_of_other_tools_are_yaml(block: Block) -> None:
    """A YAML file of another tool is valid YAML."""
    assert yaml.safe_load(block.text)


@pytest.mark.parametrize("block", named([block for block in blocks("yaml") if block.page != WHOLE_PROJECT]))
def test_yaml_loads(block: Block, tmp_path: Path) -> None:
    """YAML blocks have valid keys and values, even if they are only part of a project."""
    (tmp_path / "models").mkdir()
    for name, text in files_of(block.text).items():
        (tmp_path / name).write_text(text)

    findings = try_load(ProjectRequest(tmp_path)).findings

    assert [str(it) for it in findings if it.code in MISTAKES or it.code.startswith("yaml-")] == []


@pytest.mark.parametrize("block", named([block for block in blocks("sql") if block.page != WHOLE_PROJECT]))
def test_sql_compiles(block: Block, tmp_path: Path) -> None:
    """Each SQL block compiles as a model of the worked examples, without errors or warnings."""
    folder = copied_examples(tmp_path)
    (folder / "models" / "documented.sql").write_text(block.text)

    findings = try_load(ProjectRequest(folder)).findings

    assert [str(it) for it in findings if it.location and it.location.path == "models/documented.sql"] == []


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("block", named(blocks("ini")))
def test_systemd_units_are_valid(block: Block, tmp_path: Path) -> None:
    """Units for systemd are valid and run an existing program."""
    unit = tmp_path / "sqlstream-shop.service"
    unit.write_text(re.sub(r"ExecStart=\S+", f"ExecStart={shutil.which('true')}", block.text))

    checked = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)

    assert [line for line in checked.stderr.splitlines() if unit.name in line] == []


@pytest.mark.parametrize("block", named([block for block in blocks("console") if not needs_spark(block)]))
def test_commands_without_spark_print_what_the_page_shows(block: Block, tmp_path: Path) -> None:
    """Commands that need no Spark print what the page shows, in a new project or in the worked examples."""
    folder = copied_examples(tmp_path) if block.of_examples else fresh_shop(tmp_path)
    if block.commands[0].startswith("sqlstream init"):
        shutil.rmtree(folder)
        folder = tmp_path

    assert missing_lines(block, run_block(block, folder), normalize) == []


@pytest.mark.parametrize("block", named(blocks("text", "console")))
def test_shown_findings_have_three_lines(block: Block) -> None:
    """Findings on the pages have codes of docs/errors.md, and why and fix lines unless they are brief."""
    lines = [line for line in block.text.splitlines() if not line.startswith("  called from: ")]
    for number, line in enumerate(lines):
        found = re.match(r"(?:\S+: )?(?:warning: |info: )?\[([a-z-]+)\] ", line)
        if found is not None:
            assert found[1] in CODES
            below = [line[:7] for line in lines[number + 1 : number + 3]]
            assert found[1] in BRIEF or below == ["  why: ", "  fix: "]
