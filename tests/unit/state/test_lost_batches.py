"""Whether an output has the batches of its checkpoint, by the files that show it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from sqlstream.state.lost_outputs import committed_batches, lost_files, lost_in_log
from sqlstream.state.repartitions import PARTITIONS
from tests.support.identities import STATEFUL


@dataclass(frozen=True)
class Texts:
    """A folder tree in memory."""

    files: Mapping[str, str]

    def read_text(self, path: str) -> str | None:
        """See `ReadableFiles`."""
        return self.files.get(path)

    def names(self, folder: str) -> tuple[str, ...]:
        """See `ReadableFiles`."""
        below = (path.removeprefix(f"{folder}/") for path in self.files if path.startswith(f"{folder}/"))
        return tuple(sorted({name.split("/")[0] for name in below}))

    def at(self, path: str) -> tuple[Texts, str]:
        """See `FilesOf`."""
        return self, path


@pytest.mark.parametrize(
    ("names", "last", "problem"),
    [
        (["0", "1", "2"], 2, None),
        (["0", "1", "2", "3"], 2, None),  # killed between the batch of the sink and that of the checkpoint
        (["9.compact", "10"], 10, None),
        (["7", "8", "9.compact", "10"], 10, None),
        (["10", "19.compact"], 19, None),
        ([], 0, "does not exist"),
        (["0", "1"], 2, "ends with batch 1"),
        (["0", "1", "2", "3", "4"], 2, "up to 4"),
        (["1", "2"], 2, "lacks batch 0"),
        (["0", "2"], 2, "lacks batch 1"),
        (["10", "11"], 11, "lacks batch 0"),  # the compact entry is gone
        (["9.compact", "11"], 11, "lacks batch 10"),
    ],
)
def test_the_log_of_a_file_sink_has_each_batch(names: list[str], last: int, problem: str | None) -> None:
    """It reaches the last committed batch, exceeds it by one at most, and is complete from its last compact entry on."""
    entries = {int(name.split(".")[0]): name for name in names}

    found = lost_in_log(entries, "/out", last)

    assert found is None if problem is None else problem in (found or "")


@pytest.mark.parametrize(
    ("sink_format", "mode", "place", "file"),
    [
        ("parquet", "append", "/out/a", "/out/a/_spark_metadata/0"),
        ("json", "append", "/out/a.v1", "/out/a/_spark_metadata/0"),  # before an interrupted switch gives it its name
        ("parquet", "complete", "/out/a", "/out/a/_snapshot"),
        ("delta", "append", "/out/a", "/out/a/_delta_log/0.json"),
        ("iceberg", "append", "/out/a", "/out/a/metadata/v1.json"),
        ("sqlite", "update", "/out/a.sqlite#v2", "/out/a.sqlite"),
        ("console", "append", "/out/a", None),
        ("delta", "append", "lake.orders", None),
        ("kafka", "append", "orders", None),
    ],
)
def test_each_kind_of_output_shows_that_it_exists(sink_format: str, mode: str, place: str, file: str | None) -> None:
    """The file that shows it is enough; without it the output is lost. Others are unknown, so nothing is lost."""
    use = replace(STATEFUL, sink_format=sink_format, output_mode=mode)

    assert lost_files(Texts({file or "/x": "v1"}).at, use, place, 0) is None
    assert (lost_files(Texts({"/out/b": ""}).at, use, place, 0) is None) is (file is None)


def test_repartitions_are_no_batches_of_a_sink() -> None:
    """The last batch that a sink has got is the one before the repartitions of the state after it."""
    folder = "/q/v1/checkpoint"
    offsets = dict(enumerate((2, 2, 4, 8)))
    files = {f"{folder}/metadata": json.dumps({"id": "abc"})}
    for number, partitions in offsets.items():
        conf = json.dumps({"conf": {PARTITIONS: str(partitions)}})
        files[f"{folder}/offsets/{number}"] = f"v1\n{conf}\n-"
        files[f"{folder}/commits/{number}"] = "v1\n{}"

    found = committed_batches(Texts(files), "/q", 1)

    assert found is not None
    assert (found.query_id, found.last, found.last_written) == ("abc", 3, 1)
    assert committed_batches(Texts({f"{folder}/metadata": "{}"}), "/q", 1) is None
