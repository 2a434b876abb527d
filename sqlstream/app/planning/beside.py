"""Whether `run --parallel` runs another version of a query beside its current one."""

from __future__ import annotations

from sqlstream.app.loading.load import Loaded
from sqlstream.app.planning.pure import identity_without_spark
from sqlstream.app.request import RunRequest
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.state.changes import describe_changes
from sqlstream.state.checkpoints import FilesOf, read_checkpoint, read_versions_file


def runs_beside(loaded: Loaded, request: RunRequest, model: CompiledModel, files_of: FilesOf, root: str) -> bool:
    """Returns whether the query of `model`, whose versions are under `root`, runs beside its current version.

    A query without a version starts its first one. A current version of the same query continues, so that the command
    which ran a version before its promotion continues it afterwards; `--full-refresh` starts another one nevertheless.
    Raises: OSError, Spark's errors.
    """
    if model.name not in request.parallel:
        return False
    parts = read_versions_file(files_of, root)
    if not parts.current:
        return False
    if parts.parallel is not None or request.full_refresh:
        return True
    state = read_checkpoint(files_of, root)
    if state.ledger is None or not state.is_used:
        return True
    return bool(describe_changes(state.ledger.identity, identity_without_spark(loaded.compiled, model, state)))
