"""Rules about targets with `remote`: what sqlstream cannot do over Spark Connect, where it has no access to the JVM."""

from __future__ import annotations

from sqlstream.compiler.compiled import CompiledModel, CompiledProject, Output
from sqlstream.compiler.rules.rule import Problem, Problems, output_rule, rule
from sqlstream.project.files.paths import is_absolute, plain_path
from sqlstream.project.formats.formats import format_of

WHY = "then sqlstream writes each batch itself, in the Java process of Spark, to which Spark Connect has no access"
"""Why a sink that Spark does not write alone is refused."""

FIX = "use a target with a master, such as local[*] or spark://host:7077"


@output_rule("unsupported-target")
def own_writers(compiled: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """Over Spark Connect, only Spark's own writers can write the micro-batches of a stream."""
    target = compiled.project.target
    what = _own_work(model, output) if target.remote is not None else None
    if what is not None:
        yield Problem(
            f"`{model.name}` cannot run on target `{target.name}`, because {what}",
            WHY,
            FIX,
            model.location_of("sink"),
        )


def _own_work(model: CompiledModel, output: Output) -> str | None:
    """Returns what sqlstream has to do itself for the query of `model`, None if Spark's writer suffices."""
    facts, config = format_of(output.format), model.config
    if facts.is_database:
        return f"sink `{output.sink}` is a table of a database"
    if output.format in ("delta", "iceberg") and (config.unique_key or not model.streaming):
        return f"it merges rows into the table of sink `{output.sink}`"
    if model.writes_snapshots_to(output):
        return f"each batch replaces all rows in the files of sink `{output.sink}`"
    if model.also:
        return "`fan_out: shared` writes each batch to several sinks"
    if model.quarantine_tests:
        return "it has a quarantine"
    if model.keeps_late_rows:
        return "it keeps late rows"
    return None


@rule("unsupported-target")
def unshared_storage(compiled: CompiledProject) -> Problems:
    """Over Spark Connect, the storage must be a folder that this machine and the server share."""
    target = compiled.project.target
    if target.remote is None:
        return
    is_shared = not is_absolute(target.storage) or plain_path("/", target.storage).startswith("/")
    if not is_shared:
        yield Problem(
            f"target `{target.name}` has `remote`, and its storage is {target.storage}",
            "sqlstream reads and writes ledgers and locks there, which over Spark Connect it can only do with files",
            "use a folder that this machine and the server of Spark Connect share, or a target with a master",
            target.location,
        )
