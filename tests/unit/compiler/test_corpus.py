"""The compiler's verdict on each corpus query matches Spark's verdict as recorded by `make corpus`, without Spark."""

from __future__ import annotations

import pytest
from _pytest.mark.structures import ParameterSet

from sqlstream.project.values import Project
from tests.corpus.corpus_cases import NOT_YET, PROJECT, Case, read_cases
from tests.corpus.corpus_compile import compile_case, load_corpus_project
from tests.corpus.corpus_report import judging_errors
from tests.corpus.corpus_verdicts import read_verdicts

CASES = read_cases()
RULES_TO_COME = set(NOT_YET.read_text(encoding="utf-8").split())


def _param(case: Case) -> ParameterSet:
    to_come = [pytest.mark.xfail(reason="no rule finds this yet")] if case.name in RULES_TO_COME else []
    return pytest.param(case, id=f"{case.theme}-{case.name}", marks=to_come)


REFUSED = [_param(case) for case in CASES if case.refused and case.unknown_because is None]
WRONG = [_param(case) for case in CASES if case.wrong is not None]
RIGHT = [pytest.param(case, id=f"{case.theme}-{case.name}") for case in CASES if not case.refused and not case.wrong]


@pytest.fixture(scope="module")
def project() -> Project:
    """Returns the project with the sources, sinks and seeds of the corpus."""
    return load_corpus_project(PROJECT)


def test_every_case_repeats_the_recorded_verdict() -> None:
    """The `spark:` line of each case repeats the recorded verdict of Spark."""
    recorded = {name: not verdict.accepted for name, verdict in read_verdicts().items()}
    assert {case.name: case.refused for case in CASES} == recorded


def test_the_list_of_rules_to_come_is_current() -> None:
    """The list of rules to come contains only queries that Spark refuses or runs wrongly."""
    assert {case.name for case in CASES if case.wrong or (case.refused and not case.unknown_because)} >= RULES_TO_COME


def test_the_corpus_is_large_enough() -> None:
    """The corpus has at least 160 accepted and 80 refused queries, and at least half of all queries name a source."""
    assert len(RIGHT) >= 160
    assert len(REFUSED) >= 80
    assert sum(case.source is not None for case in CASES) * 2 >= len(CASES)


@pytest.mark.parametrize("case", RIGHT)
def test_accepted_queries_compile(project: Project, case: Case) -> None:
    """A query that Spark accepts and runs correctly compiles without an error."""
    assert judging_errors(case, compile_case(project, case)) == ()


@pytest.mark.parametrize("case", REFUSED)
def test_refused_queries_have_an_error(project: Project, case: Case) -> None:
    """A query that Spark refuses has an error."""
    assert judging_errors(case, compile_case(project, case))


@pytest.mark.parametrize("case", WRONG)
def test_wrong_queries_have_a_finding(project: Project, case: Case) -> None:
    """A query that runs in Spark with missing or wrong rows has at least one finding."""
    assert compile_case(project, case).findings
