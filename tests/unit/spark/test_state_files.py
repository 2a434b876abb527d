"""Finds incomplete files of state."""

from __future__ import annotations

import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sqlstream.spark.storage.state_files import LZ4_MAGIC, many_files, torn_files

END = LZ4_MAGIC + b"\x15" + bytes(12)


def block(data: bytes) -> bytes:
    """Returns a block of lz4-java's stream; the checksum is not verified."""
    length = len(data).to_bytes(4, "little")
    return LZ4_MAGIC + b"\x25" + length + length + bytes(4) + data


def test_incomplete_files_are_returned_newest_first(tmp_path: Path) -> None:
    """Files that are cut off at any point are found, the newest version first."""
    whole = block(b"one") + block(b"two") + END
    folder = tmp_path / "0" / "1"
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "9.zip", "w") as archive:
        archive.writestr("metadata", "v1")
    files = {
        "1.delta": whole[:5],
        "2.delta": whole[:25],
        "3.snapshot": block(b"one"),
        "4.changelog": b"",
        "5.delta": whole,
        "6.changelog": b"\x28\xb5\x2f\xfd of zstd",
        "7.zip": (folder / "9.zip").read_bytes()[:40],
        "8_3a1f-77.changelog": whole[:-1],
        "schema": b"",
    }
    for name, content in files.items():
        (folder / name).write_bytes(content)

    assert [path.name for path in torn_files(tmp_path)] == [
        "8_3a1f-77.changelog",
        "7.zip",
        "4.changelog",
        "3.snapshot",
        "2.delta",
        "1.delta",
    ]


def test_a_remote_folder_has_no_torn_files(tmp_path: Path) -> None:
    """A checkpoint on another file system has no torn files; only Spark's message is available."""
    assert list(torn_files(tmp_path / "none")) == []


def test_files_of_too_many_batches_are_reported() -> None:
    """Ten times as many batches as Spark needs are reported, with any number of files in each batch."""
    model: Any = SimpleNamespace(name="sums", file=SimpleNamespace(location=None))
    names = [f"{number}{kind}" for number in range(500) for kind in (".delta", ".snapshot", "_ab-1.changelog")]

    found = many_files(model, names, "50")

    assert found is not None
    assert (found.code, "500 batches" in found.message) == ("state-files", True)
    assert many_files(model, names, None) is None  # of Spark's 100
    assert many_files(model, [*names, "schema", ".1.delta.crc"], "51") is None
