"""Mistakes in a unit test are found without Spark, at their own lines, and other tests still run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sqlstream.app.compile.ls import list_nodes
from sqlstream.app.request import ProjectRequest, Selection, UnitTestRequest
from sqlstream.app.test.coverage import find_coverage
from sqlstream.app.test.unit_tests import open_tests, ordered_tests, prepare_case, run_chosen, select_tests
from sqlstream.compiler.graph import UNIT_TEST
from sqlstream.errors import FindingsError
from sqlstream.state.runs.case_outcomes import CaseResult, Outcome
from sqlstream.testing.cases import Case

if TYPE_CHECKING:
    from sqlstream.app.test.unit_tests import TestedProject  # pytest would treat this name as a test

SOURCES = """version: 2
sources:
  - name: s
    tables:
      - {name: signals, format: json, path: d, schema: "at timestamp, device string, value int, price decimal(4,2)"}
      - {name: places, format: json, mode: batch, path: p, schema: "device string, city string"}
"""

MODELS = {
    "plain.sql": "{{ config(sink='out') }} select device, value from {{ source('s', 'signals') }}",
    "upper.sql": "{{ config(sink='out') }} select upper(device) as device from {{ ref('plain') }}",
    "static.sql": "{{ config(sink='out') }} select city from {{ source('s', 'places') }}",
}

GOOD = """  - name: good
    model: plain
    given: [{input: "source('s', 'signals')", rows: [{device: a, value: 1}]}]
    expect: {rows: [{device: a, value: 1}]}
"""


def opened(tmp_path: Path, case: str = "", **files: str) -> TestedProject:
    """Returns a project with a good case, `case` and further files of unit tests."""
    (tmp_path / "project.yml").write_text("name: p\ntargets: {local: {}}\n")
    (tmp_path / "sources.yml").write_text(SOURCES)
    (tmp_path / "sinks.yml").write_text("version: 2\nsinks: [{name: out, format: console}]\n")
    for name, text in MODELS.items():
        (tmp_path / "models").mkdir(exist_ok=True)
        (tmp_path / "models" / name).write_text(text)
    (tmp_path / "tests/models").mkdir(parents=True, exist_ok=True)
    for name, text in {"t": f"version: 2\nunit_tests:\n{GOOD}{case}", **files}.items():
        (tmp_path / f"tests/models/{name}.yml").write_text(text)
    return open_tests(ProjectRequest(tmp_path))


def broken(tmp_path: Path, case: str) -> list[str]:
    """Returns the heads of the findings of `case`, which follows a good one."""
    project = opened(tmp_path, case)
    good, *others = [prepare_case(project, test) for test in ordered_tests(project)]
    assert isinstance(good, Case)
    (other,) = others
    if isinstance(other, Case):
        return []
    assert isinstance(other, CaseResult)
    assert other.outcome is Outcome.BROKEN
    return [f"{finding.location}: [{finding.code}]" for finding in other.findings]


def case(given: str, expect: str = "{rows: []}", model: str = "plain", more: str = "") -> str:
    """Returns the second case of the file, with `given` in line 9 and the expectation in line 10."""
    return f"  - name: other\n    model: {model}\n    given: [{given}]\n    expect: {expect}\n{more}"


SIGNALS = "{input: \"source('s', 'signals')\", rows: [{device: a, value: 1}]}"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (case(SIGNALS, model="plane"), ["tests/models/t.yml:8:12: [unit-test-model]"]),
        (case(""), ["tests/models/t.yml:9:5: [unit-test-input]"]),
        (case("{input: signals, rows: []}"), ["tests/models/t.yml:9:21: [unit-test-input]"]),
        (case("{input: \"ref('plane')\", rows: []}"), ["tests/models/t.yml:9:21: [unit-test-input]"]),
        (case(SIGNALS.replace("value", "valu")), ["tests/models/t.yml:9:66: [unit-test-column]"]),
        (case(SIGNALS.replace("1", "x")), ["tests/models/t.yml:9:73: [unit-test-value]"]),
        (case(SIGNALS.replace("1", "1, price: 1.234")), ["tests/models/t.yml:9:83: [unit-test-value]"]),
        (case(SIGNALS.replace("1", "1, at: 2024-02-30")), ["tests/models/t.yml:9:80: [unit-test-value]"]),
        (case(SIGNALS, "{rows: [{devise: a}]}"), ["tests/models/t.yml:10:22: [unit-test-column]"]),
        (
            case("{input: \"source('s', 'signals')\", fixture: none}"),
            ["tests/models/t.yml:9:56: [unit-test-fixture]"],
        ),
        (case("{input: \"source('s', 'signals')\", rows: x}"), ["tests/models/t.yml:9:47: [unit-test-fixture]"]),
        (
            case("{input: \"source('s', 'signals')\", batches: [{rows: []}, restrat]}"),
            ["tests/models/t.yml:9:69: [unit-test-batches]"],
        ),
        (
            case("{input: \"source('s', 'places')\", batches: [{rows: []}]}", model="static"),
            ["tests/models/t.yml:9:21: [unit-test-batches]"],
        ),
        (
            case("{input: \"source('s', 'signals')\", batches: [{rows: []}, upgrade]}"),
            ["tests/models/t.yml:7:11: [unit-test-batches]"],
        ),
        (case(SIGNALS, "{batches: [{rows: []}, {rows: []}]}"), ["tests/models/t.yml:10:14: [unit-test-expect]"]),
        (case(SIGNALS, "{partial: true}"), ["tests/models/t.yml:10:13: [unit-test-expect]"]),
        (
            case("{input: \"source('s', 'places')\", rows: []}", "{rows: [], state_rows: 1}", "static"),
            ["tests/models/t.yml:10:36: [unit-test-expect]"],
        ),
        (case(SIGNALS, more="    equivalence: false\n"), ["tests/models/t.yml:11:18: [missing-key]"]),
        (case(SIGNALS, more="    upgrade_from: {}\n"), ["tests/models/t.yml:11:5: [missing-key]"]),
        (case(SIGNALS, more="    kee: [a]\n"), ["tests/models/t.yml:11:5: [unknown-key]"]),
        (case(SIGNALS).replace("other", "good"), ["tests/models/t.yml:7:11: [duplicate-name]"]),
    ],
)
def test_a_broken_case_is_located(tmp_path: Path, text: str, found: list[str]) -> None:
    """A mistake is found at its location, and the good case before it is unaffected."""
    assert broken(tmp_path, text) == found


def test_an_upgrade_needs_a_commit_in_git(tmp_path: Path) -> None:
    """An upgrade from a commit is a finding if the project is in no git repository with that commit."""
    given = "{input: \"source('s', 'signals')\", batches: [{rows: []}, upgrade, {rows: []}]}"

    found = broken(tmp_path, case(given, more="    upgrade_from: {git: no-such-branch}\n"))

    assert found == ["tests/models/t.yml:11:5: [unit-test-upgrade]"]


def test_rows_of_both_a_view_and_its_source_are_refused(tmp_path: Path) -> None:
    """Rows for both a view and its source are refused, because the source's rows would not be read."""
    both = f"{SIGNALS}, {{input: \"ref('plain')\", rows: []}}"

    assert broken(tmp_path, case(both, model="upper")) == ["tests/models/t.yml:9:21: [unit-test-input]"]


def test_a_wrong_input_lists_all_inputs(tmp_path: Path) -> None:
    """For a wrong input, the finding lists all inputs of the model, views and sources, in the form of `input:`."""
    project = opened(tmp_path, case("{input: \"ref('static')\", rows: []}", model="upper"))
    results = [prepare_case(project, test) for test in ordered_tests(project)]
    (why,) = [finding.why for result in results if isinstance(result, CaseResult) for finding in result.findings]

    assert why == "`upper` reads `ref('plain')`, `source('s', 'signals')`"


def test_a_view_between_needs_no_rows(tmp_path: Path) -> None:
    """Rows of the source are enough for a model that reads it through a view."""
    assert broken(tmp_path, case(SIGNALS, "{rows: [{device: A}]}", model="upper")) == []


@pytest.mark.parametrize(
    "text", ["{{ source('s', 'signals') }}", "{{source('s','signals')}}", " source( 's', 'signals' ) "]
)
def test_an_input_can_be_copied_from_the_model(tmp_path: Path, text: str) -> None:
    """An input can be copied from the model with its braces."""
    assert broken(tmp_path, case(f'{{input: "{text}", rows: [{{device: a, value: 1}}]}}')) == []


def test_a_source_with_the_name_of_the_input_is_suggested(tmp_path: Path) -> None:
    """If an input names a model but the model reads a source of that name, the fix suggests the source."""
    project = opened(tmp_path, case("{input: \"ref('signals')\", rows: []}"))
    _, other = (prepare_case(project, test) for test in ordered_tests(project))

    assert isinstance(other, CaseResult)
    assert other.findings[0].fix == "did you mean `source('s', 'signals')`?"


def test_an_unreadable_test_file_is_the_reason_for_no_match(tmp_path: Path) -> None:
    """If a selector matches nothing, a test file that cannot be read is reported as the possible cause."""
    project = opened(tmp_path, torn="unit_tests:\n  - name: a\n   model: b\n")

    with pytest.raises(FindingsError) as caught:
        select_tests(project, Selection(("unit_test:a",)))

    assert [finding.code for finding in caught.value.findings] == ["yaml-syntax", "empty-selection"]


def test_misplaced_unit_tests_are_reported(tmp_path: Path) -> None:
    """Unit tests outside their folders are reported; other YAML in tests/ and nested projects are ignored."""
    for name in ("orders.yml", "unit/orders.yaml", "fixtures/orders.yml", "projects/other/tests/orders.yml"):
        (tmp_path / "tests" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tests" / name).write_text("version: 2\nunit_tests: []\n")
    (tmp_path / "tests/compose.yml").write_text("services: {unit_tests: {}}\n")

    project = opened(tmp_path)

    assert [result.full_name for result in project.unreadable] == ["tests/orders.yml", "tests/unit/orders.yaml"]
    assert [finding.code for finding in project.tests.findings] == ["unsupported-file", "unsupported-file"]


@pytest.mark.parametrize("sql", ["select device from {{ source('s', 'signals') }} wher value > 1", "drop table x"])
def test_an_unreadable_model_is_an_error_of_every_test(tmp_path: Path, sql: str) -> None:
    """An unreadable model is an error for every test, because the project does not compile."""
    opened(tmp_path)
    (tmp_path / "models/torn.sql").write_text(sql)

    with pytest.raises(FindingsError) as caught:
        open_tests(ProjectRequest(tmp_path))

    assert str(caught.value.findings[0].location).startswith("models/torn.sql:1:")


def test_a_refused_model_without_tests_counts_if_selected(tmp_path: Path) -> None:
    """A refused model without tests is an error only if it is selected; the tests of other models run."""
    opened(tmp_path)
    (tmp_path / "models/wrong.sql").write_text("select no_such_column from {{ ref('plain') }}")
    project = open_tests(ProjectRequest(tmp_path))

    def codes(*selected: str) -> list[str]:
        tests, findings = select_tests(project, Selection(selected))
        assert [test.name for test in tests] == ["good"]
        return [finding.code for finding in findings if finding.is_error]

    assert codes() == codes("plain", "wrong") == ["unknown-column"]
    assert codes("plain") == codes("unit_test:good") == []


def test_unreadable_files_are_reported_before_spark_starts(tmp_path: Path) -> None:
    """Unreadable test files are reported as results before Spark starts, and the tests of other files run."""
    project = opened(tmp_path, wrong="version: 2\nunit_test: []\n", torn="unit_tests:\n  - name: a\n   model: b\n")
    events: list[tuple[str, int]] = []

    results = run_chosen(
        project,
        ordered_tests(project),
        lambda cases, _note: events.append(("Spark", len(cases))),
        lambda result, total: events.append((result.full_name, total)),
    )

    assert events == [("tests/models/torn.yml", 3), ("tests/models/wrong.yml", 3), ("Spark", 1)]
    assert [[finding.code for finding in result.findings] for result in results] == [["yaml-syntax"], ["unknown-key"]]
    assert {result.outcome for result in results} == {Outcome.BROKEN}
    with pytest.raises(FindingsError):
        find_coverage(UnitTestRequest(ProjectRequest(tmp_path)))
    with pytest.raises(FindingsError):
        list_nodes(ProjectRequest(tmp_path), Selection(resource_types=(UNIT_TEST,)))
