"""The versions of a query, and what `promote` and `rollback` have done, as text or JSON."""

from __future__ import annotations

import json
from dataclasses import asdict

from sqlstream.app.versions.stored_versions import QueryHistory, Switched, VersionHistory
from sqlstream.numbers import plural
from sqlstream.report.run_text import time_text
from sqlstream.report.table import table_text
from sqlstream.state.query_versions import Versions
from sqlstream.state.refusals import parallel_command
from sqlstream.state.runs.lease_rules import holder_text

_SWITCHES = ("at", "command", "current version", "before")
_HISTORY_HEADER = ("since", "what run did", "changes", "sqlstream", "Spark")


def history_text(history: QueryHistory) -> str:
    """Returns a table of changes for each version, the newest version first, and a table of switches."""
    if not history.versions:
        return f"{history.model} has no checkpoint yet"
    texts = [_version(each) for each in reversed(history.versions)]
    if history.switches:
        rows = [(_time(each.at), each.action, str(each.version), str(each.before)) for each in history.switches]
        texts.append(f"switches\n\n{table_text(_SWITCHES, rows)}")
    return "\n\n".join(texts)


def _version(version: VersionHistory) -> str:
    part = f" ({version.part})" if version.part else ""
    head = f"version {version.version}{part}: {plural(version.batches, 'batch', 'batches')}"
    head += f", output {version.output}" if version.output else ""
    rows = [
        (
            _time(entry.at),
            f"{entry.action} (accepted)" if entry.accepted else entry.action,
            "; ".join(entry.changes) or "-",
            entry.sqlstream_version,
            entry.spark_version,
        )
        for entry in version.entries
    ]
    if not rows:
        rows = [(_time(version.written_at), version.reason or "-", "-", "-", "-")]
    return f"{head}\n\n{table_text(_HISTORY_HEADER, rows)}"


def _time(text: str | None) -> str:
    return "-" if text is None else f"{time_text(text)} UTC"


def history_json(history: QueryHistory) -> str:
    """Returns the history as one JSON object, the oldest version first."""
    return json.dumps(asdict(history), indent=2)


def switched_text(done: Switched) -> str:
    """Returns a line for the version, and one for each path or table where readers find it."""
    lines = [f"{done.model}: version {done.version} is the current one (was version {done.before})"]
    lines += [f"   its rows are in {path}" for path in done.outputs]
    lines += [f"   {text}" for text in done.problems]
    if done.holder is not None:
        lines.append(f"   {holder_text(done.holder)} still runs version {done.before} until you stop it")
    lines += [f"   {text}" for text in done.behind]
    return "\n".join(lines)


def no_promotion_text(model: str, parts: Versions) -> str:
    """Returns why no version of the model's query can be promoted."""
    last = parts.history[-1] if parts.history else None
    if last is not None and last.action == "promote" and last.version == parts.current:
        promoted = f"promoted {time_text(last.at)} UTC"
        return (
            f"version {parts.current} of `{model}` is already the current one ({promoted}); there is no version to "
            "promote"
        )
    return f"`{model}` has no parallel version; {parallel_command(model)} starts one"


def no_rollback_text(model: str, parts: Versions) -> str:
    """Returns why the model's query has no version to go back to."""
    text, last = f"`{model}` has no earlier version to go back to", parts.history[-1] if parts.history else None
    if last is not None and last.action == "rollback" and last.before == parts.parallel:
        return f"{text}; `sqlstream promote {model}` makes version {last.before} current again"
    return text


def switched_json(done: Switched) -> str:
    """Returns the version, the one before, and where readers find its rows, as one JSON object."""
    return json.dumps(asdict(done), indent=2)
