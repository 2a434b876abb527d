"""Records which version of a query is the current one when another one starts."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlstream.app.request import CAUGHT_UP
from sqlstream.app.running.ready import CheckContext, CheckedQuery
from sqlstream.spark.storage.query_locks import versions_lock
from sqlstream.spark.storage.storage import Storage
from sqlstream.state.checkpoints import read_versions_file
from sqlstream.state.layout import versions_path
from sqlstream.state.plan import Action
from sqlstream.state.versions.versions import Versions


def record_version(ready: CheckedQuery, checks: CheckContext) -> None:
    """Records that the version that is about to start is the current one, or runs beside it.

    Raises: FindingsError if another command is changing this; OSError, Spark's errors.
    """
    version, model = ready.plan.version, ready.query.model
    if version == ready.state.version:
        return
    if not _needs_file(ready, read_versions_file(checks.storage_of, ready.root)):
        return
    with versions_lock(ready.storage, ready.root, model.name, model.file.location, checks.secrets):
        parts = read_versions_file(checks.storage_of, ready.root)
        changed = (
            parts.beside(version)
            if ready.is_parallel
            else parts.refreshed(version, is_waiting=checks.request.switch_when == CAUGHT_UP)
        )
        if ready.plan.action is Action.REFRESH and changed.current != parts.current:
            at = datetime.now(UTC).isoformat(timespec="seconds")
            changed = changed.recorded("refresh", parts, at)
        write_versions(ready.storage, ready.root, changed)


def _needs_file(ready: CheckedQuery, parts: Versions) -> bool:
    """Returns whether the next run could not tell the parts from the numbers of the versions."""
    is_default = parts.parallel is None and parts.previous is None
    starts_alone = ready.plan.action is not Action.REFRESH and not ready.is_parallel
    return not (is_default and starts_alone)


def write_versions(storage: Storage, root: str, parts: Versions) -> None:
    """Writes versions.json. Raises: OSError, Spark's errors."""
    storage.write_text(versions_path(root), parts.to_json())
