"""What decides the rows of a query's inputs, beside the columns that they declare."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.node_ids import seed_id
from sqlstream.project.values import SourceTable
from sqlstream.state.ledger import SourceUse
from sqlstream.state.signature.signature import shown_source

_WITHOUT_EFFECT = frozenset(
    {
        *("maxfilespertrigger", "maxbytespertrigger", "maxfileage", "latestfirst", "filenameonly", "cleansource"),
        *("sourcearchivedir", "maxcachedfiles", "discardcachedinputratio", "rowsperbatch", "numpartitions"),
        *("maxoffsetspertrigger", "minoffsetspertrigger", "maxtriggerdelay", "minpartitions", "failondataloss"),
        *("maxrecordsperpartition", "startingoffsets", "startingtimestamp", "startingoffsetsbytimestamp"),
        *("startingoffsetsbytimestampstrategy", "endingoffsets", "groupidprefix", "fetchoffset.numretries"),
        *("fetchoffset.retryintervalms", "kafkaconsumer.polltimeoutms", "url", "user", "password", "driver"),
    }
)
"""Options, in lower case, that decide when and from where rows are read, but not what they contain."""


def contents_of(
    compiled: CompiledProject, model: CompiledModel, uses: tuple[SourceUse, ...]
) -> Iterator[tuple[str, str]]:
    """Yields the name of each input of a query, and its format and options; of static ones also the path or the
    checksum. Secrets are shown as the names of their variables.
    """
    by_name = {table.full_name: table for table in compiled.tables_of(model.unique_id)}
    for use in uses:
        if use.table in by_name:
            yield shown_source(use.name), _table_text(by_name[use.table], path=False)
    for table in by_name.values():
        if table.mode != "stream":
            yield table.full_name, _table_text(table, path=True)
    upstream = compiled.upstream(model.unique_id)
    for seed in compiled.project.seeds:
        if seed_id(compiled.project.name, seed.name) in upstream:
            yield seed.name, f"seed with checksum {seed.checksum}"


def schemas_of(compiled: CompiledProject, model: CompiledModel) -> Iterator[tuple[str, str]]:
    """Yields the name of each input of a query that declares columns, and the columns with their types."""
    for table in compiled.tables_of(model.unique_id):
        if table.schema is not None:
            yield table.full_name, table.schema.ddl or table.schema.json or ""
    upstream = compiled.upstream(model.unique_id)
    for seed in compiled.project.seeds:
        if seed.columns and seed_id(compiled.project.name, seed.name) in upstream:
            yield seed.name, ", ".join(f"{column.name} {column.data_type}" for column in seed.columns)


def _table_text(table: SourceTable, *, path: bool) -> str:
    options = {**table.options, **(table.messages.options if table.messages else {})}
    shown = ", ".join(f"{name} {value}" for name, value in sorted(options.items()) if _has_effect(name))
    formats = " ".join(table.messages.formats.values()) if table.messages else ""
    place = (table.table or table.python or table.path or "") if path else ""
    return " ".join(part for part in (table.format, formats, place, shown) if part)


def _has_effect(name: str) -> bool:
    return name.lower() not in _WITHOUT_EFFECT and not name.lower().startswith(("kafka.", "schema.registry"))
