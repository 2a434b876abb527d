"""The pytest plugin: `pytest` collects the unit tests of a project's YAML files, one item each.

pytest loads the plugin wherever sqlstream is installed. It imports the rest of sqlstream only after it has found a YAML
file with unit tests. Each pytest process, including each worker of pytest-xdist, compiles the project once and starts
Spark for the first item that it runs.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from sqlstream.app.test.unit_tests import TestedProject
    from sqlstream.project.unit_tests.unit_test import BrokenTest, UnitTest
    from sqlstream.state.runs.case_outcomes import CaseResult
    from sqlstream.testing.harness import Harness

YAML_SUFFIXES = (".yml", ".yaml")
KEY = "unit_tests"
FOLDERS = (("models",), ("tests", "models"))
"""The folders of unit tests, relative to project.yml."""


class Projects:
    """The compiled projects of one pytest process, and the Spark session of the project whose tests are running."""

    def __init__(self) -> None:
        self._opened: dict[Path, TestedProject] = {}
        self._harness: Harness | None = None
        self._harness_of: Path | None = None
        self._running = ExitStack()

    def open(self, root: Path) -> TestedProject:
        """Returns the project in the folder `root`. Raises: FindingsError."""
        from sqlstream.app.request import ProjectRequest
        from sqlstream.app.test.unit_tests import open_tests

        if root not in self._opened:
            logging.getLogger("sqlstream").propagate = False  # the failure report must not contain log lines of the JVM
            target = os.environ.get("SQLSTREAM_TARGET") or None
            self._opened[root] = open_tests(ProjectRequest(root, target, target_named_by="SQLSTREAM_TARGET"))
        return self._opened[root]

    def run(self, root: Path, test: UnitTest | BrokenTest) -> CaseResult:
        """Runs a test and returns its result."""
        from sqlstream.app.test.unit_tests import prepare_case
        from sqlstream.testing.cases import Case

        known = prepare_case(self.open(root), test)
        return self._harness_for(root).run(known) if isinstance(known, Case) else known

    def _harness_for(self, root: Path) -> Harness:
        from sqlstream.app.request import UnitTestRequest
        from sqlstream.app.test.case_session import open_harness

        # Items of one project follow each other, so Spark starts again only for the next project.
        if self._harness is None or self._harness_of != root:
            self.close()
            project = self.open(root)
            opened = open_harness(project.loaded, UnitTestRequest(project.request))
            self._harness = self._running.enter_context(opened)
            self._harness_of = root
        return self._harness

    def close(self) -> None:
        """Stops Spark, if it is running."""
        self._running.close()
        self._harness = None


PROJECTS = pytest.StashKey[Projects]()


def pytest_configure(config: pytest.Config) -> None:
    """Called by pytest once, before it collects."""
    config.stash[PROJECTS] = Projects()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Called by pytest once, at its end."""
    config.stash[PROJECTS].close()


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> YamlFile | None:
    """Called by pytest for every file in its folders."""
    if file_path.suffix not in YAML_SUFFIXES:
        return None
    root = _project_of(file_path)
    if root is None or KEY not in file_path.read_text(encoding="utf-8", errors="replace"):
        return None
    collector: YamlFile = YamlFile.from_parent(parent, path=file_path, root=root)
    return collector


def _project_of(path: Path) -> Path | None:
    """Returns the folder of the project in which `path` may contain unit tests, None if there is no such project."""
    for folder in path.parents:
        if (folder / "project.yml").is_file():
            parts = path.relative_to(folder).parts
            return folder if any(parts[: len(names)] == names for names in FOLDERS) else None
    return None


class YamlFile(pytest.File):
    """A YAML file with unit tests."""

    def __init__(self, *, root: Path, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.root = root

    def collect(self) -> Iterator[CaseItem]:
        """Yields an item for each unit test in the file."""
        from sqlstream.app.test.unit_tests import ordered_tests
        from sqlstream.errors import FindingsError
        from sqlstream.report.findings import findings_text

        path = self.path.relative_to(self.root).as_posix()
        try:
            project = self.config.stash[PROJECTS].open(self.root)
        except FindingsError as error:
            raise self.CollectError(findings_text(error.findings)) from error
        found = (item for item in project.tests.findings if item.location is not None and item.location.path == path)
        wrong = [item for item in found if item.is_error]
        if wrong:
            raise self.CollectError(findings_text(wrong))
        for test in ordered_tests(project):
            if test.location.path == path:
                name = f"{test.model}.{test.name}" if test.model else test.name
                yield CaseItem.from_parent(self, name=name, test=test)


class CaseItem(pytest.Item):
    """One unit test."""

    def __init__(self, *, test: UnitTest | BrokenTest, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.test = test
        self.extra_keyword_matches.update(getattr(test, "tags", ()))

    def runtest(self) -> None:
        """Runs the test. Raises: CaseNotPassedError."""
        from sqlstream.state.runs.case_outcomes import Outcome

        parent = self.parent
        root = parent.root if isinstance(parent, YamlFile) else Path()
        result = self.config.stash[PROJECTS].run(root, self.test)
        if result.outcome is Outcome.SKIPPED:
            pytest.skip("enabled: false")
        if result.outcome is not Outcome.PASSED:
            raise CaseNotPassedError(result)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Returns what pytest prints for a test that did not pass: the different rows, without a traceback."""
        if not isinstance(excinfo.value, CaseNotPassedError):
            return super().repr_failure(excinfo, style)
        from sqlstream.report.unit_tests_text import failure_text

        return failure_text(excinfo.value.result, None)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Returns the file, the line (from 0) and the name."""
        return self.path, self.test.location.line - 1, self.name


class CaseNotPassedError(Exception):
    """A unit test did not pass."""

    def __init__(self, result: CaseResult) -> None:
        super().__init__(f"{result.full_name}: {result.outcome}")
        self.result = result
