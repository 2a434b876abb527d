"""Formats results of unit tests as one JSON object, or as JUnit XML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from xml.etree import ElementTree as ET

from sqlstream.errors import Finding
from sqlstream.report.rows import json_text
from sqlstream.report.unit_tests_text import failure_text
from sqlstream.state.runs.case_outcomes import ANY, CaseResult, Outcome, Row, RowDifference, RowKind, ValueDifference

XML_KINDS = {Outcome.FAILED: "failure", Outcome.BROKEN: "error", Outcome.SKIPPED: "skipped"}


def results_json(results: Sequence[CaseResult], findings: Sequence[Finding], *, succeeded: bool) -> str:
    """Returns one JSON object with an entry for each test."""
    return json_text(
        {
            "succeeded": succeeded,
            "results": [result_entry(result) for result in results],
            "findings": [finding.as_json() for finding in findings],
        },
        indent=2,
    )


def result_entry(result: CaseResult) -> dict[str, object]:
    """Returns the result of one test as plain JSON values."""
    return {
        "name": result.name,
        "model": result.model,
        "status": str(result.outcome),
        "seconds": round(result.seconds, 3),
        "location": asdict(result.location),
        "differences": [_difference(difference) for difference in result.differences],
        "findings": [finding.as_json() for finding in result.findings],
        "notes": dict(result.notes),
    }


def _difference(difference: RowDifference | ValueDifference) -> dict[str, object]:
    location = asdict(difference.location)
    if isinstance(difference, ValueDifference):
        return {
            "what": difference.what,
            "expected": difference.expected,
            "actual": difference.actual,
            "location": location,
        }
    rows = [
        {
            "status": str(row.kind),
            "expected": _object(difference.columns, row.expected),
            "actual": _object(difference.columns, row.actual),
            "changed": [difference.columns[at] for at in sorted(row.changed)],
        }
        for row in difference.rows
        if row.kind is not RowKind.SAME
    ]
    return {
        "what": "table" if difference.of_table else "rows",
        "batch": difference.batch,
        "rows": rows,
        "location": location,
    }


def _object(columns: Sequence[str], row: Row | None) -> dict[str, object] | None:
    if row is None:
        return None
    return {name: value for name, value in zip(columns, row, strict=True) if value is not ANY}


def results_xml(results: Sequence[CaseResult], project: str) -> str:
    """Returns the results as JUnit XML for CI systems: one suite named `project`, and a class for each model."""
    outcomes = [result.outcome for result in results]
    root = ET.Element("testsuites")
    suite = ET.SubElement(
        root,
        "testsuite",
        name=project,
        tests=str(len(results)),
        failures=str(outcomes.count(Outcome.FAILED)),
        errors=str(outcomes.count(Outcome.BROKEN)),
        skipped=str(outcomes.count(Outcome.SKIPPED)),
        time=f"{sum(result.seconds for result in results):.3f}",
    )
    suite.extend(_xml_case(result, project) for result in results)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True)


def _xml_case(result: CaseResult, project: str) -> ET.Element:
    case = ET.Element(
        "testcase",
        classname=result.model or project,
        name=result.name,
        file=result.location.path,
        line=str(result.location.line),
        time=f"{result.seconds:.3f}",
    )
    if kind := XML_KINDS.get(result.outcome):
        text = failure_text(result, None)
        ET.SubElement(case, kind, message=text.split("\n", 1)[0]).text = text
    return case
