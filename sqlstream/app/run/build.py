"""`sqlstream build`: runs the unit tests of the selected models, and then their queries, as far as these end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from sqlstream.app.compile.explain_model import emission_of
from sqlstream.app.loading.artifacts import write_compiled
from sqlstream.app.loading.selected_findings import findings_of_selection
from sqlstream.app.loading.selected_queries import keep_quarantines, select_queries
from sqlstream.app.request import RunRequest, UnitTestRequest
from sqlstream.app.run.build_plan import BuildPlan, make_plan, why_skipped
from sqlstream.app.run.followers import following
from sqlstream.app.run.recorded import RecordedRun, RunOutcome, record_run
from sqlstream.app.run.selected import run_selected, selected_query, skip_all, with_named
from sqlstream.app.session.signals import StopRequestedError
from sqlstream.app.test.case_results import record_results
from sqlstream.app.test.unit_tests import TestedProject, run_chosen, unit_tests_of
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.state.runs.case_outcomes import CaseResult, Outcome
from sqlstream.state.runs.events import (
    Notice,
    QueriesSelected,
    QueryNotRun,
    QueryResult,
    QueryStarted,
    RunEvent,
    UnitTestEnded,
    UnitTestsSelected,
    UnitTestStarted,
    WarningEmitted,
)
from sqlstream.testing.cases import Case


def build_models(request: RunRequest, notify: Callable[[RunEvent], None]) -> RunOutcome:
    """Runs the unit tests of the selected models, then those of their queries that end by themselves, upstream before
    downstream, and writes the artifacts. Passes all events to `notify`.

    Skips a query if a unit test of its model, or of a model upstream, does not pass; with `fail_fast`, every query.
    Raises: FindingsError, also if nothing is left to test and to run; UsageError; KeyboardInterrupt in a unit test.
    """
    return record_run(request, "build", notify, _build_loaded)


def _build_loaded(run: RecordedRun) -> RunOutcome:
    attempt, request, record = run.attempt, run.request, run.record
    loaded = attempt.readable()
    record.load(loaded.compiled.project.target.name, partial(emission_of, loaded.compiled))
    tested = TestedProject(request.project, attempt, loaded, unit_tests_of(loaded, request.project))
    selected = select_queries(attempt, loaded, request.selection, lambda line: record(Notice(line)), tested.nodes)
    request = with_named(loaded, selected.models, request, "build")
    models, kept = keep_quarantines(loaded.compiled, selected.models, selected.chosen, request.parallel)
    request = replace(request, kept=kept)
    plan = make_plan(tested, selected.chosen, models, request)
    write_compiled(loaded, tuple(loaded.compiled.models.values()))
    for warning in (*findings_of_selection(loaded.compiled, loaded.warnings, selected.involved), *selected.unmatched):
        record(WarningEmitted(warning))
    if not selected.chosen:  # no changes since the saved state
        return RunOutcome()
    return _Build(run, request, tested, plan).run()


@dataclass(frozen=True)
class _Build:
    recorded: RecordedRun
    request: RunRequest
    tested: TestedProject
    plan: BuildPlan

    def run(self) -> RunOutcome:
        """Tests, then runs what is not skipped."""
        compiled = self.plan.loaded.compiled
        queries = QueriesSelected(tuple(selected_query(compiled, model) for model in self.plan.queries))
        self.recorded.record.expect(queries)
        tests = self._test() if self.plan.tests else ()
        for start in self.recorded.begin:
            start()
        skipped = why_skipped(self.plan, tests, fail_fast=self.request.limits.fail_fast)
        results = self._run_queries(queries, skipped) if self.plan.queries else ()
        left_out, alerts = tuple(self._leave_out()), self.recorded.record.open_alerts
        return RunOutcome(results, tests, left_out, alerts=alerts)

    def _test(self) -> tuple[CaseResult, ...]:
        """Runs the unit tests. Those that do not run because of --fail-fast are skipped.

        Raises: KeyboardInterrupt, also if a stop was requested before.
        """
        try:
            self.recorded.signals.check()
        except StopRequestedError as error:
            raise KeyboardInterrupt from error
        record, plan = self.recorded.record, self.plan
        record(UnitTestsSelected(tuple(plan.tests.values())))
        request = UnitTestRequest(self.request.project, self.request.selection, self.request.limits.fail_fast)

        def started(case: Case) -> None:
            test = plan.test_of(case.test.model, case.test.name)
            record(UnitTestStarted(test, plan.index(test.unique_id), plan.total))

        def run(cases: Sequence[Case], note: Callable[[CaseResult], None]) -> None:
            from sqlstream.app.test.case_session import run_cases  # loads pyspark

            run_cases(self.tested.loaded, request, cases, note, started)

        def ended(result: CaseResult, _total: int = 0) -> None:
            test = plan.test_of(result.model, result.name)
            record(UnitTestEnded(test, plan.index(test.unique_id), plan.total, result))

        results = run_chosen(self.tested, plan.cases, run, ended, fail_fast=request.fail_fast)
        known = {(result.model, result.name) for result in results}
        missed = [test for test in plan.cases if (test.model, test.name) not in known]
        left = tuple(CaseResult(test.name, test.model, test.location, Outcome.SKIPPED) for test in missed)
        for result in left:
            ended(result)
        record_results(self.tested.loaded, results, [test.name for test in plan.every_test])
        return (*results, *left)

    def _run_queries(self, queries: QueriesSelected, skipped: dict[str, str]) -> tuple[QueryResult, ...]:
        plan, loaded, record = self.plan, self.plan.loaded, self.recorded.record
        with following(loaded, plan.queries, self.request, record, record.problem, record.keep_lag) as followers:
            record.pass_to(followers.observers)
            record(queries)
            results: list[QueryResult] = []
            for model in plan.queries:
                if model.unique_id in skipped:
                    results += self._skip(model, skipped[model.unique_id])
            left = tuple(model for model in plan.queries if model.unique_id not in skipped)
            if left:
                self._end_jvm_of_tests()
                results += run_selected(loaded, left, self.request, self._notify, self.recorded.signals, followers)
        order = {model.unique_id: index for index, model in enumerate(plan.queries)}
        return tuple(sorted(results, key=lambda result: order[result.unique_id]))

    def _skip(self, model: CompiledModel, reason: str) -> tuple[QueryResult, ...]:
        self.recorded.record(Notice(f"{model.name} is skipped: {reason}"))
        return skip_all([model], self._notify, reason)

    def _end_jvm_of_tests(self) -> None:
        """Ends the JVM of the unit tests: the target may set another heap, other jars or another master."""
        if self.plan.tests:
            from sqlstream.spark.jvm.launch import end_jvm  # loads pyspark

            end_jvm()

    def _notify(self, event: RunEvent) -> None:
        """Records an event of the queries, numbered among all nodes of the build."""
        if isinstance(event, QueryStarted):
            unique_id = next(model.unique_id for model in self.plan.queries if model.name == event.model)
            event = replace(event, index=self.plan.index(unique_id), total=self.plan.total)
        elif isinstance(event, QueryResult):
            event = replace(event, index=self.plan.index(event.unique_id), total=self.plan.total)
        self.recorded.record(event)

    def _leave_out(self) -> Sequence[QueryNotRun]:
        """Reports the queries that never end."""
        found = [self.plan.not_run(model) for model in self.plan.endless]
        for event in found:
            self.recorded.record(event)
        return found
