"""Formats what `promote` and `rollback` have done as text or JSON."""

from __future__ import annotations

import json
from dataclasses import asdict

from sqlstream.report.runs.query_table import time_text
from sqlstream.state.refusals import parallel_command
from sqlstream.state.results.switched import Switched
from sqlstream.state.runs.lease import holder_text
from sqlstream.state.versions.versions import Versions


def switched_text(done: Switched) -> str:
    """Returns a line for the version, and one for each place where readers find it."""
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
    """Returns the same as one JSON object."""
    return json.dumps(asdict(done), indent=2)
