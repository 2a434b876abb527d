"""`sqlstream dev`: shows the first rows of models, or their findings, again after each change of a file."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from sqlstream.app.loading.watching import changed_paths, take_snapshot, wait_for_change
from sqlstream.app.session.signals import interruptible
from sqlstream.app.show.show import NodesToShow, ShowRequest, choose
from sqlstream.errors import Finding, FindingsError
from sqlstream.numbers import plural, seconds_text
from sqlstream.project.files.files import find_project_root
from sqlstream.report.findings import findings_text
from sqlstream.report.rows import rows_text
from sqlstream.state.shown_rows import ShownRows

if TYPE_CHECKING:  # loads pyspark
    from sqlstream.app.show.show_session import Previews

SHOWN_PATHS = 3
"""The number of changed files to name. After switching a branch there may be hundreds."""


@dataclass(frozen=True)
class RefreshResult:
    """The rows or findings after the files `changed` (none the first time), and how long they took."""

    changed: tuple[str, ...]
    nodes: tuple[ShownRows, ...]
    findings: tuple[Finding, ...]
    seconds: float


def watch_rows(request: ShowRequest, notify: Callable[[str], None], show: Callable[[RefreshResult], None]) -> None:
    """Calls `show` at once, and again after each change of the project's files, until Ctrl-C or SIGTERM.

    Spark starts once, and restarts only if the target changes. `notify` gets progress messages.
    Raises: FindingsError if there is no project, PySpark or Java; UsageError.
    """
    from sqlstream.app.session.session import check_installed  # loads pyspark
    from sqlstream.app.show.show_session import Previews

    with suppress(KeyboardInterrupt), interruptible() as signals:
        check_installed(request.project.env, signals, starts=not _is_remote(request))
        with closing(Previews(request.project.env, notify, signals)) as previews:
            _watch(request, previews, show)


def _is_remote(request: ShowRequest) -> bool:
    """Returns whether Spark runs in a server of Spark Connect, as far as the project can be read now."""
    with suppress(FindingsError):
        return choose(request).loaded.compiled.project.target.remote is not None
    return False


def _watch(request: ShowRequest, previews: Previews, show: Callable[[RefreshResult], None]) -> None:
    root = find_project_root(request.project.folder)
    others: tuple[str, ...] = ()
    seen = take_snapshot(root)
    changed: tuple[str, ...] = ()
    while True:
        began = time.monotonic()
        try:
            chosen = choose(request)
            others = _schema_files(chosen)
            nodes = previews.show(chosen.loaded, chosen.nodes, request.limit)
            show(RefreshResult(changed, nodes, chosen.warnings, time.monotonic() - began))
        except FindingsError as error:
            show(RefreshResult(changed, (), error.findings, time.monotonic() - began))
        # a file that is watched for the first time is unchanged; one that was saved since `seen` is changed
        seen = {**{path: state for path, state in take_snapshot(root, others).items() if path in others}, **seen}
        after = wait_for_change(root, others, seen)
        changed, seen = changed_paths(seen, after), after


def _schema_files(chosen: NodesToShow) -> tuple[str, ...]:
    """Returns the files besides YAML that declare schemas. They may be anywhere in the project."""
    tables = chosen.loaded.compiled.project.sources
    return tuple({table.spark_schema.location.path for table in tables if table.spark_schema is not None})


def refreshed_text(
    at: datetime,
    changed: Sequence[str],
    nodes: Sequence[ShownRows],
    findings: Sequence[Finding],
    seconds: float,
    width: int | None,
) -> str:
    """Returns a line with the time and the changed files, then the findings and the rows, and a blank line."""
    parts = [f"{at:%H:%M:%S}  {_changes(changed)} ({seconds_text(seconds)})"]
    if findings:
        parts.append(findings_text(findings))
    parts += [f"{rows_text(node, width)}\n" for node in nodes]
    return "\n".join(parts) + ("" if nodes else "\n")


def _changes(changed: Sequence[str]) -> str:
    if not changed:
        return "Watching the project files; press Ctrl-C to stop"
    others = len(changed) - SHOWN_PATHS
    more = f" and {plural(others, 'other file')}" if others > 0 else ""
    return f"Changed: {', '.join(changed[:SHOWN_PATHS])}{more}"
