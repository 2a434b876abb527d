"""Rules on compiled models, one pure function each, one file per theme."""

from __future__ import annotations

from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.rules.batch import batch_places, sinks_of_streams, stream_words_in_batches
from sqlstream.compiler.rules.options.formats import misspelled_formats
from sqlstream.compiler.rules.options.names import ignored_options, option_values, required_options
from sqlstream.compiler.rules.python import python_names
from sqlstream.compiler.rules.rule import Rule
from sqlstream.compiler.rules.sinks.kinds import (
    ignored_partitions,
    modes_of_tables,
    python_sinks,
    refused_partitions,
    triggers_of_sinks,
    writable_formats,
)
from sqlstream.compiler.rules.sinks.outputs import (
    missing_sink_paths,
    output_modes,
    path_options,
    shared_outputs,
)
from sqlstream.compiler.rules.sinks.storage import relative_storage
from sqlstream.compiler.rules.sources import (
    fixed_schemas,
    masked_columns,
    missing_schemas,
    socket_sources,
    source_watermarks,
)
from sqlstream.compiler.rules.streams.triggers import short_real_time_triggers
from sqlstream.compiler.rules.tables import table_names, temporary_catalogs
from sqlstream.compiler.rules.unused import no_models, unused_macros, unused_sinks, unused_sources, unwritten_models
from sqlstream.errors import Finding

RULES: tuple[Rule[CompiledProject, Finding], ...] = (
    no_models,
    misspelled_formats,
    missing_schemas,
    fixed_schemas,
    source_watermarks,
    masked_columns,
    table_names,
    python_names,
    temporary_catalogs,
    ignored_options,
    option_values,
    required_options,
    socket_sources,
    short_real_time_triggers,
    path_options,
    missing_sink_paths,
    output_modes,
    writable_formats,
    modes_of_tables,
    triggers_of_sinks,
    python_sinks,
    refused_partitions,
    ignored_partitions,
    stream_words_in_batches,
    sinks_of_streams,
    batch_places,
    shared_outputs,
    relative_storage,
)
"""The rules on outputs, sources and targets, in the order of their findings."""

USE_RULES: tuple[Rule[CompiledProject, Finding], ...] = (
    unwritten_models,
    unused_sources,
    unused_sinks,
    unused_macros,
)
"""The rules on what is declared and not used."""


def check_models(compiled: CompiledProject) -> list[Finding]:
    """Returns what the rules on outputs, sources and targets find."""
    return [finding for rule in RULES for finding in rule(compiled)]


def check_use(compiled: CompiledProject) -> list[Finding]:
    """Returns what is declared and not used; only of a project without errors, which may be why nothing uses it."""
    return [finding for rule in USE_RULES for finding in rule(compiled)]


__all__ = ["RULES", "USE_RULES", "check_models", "check_use"]
