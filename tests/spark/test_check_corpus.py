"""`compile --check` agrees with Spark on a sample of the corpus; `make corpus` compares all of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from sqlstream.project.values import Project
from sqlstream.spark.jvm.session import SparkLaunch, SparkRuntime, start_spark, stop_spark
from sqlstream.spark.secrets import Secrets
from tests.corpus.corpus_cases import PROJECT, Case, read_cases
from tests.corpus.corpus_check import CHECKED_STAGES, check_case, is_check_correct
from tests.corpus.corpus_compile import compile_case, load_corpus_project
from tests.corpus.corpus_data import write_data
from tests.corpus.corpus_verdicts import Verdict, read_verdicts

EVERY = 8
"""One in this many cases is checked here."""

VERDICTS = read_verdicts()


def _sample(stages: tuple[str | None, ...]) -> list[Case]:
    return [case for case in read_cases() if VERDICTS[case.name].stage in stages][::EVERY]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SparkRuntime, Project]]:
    """A started Spark, and the corpus project with the data of its sources."""
    root = tmp_path_factory.mktemp("corpus") / "project"
    shutil.copytree(PROJECT, root)
    write_data(root / "data")
    project = load_corpus_project(root)
    launch = SparkLaunch("corpus", str(root / "warehouse"), lambda _line: None)
    runtime = start_spark(project.target, Secrets({}), launch)
    yield runtime, project
    stop_spark(runtime)


def _misjudged(asked: tuple[SparkRuntime, Project], cases: list[Case]) -> list[str]:
    runtime, project = asked
    wrong = []
    for case in cases:
        attempt = compile_case(project, case)
        verdict: Verdict = VERDICTS[case.name]
        if not is_check_correct(case, attempt, verdict, check_case(attempt, case, runtime)):
            wrong.append(f"{case.name}: {verdict.words}")
    return wrong


@pytest.mark.slow
def test_refused_queries_have_findings(asked: tuple[SparkRuntime, Project]) -> None:
    """Every query of the sample that Spark refuses has a finding before anything starts."""
    cases = _sample(CHECKED_STAGES)
    assert len(cases) > 40
    assert _misjudged(asked, cases) == []


@pytest.mark.slow
def test_running_queries_have_no_findings(asked: tuple[SparkRuntime, Project]) -> None:
    """No query of the sample that ran has a finding."""
    cases = _sample((None,))
    assert len(cases) > 60
    assert _misjudged(asked, cases) == []
