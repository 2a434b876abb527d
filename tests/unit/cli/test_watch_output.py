"""`sqlstream test --watch` numbers the results of each round from 1."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sqlstream.app.request import UnitTestRequest
from sqlstream.app.test import watch
from sqlstream.app.test.watch import Rerun
from sqlstream.cli.main import main
from sqlstream.location import Location
from sqlstream.state.runs.case_outcomes import CaseResult, Outcome


def _rounds(_: UnitTestRequest, notify: Callable[[CaseResult, int], None], show: Callable[[Rerun], None]) -> None:
    """All three tests, and after a change the two that it affects."""
    results = [CaseResult(name, "m", Location("models/m.yml"), Outcome.PASSED) for name in "abc"]
    for ran in (results, results[:2]):
        for result in ran:
            notify(result, len(ran))
        show(Rerun((), tuple(ran), (), 0.1))


def test_a_round_with_fewer_tests_counts_from_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Results of earlier rounds do not count."""
    monkeypatch.setattr(watch, "watch_tests", _rounds)
    with pytest.raises(SystemExit):
        main(["test", "--watch"])
    numbers = [line.partition(" PASS")[0] for line in capsys.readouterr().out.splitlines() if " unit test " in line]
    assert numbers == ["1 of 3", "2 of 3", "3 of 3", "1 of 2", "2 of 2"]
