"""Maintenance: of which sinks, what was done to each, and its text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlstream.app.request import ProjectRequest, Selection
from sqlstream.numbers import bytes_text, plural
from sqlstream.report.rows import json_text


@dataclass(frozen=True)
class MaintainRequest:
    """The sinks of the queries in `selection`. With `merges_files`, files of file sinks are merged. What is no longer
    needed for `retain_seconds` is removed or archived (None: the default of each format). With `dry_run`, nothing
    changes.
    """

    project: ProjectRequest
    selection: Selection
    merges_files: bool = False
    retain_seconds: float | None = None
    dry_run: bool = False


@dataclass(frozen=True)
class SinkSize:
    """The files that readers of an output see, and their size. `log_bytes` is the size of what they read of the log of
    a file sink to find them.
    """

    files: int
    bytes: int
    log_bytes: int | None = None


@dataclass(frozen=True)
class MaintainedSink:
    """An output of a query, and its size before and after; None if it has no files, or does not exist yet. `done` says
    what was done, or would be done, and `left` what was left alone and why: sentences without a period.
    """

    model: str
    sink: str
    format: str
    output: str | None = None
    before: SinkSize | None = None
    after: SinkSize | None = None
    done: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


@dataclass(frozen=True)
class Maintained:
    """The outputs of the selected queries, in the order of the graph."""

    sinks: tuple[MaintainedSink, ...]
    dry_run: bool


def maintained_text(found: Maintained) -> str:
    """Returns a few lines for each output, and one with the result."""
    changed = sum(sink.before != sink.after for sink in found.sinks)
    lines = [line for sink in found.sinks for line in _sink_lines(sink)]
    outputs = plural(len(found.sinks), "output")
    result = (
        f"Looked at {outputs}. Nothing was changed." if found.dry_run else f"Maintained {outputs}; {changed} changed."
    )
    return "\n".join([*lines, result])


def _sink_lines(sink: MaintainedSink) -> Iterator[str]:
    yield f"{sink.model}: sink `{sink.sink}` ({sink.format}){f', {sink.output}' if sink.output else ''}"
    if sink.before is not None and sink.after is not None:
        same = sink.before == sink.after
        yield f"  {_size_text(sink.before)}{'' if same else f' -> {_size_text(sink.after)}'}"
    yield from (f"  {text}." for text in sink.done)
    yield from (f"  left alone: {text}." for text in sink.left)


def _size_text(size: SinkSize) -> str:
    log = "" if size.log_bytes is None else f", log {bytes_text(size.log_bytes)}"
    return f"{plural(size.files, 'file')}, {bytes_text(size.bytes)}{log}"


def maintained_json(found: Maintained) -> str:
    """Returns one JSON object."""
    return json_text(
        {"succeeded": True, "dry_run": found.dry_run, "sinks": [_sink_json(sink) for sink in found.sinks]}, indent=2
    )


def _sink_json(sink: MaintainedSink) -> dict[str, object]:
    return {
        "model": sink.model,
        "sink": sink.sink,
        "format": sink.format,
        "output": sink.output,
        "before": _size_json(sink.before),
        "after": _size_json(sink.after),
        "done": list(sink.done),
        "left": list(sink.left),
    }


def _size_json(size: SinkSize | None) -> dict[str, int | None] | None:
    return None if size is None else {"files": size.files, "bytes": size.bytes, "log_bytes": size.log_bytes}
