"""What a query has stored, as text or JSON: its output files, and the rows and sizes of its state."""

from __future__ import annotations

import json
from dataclasses import asdict

from sqlstream.numbers import bytes_text, count_text, plural
from sqlstream.report.rows import json_text, rows_json, rows_text
from sqlstream.report.table import table_text
from sqlstream.state.output_files import ModelFiles, Repaired
from sqlstream.state.stored_state import Repartitioned, ShownState, StateSize, StoreSize


def files_text(found: ModelFiles) -> str:
    """Returns the committed files, one per line, as absolute paths or URIs."""
    return "\n".join(f"{found.output}/{file.name}" for file in found.files.committed)


def files_json(found: ModelFiles) -> str:
    """Returns the files as one JSON object."""
    files = found.files
    return json_text(
        {
            "model": found.model,
            "version": found.version,
            "output": found.output,
            "committed": [
                {"path": f"{found.output}/{file.name}", "batch_id": file.batch, "bytes": file.size}
                for file in files.committed
            ],
            "leftover": [{"path": f"{found.output}/{file.name}", "bytes": file.size} for file in files.leftover],
            "missing": list(files.missing),
            "foreign": files.foreign,
            "expired": files.expired,
        },
        indent=2,
    )


def files_notes(found: ModelFiles) -> list[str]:
    """Returns notes about the other files in the output, one per line."""
    model, files = found.model, found.files
    notes = [] if found.version else [f"`{model}` has not run yet."]
    if files.leftover:
        count, them = plural(len(files.leftover), "file"), "it" if len(files.leftover) == 1 else "them"
        notes += [
            f"No batch has committed {count} in {found.output}; readers of the whole folder read {them} too.",
            f"When `{model}` is not running, run `sqlstream state repair {model}` to archive {them}.",
        ]
    if files.missing:
        count = plural(len(files.missing), "committed file")
        notes.append(f"Missing: {count}, such as {files.missing[0]}. Spark cannot read the output without them.")
    if files.expired:
        count = plural(files.expired, "file")
        notes.append(f"Not listed: {count} that the sink's `retention` may have dropped from the log.")
    if files.foreign:
        notes.append(f"Not listed: {plural(files.foreign, 'file')} that Spark did not write.")
    return notes


def repaired_text(done: Repaired) -> str:
    """Returns the archived files and their new paths."""
    if not done.moved and not done.leftovers:
        return (
            f"Nothing to repair: the checkpoint of `{done.model}` has no incomplete entries, and its output is clean."
        )
    lines = [f"Moved {path}\n   to {moved}" for path, moved in done.moved]
    for left in done.leftovers:
        count = plural(len(left.files), "file")
        lines += [f"Moved {count} that no batch has committed", f"   from {left.output}", f"   to {left.archive}"]
        lines += [f"     {file.name} ({bytes_text(file.size)})" for file in left.files]
    if done.moved:
        entries = plural(len(done.moved), "entry", "entries")
        lines.append(f"Archived {entries}; `sqlstream run` continues with `{done.model}`.")
    return "\n".join(lines)


def repaired_json(done: Repaired) -> str:
    """Returns the archived entries of a checkpoint, and the archived files of its outputs."""
    moved = [{"path": path, "archive": archive} for path, archive in done.moved]
    outputs = [
        {
            "output": left.output,
            "archive": left.archive,
            "files": [{"name": file.name, "bytes": file.size} for file in left.files],
        }
        for left in done.leftovers
    ]
    return json_text({"model": done.model, "checkpoint": moved, "outputs": outputs}, indent=2)


_ROW_HEADER = ("operator", "partition", "rows", "on disk")


def state_text(shown: ShownState, width: int | None) -> str:
    """Returns a table for each store, at most `width` characters wide (None: no limit)."""
    return "\n\n".join(rows_text(store, width) for store in shown.stores)


def state_json(shown: ShownState) -> str:
    """Returns one JSON object with an entry for each store."""
    return rows_json(shown.stores)


def size_text(size: StateSize) -> str:
    """Returns a table of partitions, and a line about each store."""
    rows = [
        (store.store.title, str(partition), count_text(count), bytes_text(disk))
        for store in size.stores
        for partition, count, disk in _partitions(store)
    ]
    return "\n".join([table_text(_ROW_HEADER, rows, right=(1, 2, 3)), "", *(map(_line, size.stores))])


def _line(size: StoreSize) -> str:
    total = f"{size.store.title}: {plural(size.rows, 'row')}, {bytes_text(sum(size.bytes_on_disk.values()))} on disk"
    if size.skew is None:
        return total
    return f"{total}; the largest partition has {size.skew:.1f} times the rows of an average one"


def _partitions(size: StoreSize) -> list[tuple[int, int, int]]:
    rows = {each.partition: each.rows for each in size.partitions}
    return [(each, rows.get(each, 0), size.bytes_on_disk.get(each, 0)) for each in sorted({*rows, *size.bytes_on_disk})]


def repartitioned_text(done: Repartitioned) -> str:
    """Returns what a repartition did."""
    archived = f"Archived what an interrupted repartition left, in {done.archived}\n" if done.archived else ""
    if done.before == done.after:
        return f"{archived}Nothing to do: the state of `{done.model}` has {plural(done.after, 'partition')} already."
    text = f"Repartitioned the state of `{done.model}` from {done.before} to {plural(done.after, 'partition')}"
    return f"{archived}{text}, as batch {done.batch} of version {done.version}."


def size_json(size: StateSize) -> str:
    """Returns the sizes as one JSON object."""
    found = {
        "model": size.model,
        "version": size.version,
        "stores": [
            {
                "operator": store.store.operator,
                "kind": store.store.kind,
                "store": store.store.name,
                "rows": store.rows,
                "skew": store.skew,
                "partitions": [
                    {"partition": partition, "rows": rows, "bytes": disk}
                    for partition, rows, disk in _partitions(store)
                ],
            }
            for store in size.stores
        ],
    }
    return json.dumps(found, indent=2)


def repartitioned_json(done: Repartitioned) -> str:
    """Returns what a repartition did; `before` and `after` are equal if there was nothing to do."""
    return json_text(asdict(done), indent=2)
