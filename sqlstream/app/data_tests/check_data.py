"""Checks the data tests of the selected models on the rows that their sinks hold."""

from __future__ import annotations

import time
from collections.abc import Callable

from sqlstream.app.data_tests.results import (
    DataTestRequest,
    DataTestResult,
    DataTestResults,
    DataTestStatus,
    TestedModel,
    not_checked,
)
from sqlstream.app.data_tests.selectable_tests import selectable_tests
from sqlstream.app.last_command import ShortCommand, project_arguments, selection_arguments
from sqlstream.app.loading.load import load
from sqlstream.app.loading.selecting import select
from sqlstream.app.session.signals import interruptible
from sqlstream.compiler.compiled import CompiledModel, CompiledProject, Output
from sqlstream.compiler.graph import data_test_id
from sqlstream.errors import Finding, FindingsError
from sqlstream.project.formats.formats import format_of
from sqlstream.project.values import SourceTable
from sqlstream.project.wording import quoted, quoted_list

Notify = Callable[[DataTestResult, int], None]
"""Gets each result with the number of all tests."""


def check_data(request: DataTestRequest, notify: Notify = lambda _result, _total: None) -> DataTestResults:
    """Returns the result of each data test of the selected models, on the rows that their sinks hold now. Works during
    a run. target/run_results.json has the results, too.

    Starts Spark only if a sink can be read. A test that cannot be checked is a result, too.
    Raises: FindingsError if the project or the selection is invalid, or Spark cannot start; UsageError;
    KeyboardInterrupt.
    """
    began = time.monotonic()
    loaded = load(request.project)
    tested, warnings = _chosen(loaded.compiled, request)
    project = loaded.compiled.project
    waiting = {each.unique_id: each for item in tested for each in not_checked(project.name, item)}
    command = ShortCommand(project.root, project.target.name, data_test_arguments(request))
    command.write([{**each.as_json(), "status": "pending"} for each in waiting.values()], succeeded=None)
    found: dict[str, DataTestResult] = {}

    def note(result: DataTestResult) -> bool:
        """Records a result, and returns whether the next test may start."""
        found[result.unique_id] = result
        notify(result, len(waiting))
        return not request.fail_fast or result.status not in (DataTestStatus.FAIL, DataTestStatus.ERROR)

    for item in tested:
        if not item.can_be_read:
            for result in not_checked(project.name, item):
                note(result)
    readable = [item for item in tested if item.can_be_read]
    if readable:
        from sqlstream.app.data_tests.stored_models import check_models  # loads pyspark

        with interruptible() as signals:
            check_models(loaded, request, readable, signals, note)
    results = DataTestResults(
        [found.get(unique_id, each) for unique_id, each in waiting.items()], warnings, time.monotonic() - began
    )
    command.write([each.as_json() for each in results.results], results.succeeded, warnings)
    return results


def data_test_arguments(request: DataTestRequest) -> dict[str, object]:
    """Returns the arguments of `test --data` as run_results.json records them."""
    return {
        "which": "test",
        **project_arguments(request.project),
        **selection_arguments(request.selection),
        "data": True,
        "fail_fast": request.fail_fast,
        "store_failures": request.store_failures,
    }


def _chosen(compiled: CompiledProject, request: DataTestRequest) -> tuple[list[TestedModel], tuple[Finding, ...]]:
    """Returns the selected models with data tests. Raises: FindingsError if there is none."""
    nodes, warnings = select(compiled, request.selection, selectable_tests(compiled))
    chosen, project = frozenset(nodes), compiled.project.name
    models = [compiled.models[node] for node in nodes if node in compiled.models]
    tested = []
    for model in compiled.models.values():
        tests = tuple(test for test in model.file.data_tests if data_test_id(project, model.name, test.name) in chosen)
        if tests and model.file.rows_of is None:
            tested.append(TestedModel(model, tests, *_readable(compiled, model), _static_source(compiled, model)))
    if not tested:
        message = "none of the selected models has a data test"
        if len(models) == 1:
            message = f"{quoted(models[0].name)} has no data test"
        why = "`data_tests:` of a model or a column in a YAML file are the rules for its rows"
        fix = "add one, for example `data_tests: [not_null, unique]` to a column"
        raise FindingsError([Finding("empty-selection", message, why, fix)])
    return tested, warnings


def _readable(compiled: CompiledProject, model: CompiledModel) -> tuple[Output | None, str]:
    """Returns the first sink of a model whose rows can be read, or None and why there is none."""
    if model.file.tests is not None:
        is_static = _static_source(compiled, model) is not None
        return None, "" if is_static else f"source `{model.file.tests}` is a stream; test the models that read it"
    if not model.outputs:
        return None, "it is a view: it has no sink; test the models that read it"
    outputs = [output for output in model.outputs if format_of(output.format).keeps_output]
    if not outputs:
        names = quoted_list([f"{output.sink} ({output.format})" for output in model.outputs])
        return None, f"the rows of {names} cannot be read; sqlstream can read files, lakehouse tables and databases"
    others = [each.name for each in compiled.models.values() if each != model and _writes_to(each, outputs[0])]
    if others:
        return None, f"{quoted_list(others)} also write to this place, so its rows are not only those of this model"
    return outputs[0], ""


def _static_source(compiled: CompiledProject, model: CompiledModel) -> SourceTable | None:
    """Returns the static table whose rows the tests of a model are about, None for the tests of other models."""
    table = compiled.tables[model.reads[0].node_id] if model.file.tests is not None else None
    return table if table is not None and table.mode == "batch" else None


def _writes_to(model: CompiledModel, output: Output) -> bool:
    place = (output.format, output.path, output.table, output.database_table, output.options)
    return any((o.format, o.path, o.table, o.database_table, o.options) == place for o in model.outputs)
