"""Fills the table of the uses of the JVM in docs/architecture.md from the docstrings.

    .venv/bin/python -m tests.tools.make_connect

The table is between `<!-- jvm -->` and `<!-- end of jvm -->`. A use is a function or class of `spark/` whose code reads a field
of PySpark that holds an object of the JVM, or whose docstring, or that of its module, says what happens over Connect.
tests/unit/test_documentation.py fails when the page is out of date.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
PACKAGE = ROOT / "sqlstream" / "spark"

_FIELD = re.compile(r"_j(?:df|vm|sparkSession|sc|sq|o|dc)|_gateway|_sc|sparkContext")
"""The fields and properties of PySpark that lead to the JVM."""
_ANSWER = re.compile(r"(?s)Over\s+Connect:\s+(.*?)(?:\n\n|$)")

Definition = ast.FunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Use:
    """A use of the JVM: its module, the name of the function or class, and what sqlstream does over Connect."""

    module: str
    name: str
    answer: str


def uses() -> list[Use]:
    """Returns all uses, in the order of their modules. Raises: AssertionError for one without an answer."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        name = path.relative_to(PACKAGE).as_posix()
        of_module = _answer(tree)
        if of_module:
            found.append(Use(name, "the module", of_module))
        for node in _definitions(tree):
            answer = _answer(node)
            assert answer or of_module or not _reads_jvm(node), (
                f"{name}: {node.name} does not say what it does over Connect"
            )
            if answer:
                found.append(Use(name, node.name, answer))
    return found


def _definitions(tree: ast.Module) -> Iterator[Definition]:
    found = (node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef))
    return (node for node in found if not node.name.startswith("_") or _reads_jvm(node))


def _reads_jvm(node: Definition) -> bool:
    return any(isinstance(each, ast.Attribute) and _FIELD.fullmatch(each.attr) for each in ast.walk(node))


def _answer(node: ast.Module | Definition) -> str:
    text = ast.get_docstring(node) or ""
    match = _ANSWER.search(text)
    if match is None:
        return ""
    return " ".join(match[1].split()).strip(" .")


def fill_table(page: str) -> str:
    """Returns the page with the current table."""
    rows = [f"| `{use.module}` | `{use.name}` | {use.answer} |" for use in uses()]
    table = "\n".join(["| module | function or class | over Connect |", "| --- | --- | --- |", *rows]) + "\n"
    return re.sub(r"(?s)(?<=<!-- jvm -->\n).*?(?=<!-- end of jvm -->)", lambda _: table, page)


if __name__ == "__main__":
    PAGE.write_text(fill_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
