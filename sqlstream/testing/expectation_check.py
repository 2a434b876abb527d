"""Checks that the expectations of a unit test apply to its model and its batches."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstream.compiler.compiled import CompiledModel, CompiledProject, Output
from sqlstream.errors import Finding
from sqlstream.project.formats.formats import format_of
from sqlstream.project.unit_tests.values import UnitTest
from sqlstream.project.wording import quoted
from sqlstream.testing.values import ValueReader

_OF_STREAMS = ("batches", "late_rows_dropped", "watermark", "state_rows")
"""Expectations that apply only to streams."""


def expectation_problems(
    test: UnitTest, compiled: CompiledProject, model: CompiledModel, given: int | None
) -> list[Finding]:
    """Returns findings for expectations of `test` that do not apply to `model`. `given` is the number of its batches,
    None if they have errors.
    """
    return [
        *_of_batches(test, given),
        *_of_sink(test, model),
        *([] if model.streaming else _of_static_model(test, model)),
        *_of_columns(test, compiled, model),
    ]


def _of_batches(test: UnitTest, given: int | None) -> Iterator[Finding]:
    batches = test.expect.batches
    if batches is not None and given is not None and len(batches) != given:
        what = f"{len(batches)} expected batches, but {given} given"
        why = "each entry is the output of the input batch with its number"
        fix = "use `- rows: []` for no output"
        yield Finding("unit-test-expect", what, why, fix, test.expect.places["batches"])


def _of_sink(test: UnitTest, model: CompiledModel) -> Iterator[Finding]:
    writes = model.output is not None and model.output.python is not None
    if "table" in test.expect.document.model_fields_set and table_output(model) is None:
        what = f"{quoted(model.name)} does not write to a table"
        why = "`table` is what a table or files have after all batches, and its sinks keep no rows, or are topics"
        fix = "remove `table`, and expect `rows` or `batches`"
        yield Finding("unit-test-expect", what, why, fix, test.expect.places["table"])
    if test.document.call_sink and not writes:
        what = f"{quoted(model.name)} does not write to a function"
        why = "`call_sink` calls the function of a sink with `format: python` for each batch"
        yield Finding("unit-test-expect", what, why, "remove `call_sink`", test.places.get("call_sink", test.location))


def table_output(model: CompiledModel) -> Output | None:
    """Returns the first output of a model that is files or a table, None without one."""
    found = (each for each in model.outputs if format_of(each.format).keeps_output or each.format == "table")
    return next(found, None)


def _of_static_model(test: UnitTest, model: CompiledModel) -> Iterator[Finding]:
    for key in _OF_STREAMS:
        if key in test.expect.document.model_fields_set:
            what = f"{quoted(model.name)} is not a stream, so it has no {key.replace('_', ' ')}"
            why, fix = "all of its inputs are static", f"remove `{key}`, and expect `rows`"
            yield Finding("unit-test-expect", what, why, fix, test.expect.places[key])
    if test.document.at is not None and model.file.is_python:
        what = f"{quoted(model.name)} is not a stream, so its clock cannot be set"
        why = "Spark uses the system time for a query on static tables"
        yield Finding("unit-test-expect", what, why, "remove `at`", test.places.get("at", test.location))


def _of_columns(test: UnitTest, compiled: CompiledProject, model: CompiledModel) -> list[Finding]:
    fields = compiled.known_columns(model.unique_id)
    if fields is None:
        return []
    found: list[Finding] = []
    reader = ValueReader(f"the model {quoted(model.name)}", found)
    for rows in (test.expect.rows, test.expect.table, *(test.expect.batches or ())):
        for row in rows.rows if rows else ():
            reader.row(row, fields)
    return found
