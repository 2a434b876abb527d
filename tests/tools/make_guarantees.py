"""Fills the tables of guarantees in docs/concepts.md and of kept values in docs/configuration.md from those in the code.

    .venv/bin/python -m tests.tools.make_guarantees

They are between `<!-- guarantees -->` and `<!-- end of guarantees -->`, `<!-- kept values -->` and
`<!-- end of kept values -->`; everything else is written by hand.
tests/unit/test_documentation.py fails when the page is out of date.
"""

from __future__ import annotations

import re
from pathlib import Path

from sqlstream.project.formats.guarantees import guarantee_rows
from sqlstream.project.formats.kept_values import kept_rows

PAGE = Path(__file__).parents[2] / "docs" / "concepts.md"
VALUES_PAGE = PAGE.with_name("configuration.md")

TABLE = re.compile(r"(?s)(?<=<!-- guarantees -->\n).*?(?=<!-- end of guarantees -->)")


VALUES_TABLE = re.compile(r"(?s)(?<=<!-- kept values -->\n).*?(?=<!-- end of kept values -->)")


def fill_table(page: str) -> str:
    """Returns the page with the current table."""
    return TABLE.sub(lambda _: guarantee_table(), page)


def fill_values(page: str) -> str:
    """Returns the page with the current table of kept values."""
    lines = ["| sink | values that change |", "| --- | --- |"]
    lines += [f"| {', '.join(f'`{name}`' for name in names)} | {changes} |" for names, changes in kept_rows()]
    return VALUES_TABLE.sub(lambda _: "\n".join(lines) + "\n", page)


def guarantee_table() -> str:
    """Returns the table, one row for each group of formats and modes."""
    lines = ["| sink | mode | rows | how |", "| --- | --- | --- | --- |"]
    for formats, modes, guarantee in guarantee_rows():
        names = ", ".join(f"`{name}`" for name in formats)
        lines.append(f"| {names} | {', '.join(modes)} | {guarantee.rows} | {guarantee.means} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(fill_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    VALUES_PAGE.write_text(fill_values(VALUES_PAGE.read_text(encoding="utf-8")), encoding="utf-8")
