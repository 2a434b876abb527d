"""Whether `--parallel` runs another version of a query in parallel with its current one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlstream.app.plan.compiled_identity import identity_without_spark
from sqlstream.app.stored.stored_tables import with_stored_tables
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.state.changes import describe_changes
from sqlstream.state.checkpoints import FilesOf, read_checkpoint, read_versions_file
from sqlstream.state.sinks import has_other_output


@dataclass(frozen=True)
class ParallelQueries:
    """The queries of `--parallel`, by the names of their models, and the `storage` with their ledgers.
    `full_refresh`: they start over.
    """

    compiled: CompiledProject
    names: Collection[str]
    files_of: FilesOf
    storage: str
    full_refresh: bool = False

    def runs_parallel(self, model: CompiledModel, root: str) -> bool:
        """Returns whether the query of `model`, with versions under `root`, runs in parallel with its current version.

        A query without a version starts its first one. A current version of the same query continues, so that the
        command which ran a version before its promotion continues it afterwards; `--full-refresh` starts another one
        nevertheless. Raises: OSError, Spark's errors.
        """
        if model.name not in self.names:
            return False
        parts = read_versions_file(self.files_of, root)
        if not parts.current:
            return False
        if parts.parallel is not None or self.full_refresh:
            return True
        state = read_checkpoint(self.files_of, root)
        if state.ledger is None or not state.is_used:
            return True
        compiled = with_stored_tables(self.compiled, model, self.files_of, self.storage)
        old, new = state.ledger.identity, identity_without_spark(compiled, model, state)
        return bool(describe_changes(old, new)) or has_other_output(old, new)
