"""`sqlstream explain`: shows the documentation of a finding's code."""

from __future__ import annotations

import re
from pathlib import Path

from sqlstream.codes import CODES
from sqlstream.errors import UsageError
from sqlstream.project.wording import did_you_mean

PACKAGE = Path(__file__).parents[1]
PAGES = (PACKAGE / "errors.md", PACKAGE.parent / "docs" / "errors.md")
"""The file with all pages: in an installed package, and in a checkout."""


def page_of(code: str) -> str:
    """Returns the page of `code` in Markdown, with its heading. Raises: UsageError for an unknown code."""
    if code not in CODES:
        raise UsageError(f"there is no finding with the code `{code}`; {did_you_mean(code, CODES)}")
    text = next(path for path in PAGES if path.exists()).read_text(encoding="utf-8")
    start = text.index(f"### {code}\n")
    following = re.compile(r"^##", re.MULTILINE).search(text, start + len("### "))
    return text[start : following.start() if following else len(text)].strip()
