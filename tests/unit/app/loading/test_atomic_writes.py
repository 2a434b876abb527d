"""Files are written completely or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sqlstream.app.loading.atomic_writes import write_file
from sqlstream.errors import UsageError


def test_a_file_is_replaced_atomically(tmp_path: Path) -> None:
    """A file is replaced as a whole; folders are created, and no temporary file is left."""
    path = tmp_path / "a" / "b.sql"

    write_file(str(path), b"a longer text\n")
    write_file(str(path), "größe\n".encode())

    assert path.read_bytes() == "größe\n".encode()
    assert [entry.name for entry in path.parent.iterdir()] == ["b.sql"]


def test_a_file_that_cannot_be_replaced_keeps_its_content(tmp_path: Path) -> None:
    """A file that cannot be replaced keeps its content, and no temporary file is left."""
    (tmp_path / "b.sql" / "kept").mkdir(parents=True)

    with pytest.raises(UsageError, match=r"cannot write .*b\.sql"):
        write_file(str(tmp_path / "b.sql"), b"new")

    assert [entry.name for entry in tmp_path.rglob("*")] == ["b.sql", "kept"]


def test_an_unchanged_file_is_not_written(tmp_path: Path) -> None:
    """A file that already has the content is not written, so that its time shows the last real change."""
    path = tmp_path / "b.sql"
    write_file(str(path), b"same")
    os.utime(path, (1, 1))

    write_file(str(path), b"same")

    assert path.stat().st_mtime == 1


def test_an_unwritable_path_is_named(tmp_path: Path) -> None:
    """A target/ that is a file, or is not writable, gives a finding that names it instead of a crash."""
    (tmp_path / "target").write_text("")

    with pytest.raises(UsageError, match="target/manifest"):
        write_file(str(tmp_path / "target" / "manifest.json"), b"{}")
