"""Renders a page of Markdown for a terminal."""

from __future__ import annotations

import io
import re

from rich.console import Console
from rich.markdown import Markdown

WIDEST = 100
"""The maximal length of a line, for readability."""

_HEADING = re.compile(r"#+ (.+)")
_LINK_WITHIN = re.compile(r"\[([^\]]+)\]\((?!\w+://)[^)]*\)")
"""A relative link to another page of the documentation, which a terminal cannot open."""

_TEMPLATED = re.compile(r"^(```(?:sql|yaml))$", re.MULTILINE)
_EMPTY_LINES = re.compile(r"\n{3,}")


def markdown_text(page: str, width: int | None) -> str:
    """Returns `page`, whose first line is its heading, with colors and line breaks for a terminal of `width`."""
    first, _, rest = page.partition("\n")
    heading = _HEADING.fullmatch(first)
    console = Console(file=io.StringIO(), force_terminal=True, width=min(width or WIDEST, WIDEST), highlight=False)
    with console.capture() as capture:
        if heading is not None:
            console.print(heading[1], style="bold")
        body = _LINK_WITHIN.sub(r"\1", rest if heading is not None else page)
        body = _TEMPLATED.sub(r"\1+jinja", body)
        console.print(Markdown(body, code_theme="ansi_dark", hyperlinks=False))
    lines = "\n".join(line.rstrip() for line in capture.get().rstrip().splitlines())
    return _EMPTY_LINES.sub("\n\n", lines)
