"""`sqlstream test`: the unit tests of the selected models, run on Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from sqlstream.app.loading.load import Loaded, LoadOutcome, try_load
from sqlstream.app.loading.older_project import attempt_older
from sqlstream.app.loading.other_errors import errors_elsewhere, errors_of_selection
from sqlstream.app.loading.selected_findings import findings_of_selection
from sqlstream.app.loading.selecting import SelectableTest, select
from sqlstream.app.request import ProjectRequest, Selection, UnitTestRequest
from sqlstream.compiler.node_ids import model_id
from sqlstream.compiler.refusals import is_about
from sqlstream.compiler.render.yaml import make_yaml_renderer
from sqlstream.compiler.selection.select import SelectableNode
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location
from sqlstream.project.files.files import ProjectFiles
from sqlstream.project.unit_tests.declared import TESTS_FOLDER, load_unit_tests
from sqlstream.project.unit_tests.documents import OverridesDocument
from sqlstream.project.unit_tests.values import BrokenTest, UnitTest, UnitTests
from sqlstream.project.wording import quoted
from sqlstream.project.yaml import parse_yaml
from sqlstream.state.results.unit_tests import CaseResult, Outcome
from sqlstream.testing.cases import Case, build_case

UNIT_TEST = "unit_test"


@dataclass(frozen=True)
class UnitTestOutcome:
    """How the tests of `project` ended, in their order: `findings` are errors of whole files, and warnings."""

    project: str
    results: tuple[CaseResult, ...]
    findings: tuple[Finding, ...]
    seconds: float

    @property
    def succeeded(self) -> bool:
        """Whether every test passed, and every file could be read."""
        bad = any(result.outcome in (Outcome.FAILED, Outcome.BROKEN) for result in self.results)
        return not bad and not any(finding.is_error for finding in self.findings)


@dataclass(frozen=True)
class TestedProject:
    """A project with its unit tests, compiled; compiled again for cases with overrides."""

    request: ProjectRequest
    attempted: LoadOutcome
    loaded: Loaded
    tests: UnitTests

    def case(self, test: UnitTest) -> Case | tuple[Finding, ...]:
        """Returns the case of a test, or why it cannot be run."""
        overrides = test.document.overrides
        plain = overrides is None or not (overrides.vars or overrides.macros or overrides.env_vars)
        request = self.request if plain else _overridden(self.request, test)
        case = _built(test, self.attempted if plain else try_load(request))
        upgrade = test.document.upgrade_from
        if upgrade is None or not isinstance(case, Case):
            return case
        attempted = attempt_older(request, case.model.file, upgrade, test.places["upgrade_from"])
        older = _built(test, attempted, is_older=True)
        return replace(case, older=older) if isinstance(older, Case) else older

    @cached_property
    def unreadable(self) -> tuple[CaseResult, ...]:
        """The files of unit tests in which something is wrong outside of a test, each as a result of its own."""
        wrong: dict[str, list[Finding]] = {}
        for finding in self.tests.findings:
            if finding.location is not None:
                wrong.setdefault(finding.location.path, []).append(finding)
        return tuple(
            CaseResult(path, None, Location(path, 1, 1), Outcome.BROKEN, findings=tuple(findings))
            for path, findings in wrong.items()
        )

    def check_readable(self) -> None:
        """Raises: FindingsError where not all unit tests are known."""
        if self.tests.findings:
            raise FindingsError(self.tests.findings)

    @property
    def other_findings(self) -> tuple[Finding, ...]:
        """What is known about the unit tests and belongs to no result."""
        return tuple(finding for finding in self.tests.findings if finding.location is None)

    @cached_property
    def nodes(self) -> tuple[SelectableTest, ...]:
        """The unit tests as selectors see them."""
        project = self.loaded.compiled.project.name
        found = [(test.name, test.model, test.location.path, test.tags) for test in self.tests.cases]
        none: frozenset[str] = frozenset()
        found += [(test.name, test.model or "", test.location.path, none) for test in self.tests.broken]
        nodes = (
            SelectableNode(
                unique_id=unit_test_id(project, model, name),
                resource_type=UNIT_TEST,
                name=name,
                fqn=(project, *self._folders(model), model, name),
                path=path,
                tags=tags,
                config={"enabled": True, "tags": sorted(tags), "meta": {}},
            )
            for name, model, path, tags in found
        )
        models = (model_id(project, model) for _, model, _, _ in found)
        return tuple(map(SelectableTest, nodes, models))

    def _folders(self, model: str) -> tuple[str, ...]:
        found = self.loaded.compiled.models.get(model_id(self.loaded.compiled.project.name, model))
        return found.file.folders if found else ()


def _built(test: UnitTest, attempted: LoadOutcome, *, is_older: bool = False) -> Case | tuple[Finding, ...]:
    if attempted.loaded is None:
        return attempted.findings
    return build_case(test, attempted.loaded.compiled, attempted.errors, is_older=is_older)


def _overridden(request: ProjectRequest, test: UnitTest) -> ProjectRequest:
    overrides = test.document.overrides or OverridesDocument()
    return replace(
        request,
        variables={**request.variables, **overrides.vars},
        env={**request.env, **{name: _text(value) for name, value in overrides.env_vars.items()}},
        macros=overrides.macros,
        partial_parse=False,
    )


def unit_test_id(project: str, model: str, name: str) -> str:
    """Returns the unique id of a unit test, as dbt writes it."""
    return f"{UNIT_TEST}.{project}.{model}.{name}"


def open_tests(request: ProjectRequest) -> TestedProject:
    """Returns the project of `request` with its unit tests, also where rules refuse a model.

    Raises: FindingsError where a file of the project or the SQL of a model cannot be read.
    """
    attempted = try_load(request)
    loaded = attempted.readable()
    project = loaded.compiled.project
    render = make_yaml_renderer(request.env)(project.vars, project.target.name)
    tests = load_unit_tests(ProjectFiles(project.root), project.tests, render, parse_yaml)
    return TestedProject(request, attempted, loaded, tests)


def run_tests(request: UnitTestRequest, notify: Callable[[CaseResult, int], None]) -> UnitTestOutcome:
    """Runs the selected unit tests and calls `notify` with each result and the number of tests.

    Broken tests come first, before Spark starts.

    Raises: FindingsError where the project cannot be compiled, or where the selection takes no test; UsageError.
    """
    began = time.monotonic()
    project = open_tests(request.project)
    chosen, warnings = select_tests(project, request.selection)

    def run(cases: Sequence[Case], note: Callable[[CaseResult], None]) -> None:
        from sqlstream.app.unit_tests.session import run_cases  # pyspark is loaded here and not before

        run_cases(project.loaded, request, cases, note)

    results = run_chosen(project, chosen, run, notify, fail_fast=request.fail_fast)
    name = project.loaded.compiled.project.name
    return UnitTestOutcome(name, results, (*project.other_findings, *warnings), time.monotonic() - began)


RunCases = Callable[[Sequence[Case], Callable[[CaseResult], None]], None]
"""Runs cases, and tells each result."""


def run_chosen(
    project: TestedProject,
    chosen: Sequence[UnitTest | BrokenTest],
    run: RunCases,
    notify: Callable[[CaseResult, int], None],
    *,
    fail_fast: bool = False,
) -> tuple[CaseResult, ...]:
    """Returns the results of the chosen tests in their order, and calls `notify` with each.

    Files that cannot be read and tests that are not run come first; with `fail_fast` a broken one ends the run.

    `run` is called with the others, unless there are none.
    """
    results: dict[tuple[Location, str], CaseResult] = {}
    cases: list[Case] = []

    def note(result: CaseResult) -> None:
        results[result.location, result.full_name] = result
        notify(result, len(project.unreadable) + len(chosen))

    for file in project.unreadable:
        note(file)
        if fail_fast:
            return (file,)
    for test in chosen:
        known = prepare_case(project, test)
        if isinstance(known, Case):
            cases.append(known)
        else:
            note(known)
            if fail_fast and known.outcome is Outcome.BROKEN:
                return (known,)
    if cases:
        run(cases, note)
    names = ((test.location, _full_name(test)) for test in chosen)
    return (*project.unreadable, *(results[name] for name in names if name in results))


def select_tests(
    project: TestedProject, selection: Selection
) -> tuple[tuple[UnitTest | BrokenTest, ...], tuple[Finding, ...]]:
    """Returns the tests that a selection takes, the warnings about the selection and the tested models, and the errors
    of selected models that have no test among them.

    Raises: FindingsError where it takes none.
    """
    compiled = project.loaded.compiled
    try:
        ids, unmatched = select(compiled, selection, project.nodes)
    except FindingsError as error:  # what is asked for may stand in a file that cannot be read
        raise FindingsError([*project.tests.findings, *error.findings]) from error
    name = compiled.project.name
    every = ordered_tests(project)
    chosen = tuple(test for test in every if unit_test_id(name, test.model or "", test.name) in ids)
    if not chosen and not project.tests.findings:
        raise FindingsError([_no_tests(every, [compiled.models[node].name for node in ids if node in compiled.models])])
    tested = {model_id(name, test.model) for test in chosen if test.model is not None}
    errors = _untested_errors(project, frozenset(ids), tested)
    if project.attempted.errors and not errors_of_selection(project.attempted, project.loaded, {*ids, *tested}):
        project.request.notify(errors_elsewhere(len(project.attempted.errors)))
    return chosen, (*errors, *findings_of_selection(compiled, project.loaded.warnings, tested.union(ids)), *unmatched)


def _untested_errors(project: TestedProject, ids: Collection[str], tested: Collection[str]) -> tuple[Finding, ...]:
    """The errors of what is selected, but those of `tested` models: whether these are expected, their tests say."""
    compiled, errors = project.loaded.compiled, project.attempted.errors
    models = compiled.models
    if not set(compiled.graph.order).issubset(ids):
        selected = [models[node] for node in ids if node in models]
        errors = tuple(error for error in errors if any(is_about(compiled, error, model) for model in selected))
    judged = [models[node] for node in tested if node in models]
    return tuple(error for error in errors if not any(is_about(compiled, error, model) for model in judged))


def ordered_tests(project: TestedProject) -> tuple[UnitTest | BrokenTest, ...]:
    """Returns all unit tests in the order of their places."""
    every: list[UnitTest | BrokenTest] = [*project.tests.cases, *project.tests.broken]
    return tuple(sorted(every, key=lambda test: (test.location.path, test.location.line)))


def _no_tests(every: Sequence[UnitTest | BrokenTest], models: Sequence[str]) -> Finding:
    """The finding where none of the unit tests is selected, and these `models` are."""
    message = "none of the selected models has a unit test" if every else "the project has no unit test"
    message = f"{quoted(models[0])} has no unit test" if len(models) == 1 else message
    why = "a unit test feeds rows to a model and defines the expected output, in `unit_tests:` in a YAML file"
    record = f"sqlstream test --record {models[0] if models else 'MODEL'}"
    return Finding("empty-selection", message, why, f"write one in {TESTS_FOLDER}/, or record one with `{record}`")


def prepare_case(project: TestedProject, test: UnitTest | BrokenTest) -> Case | CaseResult:
    """Returns the case of a test, or the result of one that is not run: it is broken, or not enabled."""
    if isinstance(test, BrokenTest):
        return CaseResult(test.name, test.model, test.location, Outcome.BROKEN, findings=test.findings)
    if not test.enabled:
        return CaseResult(test.name, test.model, test.location, Outcome.SKIPPED)
    found = project.case(test)
    if isinstance(found, Case):
        return found
    return CaseResult(test.name, test.model, test.location, Outcome.BROKEN, findings=found)


def _full_name(test: UnitTest | BrokenTest) -> str:
    return f"{test.model}.{test.name}" if test.model else test.name


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
