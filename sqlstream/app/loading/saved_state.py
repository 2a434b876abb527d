"""Reads the saved artifacts that `state:` and `source_status:` compare a project with."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlstream.app.loading.artifacts import MANIFEST, SOURCES
from sqlstream.compiler.manifest.manifest import MANIFEST_VERSION
from sqlstream.errors import UsageError
from sqlstream.project.files.files import ARTIFACTS_FOLDER

_MAPPINGS = ("metadata", "nodes", "sources", "sinks", "macro_files", "vars")
_ENTRIES = ("nodes", "sources", "sinks")


def read_state(path: Path) -> dict[str, Any]:
    """Returns the manifest at `path`, a manifest.json or its folder.

    Raises: UsageError if there is none, or another version of sqlstream has written it.
    """
    file = path / MANIFEST if path.is_dir() else path
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UsageError(f"--state: there is no {file}; use one that `sqlstream compile` has written") from error
    except OSError as error:
        raise UsageError(f"--state: {file} cannot be read: {(error.strerror or str(error)).lower()}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--state: {file} is not valid JSON; use a manifest.json of `sqlstream compile`") from error
    metadata = content.get("metadata") if isinstance(content, dict) else None
    version = metadata.get("manifest_version") if isinstance(metadata, dict) else None
    if version != MANIFEST_VERSION:
        found = "not a manifest of sqlstream" if version is None else f"a manifest of version {version}"
        needed = f"version {MANIFEST_VERSION} is needed: compile that project again"
        raise UsageError(f"--state: {file} is {found}; {needed}")
    if not _is_manifest(content):
        raise UsageError(f"--state: {file} is damaged; compile that project again")
    return dict(content)


def _is_manifest(content: dict[str, Any]) -> bool:
    if not all(isinstance(content.get(key), dict) for key in _MAPPINGS):
        return False
    entries = [entry for key in _ENTRIES for entry in content[key].values()]
    texts = content["macro_files"].values()
    return all(isinstance(entry, dict) for entry in entries) and all(isinstance(text, str) for text in texts)


def fresher_sources(folder: Path, root: Path) -> frozenset[str] | None:
    """Returns the ids of the sources with newer data in target/sources.json of the project at `root` than in the
    sources.json of `folder`. Sources without a result there are new. None if `folder` has no such file.

    Raises: UsageError if one of the files cannot be read, or the project has none.
    """
    if not (folder / SOURCES).is_file():
        return None
    current, before = root / ARTIFACTS_FOLDER / SOURCES, _loaded_at(folder / SOURCES)
    if not current.is_file():
        raise UsageError(f"--state: there is no {current} to compare; run `sqlstream source freshness` first")
    return frozenset(node for node, at in _loaded_at(current).items() if node not in before or at > before[node])


def _loaded_at(file: Path) -> dict[str, datetime]:
    """Returns the times of the newest data in the results of `source freshness`, without failed checks."""
    try:
        results = json.loads(file.read_text(encoding="utf-8"))["results"]
        times = [(each["unique_id"], each["max_loaded_at"]) for each in results if "max_loaded_at" in each]
        return {str(node): datetime.fromisoformat(time) for node, time in times}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"--state: {file} is not a result of `sqlstream source freshness`") from error
