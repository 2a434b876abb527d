"""`sqlstream test --coverage`: finds models and columns that no unit test checks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlstream.app.loading.selecting import select
from sqlstream.app.request import UnitTestRequest
from sqlstream.app.test.unit_tests import TestedProject, open_tests
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.project.unit_tests.unit_test import UnitTest
from sqlstream.state.runs.case_outcomes import Coverage, ModelCoverage


def find_coverage(request: UnitTestRequest) -> Coverage:
    """Returns the coverage of the selected models, sorted by name.

    Raises: FindingsError, also if a unit test file cannot be read; UsageError.
    """
    project = open_tests(request.project)
    project.check_readable()
    compiled = project.loaded.compiled
    models, _ = select(compiled, request.selection)
    chosen = (compiled.models[node] for node in models if node in compiled.models)
    return Coverage(tuple(sorted((_of(project, model) for model in chosen), key=lambda each: each.model)))


def _of(project: TestedProject, model: CompiledModel) -> ModelCoverage:
    tests = [test for test in project.tests.cases if test.enabled and test.model == model.name]
    known = project.loaded.compiled.columns.get(model.unique_id)
    columns = tuple(column.name for column in known) if known is not None else ()
    checked = {name.casefold() for test in tests for name in _checked_columns(test, columns)}
    unchecked = tuple(column for column in columns if column.casefold() not in checked)
    return ModelCoverage(model.name, model.file.path, len(tests), columns, unchecked)


def _checked_columns(test: UnitTest, columns: Sequence[str]) -> Iterable[str]:
    """Returns the columns whose values a test checks: all of them, unless its expected rows are partial."""
    expected = test.expect
    written = [rows for rows in (expected.rows, expected.table, *(expected.batches or ())) if rows is not None]
    if not any(rows.rows or rows.sql is not None for rows in written):
        return ()
    if not expected.document.partial or any(rows.sql is not None for rows in written):
        return columns
    return (entry.key for rows in written for row in rows.rows for entry in row.entries)
