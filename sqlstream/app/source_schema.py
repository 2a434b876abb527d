"""`sqlstream source schema`: compares the columns in a source's data with those that it declares."""

from __future__ import annotations

from collections.abc import Callable

from sqlstream.app.loading.load import Loaded, load_for_reading
from sqlstream.app.loading.pin_schemas import pin_schemas
from sqlstream.app.request import SAMPLED_FILES, ProjectRequest
from sqlstream.app.running.signals import StopSignals, interruptible
from sqlstream.compiler.node_ids import source_id
from sqlstream.errors import UsageError
from sqlstream.project.nearest import did_you_mean
from sqlstream.project.on_corrupt import declared_sources
from sqlstream.project.values import SourceTable
from sqlstream.spark.secrets import Secrets
from sqlstream.state.results.source_columns import SourceColumns


def source_schema(
    request: ProjectRequest,
    name: str,
    most_files: int = SAMPLED_FILES,
    notify: Callable[[str], None] = lambda _line: None,
) -> SourceColumns:
    """Returns the columns of the source `source.table`, from at most `most_files` of its files.

    Writes the schemas of a schema registry to the project, and no other files.

    `notify` gets progress messages. Raises: FindingsError; UsageError for an unknown source; KeyboardInterrupt.
    """
    loaded = load_for_reading(request)
    tables = {table.full_name: table for table in declared_sources(loaded.compiled.project.sources)}
    if name not in tables:
        raise UsageError(f"there is no source `{name}`; {did_you_mean(name, tables)}")
    messages = tables[name].messages
    if messages is not None and messages.registry is not None:
        return pin_schemas(loaded, tables[name], messages.registry, Secrets(request.env), notify)
    with interruptible() as signals:
        return _read_columns(request, loaded, tables[name], most_files, notify, signals)


def _read_columns(
    request: ProjectRequest,
    loaded: Loaded,
    table: SourceTable,
    most_files: int,
    notify: Callable[[str], None],
    signals: StopSignals,
) -> SourceColumns:
    from sqlstream.app.running.jars import session_connectors
    from sqlstream.app.running.session import brief_session, check_java, check_target  # loads pyspark
    from sqlstream.spark.reading.infer import infer_columns
    from sqlstream.spark.reading.inputs import NodeReader
    from sqlstream.spark.reading.source_columns import merge_columns
    from sqlstream.spark.reading.sources import Readers

    check_target(loaded)
    check_java(request.env, signals)
    secrets = Secrets(request.env)
    node = source_id(loaded.compiled.project.name, table)
    connectors = session_connectors(loaded, secrets, request.env, notify, [node])
    notify(f"Starting Spark to read {table.full_name}")
    with brief_session(loaded, secrets, connectors) as runtime:
        signals.install()
        inputs = NodeReader(loaded.compiled, Readers(runtime.session, secrets, loaded.compiled.project.root))
        return merge_columns(table, infer_columns(inputs, table, most_files))
