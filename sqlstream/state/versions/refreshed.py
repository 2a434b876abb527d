"""Whether a full refresh that is retried has already started the new version of a query."""

from __future__ import annotations

from datetime import datetime

from sqlstream.state.ledger import Ledger


def has_begun_since(ledger: Ledger | None, since: datetime | None) -> bool:
    """Returns whether the version with this ledger has begun at the time `since` (with a time zone) or later.

    A ledger has its times in seconds, so the second of `since` counts as a whole. A ledger of an early sqlstream has no
    history; its version counts as older.
    """
    if ledger is None or since is None or not ledger.history:
        return False
    return datetime.fromisoformat(ledger.history[0].at) >= since.replace(microsecond=0)
