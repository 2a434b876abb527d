"""`sqlstream dev`: the first rows of models, or what is wrong, again after each change of the project's files."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlstream.app.loading.garbage import collect_as_ever
from sqlstream.app.loading.watching import changed_paths, take_snapshot, wait_for_change
from sqlstream.app.running.signals import StopAskedError, StopSignals, stop_signals
from sqlstream.app.show import Chosen, ShowRequest, choose, interrupt
from sqlstream.errors import Finding, FindingsError
from sqlstream.project.files.files import find_project_root
from sqlstream.state.results.rows import ShownRows

if TYPE_CHECKING:  # it loads pyspark
    from sqlstream.app.running.show import Previews


@dataclass(frozen=True)
class Refreshed:
    """What was shown after `changed` (none the first time): rows or findings, and how long that took."""

    changed: tuple[str, ...]
    nodes: tuple[ShownRows, ...]
    findings: tuple[Finding, ...]
    seconds: float


def watch_rows(request: ShowRequest, notify: Callable[[str], None], show: Callable[[Refreshed], None]) -> None:
    """Calls `show` at once, and again whenever files of the project have changed, until Ctrl-C or SIGTERM.

    Spark starts once, and again only when the target has changed. `notify` hears what takes its time.
    Raises: FindingsError where there is no project or no Java; UsageError.
    """
    collect_as_ever()
    from sqlstream.app.running.show import open_previews  # pyspark is loaded here and not before

    with stop_signals() as signals:
        try:
            _check_java(request, signals)
            with signals.passed_to(interrupt), open_previews(request.project.env, notify, signals) as previews:
                _watch(request, previews, show)
        except (KeyboardInterrupt, StopAskedError):
            return  # it is how this ends


def _check_java(request: ShowRequest, signals: StopSignals) -> None:
    from sqlstream.app.running.session import check_java

    check_java(request.project.env, signals)


def _watch(request: ShowRequest, previews: Previews, show: Callable[[Refreshed], None]) -> None:
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
            show(Refreshed(changed, nodes, chosen.warnings, time.monotonic() - began))
        except FindingsError as error:
            show(Refreshed(changed, (), error.findings, time.monotonic() - began))
        # a file that is looked at for the first time has not changed; one that was saved in between has
        seen = {**{path: state for path, state in take_snapshot(root, others).items() if path in others}, **seen}
        after = wait_for_change(root, others, seen)
        changed, seen = changed_paths(seen, after), after


def _schema_files(chosen: Chosen) -> tuple[str, ...]:
    """The files besides YAML that declare schemas: they may lie anywhere in the project."""
    tables = chosen.loaded.compiled.project.sources
    return tuple({table.schema.location.path for table in tables if table.schema is not None})
