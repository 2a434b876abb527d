"""Where a version is: read from the checkpoints of real runs, and from entries in every form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from sqlstream.state.batch_logs import BatchLog, from_compact, read_until, watermark_of
from sqlstream.state.layout import checkpoint_path, ledger_path
from sqlstream.state.ledger import SourceUse
from sqlstream.state.output_files import StoredFile
from sqlstream.state.sources.positions import assigned, read_position
from tests.support.identities import STATEFUL, ledger_of

ORDERS = SourceUse("shop__orders", "shop.orders", None, "/in/orders")
REFUNDS = SourceUse("shop__refunds", "shop.refunds", None, "/in/refunds")


class Stored:
    """Files in memory, all written at the same time."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = {f"/q/{name}": text for name, text in texts.items()}

    def read_text(self, path: str) -> str | None:
        """Returns a text."""
        return self._texts.get(path)

    def names(self, folder: str) -> tuple[str, ...]:
        """Returns the names in a folder."""
        below = (path.removeprefix(f"{folder}/") for path in self._texts if path.startswith(f"{folder}/"))
        return tuple(sorted({name.split("/")[0] for name in below}))

    def files(self, folder: str) -> tuple[StoredFile, ...]:
        """Returns the files in a folder."""
        inside = {
            path.removeprefix(f"{folder}/"): text for path, text in self._texts.items() if path.startswith(folder)
        }
        return tuple(StoredFile(name, len(text), 0) for name, text in inside.items())

    def modified(self, path: str) -> float | None:
        """Returns the time of a file."""
        return 100.0 if path in self._texts else None


def entry(*offsets: str, watermark: int = 0) -> str:
    """Returns an entry of the offsets log."""
    return "\n".join(["v1", json.dumps({"batchWatermarkMs": watermark}), *offsets])


def position(texts: Mapping[str, str], version: int = 1) -> Any:
    """Returns the position of the query with these files in its checkpoint, and a ledger."""
    stored = Stored(
        {
            ledger_path("", version)[1:]: ledger_of(STATEFUL).to_json(),
            **{f"{checkpoint_path('', version)[1:]}/{name}": text for name, text in texts.items()},
        }
    )
    return read_position(lambda path: (stored, path), "/q", version)


def test_a_query_that_has_committed_nothing() -> None:
    """Before the first commit there is no offset; a batch that has begun is open."""
    found = position({"offsets/0": entry('{"logOffset":0}')})

    assert (found.batch, found.open_batch, found.committed_at, found.watermark_ms) == (None, 0, None, None)
    assert [(source.key, source.offset) for source in found.sources] == [("shop__orders", None)]
    assert found.since == "2024-01-01T00:00:00+00:00"


def test_only_committed_files_were_read() -> None:
    """The files of an open batch were not read yet, although the log of the source has them."""
    found = position(
        {
            "offsets/0": entry('{"logOffset":0}', watermark=5000),
            "offsets/1": entry('{"logOffset":1}', watermark=9000),
            "commits/0": "v1\n{}",
            "sources/0/0": 'v1\n{"path":"file:///in/a.json","timestamp":7,"batchId":0}',
            "sources/0/1": 'v1\n{"path":"file:///in/b.json","timestamp":8,"batchId":1}',
        }
    )

    assert (found.batch, found.open_batch, found.committed_at, found.watermark_ms) == (0, 1, 100.0, 5000)
    assert found.open_since == 100.0
    (source,) = found.sources
    assert (source.key, source.use, source.form) == ("0", STATEFUL.sources[0], "files")
    assert source.read == {"file:///in/a.json": 7}


def test_a_torn_entry_is_a_problem() -> None:
    """If the entry of the committed batch is torn or missing, the offsets are unknown, and the problem says so."""
    torn = position({"offsets/0": 'v1\n{"batchW', "commits/0": "v1\n{}"})
    missing = position({"offsets/1": entry("1"), "commits/0": "v1\n{}"})

    for found in (torn, missing):
        assert "batch 0 in" in str(found.problem)
        assert [source.offset for source in found.sources] == [None]


def test_a_ledger_that_cannot_be_read_is_a_problem() -> None:
    """Without a ledger, the sources are those that the checkpoint names."""
    stored = Stored(
        {
            "v2/ledger.json": "{",
            "v2/checkpoint/offsets/0": entry('shop__orders:{"logOffset":0}'),
            "v2/checkpoint/commits/0": "v1\n{}",
        }
    )

    found = read_position(lambda path: (stored, path), "/q", 2)

    assert "its ledger cannot be read" in str(found.problem)
    assert [(source.key, source.use) for source in found.sources] == [("shop__orders", None)]


@pytest.mark.parametrize(
    ("offsets", "uses", "expected"),
    [
        ({"0": 1, "1": 2}, [ORDERS, REFUNDS], [("0", ORDERS, 1), ("1", REFUNDS, 2)]),
        ({"0": 1}, [ORDERS, REFUNDS], [("0", None, 1)]),
        (
            {"shop__refunds": 2, "shop__orders": 1, "old": 3},
            [ORDERS, REFUNDS],
            [("shop__orders", ORDERS, 1), ("shop__refunds", REFUNDS, 2)],
        ),
        ({"shop__orders": 1}, [ORDERS, REFUNDS], [("shop__orders", ORDERS, 1), ("shop__refunds", REFUNDS, None)]),
    ],
)
def test_offsets_belong_to_readers(offsets: Mapping[str, Any], uses: list[SourceUse], expected: list[Any]) -> None:
    """Positions count the readers; names name them, and names of dropped readers are left out."""
    assert list(assigned(offsets, uses)) == expected


def log(*texts: str, compact: int = -1, lost: int = -1) -> BatchLog:
    """Returns the log of a source with these entries, of which `compact` contains all earlier ones."""
    names = {number: f"{number}.compact" if number == compact else str(number) for number in range(len(texts))}
    chosen = from_compact(names)
    return BatchLog("sources/0", names, {number: texts[number] for number in chosen if number != lost})


A, B, C = (f'{{"path":"file:///{name}","timestamp":1,"batchId":{at}}}' for at, name in enumerate("abc"))


def test_a_compact_entry_contains_all_earlier_files() -> None:
    """The files in a compact entry and after it were read, up to the entry of the offset."""
    compacted = log("v1\n" + A, f"v1\n{A}\n{B}", "v1\n" + C, compact=1)

    assert read_until(compacted, 2) == {"file:///a": 1, "file:///b": 1, "file:///c": 1}
    assert read_until(compacted, 0) == {"file:///a": 1}


def test_an_incomplete_log_tells_nothing() -> None:
    """If an entry is missing or torn, it is unknown which files were read."""
    entries = [f"v1\n{line}" for line in (A, B, C)]

    assert read_until(log(*entries, lost=1), 2) is None
    assert read_until(log(*entries), 3) is None
    assert read_until(log(*entries[:2], 'v1\n{"pa'), 1) is None


def test_watermarks_of_entries() -> None:
    """A query without a watermark has 0 there, and a continuous query an empty line."""
    assert watermark_of(entry("1", watermark=1500)) == 1500
    assert watermark_of(entry("1")) is None
    assert watermark_of("v1\n\n1") is None
