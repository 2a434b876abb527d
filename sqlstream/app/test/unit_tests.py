"""`sqlstream test`: runs the unit tests of the selected models on Spark."""

from __future__ import annotations

import io
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path

from sqlstream.app.loading.load import LoadAttempt, Loaded, try_load
from sqlstream.app.loading.selected_findings import findings_of_selection, selected_errors, unselected_errors_line
from sqlstream.app.loading.selecting import SelectableTest, select
from sqlstream.app.request import ProjectRequest, Selection, UnitTestRequest
from sqlstream.app.test.case_results import record_results
from sqlstream.compiler.graph import UNIT_TEST, model_id
from sqlstream.compiler.render.yaml import make_yaml_renderer
from sqlstream.compiler.selection.select import SelectableNode
from sqlstream.compiler.spark_findings import is_about
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location
from sqlstream.project.files.files import ProjectFiles, find_project_root
from sqlstream.project.unit_tests.declared import TESTS_FOLDER, load_unit_tests
from sqlstream.project.unit_tests.unit_test import BrokenTest, UnitTest, UnitTests
from sqlstream.project.unit_tests.unit_test_documents import OverridesDocument, UpgradeDocument
from sqlstream.project.values import ModelFile
from sqlstream.project.wording import quoted
from sqlstream.state.runs.case_outcomes import CaseResult, Outcome
from sqlstream.state.runs.events import SelectedTest
from sqlstream.testing.cases import Case, build_case

RunCases = Callable[[Sequence[Case], Callable[[CaseResult], None]], None]
"""Runs cases, and passes each result to the callback."""


@dataclass(frozen=True)
class UnitTestOutcome:
    """The results of the tests of `project`, in their order. `findings` are errors in whole files, and warnings."""

    project: str
    results: tuple[CaseResult, ...]
    findings: tuple[Finding, ...]
    seconds: float

    @property
    def succeeded(self) -> bool:
        """Whether no test failed, and every file could be read."""
        bad = any(result.outcome in (Outcome.FAILED, Outcome.BROKEN) for result in self.results)
        return not bad and not any(finding.is_error for finding in self.findings)


@dataclass(frozen=True)
class TestedProject:
    """A compiled project with its unit tests. It is compiled again for cases with overrides."""

    request: ProjectRequest
    attempt: LoadAttempt
    loaded: Loaded
    tests: UnitTests

    def case(self, test: UnitTest) -> Case | tuple[Finding, ...]:
        """Returns the case of a test, or the findings that keep it from running."""
        overrides = test.document.overrides
        plain = overrides is None or not (overrides.vars or overrides.macros or overrides.env_vars)
        request = self.request if plain else _overridden(self.request, test)
        case = _built(test, self.attempt if plain else try_load(request))
        upgrade = test.document.upgrade_from
        if upgrade is None or not isinstance(case, Case):
            return case
        attempt = load_older_project(request, case.model.file, upgrade, test.locations["upgrade_from"])
        older = _built(test, attempt, is_older=True)
        return replace(case, older=older) if isinstance(older, Case) else older

    @cached_property
    def unreadable(self) -> tuple[CaseResult, ...]:
        """One result for each unit test file with errors outside of a test."""
        by_file: dict[str, list[Finding]] = {}
        for finding in self.tests.findings:
            if finding.location is not None:
                by_file.setdefault(finding.location.path, []).append(finding)
        return tuple(
            CaseResult(path, None, Location(path, 1, 1), Outcome.BROKEN, findings=tuple(findings))
            for path, findings in by_file.items()
        )

    def check_readable(self) -> None:
        """Raises: FindingsError if a unit test file could not be read."""
        if self.tests.findings:
            raise FindingsError(self.tests.findings)

    @property
    def other_findings(self) -> tuple[Finding, ...]:
        """The findings about unit tests that belong to no result."""
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


def _built(test: UnitTest, attempt: LoadAttempt, *, is_older: bool = False) -> Case | tuple[Finding, ...]:
    if attempt.loaded is None:
        return attempt.findings
    return build_case(test, attempt.loaded.compiled, attempt.errors, is_older=is_older)


def _overridden(request: ProjectRequest, test: UnitTest) -> ProjectRequest:
    overrides = test.document.overrides or OverridesDocument()
    return replace(
        request,
        variables={**request.variables, **overrides.vars},
        env={**request.env, **{name: _text(value) for name, value in overrides.env_vars.items()}},
        macros=overrides.macros,
        partial_parse=False,  # the cache is of the project without overrides
    )


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def unit_test_id(project: str, model: str, name: str) -> str:
    """Returns the unique id of a unit test, as in dbt."""
    return f"{UNIT_TEST}.{project}.{model}.{name}"


def selected_test(project: str, test: UnitTest | BrokenTest) -> SelectedTest:
    """Returns a unit test as the events of a build describe it."""
    return SelectedTest(_full_name(test), unit_test_id(project, test.model or "", test.name), test.model)


def is_enabled(test: UnitTest | BrokenTest) -> bool:
    """Returns whether a test is not disabled."""
    return isinstance(test, BrokenTest) or test.enabled


def open_tests(request: ProjectRequest) -> TestedProject:
    """Returns the project of `request` with its unit tests, even if rules refuse a model.

    Raises: FindingsError if a file of the project or the SQL of a model cannot be read.
    """
    attempt = try_load(request)
    loaded = attempt.readable()
    return TestedProject(request, attempt, loaded, unit_tests_of(loaded, request))


def unit_tests_of(loaded: Loaded, request: ProjectRequest) -> UnitTests:
    """Returns the unit tests of a compiled project."""
    project = loaded.compiled.project
    render = make_yaml_renderer(request.env)(project.vars, project.target.name).with_docs(project.docs)
    return load_unit_tests(ProjectFiles(project.root), project.tests, render)


def run_tests(
    request: UnitTestRequest, notify: Callable[[CaseResult, int], None], *, is_recorded: bool = True
) -> UnitTestOutcome:
    """Runs the selected unit tests and calls `notify` with each result and the number of tests. With `is_recorded`,
    target/run_results.json has them, so that `retry` can repeat them.

    Broken tests come first, before Spark starts.

    Raises: FindingsError if the project cannot be compiled, or the selection contains no test; UsageError.
    """
    from sqlstream.app.test.case_results import begin_record  # `ls` needs nothing of it

    began = time.monotonic()
    project = open_tests(request.project)
    chosen, warnings = select_tests(project, request.selection)
    name = project.loaded.compiled.project.name
    enabled = [selected_test(name, test) for test in chosen if is_enabled(test)]
    record = begin_record(project.loaded, request, enabled) if is_recorded else None

    def run(cases: Sequence[Case], note: Callable[[CaseResult], None]) -> None:
        from sqlstream.app.test.case_session import run_cases  # loads pyspark

        run_cases(project.loaded, request, cases, note)

    results = run_chosen(project, chosen, run, notify, fail_fast=request.fail_fast)
    record_results(project.loaded, results, [_full_name(test) for test in ordered_tests(project)])
    outcome = UnitTestOutcome(name, results, (*project.other_findings, *warnings), time.monotonic() - began)
    if record is not None:
        record.end(results, outcome.findings, succeeded=outcome.succeeded)
    return outcome


def run_chosen(
    project: TestedProject,
    chosen: Sequence[UnitTest | BrokenTest],
    run: RunCases,
    notify: Callable[[CaseResult, int], None],
    *,
    fail_fast: bool = False,
) -> tuple[CaseResult, ...]:
    """Returns the results of the chosen tests in their order, and calls `notify` with each.

    Unreadable files and tests that do not run come first. With `fail_fast`, a broken one ends the run.
    """
    results: dict[tuple[Location, str], CaseResult] = {}
    cases: list[Case] = []

    def record(result: CaseResult) -> None:
        results[result.location, result.full_name] = result
        notify(result, len(project.unreadable) + len(chosen))

    for known in chain(project.unreadable, (prepare_case(project, test) for test in chosen)):
        if isinstance(known, Case):
            cases.append(known)
            continue
        record(known)
        if fail_fast and known.outcome is Outcome.BROKEN:
            return (known,)
    if cases:
        run(cases, record)
    names = ((test.location, _full_name(test)) for test in chosen)
    return (*project.unreadable, *(results[name] for name in names if name in results))


def select_tests(
    project: TestedProject, selection: Selection
) -> tuple[tuple[UnitTest | BrokenTest, ...], tuple[Finding, ...]]:
    """Returns the selected tests, and the findings: warnings about the selection and the tested models, and errors of
    selected models without a selected test.

    Raises: FindingsError if no test is selected.
    """
    compiled = project.loaded.compiled
    try:
        ids, unmatched = select(compiled, selection, project.nodes)
    except FindingsError as error:  # the selected test may be in a file that cannot be read
        raise FindingsError([*project.tests.findings, *error.findings]) from error
    name = compiled.project.name
    every = ordered_tests(project)
    chosen = tuple(test for test in every if unit_test_id(name, test.model or "", test.name) in ids)
    if not chosen and not project.tests.findings:
        raise FindingsError([_no_tests(every, [compiled.models[node].name for node in ids if node in compiled.models])])
    tested = {model_id(name, test.model) for test in chosen if test.model is not None}
    errors = _untested_errors(project, frozenset(ids), tested)
    if project.attempt.errors and not selected_errors(project.attempt, project.loaded, {*ids, *tested}):
        project.request.notify(unselected_errors_line(len(project.attempt.errors)))
    return chosen, (*errors, *findings_of_selection(compiled, project.loaded.warnings, tested.union(ids)), *unmatched)


def _untested_errors(project: TestedProject, ids: Collection[str], tested: Collection[str]) -> tuple[Finding, ...]:
    """Returns the errors of selected nodes, except those of `tested` models, whose tests may expect them."""
    compiled, errors = project.loaded.compiled, project.attempt.errors
    models = compiled.models
    if not set(compiled.graph.order).issubset(ids):
        selected = [models[node] for node in ids if node in models]
        errors = tuple(error for error in errors if any(is_about(compiled, error, model) for model in selected))
    judged = [models[node] for node in tested if node in models]
    return tuple(error for error in errors if not any(is_about(compiled, error, model) for model in judged))


def ordered_tests(project: TestedProject) -> tuple[UnitTest | BrokenTest, ...]:
    """Returns all unit tests in the order of their locations."""
    every: list[UnitTest | BrokenTest] = [*project.tests.cases, *project.tests.broken]
    return tuple(sorted(every, key=lambda test: (test.location.path, test.location.line)))


def _no_tests(every: Sequence[UnitTest | BrokenTest], models: Sequence[str]) -> Finding:
    """Returns the finding for a selection of these `models` without a unit test."""
    message = "none of the selected models has a unit test" if every else "the project has no unit test"
    message = f"{quoted(models[0])} has no unit test" if len(models) == 1 else message
    why = "a unit test feeds rows to a model and defines the expected output, in `unit_tests:` in a YAML file"
    record = f"sqlstream test --record {models[0] if models else 'MODEL'}"
    return Finding("empty-selection", message, why, f"write one in {TESTS_FOLDER}/, or record one with `{record}`")


def prepare_case(project: TestedProject, test: UnitTest | BrokenTest) -> Case | CaseResult:
    """Returns the case of a test, or the result of a test that does not run because it is broken or disabled."""
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


def load_older_project(
    request: ProjectRequest, file: ModelFile, upgrade: UpgradeDocument, place: Location
) -> LoadAttempt:
    """Returns the compiled older project, or a finding at `place` if git does not have it."""
    # the cache is of the present project
    alone = replace(request, partial_parse=False)
    if upgrade.sql is not None:
        return try_load(alone, inline=replace(file, text=upgrade.sql))
    with tempfile.TemporaryDirectory(prefix="sqlstream-upgrade-") as folder:
        problem = _check_out(find_project_root(request.folder), upgrade.git or "", Path(folder))
        if problem is not None:
            what = f"git has no project at {quoted(upgrade.git)}"
            fix = "use a commit, branch or tag that contains it; a shallow clone lacks older commits"
            return LoadAttempt(None, (Finding("unit-test-upgrade", what, f"git reports: {problem}", fix, place),))
        return try_load(replace(alone, folder=Path(folder)))


def _check_out(root: Path, commit: str, folder: Path) -> str | None:
    """Extracts the project at `root`, as of `commit`, into `folder`. Returns git's error message, or None."""
    try:
        prefix = _git(root, "rev-parse", "--show-prefix").decode().strip()
        archive = _git(root, "archive", "--format=tar", f"{commit}:{prefix}" if prefix else commit)
    except OSError as error:
        return str(error)
    except subprocess.CalledProcessError as error:
        said: str = error.stderr.decode(errors="replace").strip()
        return said.splitlines()[-1] if said else str(error)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")  # nothing outside of the folder, and no devices
    return None


def _git(root: Path, *arguments: str) -> bytes:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, check=True)  # noqa: S603, S607 - the git on the user's PATH
    return done.stdout
