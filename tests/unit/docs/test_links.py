"""Every link between the documentation pages is valid."""

from __future__ import annotations

import re

import pytest

from tests.tools.doc_blocks import PAGES, ROOT

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def anchors(page: str) -> set[str]:
    """Returns the anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"(?ms)^```.*?^```$", "", (ROOT / page).read_text(encoding="utf-8"))
    found: set[str] = set()
    for heading in re.findall(r"(?m)^#+ (.+)$", text):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        number = 0
        while (name := f"{anchor}-{number}" if number else anchor) in found:
            number += 1
        found.add(name)
    return found


@pytest.mark.parametrize("page", PAGES)
def test_every_link_is_valid(page: str) -> None:
    """Each link leads to an existing file or folder, and to an existing heading."""
    text = re.sub(r"(?ms)^```.*?^```$", "", (ROOT / page).read_text(encoding="utf-8"))
    lost = []
    for target in LINK.findall(text):
        if target.startswith(("https://", "http://")):
            continue
        path, _, anchor = target.partition("#")
        file = (ROOT / page).parent / path if path else ROOT / page
        is_there = file.exists() and file.resolve().is_relative_to(ROOT)
        if not is_there or (anchor and anchor not in anchors(file.resolve().relative_to(ROOT).as_posix())):
            lost.append(target)

    assert lost == []


def test_every_page_can_be_reached_from_the_readme() -> None:
    """Each page of docs/ can be reached from the README, directly or through other pages."""
    reached, ahead = set(), ["README.md"]
    while ahead:
        page = ahead.pop()
        if page not in reached:
            reached.add(page)
            links = LINK.findall((ROOT / page).read_text(encoding="utf-8"))
            files = [(ROOT / page).parent / link.partition("#")[0] for link in links if "://" not in link]
            names = [file.resolve().relative_to(ROOT).as_posix() for file in files if file.resolve().exists()]
            ahead += [name for name in names if name.endswith(".md")]

    assert [page for page in PAGES if page.startswith("docs/") and page not in reached] == []
