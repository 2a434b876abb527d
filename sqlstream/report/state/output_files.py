"""The output of `state files` and `state repair`."""

from __future__ import annotations

from sqlstream.report.numbers import bytes_text, plural
from sqlstream.report.rows import json_text
from sqlstream.state.output_files import ModelFiles, Repaired


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
