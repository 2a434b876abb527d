"""Formats what a command has written, moved or removed as one JSON object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from sqlstream.errors import Finding
from sqlstream.report.findings import findings_json
from sqlstream.report.rows import json_text


def created_json(root: Path, files: Iterable[str]) -> str:
    """Returns the folder of a new project, and its files relative to it."""
    return json_text({"project": str(root), "files": list(files)}, indent=2)


def removed_json(removed: Path | None) -> str:
    """Returns the folder that was removed, null for none."""
    return json_text({"removed": None if removed is None else str(removed)}, indent=2)


def jars_json(spark: str, connectors: Iterable[Mapping[str, object]], lock: Path | None) -> str:
    """Returns the jars of each connector for a version of Spark, and the lock if it was written."""
    written = None if lock is None else str(lock)
    return json_text({"spark": spark, "connectors": list(connectors), "written": written}, indent=2)


def site_json(page: Path, nodes: int, size: int, warnings: Iterable[Finding]) -> str:
    """Returns the first page of a documentation site, its nodes and its bytes, and the warnings."""
    site = {"page": str(page), "nodes": nodes, "bytes": size, "findings": findings_json(warnings)}
    return json_text(site, indent=2)


def explanation_json(code: str, summary: str, page: str) -> str:
    """Returns the explanation of a code as a sentence and as a page of Markdown."""
    return json_text({"code": code, "summary": summary, "markdown": page}, indent=2)
