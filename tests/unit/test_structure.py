"""The package is easy to navigate: no import cycles, and each folder is in the architecture."""

from __future__ import annotations

import re
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "sqlstream"


def test_no_modules_import_each_other() -> None:
    """No modules import each other, directly or in a cycle; imports in functions and under TYPE_CHECKING count."""
    graph = grimp.build_graph("sqlstream")

    circles = [
        f"{module} <- ... <- {imported}"
        for module in sorted(graph.modules)
        for imported in sorted(graph.find_modules_directly_imported_by(module))
        if graph.chain_exists(imported, module)
    ]

    assert circles == []


def test_the_architecture_names_each_folder() -> None:
    """The architecture page describes each folder with a sentence."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = {name.removesuffix("/") for name in re.findall(r"^\| \**`([\w/]+/)`", page, re.MULTILINE)}
    folders = {file.parent.relative_to(PACKAGE).as_posix() for file in PACKAGE.rglob("__init__.py")} - {"."}

    assert named == folders | {"sqlstream"}


def test_the_architecture_names_modules_that_exist() -> None:
    """The modules that the architecture page names exist."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    paths = set(re.findall(r"`((?:app|cli|compiler|project|report|spark|state|testing)/[\w/]+\.py)`", page))

    assert [path for path in sorted(paths) if not (PACKAGE / path).is_file()] == []


def test_tests_share_code_through_packages() -> None:
    """No test imports another test, and none changes where Python looks for modules: shared code is in tests.support."""
    files = [file for file in (ROOT / "tests").rglob("*.py") if not {"projects", "fixtures"} & set(file.parts)]
    tricks = re.compile(
        r"^\s*(from (?!sqlstream\.)(\w+\.)*test_\w+ import|import test_|sys\.path\b|import runpy)", re.MULTILINE
    )

    assert [str(file) for file in files if tricks.search(file.read_text(encoding="utf-8"))] == []
