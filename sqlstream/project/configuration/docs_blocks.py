"""The `docs` blocks in Markdown files: named texts that descriptions in YAML include with `{{ doc('name') }}`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sqlstream.errors import Finding
from sqlstream.location import Location, location_at
from sqlstream.project.configuration.validate import SeenNames
from sqlstream.project.files.files import ProjectFiles
from sqlstream.project.wording import quoted

FOLDERS = ("models", "seeds", "macros", "sources", "sinks")
"""The folders whose Markdown files, at any depth, can contain docs blocks: as in dbt, those with resources."""

OVERVIEW = "__overview__"
"""The block that dbt shows on the first page of its documentation."""


@dataclass(frozen=True)
class DocsBlock:
    """One `{% docs name %}` block: its text without the white space around it, and the location of its tag."""

    name: str
    text: str
    location: Location


_TAG = re.compile(r"\{#.*?#\}|\{%[-+]?\s*(?P<word>docs|enddocs)\b(?P<rest>.*?)[-+]?%\}", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_]\w*")


def load_docs_blocks(files: ProjectFiles, findings: list[Finding]) -> tuple[DocsBlock, ...]:
    """Returns all docs blocks, sorted by name, and adds the errors in them to `findings`.

    A block without an end has the rest of its file, so that descriptions that use it are no further errors.
    """
    names = SeenNames("docs blocks")
    blocks: list[DocsBlock] = []
    for path in (path for folder in FOLDERS for path in files.list_files(folder, ".md").paths):
        text = files.try_read(path, findings)
        blocks += () if text is None or "{%" not in text else read_docs_blocks(path, text, findings)
    kept = [block for block in blocks if names.add(block.name, block.location, findings)]
    return tuple(sorted(kept, key=lambda block: block.name))


def read_docs_blocks(path: str, text: str, findings: list[Finding]) -> Iterator[DocsBlock]:
    """Yields the blocks of one file. Text outside of blocks, and blocks in `{# comments #}`, do not count."""
    opened: re.Match[str] | None = None
    for tag in _TAG.finditer(text):
        if tag["word"] is None:
            continue
        here = location_at(path, text, tag.start())
        if tag["word"] == "docs":
            if opened is not None:
                findings.append(_without_end(_name_of(opened), location_at(path, text, opened.start())))
                yield _block(path, text, opened, tag.start())
            opened = tag
            if not _NAME.fullmatch(_name_of(tag)):
                findings.append(_wrong_name(_name_of(tag), here))
        elif opened is None:
            findings.append(_without_start(here))
        else:
            yield _block(path, text, opened, tag.start())
            opened = None
    if opened is not None:
        findings.append(_without_end(_name_of(opened), location_at(path, text, opened.start())))
        yield _block(path, text, opened, len(text))


def _block(path: str, text: str, opened: re.Match[str], end: int) -> DocsBlock:
    return DocsBlock(_name_of(opened), text[opened.end() : end].strip(), location_at(path, text, opened.start()))


def _name_of(tag: re.Match[str]) -> str:
    return str(tag["rest"]).strip()


def _without_end(name: str, location: Location) -> Finding:
    return Finding(
        "docs-block",
        f"the docs block {quoted(name)} has no end",
        "a block continues to `{% enddocs %}`, and cannot contain another block",
        "add `{% enddocs %}` after its text",
        location,
    )


def _without_start(location: Location) -> Finding:
    return Finding(
        "docs-block",
        "`{% enddocs %}` ends no docs block",
        "there is no `{% docs name %}` before it in this file, or another `{% enddocs %}` has already ended it",
        "remove it, or add `{% docs name %}` before the text",
        location,
    )


def _wrong_name(name: str, location: Location) -> Finding:
    return Finding(
        "docs-block",
        f"a docs block cannot have the name {quoted(name)}" if name else "a docs block has no name",
        "the name of a block is one word of letters, digits and `_`, which doc() repeats in quotes",
        "for example, `{% docs order_status %}`",
        location,
    )
