"""Which runs finish within seconds, judged by the files that they may read."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream import ProjectRequest
from sqlstream.app.loading.load import load
from sqlstream.app.stored.local_sources import SMALL_RUN_BYTES, SMALL_RUN_FILES, is_small


def small(root: Path, *, path: str = "path: in", trigger: str = "available_now") -> bool:
    """Returns whether a run of a model over one source is small."""
    files = {
        "project.yml": "name: shop\nversion: 1.0.0\ntargets: {local: {master: local, storage: s}}\n",
        "sources.yml": "sources:\n  - name: shop\n    tables:\n"
        f"      - {{name: orders, format: json, {path}, schema: 'value string'}}\n"
        "      - {name: large, format: rate}\n",
        "sinks.yml": "sinks:\n  - {name: nowhere, format: noop}\n",
        "models/asked.sql": f"{{{{ config(sink='nowhere', trigger='{trigger}') }}}}\n"
        "select * from {{ source('shop', 'orders') }}\n",
    }
    for name, text in files.items():
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    compiled = load(ProjectRequest(root, env={})).compiled
    return is_small(compiled, tuple(compiled.models.values()))


def write(root: Path, name: str, size: int) -> None:
    """Writes a sparse file of a given size."""
    path = root / "in" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(size)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, True),
        ({"a.json": 1_000, "b/c.json": 1_000}, True),
        ({"a.json": SMALL_RUN_BYTES}, True),
        ({"a.json": SMALL_RUN_BYTES // 2, "b/c.json": SMALL_RUN_BYTES // 2 + 1}, False),
        ({"a.json.gz": SMALL_RUN_BYTES // 5}, False),
        ({f"{number}.json": 1 for number in range(SMALL_RUN_FILES)}, True),
        ({f"{number}.json": 1 for number in range(SMALL_RUN_FILES + 1)}, False),
    ],
)
def test_few_small_files_are_a_small_run(tmp_path: Path, files: dict[str, int], expected: bool) -> None:
    """A run over few small files in all folders below the path is small; a compressed file counts as larger."""
    for name, size in files.items():
        write(tmp_path, name, size)

    assert small(tmp_path) is expected


def test_only_files_of_the_pattern_count(tmp_path: Path) -> None:
    """Only files that match the path's pattern count."""
    write(tmp_path, "day=1/a.json", 10)
    write(tmp_path, "week=1/a.json", 2 * SMALL_RUN_BYTES)

    assert small(tmp_path, path="path: 'in/day=*/*.json'")
    assert not small(tmp_path, path="path: 'in/*=*/*.json'")


@pytest.mark.parametrize("path", ["path: 's3a://bucket/in'", "path: 'in/{a,b}'"])
def test_remote_paths_are_not_small(tmp_path: Path, path: str) -> None:
    """Remote storage and patterns that Python does not support are not small."""
    assert not small(tmp_path, path=path)


def test_a_run_without_an_end_is_not_small(tmp_path: Path) -> None:
    """A run without an end is not small, however little data it starts with."""
    assert not small(tmp_path, trigger="10 seconds")


def test_paths_with_links_are_not_small(tmp_path: Path) -> None:
    """A path with a link to a folder is not small, because the link may lead anywhere."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "in").mkdir()
    assert small(tmp_path)
    (tmp_path / "in/linked").symlink_to(tmp_path / "elsewhere")

    assert not small(tmp_path)
