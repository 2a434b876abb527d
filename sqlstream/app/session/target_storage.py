"""Finds the storage of a target, its local files, and where a version of a query writes."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

from sqlstream.app.loading.load import Loaded
from sqlstream.compiler.compiled import CompiledModel, Output
from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.files.paths import DEFAULT_FILE_SYSTEM, join, plain_path
from sqlstream.project.formats.formats import format_of
from sqlstream.spark.secrets import Secrets, secret_names
from sqlstream.spark.storage.local import CONFIGURED_BY, LocalStorage
from sqlstream.spark.storage.s3_files import S3, SETTINGS, S3Files
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


@dataclass(frozen=True)
class ReadableStorage:
    """The storage of a target, at the absolute path or URI `base`, as far as it can be read without Spark: files on
    this machine and on S3.
    """

    loaded: Loaded
    base: str
    _buckets: dict[str, S3Files] = field(default_factory=dict, compare=False, repr=False)

    @property
    def is_local(self) -> bool:
        """Whether the storage is on this machine."""
        return self.base.startswith("/")

    def can_read(self, path: str) -> bool:
        """Returns whether the files at a path can be read without Spark."""
        return plain_path("/", path).startswith("/") or (path.startswith(S3) and _unknown_settings(self.loaded) is None)

    def of(self, path: str) -> tuple[LocalStorage | S3Files, str]:
        """Returns the files at a path, and the path in the form that they accept. Raises: OSError."""
        local = plain_path("/", path)
        if local.startswith("/"):
            return LocalStorage(), local
        if not self.can_read(path):
            raise OSError(f"only Spark can read {path}: add --check")
        key = path.removeprefix(S3)
        bucket = key.partition("/")[0]
        if bucket not in self._buckets:
            self._buckets[bucket] = S3Files(bucket, lambda: _s3_settings(self.loaded))
        return self._buckets[bucket], key


def readable_storage(loaded: Loaded) -> ReadableStorage | None:
    """Returns the target's storage, None if only Spark can read it."""
    base, settings = storage_base(loaded), loaded.compiled.project.target.spark
    if base.startswith("/") and not str(settings.get(DEFAULT_FILE_SYSTEM, "file:")).startswith("file:"):
        return None  # Spark looks for it on HDFS or an object store
    local = plain_path("/", base)
    found = ReadableStorage(loaded, local if local.startswith("/") else base)
    return found if found.can_read(found.base) else None


def _unknown_settings(loaded: Loaded) -> str | None:
    """Returns why the settings of S3 are not known without Spark, None if they are."""
    env, settings = loaded.compiled.options.env, loaded.compiled.project.target.spark
    elsewhere = next((name for name in CONFIGURED_BY if env.get(name)), None)
    if elsewhere is not None:
        return f"{elsewhere} is set, so Spark may have other settings of S3 than the target"
    values = [value for name, value in settings.items() if name.startswith(SETTINGS)]
    unset = next((name for name in secret_names(values) if name not in env), None)
    return None if unset is None else f"`{unset}` is not set"


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


def remote_storage(loaded: Loaded, command: str) -> Finding:
    """Returns the finding that `command` cannot read the storage of the target without Spark."""
    target = loaded.compiled.project.target
    reason = _unknown_settings(loaded) if storage_base(loaded).startswith(S3) else None
    reason_text = f"and {reason}" if reason else "so it reads only files on this machine and on S3"
    return Finding(
        "storage-unusable",
        f"the ledgers of target `{target.name}` are in {target.storage}, which only Spark can read",
        f"without --check, `{command}` starts no Spark, {reason_text}",
        "add --check",
        target.location,
    )
