"""Findings in text and JSON."""

from __future__ import annotations

import json
from dataclasses import replace

from sqlstream.errors import Finding, Severity
from sqlstream.location import Location
from sqlstream.report.findings import finding_text, findings_json, findings_text, refusal_json, sort_findings

FINDING = Finding(
    "unknown-column",
    "`amout` is not a column of source `shop.orders`",
    "sources.yml:12 declares order_id, amount, ordered_at",
    "did you mean `amount`?",
    Location("models/orders/orders_by_minute.sql", 7, 14),
)
WARNING = replace(FINDING, code="unused-config", severity=Severity.WARNING, location=None)


def test_a_finding_is_three_lines() -> None:
    """A finding has three lines: location and message, why, and fix."""
    assert finding_text(FINDING) == (
        "models/orders/orders_by_minute.sql:7:14: [unknown-column] `amout` is not a column of source `shop.orders`\n"
        "  why: sources.yml:12 declares order_id, amount, ordered_at\n"
        "  fix: did you mean `amount`?"
    )


def test_a_long_finding_is_shortened() -> None:
    """A reason of a megabyte, such as a message that quotes the data, is shortened in text but not in JSON."""
    found = replace(FINDING, why="x" * 1_000_000, message="y" * 1_000_000)

    assert len(finding_text(found)) < 10_000
    assert findings_json([found])[0]["why"] == found.why


def test_a_warning_is_marked() -> None:
    """A warning is marked as one, also without a location."""
    assert finding_text(WARNING).startswith("warning: [unused-config] `amout`")


def test_calls_of_macros_are_listed_from_the_inside_out() -> None:
    """Calls that lead into a macro are listed from the inside out, ending with the line in the model."""
    calls = (Location("models/a.sql", 3, 1), Location("macros/outer.sql", 2, 5))
    found = replace(FINDING, location=Location("macros/inner.sql", 4, 2), calls=calls)

    assert finding_text(found).splitlines()[:3] == [
        "macros/inner.sql:4:2: [unknown-column] `amout` is not a column of source `shop.orders`",
        "  called from: macros/outer.sql:2:5",
        "  called from: models/a.sql:3:1",
    ]


def test_findings_are_sorted_deduplicated_and_counted() -> None:
    """Findings are listed once, by file, line and column number, then those without location; errors are counted."""
    places = [Location("b.sql"), Location("a.sql", 10, 1), Location("a.sql", 9, 12), Location("a.sql", 9, 2)]
    found = [WARNING, *(replace(FINDING, location=place) for place in places), WARNING]

    lines = findings_text(found).splitlines()

    assert [line.split(": ")[0] for line in lines[::3]] == [
        "a.sql:9:2",
        "a.sql:9:12",
        "a.sql:10:1",
        "b.sql:1:1",
        "warning",
        "4 errors",
    ]


def test_one_error_is_not_counted() -> None:
    """A single error has no count."""
    assert findings_text([FINDING]) == finding_text(FINDING)


def test_findings_at_one_location_keep_their_order() -> None:
    """Findings at one location keep the order of the stage that found them."""
    first, second = replace(FINDING, code="unknown-ref"), replace(FINDING, code="cycle")

    assert sort_findings([first, second]) == [first, second]


def test_a_refusal_is_one_json_object() -> None:
    """A refusal is one JSON object without a result, with each finding once, in the order of the text."""
    data = json.loads(refusal_json([WARNING, FINDING, FINDING]))

    assert data == {"succeeded": False, "findings": findings_json([FINDING, WARNING])}
    assert [entry["code"] for entry in data["findings"]] == [FINDING.code, WARNING.code]
