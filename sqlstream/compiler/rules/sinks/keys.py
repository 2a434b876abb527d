"""Rules on `unique_key`, `delete_when` and `sequence_by`: the rows that a sink replaces and deletes."""

from __future__ import annotations

from sqlstream.compiler.compiled import CompiledModel, CompiledProject, Output
from sqlstream.compiler.rules.rule import Problem, Problems, output_rule
from sqlstream.errors import Severity
from sqlstream.project.formats.formats import format_of
from sqlstream.project.nearest import did_you_mean
from sqlstream.project.wording import quoted, quoted_list


@output_rule("unknown-column")
def columns_of_keys(compiled: CompiledProject, model: CompiledModel, _: Output) -> Problems:
    """The columns of `unique_key` and `sequence_by` must be columns of the model."""
    columns = compiled.columns.get(model.unique_id)
    names = [column.name for column in columns or ()]
    known = {name.lower() for name in names}
    settings = {"unique_key": model.config.unique_key, "sequence_by": model.config.sequence_by}
    given = ((setting, key) for setting, keys in settings.items() for key in keys if columns is not None)
    for setting, key in given:
        if key.lower() not in known:
            yield Problem(
                f"`{model.name}` has the {setting} {quoted(key)}, which is not one of its columns",
                f"the columns of `{model.name}` are {quoted_list(names)}",
                did_you_mean(key, names),
                model.place_of(setting),
            )


@output_rule("missing-key")
def deleting_without_key(_: CompiledProject, model: CompiledModel, __: Output) -> Problems:
    """`delete_when` and `sequence_by` need a `unique_key`."""
    if model.config.sequence_by and not model.config.unique_key:
        yield Problem(
            f"`{model.name}` sets sequence_by but no unique_key",
            "sequence_by decides which of several rows with the same unique_key counts",
            "add unique_key with the columns that identify a row",
            model.place_of("sequence_by"),
        )
    if model.config.delete_when is not None and not model.config.unique_key:
        yield Problem(
            f"`{model.name}` sets delete_when but no unique_key",
            "a row that meets the condition deletes the row of the output with the same unique_key",
            "add unique_key with the columns that identify a row",
            model.place_of("delete_when"),
        )


@output_rule("missing-key")
def updates_without_key(_: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """A table or a database needs a `unique_key` to replace the rows that a batch of update mode changes."""
    facts, config = format_of(output.format), model.config
    needs_key = facts.is_database or facts.updates_by_key
    if needs_key and model.streaming and config.output_mode == "update" and not config.unique_key:
        yield Problem(
            f"`{model.name}` streams in update mode into sink `{output.sink}` of format {output.format}, but has no "
            "unique_key",
            "each batch has the changed rows, and the key decides which rows of the table they replace",
            "add unique_key with the columns that identify a row, usually those of GROUP BY",
            model.place_of("output_mode"),
        )


@output_rule("unused-config", severity=Severity.WARNING)
def unused_keys(_: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """`unique_key` and `delete_when` have an effect only on a sink that can replace and delete rows."""
    if model.config.unique_key and not format_of(output.format).takes_keys:
        yield Problem(
            f"`{model.name}` sets unique_key, which has no effect on sink `{output.sink}` of format {output.format}",
            "this format only adds rows, or replaces all of them",
            "remove unique_key; or write to a table that can replace rows, such as format jdbc",
            model.place_of("unique_key"),
        )
    if model.config.delete_when is not None and model.config.unique_key and not format_of(output.format).deletes_by_key:
        yield Problem(
            f"`{model.name}` sets delete_when, which has no effect on sink `{output.sink}` of format {output.format}",
            "this format deletes no rows",
            "remove delete_when; or write to a table that can delete rows, such as format jdbc",
            model.place_of("delete_when"),
        )


@output_rule("unused-config", severity=Severity.WARNING)
def unused_sequences(_: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """`sequence_by` has an effect only on a sink that applies the rows of a batch all at once."""
    if model.config.sequence_by and not format_of(output.format).merges_batches:
        yield Problem(
            f"`{model.name}` sets sequence_by, which has no effect on sink `{output.sink}` of format {output.format}",
            "this format takes the rows one after the other, or has no keys",
            "remove sequence_by",
            model.place_of("sequence_by"),
        )
