"""Rules on `unique_key`, `delete_when` and `sequence_by`: the rows that a sink replaces and deletes."""

from __future__ import annotations

from sqlstream.compiler.compiled import CompiledModel, CompiledProject, Output
from sqlstream.compiler.rules.rule import Problem, Problems, output_rule
from sqlstream.errors import Severity
from sqlstream.project.formats.formats import format_of
from sqlstream.project.wording import did_you_mean, quoted, quoted_list


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
def settings_without_key(_: CompiledProject, model: CompiledModel, __: Output) -> Problems:
    """`delete_when` and `sequence_by` need a `unique_key`."""
    purposes = {
        "delete_when": "a row that meets the condition deletes the row of the output with the same unique_key",
        "sequence_by": "sequence_by decides which of several rows with the same unique_key counts",
    }
    for setting, purpose in purposes.items():
        if getattr(model.config, setting) and not model.config.unique_key:
            yield Problem(
                f"`{model.name}` sets {setting} but no unique_key",
                purpose,
                "add unique_key with the columns that identify a row",
                model.place_of(setting),
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
    """`unique_key`, `delete_when` and `sequence_by` have an effect only on sinks that replace or delete rows by key."""
    facts, config = format_of(output.format), model.config
    uses = (
        ("unique_key", facts.takes_keys, "only adds rows, or replaces all of them", "replace rows"),
        ("delete_when", facts.deletes_by_key or not config.unique_key, "cannot delete single rows", "delete rows"),
        ("sequence_by", facts.merges_batches, "writes rows one after the other, or has no keys", "replace rows"),
    )
    for setting, has_effect, limit, ability in uses:
        if getattr(config, setting) and not has_effect:
            yield Problem(
                f"`{model.name}` sets {setting}, which has no effect on sink `{output.sink}` of format {output.format}",
                f"this format {limit}",
                f"remove {setting}; or write to a table that can {ability}, such as format jdbc",
                model.place_of(setting),
            )
