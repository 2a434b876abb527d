"""Writes docs/rules.md: every rule of the compiler, and the queries that only Spark can judge.

    .venv/bin/python -m tests.tools.make_rules

The text of a rule is its function's docstring. Each code links to docs/errors.md. The corpus marks the queries that only
Spark can judge. tests/unit/test_documentation.py fails when the page is out of date.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

from sqlstream.codes import CODES
from sqlstream.compiler import rules
from sqlstream.compiler.rules import sources
from sqlstream.compiler.rules.rule import Rule
from tests.corpus.corpus_cases import read_cases

ROOT = Path(__file__).parents[2]

PAGE = ROOT / "docs" / "rules.md"
ERRORS = ROOT / "docs" / "errors.md"
NAMES = "Names and streaming queries"
"""The section of docs/errors.md that also has codes without a rule: wrong names and types."""

INTRODUCTION = """# Rules

`sqlstream compile` applies these rules in milliseconds, without Java. A rule never refuses a query that Spark runs correctly:
if it cannot be sure, it reports nothing, and `sqlstream compile --check` asks Spark. `make corpus` compares the rules with
Spark's own verdicts on a corpus of queries.

Each code links to its description, which `sqlstream explain CODE` also prints. Errors stop a command. You can lower
warnings, infos and [some errors](errors.md#errors-that-you-can-lower). This page is generated from the code of the rules.
"""

SPARK_ONLY = """## Queries that only Spark can check

Spark refuses these queries of the corpus, but the compiler cannot. `sqlstream compile --check` lets Spark analyze every
query. Errors that depend on the data occur only when the query reads such data.

| query | why |
| --- | --- |
"""


def make_page() -> str:
    """Returns the whole page."""
    sections = [_section(title, found) for title, found in _themes()]
    return "\n".join([INTRODUCTION, *sections, _names(), SPARK_ONLY + "".join(_unknown())])


def _themes() -> Iterator[tuple[str, list[Rule[object, object]]]]:
    """Yields each module of rules: the first sentence of its docstring, and its rules in the order of the file."""
    for info in walk_packages(rules.__path__, f"{rules.__name__}."):
        module = import_module(info.name)
        found = [value for value in vars(module).values() if isinstance(value, Rule)]
        own = [item for item in found if item.check.__module__ == module.__name__]
        if own:
            yield re.split(r"\.(?:\s|$)", module.__doc__ or "")[0].replace("\n", " "), own


def _section(sentence: str, found: list[Rule[object, object]]) -> str:
    title, *rest = re.sub(r"^Rules (on|about) ", "", sentence).split(": ", 1)
    lines = [f"## {title[0].upper()}{title[1:]}", ""]
    if rest:
        lines += [f"{rest[0][0].upper()}{rest[0][1:]}.", ""]
    lines += ["| code | severity | rule |", "| --- | --- | --- |"]
    lines += [f"| {', '.join(map(_link, item.codes))} | {item.severity} | {item.sentence} |" for item in found]
    return "\n".join([*lines, ""])


def _names() -> str:
    """Returns the table of codes for names and types that are in no rule's table."""
    section = re.split(r"(?m)^## ", ERRORS.read_text(encoding="utf-8").split(f"## {NAMES}\n", 1)[1])[0]
    # codes of rules on declarations also apply to queries
    rules_on_queries = [item for _, found in _themes() for item in found if item.check.__module__ != sources.__name__]
    ruled = {code for item in rules_on_queries for code in item.codes}
    codes = [code for code in re.findall(r"(?m)^### (\S+)$", section) if code not in ruled]
    rows = [f"| {_link(code)} | {CODES[code]} |" for code in codes]
    return "\n".join(["## Names, types and clauses", "", "| code | meaning |", "| --- | --- |", *rows, ""])


def _unknown() -> Iterator[str]:
    for case in read_cases():
        if case.unknown_because is not None:
            yield f"| `{case.name}` | {case.unknown_because} |\n"


def _link(code: str) -> str:
    return f"[{code}](errors.md#{code})"


if __name__ == "__main__":
    PAGE.write_text(make_page(), encoding="utf-8")
