"""Markdown pages in a terminal."""

from __future__ import annotations

import re

from sqlstream.app.explain import page_of
from sqlstream.codes import CODES
from sqlstream.report.markdown import markdown_text

PAGE = """### unknown-ref

ref() names [no model](#models), see [dbt](https://docs.getdbt.com).

```sql
select * from {{ ref('x') }}
```
"""


def plain(text: str) -> str:
    """Returns `text` without terminal colours."""
    return re.sub(r"\x1b\[[\d;]*m", "", text)


def test_headings_and_code_have_no_marks() -> None:
    """Headings and code lose their marks, and relative links become text; web addresses stay."""
    text = plain(markdown_text(PAGE, 80))

    assert text.splitlines() == [
        "unknown-ref",
        "ref() names no model, see dbt (https://docs.getdbt.com).",
        "",
        " select * from {{ ref('x') }}",
    ]


def test_every_page_fits_a_narrow_terminal() -> None:
    """No line is longer than the terminal is wide."""
    widest = max(len(line) for code in CODES for line in plain(markdown_text(page_of(code), 60)).splitlines())

    assert widest <= 60
