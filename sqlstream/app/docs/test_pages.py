"""The pages of unit tests: what they test, and the test as written."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from sqlstream.app.docs.model_pages import described
from sqlstream.app.test import TestedProject, unit_test_id
from sqlstream.compiler.node_ids import model_id
from sqlstream.location import Location
from sqlstream.project.files.files import ProjectFiles


def test_entries(tested: TestedProject, chosen: Collection[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the id and the entry of each unit test of the models `chosen`."""
    project = tested.loaded.compiled.project
    files = ProjectFiles(project.root)
    texts: dict[str, list[str]] = {}
    for test in tested.tests.cases:
        model = model_id(project.name, test.model)
        if model not in chosen:
            continue
        place = test.location
        if place.path not in texts:
            texts[place.path] = (files.try_read(place.path, []) or "").splitlines()
        entry = {
            "kind": "test",
            "name": test.name,
            "model": model,
            "path": place.path,
            "line": place.line,
            **described(test.document.description),
            "tags": sorted(test.tags),
            "language": "text",
            "raw": _as_written(texts[place.path], place),
            "given": [given.text for given in test.given],
            "tested_in": model,
        }
        yield unit_test_id(project.name, test.model, test.name), entry


def _as_written(lines: list[str], place: Location) -> str:
    """Returns the item of a YAML list that contains `place`: its lines, without their indentation."""
    start = place.line - 1
    while start > 0 and not lines[start].lstrip().startswith("- "):
        start -= 1
    indent = len(lines[start]) - len(lines[start].lstrip())
    end = start + 1
    while end < len(lines) and (not lines[end].strip() or len(lines[end]) - len(lines[end].lstrip()) > indent):
        end += 1
    return "\n".join(line[indent:] for line in lines[start:end]).rstrip() + "\n"
