"""The compiler's verdict on every query of the corpus is Spark's, as `make corpus` recorded it; no Spark is needed."""

from __future__ import annotations

import pytest
from _pytest.mark.structures import ParameterSet
from corpus_cases import NOT_YET, PROJECT, Case, read_cases
from corpus_compile import compile_case, load_corpus_project
from corpus_report import judging_errors
from corpus_verdicts import read_verdicts

from sqlstream.project.values import Project

CASES = read_cases()
RULES_TO_COME = set(NOT_YET.read_text(encoding="utf-8").split())


def _param(case: Case) -> ParameterSet:
    to_come = [pytest.mark.xfail(reason="no rule says this yet")] if case.name in RULES_TO_COME else []
    return pytest.param(case, id=f"{case.theme}-{case.name}", marks=to_come)


REFUSED = [_param(case) for case in CASES if case.refused and case.unknown_because is None]
WRONG = [_param(case) for case in CASES if case.wrong is not None]
RIGHT = [pytest.param(case, id=f"{case.theme}-{case.name}") for case in CASES if not case.refused and not case.wrong]


@pytest.fixture(scope="module")
def project() -> Project:
    """The sources, sinks and seeds of the corpus."""
    return load_corpus_project(PROJECT)


def test_every_case_says_what_spark_said() -> None:
    """Each case has a recorded verdict of Spark's, which `spark:` beside it repeats for the reader."""
    recorded = {name: not verdict.accepted for name, verdict in read_verdicts().items()}
    assert {case.name: case.refused for case in CASES} == recorded


def test_rules_to_come_excuse_silence_only() -> None:
    """Every name in the list of rules to come is a query that Spark refuses or runs wrongly."""
    assert {case.name for case in CASES if case.wrong or (case.refused and not case.unknown_because)} >= RULES_TO_COME


def test_the_corpus_is_as_large_as_it_says() -> None:
    """At least 160 queries run, at least 80 are refused, and half of all have a source."""
    assert len(RIGHT) >= 160
    assert len(REFUSED) >= 80
    assert sum(case.source is not None for case in CASES) * 2 >= len(CASES)


@pytest.mark.parametrize("case", RIGHT)
def test_what_spark_runs_is_not_refused(project: Project, case: Case) -> None:
    """A query that Spark accepts and runs rightly compiles without an error finding."""
    assert judging_errors(case, compile_case(project, case)) == ()


@pytest.mark.parametrize("case", REFUSED)
def test_what_spark_refuses_is_not_passed_in_silence(project: Project, case: Case) -> None:
    """A query that Spark refuses has an error finding."""
    assert judging_errors(case, compile_case(project, case))


@pytest.mark.parametrize("case", WRONG)
def test_what_spark_runs_wrongly_is_not_passed_in_silence(project: Project, case: Case) -> None:
    """A query that Spark starts but that gives no or false rows has a finding, be it a warning."""
    assert compile_case(project, case).findings
