"""Fills the table of guarantees in docs/concepts.md from the table in the code.

    .venv/bin/python tests/tools/make_guarantees.py

The table is between `<!-- guarantees -->` and `<!-- end of guarantees -->`; everything else is written by hand.
tests/unit/test_documentation.py fails when the page is out of date.
"""

from __future__ import annotations

import re
from pathlib import Path

from sqlstream.project.formats.guarantees import guarantee_rows

PAGE = Path(__file__).parents[2] / "docs" / "concepts.md"

TABLE = re.compile(r"(?s)(?<=<!-- guarantees -->\n).*?(?=<!-- end of guarantees -->)")


def fill_table(page: str) -> str:
    """Returns the page with the current table."""
    return TABLE.sub(lambda _: guarantee_table(), page)


def guarantee_table() -> str:
    """Returns the table, one row for each group of formats and modes."""
    lines = ["| sink | mode | rows | how |", "| --- | --- | --- | --- |"]
    for formats, modes, guarantee in guarantee_rows():
        names = ", ".join(f"`{name}`" for name in formats)
        lines.append(f"| {names} | {', '.join(modes)} | {guarantee.rows} | {guarantee.means} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(fill_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
