"""`sqlstream test --watch`: after each change of a file, runs the unit tests that it may affect."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from sqlstream.app.loading.watching import changed_paths, take_snapshot, wait_for_change
from sqlstream.app.request import UnitTestRequest
from sqlstream.app.session.signals import StopSignals, interruptible
from sqlstream.app.test.case_session import open_harness, run_all
from sqlstream.app.test.unit_tests import TestedProject, open_tests, run_chosen, select_tests
from sqlstream.errors import Finding, FindingsError
from sqlstream.project.files.files import find_project_root
from sqlstream.project.files.python_files import PYTHON
from sqlstream.project.unit_tests.declared import TESTS_FOLDER
from sqlstream.project.unit_tests.fixtures import FIXTURES
from sqlstream.project.unit_tests.unit_test import BrokenTest, UnitTest
from sqlstream.state.runs.case_outcomes import CaseResult
from sqlstream.testing.cases import Case
from sqlstream.testing.harness import Harness

TEST_FOLDERS = (TESTS_FOLDER, FIXTURES)


@dataclass(frozen=True)
class Rerun:
    """The results after the files `changed` (none the first time), or the findings if there are none."""

    changed: tuple[str, ...]
    results: tuple[CaseResult, ...]
    findings: tuple[Finding, ...]
    seconds: float


def watch_tests(
    request: UnitTestRequest, notify: Callable[[CaseResult, int], None], show: Callable[[Rerun], None]
) -> None:
    """Runs the selected tests, and after each change of a file those that it may affect, until Ctrl-C or SIGTERM.

    Spark starts once, and restarts only if the target or python/ changes. Raises: FindingsError if there is no project
    or no Java; UsageError.
    """
    with suppress(KeyboardInterrupt), interruptible() as signals, ExitStack() as running:
        _Watcher(request, notify, show, signals, running).run()


@dataclass
class _Watcher:
    request: UnitTestRequest
    notify: Callable[[CaseResult, int], None]
    show: Callable[[Rerun], None]
    signals: StopSignals
    running: ExitStack
    harness: Harness | None = None
    started_for: object = None

    def run(self) -> None:
        root = find_project_root(self.request.project.folder)
        seen = take_snapshot(root, folders=TEST_FOLDERS)
        changed: tuple[str, ...] = ()
        while True:
            began = time.monotonic()
            results, findings = self._run_changed(changed)
            self.show(Rerun(changed, results, findings, time.monotonic() - began))
            after = wait_for_change(root, (), seen, TEST_FOLDERS)
            changed, seen = changed_paths(seen, after), after

    def _run_changed(self, changed: tuple[str, ...]) -> tuple[tuple[CaseResult, ...], tuple[Finding, ...]]:
        try:
            project = open_tests(self.request.project)
            chosen, warnings = select_tests(project, self.request.selection)
            chosen = tuple(test for test in chosen if not changed or is_affected(project, test, changed))
            return self._run(project, chosen), (*project.other_findings, *warnings)
        except FindingsError as error:
            return (), error.findings

    def _run(self, project: TestedProject, chosen: Sequence[UnitTest | BrokenTest]) -> tuple[CaseResult, ...]:
        def run(cases: Sequence[Case], note: Callable[[CaseResult], None]) -> None:
            run_all(self._harness_for(project), self.request, cases, note)

        return run_chosen(project, chosen, run, self.notify, fail_fast=self.request.fail_fast)

    def _harness_for(self, project: TestedProject) -> Harness:
        compiled = project.loaded.compiled.project
        python = {path: state for path, state in take_snapshot(compiled.root).items() if path.startswith(f"{PYTHON}/")}
        needed = (compiled.target, compiled.functions, python)
        if self.harness is None or self.started_for != needed:
            self.running.close()
            opened = open_harness(project.loaded, self.request, self.signals)
            self.harness, self.started_for = self.running.enter_context(opened), needed
        return self.harness


def is_affected(project: TestedProject, test: UnitTest | BrokenTest, changed: Collection[str]) -> bool:
    """Returns whether the files `changed` may affect the result of a test: they contain the test, its model, or a node
    upstream. Files other than models and tests may affect every test.
    """
    compiled = project.loaded.compiled
    models = {model.file.path: node for node, model in compiled.models.items()}
    properties: dict[str, list[str]] = {}
    for node, model in compiled.models.items():
        if model.file.properties_location is not None:
            properties.setdefault(model.file.properties_location.path, []).append(node)
    sources = {table.location.path for table in compiled.project.sources}
    for path in changed:
        if path == test.location.path or path in sources:
            return True
        nodes = [models[path]] if path in models else properties.get(path)
        if nodes is None and not path.startswith(f"{TESTS_FOLDER}/"):
            return True
        read = {other for node in nodes or () for other in (node, *compiled.graph.descendants(node))}
        if any(compiled.models[node].name == test.model for node in read if node in compiled.models):
            return True
    return False
