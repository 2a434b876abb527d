"""Folders of files on a local disk: the plain path is a link to the current version.

The link of a file sink points to a hidden folder with hard links of the committed files and a log that names them below
the plain path, because Spark reads only such files. Any other link points to the output of the version itself: Delta
Lake's logs have relative paths, and snapshots are links already.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sqlstream.spark.publication.links import (
    can_link,
    exchange,
    link_files,
    replace_link,
    unlink_shared,
)
from sqlstream.spark.publication.publication import CannotPublishError, NotWrittenError
from sqlstream.spark.publication.sink_log import copy_new_batches, has_batches, is_copy
from sqlstream.spark.storage.batch_logs import read_sink_log
from sqlstream.spark.storage.storage import LocalStorage
from sqlstream.spark.table_formats.table import DELTA_LOG
from sqlstream.state.batch_logs import SINK_LOG
from sqlstream.state.layout import archive_folder, published_folder, snapshot_folder
from sqlstream.state.output_files import sort_files
from sqlstream.state.versions.places import place_of

_OWN = frozenset({SINK_LOG, DELTA_LOG, "_change_data", "_temporary"})
"""The folders of an output beside its partitions."""


@dataclass(frozen=True)
class FolderPublication:
    """The output at the local path `place`, see `Publication`. `others` are the paths of all outputs of the project."""

    name: str
    place: str
    others: Collection[str] = ()

    @property
    def first_move(self) -> tuple[str, str]:
        """See `Publication`."""
        return self.place, str(self._written(1))

    @cached_property
    def _plain(self) -> Path:
        return Path(self.place)

    def prepare(self, version: int, *, is_first: bool) -> None:
        """See `Publication`. Gives version 1 a second folder with the same files."""
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
        """See `Publication`."""
        plain = self._plain
        return plain.is_symlink() and plain.exists() and str(plain.readlink()) == self._target(version)

    def switch_to(self, version: int) -> None:
        """See `Publication`."""
        if self.is_shown(version):
            return
        self._aside.mkdir(parents=True, exist_ok=True)
        if self._plain.is_dir() and not self._plain.is_symlink():
            self._move_first(self._target(version))
        else:
            replace_link(self._plain, self._target(version), self._aside)
        self.keep_up(version)

    def keep_up(self, version: int) -> None:
        """See `Publication`."""
        folder = self._published(version)
        if folder.is_dir():
            copy_new_batches(self._written(version), folder, self._plain)

    def _fill(self, version: int) -> None:
        """Fills the folder that readers will see, if the version has a log."""
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
        return Path(place_of(self.place, version, is_published=True))

    def _published(self, version: int) -> Path:
        return Path(published_folder(self.place, version))

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
        return Path(target).parent == Path(snapshot_folder(self.place))

    def _copy_first(self) -> None:
        """Makes `<path>.v1` contain what is at the plain path. An earlier attempt may have left an older copy."""
        plain, first = self._plain, self._written(1)
        if first.exists() or first.is_symlink():
            _archive(first)
        if plain.is_symlink():
            first.symlink_to(plain.readlink())
        elif plain.exists():
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
    archive = Path(archive_folder(str(path)))
    archive.mkdir(parents=True, exist_ok=True)
    taken = [int(each.name) for each in archive.iterdir() if each.name.isdigit()]
    path.rename(archive / str(max(taken, default=0) + 1))
