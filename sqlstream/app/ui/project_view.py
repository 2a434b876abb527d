"""A project for the page: compiled again when its files change, and its last manifest while it does not compile."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlstream.app.loading.artifacts import MANIFEST
from sqlstream.app.loading.load import LoadAttempt, Loaded, try_load
from sqlstream.app.loading.watching import Snapshot, take_snapshot
from sqlstream.app.request import ProjectRequest
from sqlstream.app.ui.shape import ProjectShape, shape_of
from sqlstream.compiler.manifest.manifest import build_manifest
from sqlstream.errors import Finding, FindingsError, UsageError
from sqlstream.project.files.files import ARTIFACTS_FOLDER, find_project_root

CHECK_SECONDS = 3.0
"""How often the files of the project are checked for changes."""


@dataclass(frozen=True)
class SeenProject:
    """A project at one time. `loaded` is None if it does not compile; `shape` and `manifest` are then those of the last
    compilation that another command has written. `findings` are errors and warnings.
    """

    name: str
    target: str | None
    targets: tuple[str, ...] = ()
    default_target: str | None = None
    shape: ProjectShape = field(default_factory=ProjectShape)
    manifest: Mapping[str, Any] = field(default_factory=dict)
    loaded: Loaded | None = None
    findings: tuple[Finding, ...] = ()
    problem: str | None = None


class ProjectView:
    """The project of `request`, which must find the folder. Compiles it on first use and after changes."""

    def __init__(self, request: ProjectRequest) -> None:
        self.request = replace(request, starts_java=False)
        self.root = find_project_root(request.folder)
        self._lock = threading.Lock()
        self._seen: SeenProject | None = None
        self._snapshot: Snapshot = {}
        self._checked_at = 0.0

    def seen(self) -> SeenProject:
        """Returns the project, compiled again if a file has changed since the last check."""
        with self._lock:
            if self._seen is not None and time.monotonic() < self._checked_at + CHECK_SECONDS:
                return self._seen
            snapshot = take_snapshot(self.root)
            if self._seen is None or snapshot != self._snapshot:
                self._seen, self._snapshot = self._look(), snapshot
            self._checked_at = time.monotonic()
            return self._seen

    def _look(self) -> SeenProject:
        try:
            attempt = try_load(self.request)
        except FindingsError as error:
            return self._broken(error.findings)
        except UsageError as error:
            return self._broken((), str(error))
        return self._broken(attempt.findings) if attempt.loaded is None else _compiled(attempt, attempt.loaded)

    def _broken(self, findings: tuple[Finding, ...], problem: str | None = None) -> SeenProject:
        """Returns a project that does not compile: its graph is the last one, or that of the manifest."""
        before = self._seen
        if before is not None and before.manifest:
            return replace(before, loaded=None, findings=findings, problem=problem)
        manifest = self._stored_manifest()
        name = str(manifest.get("metadata", {}).get("project_name", self.root.name))
        try:
            shape = shape_of(manifest) if manifest else ProjectShape()
        except (KeyError, TypeError, AttributeError):  # of another version
            manifest, shape = {}, ProjectShape()
        return SeenProject(name, self.request.target, (), None, shape, manifest, None, findings, problem)

    def _stored_manifest(self) -> Mapping[str, Any]:
        try:
            found = json.loads((self.root / ARTIFACTS_FOLDER / MANIFEST).read_bytes())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}


def _compiled(attempt: LoadAttempt, loaded: Loaded) -> SeenProject:
    project = loaded.compiled.project
    manifest = build_manifest(loaded.compiled, generated_at="", invocation_id="")
    shape = shape_of(manifest)
    return SeenProject(
        project.name,
        project.target.name,
        project.target_names,
        project.default_target,
        shape,
        manifest,
        loaded,
        attempt.findings,
    )
