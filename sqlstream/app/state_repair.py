"""`sqlstream state repair`: puts aside what was torn in a checkpoint, so that its query can go on exactly."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlstream.app.loading import Loaded, load
from sqlstream.app.ready import storage_location
from sqlstream.app.request import ProjectRequest
from sqlstream.app.session import check_java, check_target, start_brief_session, storage_base
from sqlstream.app.signals import stop_signals
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.compiler.rules.outputs import FILE_FORMATS
from sqlstream.errors import FindingsError, UsageError
from sqlstream.project.nearest import did_you_mean
from sqlstream.spark.batch_logs import archive_entry, checkpoint_damage
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.session import SparkRuntime, stop_spark
from sqlstream.spark.storage import Storage, held, read_checkpoint, storage_for, storage_problems
from sqlstream.state.damage import damage_finding
from sqlstream.state.layout import archive_path, checkpoint_path, output_path, query_root


@dataclass(frozen=True)
class Repaired:
    """What was put aside: each file, and where it lies now; none where the checkpoint was whole."""

    model: str
    moved: tuple[tuple[str, str], ...]


def repair_checkpoint(request: ProjectRequest, name: str) -> Repaired:
    """Archives what in the checkpoint of the terminal model `name` is torn and was not committed.

    Raises: FindingsError, also where the damage cannot be repaired or the query runs, and nothing is changed then;
    UsageError for a name that is no terminal model's.
    """
    loaded = load(request)
    model = _terminal_model(loaded, name)
    check_target(loaded)
    secrets = Secrets(request.env)
    with stop_signals() as signals, tempfile.TemporaryDirectory(prefix="sqlstream-") as warehouse:
        check_java(request.env, signals)
        runtime = start_brief_session(loaded, secrets, warehouse)
        try:
            wanted = query_root(storage_base(loaded), model.query_id, model.config.checkpoint)
            with storage_problems(wanted, storage_location(loaded, model), secrets):
                return Repaired(name, _repair(loaded, model, wanted, runtime))
        finally:
            stop_spark(runtime)


def _terminal_model(loaded: Loaded, name: str) -> CompiledModel:
    models = {model.name: model for model in loaded.compiled.models.values() if model.output is not None}
    if name not in models:
        raise UsageError(f"there is no terminal model `{name}`; {did_you_mean(name, models)}")
    return models[name]


def _repair(loaded: Loaded, model: CompiledModel, wanted: str, runtime: SparkRuntime) -> tuple[tuple[str, str], ...]:
    storage, root = storage_for(wanted, runtime.session)
    if not storage.exists(root):
        return ()
    with held(storage, root, model.name, model.file.location):
        return _repair_held(loaded, model, storage, root, runtime)


def _repair_held(
    loaded: Loaded, model: CompiledModel, storage: Storage, root: str, runtime: SparkRuntime
) -> tuple[tuple[str, str], ...]:
    version = read_checkpoint(storage, root).version
    if not version:
        return ()
    checkpoint = checkpoint_path(root, version)
    found = checkpoint_damage(runtime.session, checkpoint, _file_output(loaded, model, version))
    hopeless = [damage for damage in found if not damage.archive]
    if hopeless:
        raise FindingsError([damage_finding(model.name, damage, model.file.location) for damage in hopeless])
    moment = f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%SZ}"
    paths = tuple(dict.fromkeys(path for damage in found for path in damage.archive))
    return tuple(
        archive_entry(runtime.session, path, checkpoint, archive_path(root, version, moment)) for path in paths
    )


def _file_output(loaded: Loaded, model: CompiledModel, version: int) -> str | None:
    """Where the file sink of a model writes, None for other sinks."""
    output = model.output
    if output is None or output.path is None or output.format not in FILE_FORMATS:
        return None
    return output_path(storage_base(loaded), output.path, version)
