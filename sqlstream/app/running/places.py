"""Finds where a version of a query writes."""

from __future__ import annotations

from sqlstream.app.loading.load import Loaded
from sqlstream.app.running.session import storage_base
from sqlstream.compiler.compiled import Output
from sqlstream.state.layout import output_path, output_table
from sqlstream.state.versions.places import place_of


def place_of_output(loaded: Loaded, output: Output, version: int) -> str | None:
    """Returns the path, URI or table to which version `version` of a query writes, None for sinks without one."""
    table = output.table or output.database_table
    if table is not None:
        return output_table(table, version)
    return None if output.path is None else place_of_path(loaded, output.path, version)


def place_of_path(loaded: Loaded, path: str, version: int) -> str:
    """Returns the same for the path of a sink."""
    return place_of(output_path(storage_base(loaded), path), version)
