"""What a plan knows of a query without Spark: its identity, its stored tables, and whether `--parallel` applies."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.spark_versions import pyspark_folder
from sqlstream.project.configuration.columns import Schema
from sqlstream.project.configuration.target import Target
from sqlstream.project.connectors.connectors import CONNECTORS
from sqlstream.project.types.data_types import Field, Primitive, type_name
from sqlstream.project.types.ddl import TypeSyntaxError, parse_type
from sqlstream.project.values import SourceTable
from sqlstream.state.changes import describe_changes
from sqlstream.state.checkpoints import CheckpointState, FilesOf, read_checkpoint, read_versions_file
from sqlstream.state.identity import identity_of
from sqlstream.state.layout import output_path, query_root
from sqlstream.state.ledger import OutputColumn, QueryIdentity
from sqlstream.state.readers import source_uses
from sqlstream.state.sinks import has_other_output
from sqlstream.state.spark_settings import (
    ANSI,
    FROZEN_SETTINGS,
    OWN_DEFAULTS,
    RESULT_DEFAULTS,
    SOURCE_EVOLUTION,
    TIME_ZONE,
    declared_settings,
)

_DEFAULTS = {**RESULT_DEFAULTS, TIME_ZONE: "UTC"}
"""The settings of a session for which the target sets nothing. Others keep the values of the ledger."""

ANSI_VARIABLE = "SPARK_ANSI_SQL_MODE"
"""The variable of the environment that turns off the mode of ANSI by default, the only one of Spark for results."""


def identity_without_spark(compiled: CompiledProject, model: CompiledModel, state: CheckpointState) -> QueryIdentity:
    """Returns the identity as far as the compiler knows it. What only Spark knows is as in the ledger."""
    ledger = state.ledger if state.is_used or not model.streaming else None  # a batch model has no checkpoint
    uses = source_uses(compiled, model, ledger)
    old = ledger.identity if ledger is not None else None
    columns = columns_without_spark(compiled, model, old)
    elsewhere = {} if old is None else _from_elsewhere(compiled.project.target, old, os.environ)
    settings = dict(_settings(compiled, old, elsewhere))
    found = identity_of(
        compiled, model, uses, columns, stateful=bool(old and old.stateful), settings=settings, before=old
    )
    if old is not None and found.declared is not None:
        defaults = old.defaults.items()
        declared = {name: value for name, value in found.declared.items() if (name, value) not in defaults}
        inherited = {name: value for name, value in elsewhere.items() if (name, value) not in defaults}
        found = replace(found, declared=declared, defaults=old.defaults)
        found = found if old.inherited is None else replace(found, inherited=inherited)
    if old is None or all(
        getattr(found, part) == getattr(old, part) for part in ("fingerprints", "deduplicated", "kept")
    ):
        return found
    from sqlstream.compiler.trees import keeps_state  # loads sqlglot, only for a changed query

    return replace(found, stateful=keeps_state(compiled, model))


def columns_without_spark(
    compiled: CompiledProject, model: CompiledModel, old: QueryIdentity | None
) -> tuple[OutputColumn, ...] | None:
    """Returns the columns of the query. Types that only Spark knows exactly are those of the ledger (`old`)."""
    found = compiled.known_columns(model.unique_id)
    before = {column.name.lower(): column for column in (old.columns or ())} if old else {}
    if found is None:
        return old.columns if old else None
    columns = []
    for column in found:
        known = before.get(column.name.lower())
        if known is not None and (not isinstance(column.type, Primitive) or _is_same(known.type, column)):
            columns.append(OutputColumn(column.name, known.type))
        else:
            columns.append(OutputColumn(column.name, type_name(column.type)))
    return tuple(columns)


def _is_same(known: str, column: Field) -> bool:
    try:
        type_ = parse_type(known)
    except TypeSyntaxError:
        return True
    return not isinstance(type_, Primitive) or type_name(type_) == type_name(column.type)


def _settings(
    compiled: CompiledProject, old: QueryIdentity | None, elsewhere: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    given = {**elsewhere, **{name: str(value) for name, value in compiled.project.target.spark.items()}}
    defaults = {**_DEFAULTS, **({ANSI: "false"} if os.environ.get(ANSI_VARIABLE) == "false" else {})}
    for name, value in (old.settings if old else {}).items():
        if name in defaults:
            yield name, given.get(name, defaults[name])
        else:
            yield name, value


def _from_elsewhere(target: Target, old: QueryIdentity, env: Mapping[str, str]) -> Mapping[str, str]:
    """Returns the settings of a `spark-defaults.conf`, from where Spark reads it, that the target and sqlstream do not
    set. What only Spark knows is as in the ledger: settings of connectors, those outside of `spark.sql.*` that are not
    in the file, and all of them if the environment has options with settings.
    """
    before = old.inherited or {}
    is_elsewhere = any("spark." in env.get(name, "") for name in _OPTIONS) or target.remote is not None
    if old.inherited is None or is_elsewhere:
        return before
    conf = env.get("SPARK_CONF_DIR") or f"{env.get('SPARK_HOME') or pyspark_folder() or ''}/conf"
    path = Path(conf, "spark-defaults.conf")
    written = _properties(path.read_text("utf-8", "replace")) if path.is_file() else ()
    settings = {name: value for name, value in written if name.startswith("spark.")}
    found = declared_settings(settings, (*FROZEN_SETTINGS, TIME_ZONE, SOURCE_EVOLUTION))
    of_connectors = {name for connector in CONNECTORS.values() for name in connector.settings}
    kept = {name: before[name] for name in before if name in of_connectors or not name.startswith("spark.sql.")}
    given = {*target.spark, *OWN_DEFAULTS, *of_connectors}
    return kept | {name: value for name, value in found.items() if name not in given}


_OPTIONS = ("PYSPARK_SUBMIT_ARGS", "SPARK_SUBMIT_OPTS", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS")
"""The variables of the environment that can give settings to Spark or its JVM."""


def _properties(text: str) -> Iterator[tuple[str, str]]:
    """Yields the entries of a file of Java's properties, as `Properties.load` and Spark read them."""
    # a backslash at the end of a line continues it, without the blanks at the start of the next one
    for line in re.sub(r"\\\r?\n[ \t\f]*", "", text).splitlines():
        entry = _ENTRY.match(line.lstrip())
        if entry is not None:
            name, value = (_ESCAPE.sub(_unescaped, part) for part in entry.groups())
            yield name, value.strip()


def _unescaped(escape: re.Match[str]) -> str:
    code = escape[1]
    return chr(int(code[1:], 16)) if len(code) > 1 else _CONTROL.get(code, code)


_ENTRY = re.compile(r"(?![#!])((?:\\.|[^\\\s:=])+)\s*[:=]?\s*(.*)")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def with_stored_tables(
    compiled: CompiledProject, model: CompiledModel, files_of: FilesOf, storage: str
) -> CompiledProject:
    """Returns the project in which the query of `model` reads the current version of each stored output, whose ledger
    is in `storage`.

    Raises: OSError, Spark's errors.
    """
    needed = sorted(compiled.upstream(model.unique_id) & compiled.stored.keys())
    if not needed:
        return compiled
    found = {node: _resolved(compiled, compiled.stored[node], files_of, storage) for node in needed}
    return replace(compiled, stored={**compiled.stored, **found})


def _resolved(compiled: CompiledProject, table: SourceTable, files_of: FilesOf, storage: str) -> SourceTable:
    writer = compiled.writer_of(table)
    ledger = read_checkpoint(files_of, query_root(storage, writer.query_id, writer.config.checkpoint)).ledger
    columns, schema = ledger.identity.columns if ledger is not None else None, table.spark_schema
    if columns is not None:
        schema = Schema(table.location, ddl=", ".join(column.ddl for column in columns))
    written = None
    if ledger is not None and writer.output is not None and ledger.identity.sink_path == writer.output.sink_path:
        written = ledger.output
    if table.path is None:
        return table.model_copy(update={"table": written or table.table, "spark_schema": schema})
    return table.model_copy(update={"path": written or output_path(storage, table.path), "spark_schema": schema})


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
