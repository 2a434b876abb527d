"""Writes the change matrix in docs/state.md from tests/spark/changes/edits.py.

    .venv/bin/python tests/tools/make_changes.py

tests/unit/docs/test_state_page.py fails when it is out of date, and `make changes` proves each row with Spark.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests" / "spark" / "changes"))

from edits import EDITS  # noqa: E402

PAGE = ROOT / "docs" / "state.md"
TABLE = re.compile(r"(?s)(?<=<!-- matrix -->\n).*?(?=<!-- end of matrix -->)")


def table() -> str:
    """Returns the matrix as a table of Markdown."""
    rows = [f"| {edit.kind} | {edit.text.replace('|', chr(92) + '|')} | {edit.expected} |" for edit in EDITS]
    return "\n".join(["", "| kind | edit | verdict |", "| --- | --- | --- |", *rows, "", ""])


def fill(page: str) -> str:
    """Returns the page with the matrix of today."""
    return TABLE.sub(lambda _: table(), page)


if __name__ == "__main__":
    PAGE.write_text(fill(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
