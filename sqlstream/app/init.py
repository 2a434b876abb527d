"""`sqlstream init`: creates a project that compiles and runs unchanged."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from sqlstream.errors import UsageError
from sqlstream.numbers import plural
from sqlstream.project.json_schemas import json_schemas
from sqlstream.project.wording import quoted

PLACEHOLDER = "__PROJECT__"
"""The project's name in the templates. It is plain text, because the templates contain Jinja for the project."""

DOT = "dot_"
"""Replaces the leading dot in names of templates, because Git and editors would apply the real names."""

SCHEMAS = "schemas"
"""The folder of the JSON Schemas. The first line of each YAML template refers to it."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9]+")


@dataclass(frozen=True)
class InitResult:
    """The new project's folder, and its files as sorted POSIX paths relative to it."""

    root: Path
    files: tuple[str, ...]


def init_project(name: str, parent: Path) -> InitResult:
    """Creates the project `name` in the folder `parent` / `name` and returns the files. Never overwrites a file.

    The JSON Schemas are those of the installed version. In project.yml, `-` in the name becomes `_`, because names in
    Spark contain the project's name.
    Raises: UsageError for an invalid name, and for a folder that is not empty or not writable.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(_bad_name(name))
    root = parent / name
    texts = {**_scaffold(name.replace("-", "_")), **_schemas()}
    try:
        _make_folder(root)
        _write(root, texts)
    except OSError as error:
        raise UsageError(
            f"the project cannot be written to {quoted(root)}: {(error.strerror or str(error)).lower()}; use a "
            "writable folder with --project-dir"
        ) from error
    return InitResult(root, tuple(sorted(texts)))


def _scaffold(project: str) -> Mapping[str, str]:
    folder = files("sqlstream.app") / "scaffold"
    return {path: text.replace(PLACEHOLDER, project) for path, text in _templates(folder, "")}


def _templates(folder: Traversable, prefix: str) -> Iterator[tuple[str, str]]:
    for entry in folder.iterdir():
        name = entry.name
        path = prefix + (f".{name.removeprefix(DOT)}" if name.startswith(DOT) else name)
        if entry.is_dir():
            yield from _templates(entry, f"{path}/")
        else:
            yield path, entry.read_text(encoding="utf-8")


def _schemas() -> Mapping[str, str]:
    return {f"{SCHEMAS}/{name}": json.dumps(schema, indent=2) + "\n" for name, schema in json_schemas().items()}


def _make_folder(root: Path) -> None:
    if not root.parent.is_dir():
        raise UsageError(f"there is no folder {quoted(root.parent)} to create the project in; create it first")
    if root.exists() and not (root.is_dir() and next(root.iterdir(), None) is None):
        raise UsageError(
            f"{quoted(root)} exists and is not an empty folder, and init never overwrites files; use another "
            "name, or another folder with --project-dir"
        )
    root.mkdir(exist_ok=True)


def _write(root: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # "x" refuses to overwrite a file that was created after the check of the folder
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)


def _bad_name(name: str) -> str:
    if "/" in name:
        return (
            f"the project name cannot be {quoted(name)}; pass the parent folder separately: sqlstream init NAME "
            "--project-dir FOLDER"
        )
    better = _NOT_IN_NAMES.sub("_", name).strip("_").lstrip("0123456789_")
    return (
        f"the project name cannot be {quoted(name)}; use letters, digits, _ and -, starting with a letter or _, "
        f"for example {quoted(better or 'my_project')}"
    )


def next_steps_text(root: Path, file_count: int, here: Path) -> str:
    """Returns a line about the project in `root`, and the next commands to run in the folder `here`."""
    folder = str(root.relative_to(here)) if root.is_relative_to(here) else str(root)
    steps = (
        (f"cd {shlex.quote(folder)}", "open the project; its README.md describes the files"),
        ("sqlstream compile", "check the project and write the SQL that will run; needs no Java"),
        ("sqlstream test", "run its unit tests; needs Java 17 or later"),
        ("sqlstream run", "run it to the end of its data"),
    )
    width = max(len(command) for command, _ in steps)
    lines = [f"  {command.ljust(width)}   # {what}" for command, what in steps]
    return "\n".join([f"Created {folder} with {plural(file_count, 'file')}. Next steps:", *lines])
