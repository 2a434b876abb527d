"""Fills docs/errors.md with the sentence of each code and, if a test project raises the code, its example.

    .venv/bin/python -m tests.tools.make_errors

The sentence comes from `CODES`, the example from a file `expected.txt` in tests/projects. Among all findings of a code,
the tool takes the one at the location that the page already shows. Everything else on the page is written by hand,
including examples that no test project prints.
tests/unit/test_codes.py fails when the page is out of date.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path

from sqlstream.codes import CODES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "errors.md"
PROJECTS = ROOT / "tests" / "projects"

ENTRY = re.compile(r"(?ms)^### (?P<code>\S+)\n\n(?P<sentence>[^\n]+)\n\n```text\n(?P<example>.+?\n)```$")
FINDING = re.compile(
    r"(?m)^(?:(?P<place>\S+:\d+:\d+): )?(?:(?:warning|info): )?\[(?P<code>[a-z0-9-]+)\] .+\n(?:  .+\n)*"
)


def fill_examples(page: str) -> str:
    """Returns the page with updated sentences and examples."""
    return ENTRY.sub(_filled, page)


def _filled(entry: re.Match[str]) -> str:
    code = entry["code"]
    sentence = CODES.get(code, entry["sentence"])
    return f"### {code}\n\n{sentence}\n\n```text\n{_example(code, entry['example'])}```"


def _example(code: str, current: str) -> str:
    """Returns the finding of the test projects that is most similar to the current example, if possible at the same
    location.
    """
    findings = _findings().get(code)
    if not findings:
        return current
    place = _place(current)
    return max(findings, key=lambda text: (text == current, _place(text) == place, _similarity(text, current)))


@cache
def _findings() -> dict[str, list[str]]:
    """Returns all findings of the test projects by code, in the order of the projects."""
    found: dict[str, list[str]] = {}
    for path in sorted(PROJECTS.glob("*/*/expected.txt")):
        for finding in FINDING.finditer(path.read_text(encoding="utf-8")):
            found.setdefault(finding["code"], []).append(finding[0])
    return found


def _place(finding: str) -> str | None:
    match = FINDING.match(finding)
    return match["place"] if match else None


def _similarity(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other).ratio()


if __name__ == "__main__":
    PAGE.write_text(fill_examples(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
