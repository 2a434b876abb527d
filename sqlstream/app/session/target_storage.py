"""Finds the storage of a target, its local files, and where a version of a query writes."""

from __future__ import annotations

import posixpath
from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace

from sqlstream.app.loading.load import Loaded
from sqlstream.compiler.compiled import CompiledModel, Output
from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.files.paths import DEFAULT_FILE_SYSTEMS, join, plain_path
from sqlstream.project.formats.formats import format_of
from sqlstream.spark.secrets import Secrets, secret_names
from sqlstream.spark.storage.local import CONFIGURED_BY, LocalStorage
from sqlstream.spark.storage.s3_files import S3, SETTINGS, S3Files, unknown_credentials
from sqlstream.state.layout import output_path, output_table, query_root
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


class OnlySparkReadsError(OSError):
    """A path cannot be read without Spark."""


@dataclass(frozen=True)
class ReadableStorage:
    """The storage of a target, at the absolute path or URI `base`, as far as it can be read without Spark: files on
    this machine and on S3.
    """

    loaded: Loaded
    base: str
    _buckets: dict[str, S3Files] = field(default_factory=dict, compare=False, repr=False)

    def root_of(self, model: CompiledModel) -> str:
        """Returns the folder with the versions of a model's query."""
        return query_root(self.base, model.query_id, model.config.checkpoint)

    def local_path(self, path: str) -> str | None:
        """Returns the plain path of a file on this machine, None for another one."""
        settings = self.loaded.compiled.project.target.spark
        defaults = (str(settings.get(name, "file:")) for name in DEFAULT_FILE_SYSTEMS)
        if path.startswith("/") and not all(default.startswith("file:") for default in defaults):
            return None  # Spark looks for it on HDFS or an object store
        local = plain_path("/", path)
        return local if local.startswith("/") else None

    def can_read(self, path: str) -> bool:
        """Returns whether the files at a path can be read without Spark."""
        is_on_s3 = path.startswith(S3) and _unknown_settings(self.loaded) is None
        return is_on_s3 or self.local_path(path) is not None

    def of(self, path: str) -> tuple[LocalStorage | S3Files, str]:
        """Returns the files at a path, and the path in the form that they accept. Raises: OnlySparkReadsError."""
        local = self.local_path(path)
        if local is not None:
            return LocalStorage(), local
        if not self.can_read(path):
            raise OnlySparkReadsError(f"only Spark can read {path}: add --check")
        bucket, _, key = path.removeprefix(S3).partition("/")
        if bucket not in self._buckets:
            self._buckets[bucket] = S3Files(bucket, lambda: _s3_settings(self.loaded))
        return self._buckets[bucket], posixpath.normpath(f"{bucket}/{key}")


def readable_storage(loaded: Loaded) -> ReadableStorage | None:
    """Returns the target's storage, None if only Spark can read it."""
    found = ReadableStorage(loaded, storage_base(loaded).rstrip("/"))
    if not found.can_read(found.base):
        return None
    local = found.local_path(found.base)
    return replace(found, base=local) if local is not None and found.local_path(local) == local else found


def _unknown_settings(loaded: Loaded) -> str | None:
    """Returns why the settings of S3 are not known without Spark, None if they are."""
    env, settings = loaded.compiled.options.env, loaded.compiled.project.target.spark
    elsewhere = next((name for name in CONFIGURED_BY if env.get(name)), None)
    if elsewhere is not None:
        return f"{elsewhere} is set, so Spark may have other settings for S3 than the target"
    values = [value for name, value in settings.items() if name.startswith(SETTINGS)]
    unset = next((name for name in secret_names(values) if name not in env), None)
    return unknown_credentials(_s3_settings(loaded)) if unset is None else f"`{unset}` is not set"


def _s3_settings(loaded: Loaded) -> dict[str, str]:
    settings = loaded.compiled.project.target.spark
    return Secrets(loaded.compiled.options.env).resolve_all(
        {name: value for name, value in settings.items() if name.startswith(SETTINGS)}
    )


def unreadable_storage(loaded: Loaded, error: OSError) -> Finding:
    """Returns the finding that the storage of the target cannot be read, with the reason."""
    target = loaded.compiled.project.target
    return Finding(
        "storage-unusable",
        f"the storage `{target.storage or storage_base(loaded)}` cannot be read",
        " ".join(str(error).split()),
        f"fix storage: of target `{target.name}`, its settings in spark:, or the permissions",
        target.location,
    )


def why_only_spark(loaded: Loaded, models: Sequence[CompiledModel]) -> str | None:
    """Returns why the ledgers of `models` cannot be read without Spark, None if they can."""
    storage = ReadableStorage(loaded, storage_base(loaded).rstrip("/"))
    roots = (storage.base, *(storage.root_of(model) for model in models))
    path = next((root for root in roots if not storage.can_read(root)), None)
    if path is None:
        return None
    reason = _unknown_settings(loaded) if path.startswith(S3) else None
    return f"only Spark can read {path}" if reason is None else f"only Spark can read {path}: {reason}"


def needs_other_system(loaded: Loaded, why: str) -> Finding:
    """Returns the finding that this system cannot start Spark, which has to read the storage of the target."""
    target = loaded.compiled.project.target
    return Finding(
        "storage-unusable",
        f"the ledgers of target `{target.name}` cannot be read on Windows",
        f"{why}, and Spark starts only on Linux and macOS",
        "run the command in WSL 2",
        target.location,
    )
