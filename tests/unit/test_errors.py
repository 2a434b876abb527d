"""The error tree and the table of codes."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import sqlstream
from sqlstream.codes import CODES
from sqlstream.errors import Finding, FindingsError, Severity, SqlstreamError, UsageError
from sqlstream.location import Location

PACKAGE = Path(sqlstream.errors.__file__).parent
PLACED = Finding("unknown-ref", "no model `a`", "why", "fix", Location("models/b.sql", 3, 2))
UNPLACED = Finding("java-missing", "none was found", "why", "fix", severity=Severity.WARNING)


def test_an_error_lists_its_findings() -> None:
    """The text of an error has code, location and message of each finding, for callers of the Python API."""
    error = FindingsError(iter([PLACED, UNPLACED]))

    assert error.findings == (PLACED, UNPLACED)
    assert str(error) == ("models/b.sql:3:2: [unknown-ref] no model `a`; warning: [java-missing] none was found")


def test_a_finding_always_has_three_lines() -> None:
    """A finding always has three lines, without line ends, terminal codes or overlong names from quoted text."""
    finding = Finding("unknown-ref", "no `a\r\nb`", "\x1b[31m\u202e", "x" * 5000, Location("a\nb.sql"))

    assert (finding.message, finding.why) == ("no `a  b`", " [31m ")
    assert len(finding.fix) < 1100
    assert finding.head == "a b.sql:1:1: [unknown-ref] no `a  b`"


def test_only_errors_stop_a_stage() -> None:
    """A finding is an error unless it has another severity, and only errors stop a stage."""
    assert PLACED.is_error
    assert not UNPLACED.is_error


def test_a_finding_is_plain_json() -> None:
    """A finding is plain JSON with numeric locations, also for its calls, and null for a missing location."""
    data = json.loads(json.dumps(replace(PLACED, calls=(Location("models/a.sql", 3, 1),)).as_json()))

    assert data == {
        "code": "unknown-ref",
        "severity": "error",
        "message": "no model `a`",
        "why": "why",
        "fix": "fix",
        "location": {"path": "models/b.sql", "line": 3, "column": 2},
        "calls": [{"path": "models/a.sql", "line": 3, "column": 1}],
    }
    assert UNPLACED.as_json()["location"] is None


@pytest.mark.parametrize("error", [FindingsError([PLACED]), UsageError("--vars is no mapping")])
def test_exceptions_have_one_base_class(error: Exception) -> None:
    """All deliberate exceptions have one base class, so one `except` catches them."""
    assert isinstance(error, SqlstreamError)


@pytest.mark.parametrize("code", CODES)
def test_a_code_is_words_with_hyphens_and_its_entry_a_sentence(code: str) -> None:
    """A code is words with hyphens, and its entry is a sentence."""
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", code)
    assert re.fullmatch(r"([A-Z]|sqlstream |[a-z_]+(?:\(\)|\.yml))[^\n]+\.", CODES[code])


def test_every_code_that_is_used_is_in_the_table() -> None:
    """Every code that is used is in the table."""
    used = {code for path in PACKAGE.rglob("*.py") for code in codes_in(path)}

    assert used - set(CODES) == set()


def codes_in(path: Path) -> Iterator[str]:
    """Yields the literal codes in a module's calls of `Finding`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding":
            codes = [*node.args[:1], *(keyword.value for keyword in node.keywords if keyword.arg == "code")]
            yield from (code.value for code in codes if isinstance(code, ast.Constant) and isinstance(code.value, str))
