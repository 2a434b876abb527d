"""The sinks of the edited queries, and the rows in them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

PROBE = """import json


def write(rows, batch):
    lines = [json.dumps([str(value) for value in row]) + "\\n" for row in rows.collect()]
    with open(f"{batch.options['folder']}/{batch.model}.jsonl", "a") as file:
        file.writelines(lines)
"""
"""The function in python/ that appends rows to a file."""

FUNCTIONS = ("probe", "other", "noted")
"""Sinks that are this function."""

FILES = ("lines", "elsewhere", "sized")
"""Sinks of JSON files."""


def sinks_text(root: Path, options: Mapping[str, str]) -> str:
    """Returns the sinks.yml of a project in `root`. `options` are more keys of some sinks, by their names."""
    functions = [
        f"  - {{name: {name}, format: python, function: 'probe:write', "
        f"options: {{folder: '{root}/out/{name}'{options.get(name, '')}}}}}\n"
        for name in FUNCTIONS
    ]
    files = [
        f"  - {{name: {name}, format: json, path: '{root}/out/{name}/{{{{ model.name }}}}'{options.get(name, '')}}}\n"
        for name in FILES
    ]
    return "sinks:\n" + "".join([*functions, *files])


def make_folders(root: Path) -> None:
    """Makes the folders in which the functions write."""
    for name in FUNCTIONS:
        (root / "out" / name).mkdir(parents=True)


def rows_of(root: Path, sink: str, model: str) -> list[str] | None:
    """Returns the rows of a model in a sink, sorted, None if it has written nothing: with a function those since the last
    call, with files all of them.
    """
    if sink in FILES:
        folder = root / "out" / sink / model
        return sorted(line for file in folder.glob("*.json") for line in file.read_text().splitlines()) or None
    file = root / "out" / sink / f"{model}.jsonl"
    if not file.exists():
        return None
    rows = sorted(file.read_text().splitlines())
    file.unlink()
    return rows
