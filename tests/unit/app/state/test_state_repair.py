"""Files that a batch commits during a repair: a JVM may outlive its Python."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from sqlstream.app.state.files import archive_leftovers
from sqlstream.app.stored.stored_query import OutputFolder, StoredQuery
from sqlstream.spark.storage.checkpoints import read_sink_log
from sqlstream.spark.storage.local import LocalStorage
from sqlstream.spark.storage.storage import Storage
from sqlstream.state.output_files import OutputFiles, sort_files

NAMES = [f"part-{number:05}-68fad154-7a17-4dd0-aa6e-258cccda1fcf-c000.json" for number in range(2)]


@dataclass
class LateCommit:
    """A query whose JVM is still alive and commits a file after the folder was listed."""

    @property
    def storages(self) -> LateCommit:
        """Returns this object, because everything is on this machine."""
        return self

    def of(self, path: str) -> tuple[Storage, str]:
        """Returns the storage of any path."""
        return LocalStorage(), path

    def files(self, folder: OutputFolder) -> OutputFiles:
        """Lists the files, and then commits the batch."""
        storage, output = LocalStorage(), folder.path
        found = sort_files(storage.files(output), read_sink_log(storage, output), with_retention=False)
        entry = json.dumps({"path": f"file://{output}/{NAMES[0]}", "modificationTime": 1})
        (Path(output) / "_spark_metadata/0").write_text(f"v1\n{entry}")
        return found


def test_a_file_committed_during_the_repair_moves_back(tmp_path: Path) -> None:
    """A file that is committed during the repair moves back; files in no batch stay aside, with their checksums."""
    output = tmp_path / "orders"
    (output / "_spark_metadata").mkdir(parents=True)
    for name in NAMES:
        (output / name).write_text("{}")
        (output / f".{name}.crc").write_text("crc")

    folder = OutputFolder("lake", "json", str(output), is_replaced=False)
    done = archive_leftovers(cast("StoredQuery", LateCommit()), folder, "now")

    assert done is not None
    assert [file.name for file in done.files] == NAMES[1:]
    archive = tmp_path / "_archive/orders/now"
    assert sorted(path.name for path in output.iterdir() if path.is_file()) == [f".{NAMES[0]}.crc", NAMES[0]]
    assert sorted(path.name for path in archive.iterdir()) == [f".{NAMES[1]}.crc", NAMES[1]]
