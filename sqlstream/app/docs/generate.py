"""`sqlstream docs generate`: writes the documentation site of a project. Needs no Java."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sqlstream.app.compile.compile import choose
from sqlstream.app.docs.catalog import build_catalog
from sqlstream.app.loading.artifacts import write_compiled
from sqlstream.app.loading.atomic_writes import write_file
from sqlstream.app.loading.selected_findings import adding_project_errors, unselected_errors_line
from sqlstream.app.request import EVERYTHING, ProjectRequest, Selection
from sqlstream.app.test.unit_tests import open_tests
from sqlstream.errors import Finding
from sqlstream.web.site.page import site_files, static_page

DOCS_FOLDER = "docs"
"""The folder of the site, below target/."""

STATIC_PAGE = "static_index.html"
"""The site as one file, below target/; the name is dbt's."""


@dataclass(frozen=True)
class GeneratedDocs:
    """The page to open, the number of documented nodes and of bytes written, and warnings about them."""

    page: Path
    nodes: int
    size: int
    warnings: tuple[Finding, ...]


def generate_docs(
    request: ProjectRequest, selection: Selection = EVERYTHING, *, static: bool = False, compile_: bool = True
) -> GeneratedDocs:
    """Writes the site of the selected nodes, even if rules refuse a model: its page then shows the errors.

    `static`: one file that contains everything. `compile_`: also write what `sqlstream compile` writes.
    Raises: FindingsError if there is no SQL to show, or a unit test file cannot be read.
    """
    tested = open_tests(request)
    tested.check_readable()
    with adding_project_errors(tested.attempt, selection):
        chosen = choose(tested.loaded, selection)
    if tested.attempt.errors:
        request.notify(
            unselected_errors_line(len(tested.attempt.errors)).replace("that are not selected", "of the project")
        )
    if compile_:
        write_compiled(tested.loaded, chosen.models)
    began = tested.loaded.invocation.started_at.isoformat(timespec="seconds").replace("+00:00", "Z")
    catalog = build_catalog(tested, chosen.nodes, began)
    folder = tested.loaded.target_folder
    files = {STATIC_PAGE: static_page(catalog)} if static else _in_folder(site_files(catalog))
    contents = {name: text.encode() for name, text in files.items()}
    for name, content in contents.items():
        write_file(str(folder / name), content)
    page = folder / (STATIC_PAGE if static else f"{DOCS_FOLDER}/index.html")
    return GeneratedDocs(page, len(catalog["nodes"]), sum(map(len, contents.values())), chosen.findings)


def _in_folder(files: Mapping[str, str]) -> dict[str, str]:
    return {f"{DOCS_FOLDER}/{name}": text for name, text in files.items()}
