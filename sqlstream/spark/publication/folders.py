"""Folders of files on a local disk: the plain path is a link to the current version.

The link of a file sink points to a hidden folder with hard links of the committed files and a log that names them below
the plain path, because Spark reads only such files. Any other link points to the output of the version itself: Delta
Lake's logs have relative paths, and snapshots are links already.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote

from sqlstream.spark.publication.publication import CannotPublishError, NotWrittenError
from sqlstream.spark.storage.checkpoints import read_sink_log
from sqlstream.spark.storage.local import (
    LocalStorage,
    can_link,
    exchange,
    link_files,
    replace_link,
    unlink_linked,
    unlink_shared,
)
from sqlstream.spark.storage.storage import free_archive
from sqlstream.spark.writing.merged_files import replaced_files
from sqlstream.spark.writing.table_formats.table import DELTA_LOG
from sqlstream.state.batch_logs import SINK_LOG, entry_names, is_complete
from sqlstream.state.layout import published_folder, snapshot_folder
from sqlstream.state.output_files import sort_files
from sqlstream.state.query_versions import versioned_path

_OWN = frozenset({SINK_LOG, DELTA_LOG, "_change_data", "_temporary"})
"""The folders of an output beside its partitions."""


@dataclass(frozen=True)
class FolderPublication:
    """The output at the local path `path`, see `Publication`. `others` are the paths of all outputs of the project."""

    name: str
    path: str
    others: Collection[str] = ()

    @property
    def first_move(self) -> tuple[str, str]:
        return self.path, str(self._written(1))

    @cached_property
    def _plain(self) -> Path:
        return Path(self.path)

    def prepare(self, version: int, *, is_first: bool) -> None:
        """Gives version 1 a second folder with the same files."""
        if not self._written(version).exists():
            raise NotWrittenError(f"version {version} has written no files yet")
        if not is_first:
            self._fill(version)
            return
        try:
            self._check_links()
            self._copy_first()
            self._fill(version)
        except OSError as error:
            raise CannotPublishError(str(error)) from error

    def is_shown(self, version: int) -> bool:
        plain = self._plain
        return plain.is_symlink() and plain.exists() and str(plain.readlink()) == self._target(version)

    def switch_to(self, version: int) -> None:
        if self.is_shown(version):
            return
        self._aside.mkdir(parents=True, exist_ok=True)
        if self._plain.is_dir() and not self._plain.is_symlink():
            self._move_first(self._target(version))
        else:
            replace_link(self._plain, self._target(version), self._aside)
        self.keep_up(version)

    def keep_up(self, version: int) -> None:
        folder = self._published(version)
        if folder.is_dir():
            copy_new_batches(self._written(version), folder, self._plain)

    def _fill(self, version: int) -> None:
        """Fills the folder that readers will see, if the version has a log."""
        # the switch makes the folder at the plain path what readers see of version 1, with its own log
        is_unmoved = version == 1 and self._plain.is_dir() and not self._plain.is_symlink()
        if has_batches(self._written(version)) and not is_unmoved:
            folder = self._published(version)
            if folder.is_symlink():  # of a killed first switch
                folder.unlink()
            elif folder.exists() and not is_copy(self._written(version), folder, self._plain):
                _archive(folder)
            folder.mkdir(parents=True, exist_ok=True)
            self.keep_up(version)

    def _written(self, version: int) -> Path:
        """Returns the folder to which the query of `version` writes."""
        return Path(versioned_path(self.path, version, is_published=True))

    def _published(self, version: int) -> Path:
        return Path(published_folder(self.path, version))

    @property
    def _aside(self) -> Path:
        return self._published(1).parent

    def _target(self, version: int) -> str:
        """Returns the text of the link to a version. A relative link stays valid when the whole storage moves."""
        written = self._written(version)
        return os.path.relpath(self._published(version) if has_batches(written) else written, self._plain.parent)

    def _check_links(self) -> None:
        """Raises: CannotPublishError if the plain path cannot become a link; OSError."""
        plain = self._plain
        for other in self.others:
            # the first switch moves the plain folder, with all outputs below it
            if Path(other) == self._written(1) or plain in Path(other).parents:
                raise CannotPublishError(f"another output is at {other}")
        if plain.is_symlink() and not self._shows_snapshot:
            raise CannotPublishError(f"{plain} is a link")
        if plain.exists() and plain.stat().st_dev != plain.parent.stat().st_dev and not plain.is_symlink():
            raise CannotPublishError(f"{plain} is a mount point")
        others = [] if plain.is_symlink() else _other_folders(plain)
        if others:
            raise CannotPublishError(f"{plain} contains other folders: {', '.join(others)}")
        if not can_link(self._aside):
            raise CannotPublishError(f"the file system of {plain.parent} has no links")

    @property
    def _shows_snapshot(self) -> bool:
        target = os.path.normpath(self._plain.parent / self._plain.readlink())
        return Path(target).parent == Path(snapshot_folder(self.path))

    def _copy_first(self) -> None:
        """Makes `<path>.v1` contain what is at the plain path. An earlier attempt may have left an older copy."""
        plain, first = self._plain, self._written(1)
        if first.exists() or first.is_symlink():
            _archive(first)
        if plain.is_symlink():
            first.symlink_to(plain.readlink())
        elif plain.exists():
            # `<path>.v1` appears in one step, so that it is always a complete copy
            copy = self._aside / ".v1"
            if copy.exists():  # of a killed attempt: only hard links
                shutil.rmtree(copy)
            link_files(plain, copy)
            copy_new_batches(plain, copy, first)
            copy.rename(first)

    def _move_first(self, target: str) -> None:
        """Exchanges the folder at the plain path and a link. The folder becomes what readers see of version 1."""
        link = self._published(1)
        if link.is_symlink():  # of a killed attempt
            link.unlink()
        elif link.exists():
            _archive(link)
        link.symlink_to(target)
        exchange(link, self._plain)
        _remove_uncommitted(link, self._written(1))


def _other_folders(folder: Path) -> list[str]:
    """Returns the folders in an output that do not belong to it. They may be outputs of other queries, whose paths must
    stay.
    """
    folders = [path.name for path in folder.iterdir() if path.is_dir()] if folder.exists() else []
    return sorted(name for name in folders if "=" not in name and name not in _OWN)


def _remove_uncommitted(folder: Path, first: Path) -> None:
    """Removes files from the old `folder` that readers need not see, and which are in the folder `first`, too: those
    that no batch has committed, or all if there is no log.
    """
    files = LocalStorage().files(str(folder))
    log = read_sink_log(LocalStorage(), str(folder))
    if (folder / SINK_LOG).is_dir():
        files = () if log.torn() else sort_files(files, log, with_retention=False).leftover
    unlink_shared(folder, first, [file.name for file in files])


def _archive(path: Path) -> None:
    """Moves a folder or link to the archive beside it."""
    LocalStorage().move(str(path), free_archive(LocalStorage(), str(path)))


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
        if not is_complete(text, 0):  # its batch must not appear after later ones
            break
        entry = move_entry(text, str(source), str(shown))
        _link(source, target, [name for name in entry.files if name not in linked])
        linked.update(entry.files)
        LocalStorage().write_text(str(target / SINK_LOG / names[number]), entry.text)
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
    return entry_names(LocalStorage().names(str(folder / SINK_LOG)))


def _read(path: Path) -> str | None:
    return LocalStorage().read_text(str(path))


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
    # each entry of Spark's logs begins with the version of its format
    return frozenset(_files(_read(entry) or "v1", shown, shown))


def _link(source: Path, target: Path, names: Sequence[str]) -> None:
    for folder in {name.rpartition("/")[0] for name in names}:
        (target / folder).mkdir(parents=True, exist_ok=True)
    for name in names:
        with suppress(FileExistsError, FileNotFoundError):  # the user may have removed old files
            os.link(f"{source}/{name}", f"{target}/{name}")


def _remove_expired(source: Path, target: Path, shown: Path, known: dict[int, str], compact: MovedEntry) -> None:
    """Removes the files that the sink's option `retention` has removed from the log, as it was in `known`. Files that
    others have replaced stay until `maintain` archives them, for readers that have listed them.
    """
    texts = (_read(target / SINK_LOG / name) for name in known.values())
    before = {name for text in texts if text for name in _files(text, shown, source)}
    gone = before - set(compact.files)
    if gone:
        unlink_shared(target, source, sorted(gone - replaced_files(LocalStorage(), str(source)).keys()))


# Spark writes `file:///a` or `file:/a`, and a plain `/a` is a local path, too
_LOCAL = re.compile(r"(?:file:(?://)?)?(?=/)")


class ForeignFilesError(OSError):
    """A log names files outside its folder. The message is one line."""


@dataclass(frozen=True)
class MovedEntry:
    """An entry of a log for another folder, and the files that it adds, by their paths relative to the folder."""

    text: str
    files: tuple[str, ...]


def move_entry(text: str, source: str, shown: str) -> MovedEntry:
    """Returns the complete entry `text` of the log in the folder `source` as an entry of the log in `shown`.

    Both are absolute paths; one of the two is the other one with a suffix. Raises: ForeignFilesError.
    """
    version, *lines = text.split("\n")
    moved, files = [version], []
    before = after = ""
    for line in lines:
        status = json.loads(line)
        uri = status["path"]
        if not before or not uri.startswith(before):  # usually the same for all lines, of which there may be many
            before, after = _move(uri, source, shown)
        name = uri[len(before) :]
        status["path"] = after + name
        moved.append(json.dumps(status, separators=(",", ":"), ensure_ascii=False))
        if status.get("action") != "delete":
            files.append(unquote(name))
    return MovedEntry("\n".join(moved), tuple(files))


def _move(uri: str, source: str, shown: str) -> tuple[str, str]:
    """Returns the URIs of `source` and of `shown`, each with a slash at the end, from the URI of a file below `source`.
    A URI is percent-encoded, and its parts stay as they are.
    """
    local, root = _LOCAL.match(uri), source.split("/")
    parts = uri[local.end() :].split("/") if local else []
    depth = len(root)
    if local is None or [unquote(part) for part in parts[:depth]] != root:
        raise ForeignFilesError(f"the log in {source} names a file of another folder: {uri}")
    folder = local.group() + "/".join(parts[:depth])
    if len(source) > len(shown):
        return f"{folder}/", f"{folder.removesuffix(source[len(shown) :])}/"
    return f"{folder}/", f"{folder}{shown[len(source) :]}/"
