"""Results of unit tests as text, JSON and XML."""

from __future__ import annotations

import json
from decimal import Decimal
from xml.etree import ElementTree as ET

import pytest

from sqlstream.errors import Finding, Severity
from sqlstream.location import Location
from sqlstream.report.unit_tests_json import results_json, results_xml
from sqlstream.report.unit_tests_text import done_line, failure_text, result_line
from sqlstream.state.runs.case_outcomes import (
    ANY,
    CaseResult,
    ComparedRow,
    Outcome,
    RowDifference,
    RowKind,
    ValueDifference,
)

HERE = Location("tests/models/t.yml", 4, 11)
ROWS = (
    ComparedRow(RowKind.CHANGED, ("a", Decimal("1.5"), None), ("a", Decimal("2.5"), None), frozenset({1})),
    ComparedRow(RowKind.MISSING, ("b", Decimal("1.5"), None), None),
    ComparedRow(RowKind.EXTRA, None, ("c", None, [1])),
    ComparedRow(RowKind.SAME, ("d", None, None), ("d", None, None)),
)
DIFFERENCES = (
    RowDifference(2, ("device", "average", "tags"), ROWS, Location("tests/models/t.yml", 22, 11)),
    ValueDifference("watermark", "2024-01-01 12:00", "none", HERE),
)
FAILED = CaseResult(
    "late",
    "windows",
    HERE,
    Outcome.FAILED,
    0.5,
    DIFFERENCES,
    model_location=Location("models/windows.sql", 7, 3),
    notes={"late rows dropped": "2"},
)
PASSED = CaseResult("early", "windows", HERE, Outcome.PASSED, 1.25)

TEXT = """tests/models/t.yml:4:11: [unit-test-failed] `windows` does not return what `late` expects
  why: batch 2: 1 changed, 1 missing, 1 unexpected, 1 as expected; watermark: expected 2024-01-01 12:00, is none
  fix: change models/windows.sql:7:3, or what the test expects at tests/models/t.yml:22:11
  batch 2, expected at tests/models/t.yml:22:
        device   average     tags
    ─────────────────────────────
    ~   a        1.5 → 2.5   null
    -   b        1.5         null
    +   c        null        [1]
        d        null        null
    ~ has different values: expected → actual
    - is expected but missing
    + is not expected
  late rows dropped: 2
  run only this test: sqlstream test --select unit_test:windows.late"""


def test_a_failure_is_three_lines_and_the_rows() -> None:
    """A failure has three lines and the rows with the changed cells, and the command that runs only this test."""
    assert failure_text(FAILED, None) == TEXT
    assert failure_text(PASSED, None) == ""


def test_each_test_has_a_line_and_a_summary_follows() -> None:
    """Each test has one line, and a summary line follows, in dbt's words."""
    assert result_line(PASSED, 1, 2).startswith("1 of 2 PASS unit test windows.early ...")
    assert result_line(PASSED, 1, 2).endswith("... [PASS in 1.25 s]")
    assert done_line([PASSED, FAILED]) == "Done. PASS=1 WARN=0 ERROR=1 SKIP=0 TOTAL=2"
    findings = [Finding("some-code", "what", "why", "fix", severity=severity) for severity in Severity]
    assert done_line([PASSED], findings).startswith("Done. PASS=1 WARN=2 ERROR=1")


def test_json_has_the_differences() -> None:
    """JSON has the differences as plain objects, with rows by column name."""
    parsed = json.loads(results_json([FAILED], (), succeeded=False))

    rows, watermark = parsed["results"][0]["differences"]
    assert (parsed["succeeded"], parsed["results"][0]["status"], rows["batch"]) == (False, "failed", 2)
    assert [row["status"] for row in rows["rows"]] == ["changed", "missing", "extra"]
    assert rows["rows"][0]["changed"] == ["average"]
    assert rows["rows"][2]["actual"] == {"device": "c", "average": None, "tags": [1]}
    assert (watermark["expected"], watermark["actual"]) == ("2024-01-01 12:00", "none")


def test_junit_xml_has_the_failures() -> None:
    """JUnit XML has a suite with one case per test, and the whole text of a failure."""
    suite = ET.fromstring(results_xml([PASSED, FAILED], "shop"))[0]

    assert dict(suite.attrib) | {"time": ""} == {
        "name": "shop",
        "tests": "2",
        "failures": "1",
        "errors": "0",
        "skipped": "0",
        "time": "",
    }
    assert suite[1].get("line") == "4"
    assert suite[1][0].text == TEXT


def difference(*rows: ComparedRow) -> str:
    """Returns the table of one column in which `rows` differ."""
    only = RowDifference(None, ("text",), rows, HERE)
    return failure_text(CaseResult("t", "m", HERE, Outcome.FAILED, differences=(only,), model_location=HERE), None)


@pytest.mark.parametrize(
    ("expected", "actual", "shown"),
    [
        ("", None, "'' → null"),
        ("null", None, "'null' → null"),
        ("NULL", "", "'NULL' → ''"),
        ("a", " a", "a → ' a'"),
        ("a ", "a", "'a ' → a"),
        ("a\n", "a\\n", r"'a\n' → a\n"),
        ("a b", "a\u00a0b", r"a b → 'a\xa0b'"),
        ("'a'", "a", "\"'a'\" → a"),
        ("e\u0301", "\u00e9", r"'e\u0301' → '\xe9'"),
        ("größe", "it's", "größe → it's"),
    ],
)
def test_different_texts_look_different(expected: str | None, actual: str | None, shown: str) -> None:
    """Different texts look different: empty text, null, the word null, blanks, and invisible or similar characters."""
    rows = ComparedRow(RowKind.CHANGED, (expected,), (actual,), frozenset({0}))

    assert f"    ~   {shown}\n" in difference(rows)


def test_an_uncompared_value_is_left_open() -> None:
    """A column that a partial row does not compare is left open."""
    assert "    -   …\n" in difference(ComparedRow(RowKind.MISSING, (ANY,), None))


def test_json_distinguishes_null_from_text() -> None:
    """JSON distinguishes null from the text "null"."""
    only = RowDifference(None, ("text",), (ComparedRow(RowKind.MISSING, ("",), None),), HERE)
    failed = CaseResult("t", "m", HERE, Outcome.FAILED, differences=(only,))

    assert '"expected": {"text": ""}' in results_json([failed], [], succeeded=False)
