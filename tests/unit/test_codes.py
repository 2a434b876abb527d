"""Every code of `CODES` is raised by a test and described in docs/errors.md, with an example that is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sqlstream.errors import BRIEF, CODES

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "errors.md").read_text(encoding="utf-8")
EXPECTED = [path.read_text(encoding="utf-8") for path in sorted(TESTS.glob("projects/broken/*/expected.txt"))]
EXAMPLES = re.findall(r"(?s)```text\n(.+?\n)```", PAGE)


def sources_of_tests() -> str:
    """The text of everything in which tests name the codes that they expect, this file aside."""
    kinds = ("unit/**/*.py", "spark/**/*.py", "unit/**/*.sql", "unit/**/*.txt")
    paths = [path for kind in kinds for path in TESTS.glob(kind) if path != Path(__file__)]
    return "\n".join([*EXPECTED, *(path.read_text(encoding="utf-8") for path in paths)])


RAISED = set(re.findall(r"(?<![\w-])[a-z0-9]+(?:-[a-z0-9]+)*(?![\w-])", sources_of_tests()))
"""Every word of the tests, so that `cycle` is found and `missing-variable` is no `missing-var`."""


@pytest.mark.parametrize("code", CODES)
def test_a_code_is_raised_by_some_test(code: str) -> None:
    """A code that no test expects may be one that nothing raises."""
    assert code in RAISED


def test_the_codes_of_the_page_are_those_of_the_code() -> None:
    """Each has its heading, in the same order, and below it the sentence of `CODES`."""
    described = re.findall(r"(?m)^### (\S+)\n\n(.+)$", PAGE)

    assert described == list(CODES.items())


@pytest.mark.parametrize("code", CODES)
def test_a_code_has_one_example_of_three_lines(code: str) -> None:
    """The example is what the broken projects print, where one of them raises the code."""
    (example,) = [text for text in EXAMPLES if f"[{code}] " in text.splitlines()[0]]
    printed = [text for text in EXPECTED if f"[{code}] " in text]

    lines = [line for line in example.splitlines() if not line.startswith("  called from: ")]
    assert [line[:7] for line in lines[1:]] == ([] if code in BRIEF else ["  why: ", "  fix: "])
    assert not printed or any(example in text for text in printed)
