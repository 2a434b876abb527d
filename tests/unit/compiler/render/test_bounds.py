"""Rendering is limited in work, size and memory for every template."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import NamedTuple

import pytest

from tests.support.measure_attacks import read_attacks
from tests.support.rendering import finding_of, place_of, render

MEGABYTES = 300.0

ISSUE = ("power", "repeat_text", "nested_loops")
"""The three attacks that the issue names; each is measured in its own process."""


class Outcome(NamedTuple):
    """The outcome of one attack."""

    name: str
    code: str | None
    line: int
    peak_megabytes: float


def measured(*names: str) -> dict[str, Outcome]:
    """Returns the outcomes of the named attacks (default: all), which run in one new process."""
    command = [sys.executable, "-m", "tests.support.measure_attacks", *names]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=True)
    outcomes = [Outcome(*json.loads(line)) for line in done.stdout.splitlines()]
    return {outcome.name: outcome for outcome in outcomes}


@pytest.fixture(scope="module")
def all_outcomes() -> dict[str, Outcome]:
    """Returns the outcomes of all attacks."""
    return measured()


@pytest.mark.parametrize("name", ISSUE)
def test_attacks_from_the_issue_are_stopped(name: str) -> None:
    """Each of the three attacks from the issue is stopped with a finding, with at most 300 MB."""
    outcome = measured(name)[name]
    assert (outcome.code, outcome.line) == ("jinja-limit", 1)
    assert outcome.peak_megabytes < MEGABYTES


@pytest.mark.slow
@pytest.mark.parametrize("name", read_attacks())
def test_each_attack_is_stopped(name: str, all_outcomes: dict[str, Outcome]) -> None:
    """Each attack is stopped with a finding at a line of its template, with at most 300 MB."""
    outcome = all_outcomes[name]
    assert outcome.code == "jinja-limit"
    assert outcome.line > 0
    assert outcome.peak_megabytes < MEGABYTES


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("select\n  {{ (10 ** 10) ** (2 ** 19) }}", "jinja-limit 2:7"),
        ("\n{% for i in range(10 ** 6) %}\n {% for j in range(10) %}{% endfor %}{% endfor %}", "jinja-limit 3:14"),
        ("{% for i in range(10 ** 5) %}\n  {{ 'a' * 1000 }}{% endfor %}", "jinja-limit 2:6"),
        ("\n{{ [" + "a," * 60_000 + "] }}", "jinja-limit 2:50003"),
        ("{{ 1 }}\n" * 20_000, "jinja-limit 16667:6"),
    ],
)
def test_a_limit_is_found_at_the_innermost_line(text: str, place: str) -> None:
    """The finding points at the innermost line that was running."""
    assert place_of(finding_of(text)) == place


def test_a_recursion_is_found_in_its_macro() -> None:
    """A macro that calls itself without end gives a finding in its definition, with the first calls."""
    finding = finding_of("\n{% macro m() %}\n{{ m() }}{% endmacro %}{{ m() }}")
    assert place_of(finding) in ("jinja-limit 2:4", "jinja-limit 3:4")
    assert [call.line for call in finding.calls] == [3] * len(finding.calls)
    assert len(finding.calls) > 2


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("{% for i in range(20000) %}{{ i }}{{ ',' if not loop.last }}{% endfor %}", 108889),
        (
            "{% set l = range(500)|list %}{% for c in l %}{{ c ~ (',' if loop.index < l|length) }}{% endfor %}",
            1889,
        ),
        ("{% set l = [] %}{% for i in range(10000) %}{% do l.append('c' ~ i) %}{% endfor %}{{ l|join(', ') }}", 68888),
        ("{{ 'x' * 1000000 }}", 1000000),
        ("{% macro m(i) %}({{ i }}){% endmacro %}{% for i in range(5000) %}{{ m(i) }}{% endfor %}", 28890),
        ("{{ 2 ** 9000 % 7 }}", 1),
    ],
)
def test_ordinary_work_is_within_the_limits(text: str, length: int) -> None:
    """Templates of realistic size stay within the limits."""
    assert len(render(text).sql) == length


def test_each_model_has_its_own_budget() -> None:
    """A model that uses up its budget does not reduce the budget of the next model."""
    finding_of("{% for i in range(10 ** 6) %}{{ i }}{% endfor %}")
    assert render("{{ 1 }}").sql == "1"
