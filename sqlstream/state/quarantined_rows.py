"""How many rows the batches of a version have written to its quarantine: quarantined.json beside the checkpoint."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from pydantic import TypeAdapter, ValidationError

from sqlstream.state.backfills import BackfillLog
from sqlstream.state.layout import version_root

COUNT_NAME = "quarantined.json"


@dataclass(frozen=True)
class QuarantinedRows:
    """`rows` of the query with Spark's id `query_id` before the last `batch` with such rows, and the `last_rows` of
    this batch: Spark may repeat it.
    """

    query_id: str
    rows: int
    batch: int
    last_rows: int

    def up_to(self, last: int) -> int:
        """Returns the rows of the batches up to the committed batch `last`."""
        return self.rows + (self.last_rows if self.batch <= last else 0)

    def to_json(self) -> str:
        """Returns the text of quarantined.json."""
        return json.dumps(asdict(self)) + "\n"


_COUNT = TypeAdapter(QuarantinedRows)


def quarantined_path(version: str) -> str:
    """Returns the path of the count in the folder of a version."""
    return f"{version}/{COUNT_NAME}"


def read_quarantined(text: str | None) -> QuarantinedRows | None:
    """Returns the count in `text`, None for None or if it is damaged."""
    try:
        return None if text is None else _COUNT.validate_json(text)
    except ValidationError:
        return None


def with_batch(known: QuarantinedRows | None, query_id: str, batch: int, rows: int) -> QuarantinedRows | None:
    """Returns the count with the `rows` of a batch, which may be the repeated last one; None if nothing changes."""
    if known is None or known.query_id != query_id or known.batch > batch:
        return QuarantinedRows(query_id, 0, batch, rows)
    if known.batch == batch:
        return None if known.last_rows == rows else QuarantinedRows(query_id, known.rows, batch, rows)
    return QuarantinedRows(query_id, known.rows + known.last_rows, batch, rows) if rows else None


def waiting_rows(text: str | None, log: BackfillLog, last: int | None) -> int | None:
    """Returns how many rows of the batches up to `last` are in quarantine and have not been released, as far as the
    batches have counted them: `text` is quarantined.json. None without a count.
    """
    count = read_quarantined(text)
    if count is None or last is None:
        return None
    return max(count.up_to(last) - sum(release.rows for release in log.releases(last).values()), 0)


def count_of_version(root: str, version: int) -> str:
    """Returns the path of the count of a version of the query under `root`."""
    return quarantined_path(version_root(root, version))
