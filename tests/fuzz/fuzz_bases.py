"""The real projects that the fuzzer mutates, as files in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

from tests.corpus.corpus_cases import Case, read_cases

REPOSITORY = Path(__file__).parents[2]
EXAMPLES = ("project.yml", "sources.yml", "sinks.yml", "models", "macros", "seeds")
"""The files of the project in the repository's root."""

TEST_FILES = ("expected.txt", ".md")
"""Endings of files in a project's folder that only tests use."""


@dataclass(frozen=True)
class Base:
    """A project: its name, and the content of its files by POSIX path."""

    name: str
    files: Mapping[str, bytes]


def pick_base(rng: Random) -> Base:
    """Returns a random project: the examples, tests/projects/selection, a broken project, or a case of the corpus."""
    kind = rng.choices(("examples", "selection", "broken", "corpus"), (25, 10, 12, 53))[0]
    if kind == "examples":
        return _examples()
    if kind == "selection":
        return _folder(REPOSITORY / "tests" / "projects" / "selection")
    if kind == "broken":
        return _folder(rng.choice(_broken_projects()))
    return _with_case(rng.choice(_cases()))


@cache
def sql_texts() -> tuple[str, ...]:
    """Returns the SQL of the corpus, for insertion into other queries."""
    return tuple(case.sql for case in _cases())


@cache
def _examples() -> Base:
    paths = [path for part in EXAMPLES for path in ([REPOSITORY / part, *(REPOSITORY / part).rglob("*")])]
    return Base("examples", _read(REPOSITORY, paths))


@cache
def _folder(folder: Path) -> Base:
    return Base(folder.name, _read(folder, list(folder.rglob("*"))))


@cache
def _broken_projects() -> tuple[Path, ...]:
    return tuple(sorted(path for path in (REPOSITORY / "tests" / "projects" / "broken").iterdir() if path.is_dir()))


@cache
def _cases() -> tuple[Case, ...]:
    return tuple(read_cases())


def _with_case(case: Case) -> Base:
    project = _folder(REPOSITORY / "tests" / "corpus" / "project")
    models = {model.path: model.text.encode() for model in case.models}
    return Base(f"corpus {case.name}", {**project.files, **models})


def _read(root: Path, paths: list[Path]) -> dict[str, bytes]:
    files = sorted(path for path in paths if path.is_file() and not path.name.endswith(TEST_FILES))
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}
