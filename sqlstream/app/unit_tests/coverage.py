"""`sqlstream test --coverage`: which models and columns no unit test states."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlstream.app.loading.selecting import select
from sqlstream.app.request import UnitTestRequest
from sqlstream.app.test import TestedProject, open_tests
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.project.unit_tests.fixtures import Rows
from sqlstream.project.unit_tests.values import UnitTest
from sqlstream.state.results.unit_tests import Coverage, ModelCoverage


def find_coverage(request: UnitTestRequest) -> Coverage:
    """Returns the coverage of the selected models, in the order of their names.

    Raises: FindingsError, also where a file of unit tests cannot be read; UsageError.
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
    stated = {name.casefold() for test in tests for name in _stated(test, columns)}
    left = tuple(column for column in columns if column.casefold() not in stated)
    return ModelCoverage(model.name, model.file.path, len(tests), columns, left)


def _stated(test: UnitTest, columns: Sequence[str]) -> Iterable[str]:
    """The columns whose values a test states: all of them where its expected rows are compared whole."""
    expected = test.expect
    written = [rows for rows in (expected.rows, *(expected.batches or ())) if rows is not None]
    if not any(_has_rows(rows) for rows in written):
        return ()
    if not expected.document.partial or any(rows.sql is not None for rows in written):
        return columns
    return (entry.key for rows in written for row in rows.rows for entry in row.entries)


def _has_rows(rows: Rows) -> bool:
    return bool(rows.rows) or rows.sql is not None
