"""Finds the storage of a target, its local files, and where a version of a query writes."""

from __future__ import annotations

from collections.abc import Container

from sqlstream.app.loading.load import Loaded
from sqlstream.compiler.compiled import CompiledModel, Output
from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.files.paths import join, plain_path
from sqlstream.project.formats.formats import format_of
from sqlstream.spark.storage.local import LocalStorage
from sqlstream.state.layout import output_path, output_table
from sqlstream.state.query_versions import versioned_path, versioned_sqlite_path


def storage_location(loaded: Loaded, model: CompiledModel) -> Location:
    """Returns the location of the setting for the checkpoint of `model`: in the model, or else in the target."""
    return model.config_locations.get("checkpoint", loaded.compiled.project.target.location)


def storage_base(loaded: Loaded) -> str:
    """Returns the target's storage as an absolute path or URI."""
    project = loaded.compiled.project
    return join(str(project.root), project.target.storage)


def versioned_output(loaded: Loaded, output: Output, version: int, published: Container[str]) -> str | None:
    """Returns the path, URI or table to which version `version` of a query writes, None for sinks without one.
    `published` are the plain paths and tables that show readers the current version.
    """
    table = output.table or output.database_table
    if table is not None:
        return output_table(table, version, is_published=table in published)
    if output.path is None:
        return None
    versioned = versioned_sqlite_path if format_of(output.format).is_embedded else versioned_path
    return versioned(sink_path(loaded, output.path), version, is_published=output.path in published)


def sink_path(loaded: Loaded, path: str) -> str:
    """Returns the absolute path or URI of the path of a sink."""
    return output_path(storage_base(loaded), path)


def files_of(path: str) -> tuple[LocalStorage, str]:
    """Returns the files at a local path, and the path."""
    return LocalStorage(), path


def local_storage(loaded: Loaded) -> str | None:
    """Returns the folder of the target's storage, None if it is not on the local file system."""
    project = loaded.compiled.project
    folder = plain_path(str(project.root), project.target.storage)
    return folder if folder.startswith("/") else None


def remote_storage(loaded: Loaded, command: str) -> Finding:
    """Returns the finding that `command` cannot read the storage of the target without Spark."""
    target = loaded.compiled.project.target
    return Finding(
        "storage-unusable",
        f"the ledgers of target `{target.name}` are in {target.storage}, which only Spark can read",
        f"without --check, `{command}` starts no Spark, so it reads only local storage",
        "add --check",
        target.location,
    )
