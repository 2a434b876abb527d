"""Whether a version of a batch model has written its whole output: `complete.json` beside its ledger.

A stream has its checkpoint for that.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime

from sqlstream.compiler.cache.digest import digest


def completion_text(ledger: str) -> str:
    """Returns the text of complete.json after the query in the text of ledger.json has written all of its rows."""
    return json.dumps({"ledger": digest(ledger), "at": datetime.now(UTC).isoformat(timespec="seconds")}) + "\n"


def is_complete(mark: str | None, ledger: str | None) -> bool:
    """Returns whether `mark`, the text of complete.json, is that of the query in the text of ledger.json."""
    if mark is None or ledger is None:
        return False
    try:
        found = json.loads(mark)
    except ValueError:
        return False
    return isinstance(found, dict) and found.get("ledger") == digest(ledger)
