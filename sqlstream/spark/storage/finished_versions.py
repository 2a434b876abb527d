"""Takes away the versions of a query that nothing can use again."""

from __future__ import annotations

from contextlib import suppress

from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.storage.storage import Storage
from sqlstream.state.layout import ledger_path, version_number, version_root
from sqlstream.state.ledger import LedgerUnreadableError, read_ledger
from sqlstream.state.plan import Action


def remove_finished(storage: Storage, root: str, version: int) -> None:
    """Removes the versions below `root` and before `version` of queries that start anew on every run and write to no
    place, such as a memory sink's.

    Their checkpoints are worthless once their process has ended, and each run makes one more. This is the only thing
    that sqlstream removes from a target's storage: what another query made stays.
    """
    for number in filter(None, map(version_number, storage.names(root))):
        with suppress(OSError, LedgerUnreadableError, *SPARK_ERRORS):  # what is left does no harm
            if number < version and _is_worthless(storage, ledger_path(root, number)):
                storage.remove(version_root(root, number))


def _is_worthless(storage: Storage, path: str) -> bool:
    text = storage.read_text(path)
    ledger = None if text is None else read_ledger(text)
    return ledger is not None and ledger.reason == Action.FRESH_EACH_RUN and ledger.output is None
