"""Cases of input and expected SQL: each starts at `-- in` and continues with `-- out`, `-- reads:` or findings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FIXTURES = Path(__file__).parents[1] / "unit" / "compiler" / "fixtures"
_SECTION = re.compile(r"^-- (?=in$|out$|reads:|error:|warning:)", re.MULTILINE)


@dataclass(frozen=True)
class SqlCase:
    """One case: `before` is the input, `after` the expected SQL (None for a case with findings only).

    `findings` are lines such as `error: misplaced-watermark 1:12`; `reads` is the text after `-- reads:`.
    """

    name: str
    before: str
    after: str | None
    findings: tuple[str, ...]
    reads: str


def read_cases(folder: str) -> list[SqlCase]:
    """Returns the cases of all files in a folder of fixtures, each named `file:line`."""
    return [case for path in sorted((FIXTURES / folder).glob("*.sql")) for case in _cases(path)]


def _cases(path: Path) -> Iterator[SqlCase]:
    text = path.read_text(encoding="utf-8")
    for match in re.finditer(r"^-- in$.*?(?=^-- in$|\Z)", text, re.MULTILINE | re.DOTALL):
        sections = [section.rstrip("\n") for section in _SECTION.split(match.group())[1:]]
        bodies = dict(section.split("\n", 1) for section in sections if section.startswith(("in\n", "out\n")))
        line = text.count("\n", 0, match.start()) + 1
        yield SqlCase(
            name=f"{path.stem}:{line}",
            before=bodies["in"],
            after=bodies.get("out"),
            findings=tuple(section for section in sections if section.startswith(("error", "warning"))),
            reads=next((section[6:].strip() for section in sections if section.startswith("reads")), ""),
        )
