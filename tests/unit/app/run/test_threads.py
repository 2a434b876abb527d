"""`compile_models` called from several threads of a program."""

from __future__ import annotations

import gc
import logging
import shutil
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from benchmarks.generate import write_sqlstream_project
from sqlstream import FindingsError, ProjectRequest, compile_models
from tests.support.compiling import FILES, write_files

BROKEN = Path(__file__).parents[3] / "projects" / "broken"
THREADS = 4
COPIES = 5
MODELS = 30


@pytest.fixture(autouse=True)
def _switch_threads_often() -> Iterator[None]:
    """Makes threads switch often, so that shared state would show."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def compiled(root: Path) -> object:
    """Returns everything that a program gets from a project."""
    try:
        result = compile_models(ProjectRequest(root, env={"PATH": "/nowhere", "SQLSTREAM_SECRET_KEY": root.name}))
    except FindingsError as error:
        return error.findings
    written = [(root / "target" / model.compiled_path).read_text() for model in result.models]
    return result.findings, written, result.loaded.compiled.columns


def write_projects(folder: Path) -> list[Path]:
    """Writes different projects: valid, generated, and broken in many ways."""
    for number in range(COPIES):
        write_files(folder / f"shop{number}", FILES)
        (folder / f"shop{number}/models/own.sql").write_text(
            f"{{{{ config(sink='files') }}}} select cents + {number} as c{number} from {{{{ ref('m2') }}}}"
        )
    write_sqlstream_project(folder / "generated", MODELS)
    for broken in sorted(BROKEN.iterdir()):
        if broken.is_dir() and broken.name != "link_out_of_the_project":
            shutil.copytree(broken, folder / broken.name)
    return sorted(folder.iterdir())


def in_threads(roots: Sequence[Path]) -> list[object]:
    """Compiles projects in threads."""
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(compiled, roots))


def test_projects_compile_in_parallel_as_in_sequence(tmp_path: Path) -> None:
    """Projects compile in parallel as one by one; logging and garbage collection of the process stay unchanged."""
    for name in ("alone", "at_once"):
        (tmp_path / name).mkdir()
    alone, at_once = write_projects(tmp_path / "alone"), write_projects(tmp_path / "at_once")
    before = gc.get_threshold(), logging.getLogger().handlers[:], logging.getLogger("sqlglot").level

    expected = [compiled(root) for root in alone]

    assert in_threads(at_once) == expected
    assert in_threads(at_once) == expected
    assert (gc.get_threshold(), logging.getLogger().handlers, logging.getLogger("sqlglot").level) == before


def test_one_project_compiles_in_several_threads(tmp_path: Path) -> None:
    """Several threads can compile one project, although they write the same files at the same time."""
    write_files(tmp_path, FILES)

    first, *others = in_threads([tmp_path] * (2 * THREADS))

    assert isinstance(first, tuple)
    assert all(other == first for other in others)
    assert not [file for file in (tmp_path / "target").rglob(".*") if file.is_file()]
