"""`sqlstream test --record`: writes a case from real rows of a model's inputs and the rows that it emits for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace

from sqlstream.app.request import Selection, UnitTestRequest
from sqlstream.app.session.signals import interruptible
from sqlstream.app.show.show_session import Previews
from sqlstream.app.test.case_file import GivenRows, NewCase, RowMasker, free_name, masked_columns, run_case, write_case
from sqlstream.app.test.unit_tests import TestedProject, UnitTestOutcome, open_tests
from sqlstream.app.test.update import update_expectations, updated_line
from sqlstream.compiler.allowances import lowered_by_rules
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.errors import Finding, FindingsError, Severity
from sqlstream.project.unit_tests.unit_test import BrokenTest, UnitTest
from sqlstream.project.wording import did_you_mean
from sqlstream.spark.secrets import Secrets
from sqlstream.state.runs.case_outcomes import NOTHING, CaseResult, Outcome
from sqlstream.state.shown_rows import ShownRows

RECORDED = "recorded"
"""The name of the first recorded case. The next ones are recorded_2 and so on."""


def record_case(request: UnitTestRequest, name: str, limit: int, notify: Callable[[str], None]) -> UnitTestOutcome:
    """Writes a case of the model `name` into tests/models/, with at most `limit` rows of each input, and runs it.

    Returns the result, with a warning if the case expects no rows. Raises: FindingsError, UsageError.
    """
    project = open_tests(request.project)
    compiled = project.loaded.compiled
    model = _model_named(compiled, name)
    name = model.name
    shown = _input_rows(project, model, limit, notify)
    every: tuple[UnitTest | BrokenTest, ...] = (*project.tests.cases, *project.tests.broken)
    case = free_name(RECORDED, [test.name for test in every if test.model == name])
    given = [GivenRows(rows.unique_id, (rows,), masked_columns(compiled, rows.unique_id)) for rows in shown]
    path = write_case(compiled, NewCase(name, case, given), RowMasker(Secrets(request.project.env)), RECORDED)
    notify(f"Wrote {path}: {name}.{case}")
    only = replace(request, selection=Selection((f"unit_test:{name}.{case}",)), explains=True)
    outcome = run_case(only, path)
    (result,) = outcome.results
    if result.outcome is Outcome.PASSED:  # the model emits no rows, and so far the case expects none
        warnings = lowered_by_rules(compiled.project, [_expects_nothing(result, shown, limit)])
        return replace(outcome, findings=(*outcome.findings, *warnings))
    for line in update_expectations(request.project.folder, outcome.results):
        if line != updated_line(path):  # the user has read "Wrote"
            notify(line)
    return run_case(only, path)


def _model_named(compiled: CompiledProject, name: str) -> CompiledModel:
    model = compiled.model_named(name)
    if model is not None:
        return model
    names = [each.name for each in compiled.models.values()]
    what, why = f"there is no model `{name}`", "--record needs the name of a model"
    raise FindingsError([Finding("unit-test-model", what, why, did_you_mean(name, names))])


def _input_rows(
    project: TestedProject, model: CompiledModel, limit: int, notify: Callable[[str], None]
) -> tuple[ShownRows, ...]:
    """Returns the first rows of each input of `model`."""
    nodes = tuple(dict.fromkeys(read.node_id for read in model.reads))
    with interruptible() as signals, closing(Previews(project.request.env, notify, signals)) as previews:
        return previews.show(project.loaded, nodes, limit)


def _expects_nothing(result: CaseResult, shown: Sequence[ShownRows], limit: int) -> Finding:
    is_cut = any(rows.is_cut for rows in shown)
    more = f"delete it and record more rows with --limit {10 * limit}, or " if is_cut else ""
    return Finding(
        "unit-test-empty",
        f"`{result.full_name}` expects no rows, so the test can hardly fail",
        f"the model emitted no rows: {result.notes.get(NOTHING, 'the reason is unknown')}",
        f"{more}add rows to `given` and run `sqlstream test --update --select {result.selector}`",
        result.location,
        severity=Severity.WARNING,
    )
