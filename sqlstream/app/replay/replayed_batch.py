"""The result of a replay, and its text: the rows of a past batch on their way through a query."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstream.errors import Finding
from sqlstream.numbers import plural
from sqlstream.report.findings import findings_json
from sqlstream.report.rows import json_text, row_objects, rows_text
from sqlstream.state.shown_rows import ShownRows


@dataclass(frozen=True)
class ReplayedNode:
    """A source, view or model in a batch. `rows` are its first rows and `count` is their total number, both None if
    they are unknown; `note` then says why. `late_rows` counts the rows that the query of a model dropped behind the
    watermark, None if that is unknown.
    """

    kind: str
    name: str
    unique_id: str
    rows: ShownRows | None = None
    count: int | None = None
    note: str | None = None
    late_rows: int | None = None


@dataclass(frozen=True)
class Replayed:
    """A batch of a version of a query: its sources, views and model in the order in which rows pass through them.

    `planned_at` is its current_timestamp(), and `watermark` the watermark that it used (UTC, ISO 8601), None if there
    is none. `notes` say what differs from the batch that ran. `test` is the file and the name of the unit test that was
    written, and whether it passes. `failures` say why the batch fails: `nodes` then ends before the one that fails.
    """

    model: str
    version: int
    batch: int
    planned_at: str | None
    watermark: str | None
    nodes: tuple[ReplayedNode, ...]
    notes: tuple[str, ...] = ()
    test: tuple[str, str, bool] | None = None
    failures: tuple[Finding, ...] = ()


def replayed_text(replayed: Replayed, width: int | None) -> str:
    """Returns the tables of the sources, views and the model in the order in which rows pass through them."""
    facts = [f"Batch {replayed.batch} of `{replayed.model}`, version {replayed.version}"]
    facts += [f"planned at {replayed.planned_at}"] if replayed.planned_at else []
    facts += [f"watermark {replayed.watermark}"] if replayed.watermark else []
    head = [", ".join(facts), *(f"Note: {note}." for note in replayed.notes)]
    parts = ["\n".join(head), *(_node_text(node, width) for node in replayed.nodes)]
    if replayed.test is not None:
        path, name, passes = replayed.test
        parts.append(f"Wrote {path}: {replayed.model}.{name}, which {'passes' if passes else 'does not pass'}.")
    return "\n\n".join(parts)


def _node_text(node: ReplayedNode, width: int | None) -> str:
    label = f"{node.kind} {node.name}"
    if node.rows is None or node.count is None:
        return f"{label}: unknown\n{_sentence(node.note)}"
    _, *table = rows_text(node.rows, width).split("\n") if node.count else [""]
    shown = len(node.rows.rows)
    first = f", the first {shown:,}" if shown < node.count else ""
    late = f", {plural(node.late_rows, 'late row')} dropped" if node.late_rows else ""
    lines = [f"{label}: {plural(node.count, 'row') if node.count else 'no rows'}{first}{late}", *table]
    return "\n".join([*lines, *([_sentence(node.note)] if node.note else [])])


def _sentence(text: str | None) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def replayed_json(replayed: Replayed) -> str:
    """Returns one JSON object. `rows` are objects keyed by column names."""
    test = None
    if replayed.test is not None:
        path, name, passes = replayed.test
        test = {"path": path, "name": name, "passes": passes}
    head = {
        "succeeded": not replayed.failures,
        "findings": findings_json(replayed.failures),
        "model": replayed.model,
        "version": replayed.version,
        "batch": replayed.batch,
        "planned_at": replayed.planned_at,
        "watermark": replayed.watermark,
        "notes": list(replayed.notes),
        "unit_test": test,
    }
    return json_text({**head, "results": [_entry(node) for node in replayed.nodes]}, indent=2)


def _entry(node: ReplayedNode) -> dict[str, object]:
    known = {} if node.rows is None else row_objects(node.rows)
    return {
        "kind": node.kind,
        "name": node.name,
        "unique_id": node.unique_id,
        "row_count": node.count,
        "late_rows": node.late_rows,
        "note": node.note,
        "columns": known.get("columns"),
        "rows": known.get("rows"),
    }
