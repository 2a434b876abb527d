"""Writes the change matrix in docs/state.md from tests/spark/changes/edits.py and read_edits.py.

    .venv/bin/python -m tests.tools.make_changes

tests/unit/docs/test_state_page.py fails when it is out of date, and `make changes` proves each row with Spark.
"""

from __future__ import annotations

import re
from pathlib import Path

from sqlstream.state.signature.harmless import GROUPS
from tests.spark.changes.edits import Edit
from tests.spark.changes.matrix import MATRIX
from tests.spark.changes.read_edits import READ_EDITS, ReadEdit

ROOT = Path(__file__).parents[2]

EDITS: tuple[Edit | ReadEdit, ...] = (*MATRIX, *READ_EDITS)

PAGE = ROOT / "docs" / "state.md"
HARMLESS = re.compile(r"(?s)(?<=<!-- harmless -->\n).*?(?=<!-- end of harmless -->)")
TABLE = re.compile(r"(?s)(?<=<!-- matrix -->\n).*?(?=<!-- end of matrix -->)")


def table() -> str:
    """Returns the matrix as a table of Markdown."""
    rows = [f"| {edit.kind} | {edit.text.replace('|', chr(92) + '|')} | {edit.expected} |" for edit in EDITS]
    return "\n".join(["", "| kind | edit | verdict |", "| --- | --- | --- |", *rows, "", ""])


def harmless() -> str:
    """Returns the list of what is known to be harmless as tables of Markdown."""
    lines = [""]
    for title, entries in GROUPS:
        lines += [f"**{title}**", "", "| names | why |", "| --- | --- |"]
        lines += [f"| {', '.join(f'`{name}`' for name in entry.names)} | {entry.reason} |" for entry in entries]
        lines.append("")
    return "\n".join([*lines, ""])


def fill(page: str) -> str:
    """Returns the page with the matrix and the list of today."""
    return HARMLESS.sub(lambda _: harmless(), TABLE.sub(lambda _: table(), page))


if __name__ == "__main__":
    PAGE.write_text(fill(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
