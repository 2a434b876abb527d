"""A test raises every code of `CODES`, and docs/errors.md describes each with an up-to-date example."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sqlstream.codes import BRIEF, CODES, PROTECTS_ROWS, SPARK_DECIDES
from sqlstream.compiler.spark_versions import LISTED, TESTED
from tests.tools.make_errors import fill_examples

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "errors.md").read_text(encoding="utf-8")
EXPECTED = [path.read_text(encoding="utf-8") for path in sorted(TESTS.glob("projects/*/*/expected.txt"))]
EXAMPLES = re.findall(r"(?s)```text\n(.+?\n)```", PAGE)


def sources_of_tests() -> str:
    """Returns the text of all files in which tests name expected codes, except for this file."""
    kinds = ("unit/**/*.py", "spark/**/*.py", "unit/**/*.sql", "unit/**/*.txt")
    paths = [path for kind in kinds for path in TESTS.glob(kind) if path != Path(__file__)]
    return "\n".join([*EXPECTED, *(path.read_text(encoding="utf-8") for path in paths)])


RAISED = set(re.findall(r"(?<![\w-])[a-z0-9]+(?:-[a-z0-9]+)*(?![\w-])", sources_of_tests()))
"""Every word of the tests; splitting into words keeps `missing-variable` from counting as `missing-var`."""


@pytest.mark.parametrize("code", CODES)
def test_a_code_is_raised_by_some_test(code: str) -> None:
    """Every code is expected by some test; otherwise nothing may raise it."""
    assert code in RAISED


def test_the_page_has_all_codes_in_order() -> None:
    """The page has a heading for each code, in the order of `CODES`, followed by its sentence."""
    described = re.findall(r"(?m)^### (\S+)\n\n(.+)$", PAGE)

    assert described == list(CODES.items())


def test_the_page_lists_the_errors_that_can_be_lowered() -> None:
    """The page lists all errors that can be lowered, and then those that are warnings on a later Spark."""
    section = PAGE.split("### Errors that you can lower\n")[1].split("\n## ")[0]
    on_every_spark, on_a_later_one = section.split(f"Spark {TESTED[0]} to {TESTED[-1]}")

    assert set(re.findall(r"`([a-z]+(?:-[a-z]+)+)`", on_every_spark)) == SPARK_DECIDES | PROTECTS_ROWS
    assert set(re.findall(r"`([a-z]+(?:-[a-z]+)+)`", on_a_later_one)) == LISTED


@pytest.mark.parametrize("code", CODES)
def test_a_code_has_one_example_of_three_lines(code: str) -> None:
    """Each code has one example of three lines, or of one line if it is in `BRIEF`."""
    (example,) = [text for text in EXAMPLES if f"[{code}] " in text.splitlines()[0]]

    lines = [line for line in example.splitlines() if not line.startswith("  called from: ")]
    assert [line[:7] for line in lines[1:]] == ([] if code in BRIEF else ["  why: ", "  fix: "])


def test_the_examples_of_the_page_are_up_to_date() -> None:
    """The examples are up to date; otherwise run `python -m tests.tools.make_errors`, which copies them from projects."""
    assert fill_examples(PAGE) == PAGE


def test_an_example_is_matched_by_location() -> None:
    """An example is matched to its finding by location, so that changed wording reaches the page."""
    heading, example = "### unknown-ref\n\n", next(text for text in EXAMPLES if "[unknown-ref] " in text)
    old = re.sub(r"(?m)^(\S+ \[unknown-ref\]) .+\n  why: .+", r"\1 old words\n  why: an old reason", example)
    assert old != example

    page = fill_examples(f"{heading}An old sentence.\n\n```text\n{old}```\n\nProse.\n")

    assert page == f"{heading}{CODES['unknown-ref']}\n\n```text\n{example}```\n\nProse.\n"
