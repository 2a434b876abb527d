"""Fills the table of changes in docs/schema-changes.md from the one that tests/spark/test_drift.py checks.

    .venv/bin/python -m tests.tools.make_drift

It is between `<!-- drift -->` and `<!-- end of drift -->`; everything else is written by hand.
tests/unit/test_documentation.py fails when the page is out of date.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.drift import FORMATS, RESULTS

PAGE = Path(__file__).parents[2] / "docs" / "schema-changes.md"

TABLE = re.compile(r"(?s)(?<=<!-- drift -->\n).*?(?=<!-- end of drift -->)")

_VALUE = re.compile(r"`(\w+)` is (.*?)(?=, new field|$)")
_NEW = re.compile(r"new field (.*)$")


def fill_drift(page: str) -> str:
    """Returns the page with the current table."""
    lines = [f"| the data | {' | '.join(FORMATS)} |", f"| --- |{' --- |' * len(FORMATS)}"]
    lines += [f"| {name} | {' | '.join(map(_shown, results))} |" for name, results in RESULTS.items()]
    return TABLE.sub(lambda _: "\n".join(lines) + "\n", page)


def _shown(result: str) -> str:
    """Returns a result with its values as code."""
    shown = _VALUE.sub(lambda found: f"`{found[1]}` is `{found[2]}`", result)
    return _NEW.sub(lambda found: f"new: `{found[1]}`", shown) or "–"


if __name__ == "__main__":
    PAGE.write_text(fill_drift(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
