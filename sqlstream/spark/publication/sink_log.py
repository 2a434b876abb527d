"""Shows the committed files of a file sink in another folder: as hard links, with a log that names them there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from sqlstream.spark.publication.links import unlink_linked, unlink_shared
from sqlstream.state.batch_logs import SINK_LOG, entry_names, is_complete
from sqlstream.state.versions.sink_entries import MovedEntry, move_entry


def copy_new_batches(source: Path, target: Path, shown: Path) -> None:
    """Adds the batches that a file sink has committed in the folder `source` to the folder `target`, which readers find
    at `shown`.

    Files come before the entry that names them, and entries in their order, so `target` is complete after each step.
    Several processes can do this at once. Raises: OSError, ForeignFilesError.
    """
    known = _entries(target)
    names = _entries(source)  # second: what another process copies in between is in here, too
    _remove_repaired(target, shown, known, max(names, default=-1))
    last_compact = max((number for number, name in names.items() if name.endswith(".compact")), default=-1)
    linked: set[str] = set()
    for number in sorted(names.keys() - known.keys()):
        text = _read(source / SINK_LOG / names[number])
        if text is None:  # Spark has removed it since
            continue
        if not is_complete(text, 0):
            break
        entry = move_entry(text, str(source), str(shown))
        _link(source, target, [name for name in entry.files if name not in linked])
        linked.update(entry.files)
        _write(target / SINK_LOG / names[number], entry.text)
        if number == last_compact:
            _remove_expired(source, target, shown, known, entry)
    for number in known.keys() - names.keys():
        if number < last_compact:  # its files are in the compact entry; a later one is of another process
            (target / SINK_LOG / known[number]).unlink(missing_ok=True)


def is_copy(source: Path, target: Path, shown: Path) -> bool:
    """Returns whether the entries that both logs have name the same files. They do not if somebody has deleted the
    folder `source` by hand, and its version has started again. Raises: OSError, ForeignFilesError.
    """
    names, known = _entries(source), _entries(target)
    for number in names.keys() & known.keys():
        own, other = _read(source / SINK_LOG / names[number]), _read(target / SINK_LOG / known[number])
        if own is None or other is None or not is_complete(own, 0):
            continue
        if set(_files(own, source, shown)) != set(_files(other, shown, source)):
            return False
    return True


def has_batches(folder: Path) -> bool:
    """Returns whether the log of a file sink in `folder` has a batch."""
    return bool(_entries(folder))


def _entries(folder: Path) -> dict[int, str]:
    try:
        return entry_names(path.name for path in (folder / SINK_LOG).iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return {}


def _read(path: Path) -> str | None:
    with suppress(FileNotFoundError):
        return path.read_text(encoding="utf-8")
    return None


def _files(text: str, source: Path, shown: Path) -> tuple[str, ...]:
    return move_entry(text, str(source), str(shown)).files


def _remove_repaired(target: Path, shown: Path, known: dict[int, str], last: int) -> None:
    """Removes the entries behind the `last` one of the version, and their files: `state repair` has archived them, and
    Spark plans their batches again. If the version has no log, its entries stay.
    """
    later = sorted((number for number in known if 0 <= last < number), reverse=True)
    if not later:
        return
    removed = [target / SINK_LOG / known.pop(number) for number in later]
    kept = {name for entry in known.values() for name in _named(target / SINK_LOG / entry, shown)}
    for entry in removed:
        files = _named(entry, shown)
        entry.unlink(missing_ok=True)
        unlink_linked(target, sorted(files - kept))


def _named(entry: Path, shown: Path) -> frozenset[str]:
    """Returns the files that an entry of a log for readers of `shown` names."""
    return frozenset(_files(_read(entry) or "v1", shown, shown))


def _link(source: Path, target: Path, names: Sequence[str]) -> None:
    for folder in {name.rpartition("/")[0] for name in names}:
        (target / folder).mkdir(parents=True, exist_ok=True)
    for name in names:
        with suppress(FileExistsError, FileNotFoundError):  # the user may have removed old files
            os.link(f"{source}/{name}", f"{target}/{name}")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{uuid4().hex}")
    aside.write_text(text, encoding="utf-8")
    aside.replace(path)


def _remove_expired(source: Path, target: Path, shown: Path, known: dict[int, str], compact: MovedEntry) -> None:
    """Removes the files that the sink's option `retention` has removed from the log, as it was in `known`."""
    texts = (_read(target / SINK_LOG / name) for name in known.values())
    before = {name for text in texts if text for name in _files(text, shown, source)}
    unlink_shared(target, source, sorted(before - set(compact.files)))
