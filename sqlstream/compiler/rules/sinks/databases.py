"""Rules on sinks that are tables of a database: their keys, the types of their columns, and where a file may be."""

from __future__ import annotations

from sqlstream.compiler.compiled import CompiledModel, CompiledProject, Output
from sqlstream.compiler.rules.rule import Problem, Problems, declared_outputs, output_rule, rule
from sqlstream.project.databases.dialects import dialect_of
from sqlstream.project.files.paths import is_absolute, plain_path
from sqlstream.project.formats.formats import format_of
from sqlstream.project.types.types import type_name


@rule("relative-storage")
def embedded_files(compiled: CompiledProject) -> Problems:
    """A SQLite file is on the disk of one machine, so its target runs on one machine and stores its data there."""
    target = compiled.project.target
    outputs = {output.sink: output for output in declared_outputs(compiled) if format_of(output.format).is_embedded}
    for output in outputs.values():
        place = output.path if output.path is not None and is_absolute(output.path) else target.storage
        is_remote = not plain_path("/", place).startswith("/")
        if is_remote or not target.is_local:
            where = f"stores it at {place}" if is_remote else f"runs on {target.master}"
            yield Problem(
                f"sink `{output.sink}` writes a {output.format} file, but target `{target.name}` {where}",
                "the file must be on a disk of the machine that runs the query",
                "write to a database with format: jdbc, or use a target with a local master and a local storage",
                output.location,
            )


@output_rule("sink-schema")
def unstored_types(compiled: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """A database cannot store some types, and some of them only outside of the key."""
    dialect = dialect_of(output.format, output.options)
    keys = {key.lower() for key in model.config.unique_key}
    for column in compiled.columns.get(model.unique_id) or () if dialect is not None else ():
        if column.type is None or not type_name(column.type) or dialect is None:
            continue
        is_key = column.name.lower() in keys
        if dialect.store(column.type, is_key) is None:
            yield Problem(
                f"sink `{output.sink}` cannot write the column `{column.name}` of `{model.name}`",
                f"its type is {column.type}, which {dialect.title} cannot store" + (" in a key" if is_key else ""),
                f"use cast({column.in_sql} as string) as {column.in_sql}",
                model.place_of("sink"),
            )
