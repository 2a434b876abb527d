"""The documentation site of the live page, and the entries of its search, from the project as it is in memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from sqlstream.app.docs.catalog import build_catalog
from sqlstream.app.loading.load import LoadAttempt, Loaded
from sqlstream.app.request import ProjectRequest
from sqlstream.app.test.unit_tests import TestedProject, unit_tests_of
from sqlstream.app.ui.project_view import SeenProject
from sqlstream.compiler.graph import SEED, SINK, SOURCE, kind_of
from sqlstream.errors import FindingsError
from sqlstream.web.server.protocol import UnknownQueryError
from sqlstream.web.site.markdown import markdown_words
from sqlstream.web.site.page import site_page

LIVE = "../"
"""The live page, as seen from `/docs/`."""


class DocsPages:
    """Makes the site of a target when somebody opens it, once for each compilation."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: dict[str | None, tuple[SeenProject, str]] = {}

    def page(self, seen: SeenProject, request: ProjectRequest) -> str:
        """Returns the page. While the project does not compile, this is the page of its last compilation.

        Raises: UnknownQueryError if there is none.
        """
        with self._lock:
            made = self._made.get(seen.target)
            if made is not None and (made[0] is seen or seen.loaded is None):
                return made[1]
            try:
                page = _page(seen, request)
            except FindingsError as error:
                if made is None:
                    raise UnknownQueryError("the project does not compile, so it has no documentation yet") from error
                page = made[1]
            self._made[seen.target] = (seen, page)
            return page


def _page(seen: SeenProject, request: ProjectRequest) -> str:
    """Returns the page of a project. Raises: FindingsError if it does not compile."""
    attempt = LoadAttempt(seen.loaded, seen.findings)
    loaded = attempt.readable()
    tested = TestedProject(request, attempt, loaded, unit_tests_of(loaded, request))
    at = loaded.invocation.started_at.isoformat(timespec="seconds").replace("+00:00", "Z")
    return site_page(build_catalog(tested, loaded.compiled.graph.order, at, LIVE))


def search_entries(seen: SeenProject) -> Iterator[dict[str, Any]]:
    """Yields what the search finds: each source, seed, model, sink and exposure with its words, as `assets/search.js`
    describes.
    """
    kinds = {node.unique_id: node for node in seen.shape.nodes}
    parts = ("nodes", "sources", "sinks", "exposures")
    for node, entry in ((node, entry) for part in parts for node, entry in seen.manifest.get(part, {}).items()):
        shown = kinds.get(node)
        described = entry.get("columns") or {}
        known = [column["name"] for column in entry.get("output_columns") or ()] or _fields(seen.loaded, node)
        yield {
            "id": node,
            "kind": shown.kind if shown else entry["resource_type"],
            "name": shown.name if shown else entry["name"],
            "words": markdown_words(entry.get("description") or ""),
            "tags": list(entry.get("tags") or ()),
            "path": entry.get("path") if entry["resource_type"] not in (SOURCE, SINK) else None,
            "columns": known or list(described),
            "column_words": " ".join(markdown_words(each.get("description") or "") for each in described.values()),
            "sql": entry.get("raw_code") or "",
        }


def _fields(loaded: Loaded | None, node: str) -> list[str]:
    """Returns the columns of a source or a seed, none if they are unknown."""
    if loaded is None or kind_of(node) not in (SOURCE, SEED) or node not in loaded.compiled.graph.parents:
        return []
    return [field.name for field in loaded.compiled.known_columns(node) or ()]
