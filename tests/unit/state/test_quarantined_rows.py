"""How many rows of a version are in quarantine: the count that its batches keep, without released rows."""

from __future__ import annotations

import pytest

from sqlstream.state.backfills import Backfill, BackfillLog, Release
from sqlstream.state.quarantined_rows import QuarantinedRows, read_quarantined, waiting_rows, with_batch

KNOWN = QuarantinedRows("q", 5, 7, 2)


@pytest.mark.parametrize(
    ("batch", "rows", "expected"),
    [
        (8, 3, QuarantinedRows("q", 7, 8, 3)),
        (8, 0, None),
        (7, 2, None),
        (7, 1, QuarantinedRows("q", 5, 7, 1)),
        (7, 0, QuarantinedRows("q", 5, 7, 0)),
        (0, 1, QuarantinedRows("q", 0, 0, 1)),
    ],
)
def test_a_repeated_batch_counts_once(batch: int, rows: int, expected: QuarantinedRows | None) -> None:
    """A batch adds its rows, and replaces those of its first attempt; the checkpoint of a new query begins again."""
    assert with_batch(KNOWN, "q", batch, rows) == expected
    assert with_batch(KNOWN, "other", batch, rows) == QuarantinedRows("other", 0, batch, rows)
    assert with_batch(None, "q", batch, rows) == QuarantinedRows("q", 0, batch, rows)


@pytest.mark.parametrize(("last", "waiting"), [(9, 4), (7, 7), (6, 5), (None, None)])
def test_only_committed_batches_and_releases_count(last: int | None, waiting: int | None) -> None:
    """Rows wait that committed batches have written and committed releases have not."""
    log = BackfillLog((Backfill(8, "", None, None, {}, Release(3)), Backfill(10, "", None, None, {}, Release(4))))
    assert waiting_rows(KNOWN.to_json(), log, last) == waiting


@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"rows": 1}'])
def test_without_a_count_nothing_is_known(text: str | None) -> None:
    """A missing or damaged count is no number."""
    assert read_quarantined(text) is None
    assert waiting_rows(text, BackfillLog(), 1) is None
