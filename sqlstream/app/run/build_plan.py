"""What a build does with each selected node: which unit tests and queries run, and which queries are skipped."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlstream.app.loading.load import Loaded
from sqlstream.app.loading.selected_queries import is_quarantine
from sqlstream.app.request import RunRequest
from sqlstream.app.run.recorded import BAD
from sqlstream.app.run.selected import with_trigger
from sqlstream.app.test.unit_tests import TestedProject, is_enabled, ordered_tests, selected_test, unit_test_id
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.compiler.graph import UNIT_TEST, model_id
from sqlstream.errors import Finding, FindingsError
from sqlstream.numbers import plural
from sqlstream.project.unit_tests.unit_test import BrokenTest, UnitTest
from sqlstream.project.wording import quoted
from sqlstream.state.runs.case_outcomes import CaseResult
from sqlstream.state.runs.events import QueryNotRun, SelectedTest


@dataclass(frozen=True)
class BuildPlan:
    """A build before it starts: the unit tests (`cases`) in the order of their models, the `queries` that run after
    them, and the `endless` ones that do not run. `loaded` has the triggers with which they run.
    """

    loaded: Loaded
    cases: tuple[UnitTest | BrokenTest, ...]
    every_test: tuple[SelectedTest, ...]
    queries: tuple[CompiledModel, ...]
    endless: tuple[CompiledModel, ...]

    @cached_property
    def tests(self) -> Mapping[str, SelectedTest]:
        """The unit tests that run, by unique id."""
        found = (selected_test(self.loaded.compiled.project.name, test) for test in self.cases)
        return {test.unique_id: test for test in found}

    @cached_property
    def _indexes(self) -> Mapping[str, int]:
        nodes = (*self.tests, *(model.unique_id for model in (*self.queries, *self.endless)))
        return {node: index for index, node in enumerate(nodes, start=1)}

    @property
    def total(self) -> int:
        """The number of nodes."""
        return len(self._indexes)

    def index(self, unique_id: str) -> int:
        """Returns the number of a node, from 1: unit tests first, then queries."""
        return self._indexes[unique_id]

    def test_of(self, model: str | None, name: str) -> SelectedTest:
        """Returns a unit test."""
        return self.tests[unit_test_id(self.loaded.compiled.project.name, model or "", name)]

    def not_run(self, model: CompiledModel) -> QueryNotRun:
        """Returns the event for an endless query."""
        trigger = str(model.config.trigger)
        index = self.index(model.unique_id)
        return QueryNotRun(model.name, model.unique_id, index, self.total, trigger, why_endless(trigger))


def why_endless(trigger: str) -> str:
    """Returns why a build does not run a query with this trigger."""
    return f"its trigger `{trigger}` never ends; use --available-now, or start it with `sqlstream run`"


def make_plan(
    tested: TestedProject, chosen: Collection[str], models: tuple[CompiledModel, ...], request: RunRequest
) -> BuildPlan:
    """Returns the plan of a build of the `chosen` nodes and their terminal `models`.

    Raises: FindingsError if nothing is left to test or to run, if a unit test file cannot be read, or if a query cannot
    have the trigger `available_now`.
    """
    loaded, project = tested.loaded, tested.loaded.compiled.project.name
    every = [(selected_test(project, test), test) for test in ordered_tests(tested)]
    cases = [test for selected, test in every if selected.unique_id in chosen and is_enabled(test)]
    if cases or request.selection.has_type(UNIT_TEST):  # a file that cannot be read may test what runs
        tested.check_readable()
    rank = {node: index for index, node in enumerate(loaded.compiled.graph.order)}
    cases.sort(key=lambda test: rank.get(model_id(project, test.model or ""), -1))
    ending = models if request.available_now else tuple(each for each in models if each.ends or is_quarantine(each))
    loaded, ending = with_trigger(loaded, ending, request)
    queries = tuple(model for model in ending if model.ends)
    running = {model.unique_id for model in queries}
    endless = tuple(model for model in models if model.unique_id not in running)
    if chosen and not cases and not queries:
        raise FindingsError([_nothing(endless, chosen)])
    return BuildPlan(loaded, tuple(cases), tuple(selected for selected, _ in every), queries, endless)


def _nothing(endless: Sequence[CompiledModel], chosen: Collection[str]) -> Finding:
    if not endless:
        return Finding(
            "nothing-to-build",
            f"the selection ({plural(len(chosen), 'node')}) has no unit test and no model with a sink",
            "`build` runs unit tests, and the queries of models with a sink",
            "select other models, or write unit tests; `sqlstream ls` lists what a selection contains",
        )
    first = endless[0]
    others = f" and {plural(len(endless) - 1, 'other')}" if len(endless) > 1 else ""
    return Finding(
        "nothing-to-build",
        f"{quoted(first.name)}{others} would never end, and the selection has no unit test",
        f"the trigger of {quoted(first.name)} is `{first.config.trigger}`, and `build` runs only queries that end by "
        "themselves",
        "use --available-now to process the available input, or start endless queries with `sqlstream run`",
        first.location_of("trigger"),
    )


def why_skipped(plan: BuildPlan, results: Sequence[CaseResult], *, fail_fast: bool) -> dict[str, str]:
    """Returns the queries that the `results` of unit tests skip, by unique id, with the reason.

    These are the queries of models whose unit tests did not pass, and all queries downstream; with `fail_fast`, all.
    """
    compiled = plan.loaded.compiled
    failed = [result for result in results if result.outcome in BAD]
    if failed and fail_fast:
        why = f"unit test {failed[0].full_name} did not pass, and --fail-fast is set"
        return {model.unique_id: why for model in plan.queries}
    by_model: dict[str, str] = {}
    for result in failed:
        if result.model is not None:
            by_model.setdefault(model_id(compiled.project.name, result.model), result.full_name)
    skipped: dict[str, str] = {}
    for model in plan.queries:
        bad = next((node for node in (model.unique_id, *_upstream(plan, model)) if node in by_model), None)
        if bad is not None:
            skipped[model.unique_id] = f"unit test {by_model[bad]} did not pass"
    return skipped


def _upstream(plan: BuildPlan, model: CompiledModel) -> list[str]:
    """Returns the nodes upstream, also those of stored outputs, the nearest last."""
    ancestors = plan.loaded.compiled.graph.ancestors(model.unique_id)
    return [node for node in plan.loaded.compiled.graph.order if node in ancestors]
