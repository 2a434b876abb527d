"""The local file system: files read and replaced atomically, moved, linked and exchanged, without Spark."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote
from uuid import uuid4

from sqlstream.project.files.paths import DEFAULT_FILE_SYSTEMS
from sqlstream.state.batch_logs import SINK_LOG
from sqlstream.state.output_files import StoredFile

FILE_URI = re.compile(r"file:(?://)?(?=/(?!/))")
"""The start of the URI of a local path. The rest is the plain path: Hadoop does not decode `%20` either."""


class LocalStorage:
    """Storage on the local file system, which needs no Spark."""

    def read_text(self, path: str) -> str | None:
        try:
            return Path(path).read_bytes().decode("utf-8", errors="replace")  # the parser reports torn bytes
        except FileNotFoundError:
            return None

    def write_text(self, path: str, text: str) -> None:
        """Syncs the text to disk before the rename."""
        final = Path(path)
        final.parent.mkdir(parents=True, exist_ok=True)
        aside = final.with_name(f".{final.name}.{uuid4().hex}")  # several threads and processes can write the file
        with aside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(final)

    def names(self, folder: str) -> tuple[str, ...]:
        try:
            return tuple(sorted(path.name for path in Path(folder).iterdir()))
        except (FileNotFoundError, NotADirectoryError):
            return ()

    def files(self, folder: str) -> tuple[StoredFile, ...]:
        walked = os.walk(folder, onerror=_ignore_missing)
        paths = (Path(parent, name) for parent, _, names in walked for name in names)
        found = (_stored(path, folder) for path in paths)
        return tuple(sorted(file for file in found if file is not None))

    def exists(self, path: str) -> bool:
        return Path(path).exists()

    def modified(self, path: str) -> float | None:
        try:
            return Path(path).stat().st_mtime
        except FileNotFoundError:
            return None

    def move(self, source: str, destination: str) -> None:
        final = Path(destination)
        final.parent.mkdir(parents=True, exist_ok=True)
        if final.exists():  # a rename would replace an empty folder
            raise FileExistsError(f"{destination} exists")
        Path(source).rename(final)

    def remove(self, folder: str) -> None:
        shutil.rmtree(folder)


def _ignore_missing(error: OSError) -> None:
    """Ignores a folder that does not exist. Raises: OSError for other errors."""
    if not isinstance(error, FileNotFoundError):
        raise error


def _stored(path: Path, folder: str) -> StoredFile | None:
    """Returns a file, None if it has been removed since its folder was listed."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return StoredFile(path.relative_to(folder).as_posix(), status.st_size, status.st_mtime_ns // 1_000_000)


CONFIGURED_BY = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR", "SPARK_HOME", "PYSPARK_SUBMIT_ARGS")
"""Environment variables that can change the same setting."""


def local_path(uri: str) -> Path | None:
    """Returns the path of an encoded URI of a local file, None for any other URI."""
    local = FILE_URI.match(uri)
    return Path(unquote(uri[local.end() :])) if local else None


def storage_without_spark(
    path: str, settings: Mapping[str, object], env: Mapping[str, str]
) -> tuple[LocalStorage, str] | None:
    """Returns the storage of a local path, and the plain path without `file:`. None if only Spark can
    decide: the path is not local, or the target's `settings` or a configuration folder of Hadoop or Spark in `env` can
    change its file system.
    """
    local = FILE_URI.sub("", path)
    if (
        not local.startswith("/")
        or any(name in settings for name in DEFAULT_FILE_SYSTEMS)
        or any(env.get(name) for name in CONFIGURED_BY)
    ):
        return None
    return LocalStorage(), local


_AT_FDCWD, _EXCHANGE = (-2, 2) if sys.platform == "darwin" else (-100, 2)
"""The current folder and the flag of `renameat2` (Linux: RENAME_EXCHANGE) and `renameatx_np` (macOS: RENAME_SWAP)."""

_NO_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)

_REWRITTEN = "_last_checkpoint"
"""The name of a file in the log of Delta Lake that is written again in place, so two tables cannot share it."""


def replace_link(link: Path, target: str, aside: Path) -> None:
    """Makes `link` point to `target`, a path relative to its folder, in one step. It must not be a folder. `aside` is a
    folder of the same file system.
    """
    new = aside / f".{uuid4().hex}.link"
    new.symlink_to(target)
    new.replace(link)


def exchange(first: Path, second: Path) -> None:
    """Exchanges what the two paths name, in one step. On a file system that has no such step, nothing is at `second`
    for a moment.
    """
    if not try_exchange(first, second):
        between = first.with_name(f".{uuid4().hex}.moved")
        second.rename(between)
        first.rename(second)
        between.rename(first)


def try_exchange(first: Path, second: Path) -> bool:
    """Exchanges what the two paths name, in one step. Returns whether the file system has such a step.

    Raises: OSError.
    """
    error = _exchange(os.fsencode(first), os.fsencode(second))
    if error and error not in _NO_EXCHANGE:
        raise OSError(error, os.strerror(error), str(second))
    return not error


def _exchange(first: bytes, second: bytes) -> int:
    """Returns the number of the error, 0 for none."""
    library = ctypes.CDLL(None, use_errno=True)
    call = getattr(library, "renameatx_np" if sys.platform == "darwin" else "renameat2", None)
    if call is None:
        return errno.ENOSYS
    failed = call(_AT_FDCWD, ctypes.c_char_p(first), _AT_FDCWD, ctypes.c_char_p(second), ctypes.c_uint(_EXCHANGE))
    return ctypes.get_errno() if failed else 0


def can_link(folder: Path) -> bool:
    """Returns whether the file system of `folder`, which is created, has hard links and symbolic links."""
    folder.mkdir(parents=True, exist_ok=True)
    file, hard, soft = (folder / f".{uuid4().hex}.{kind}" for kind in ("file", "hard", "soft"))
    try:
        file.touch()
        os.link(file, hard)
        soft.symlink_to(file.name)
    except OSError:
        return False
    else:
        return True
    finally:
        for made in (file, hard, soft):
            made.unlink(missing_ok=True)


def link_files(source: Path, target: Path) -> None:
    """Makes the new folder `target` contain the files of `source` as hard links, without the log of a file sink."""
    for parent, folders, names in os.walk(source):
        if Path(parent) == source and SINK_LOG in folders:
            folders.remove(SINK_LOG)
        inside = target / Path(parent).relative_to(source)
        inside.mkdir(parents=True, exist_ok=True)
        for name in names:
            copy = shutil.copy2 if _REWRITTEN in name else os.link  # also its checksum, ._last_checkpoint.crc
            copy(Path(parent, name), inside / name)


def unlink_shared(folder: Path, other: Path, names: list[str]) -> None:
    """Removes those files `names` of `folder` that `other` contains under the same name as hard links."""
    for name in names:
        file, kept = folder / name, other / name
        with suppress(FileNotFoundError):  # another process may do the same
            if file.samefile(kept):
                file.unlink()


def unlink_linked(folder: Path, names: Iterable[str]) -> None:
    """Removes those files `names` of `folder` that have another hard link."""
    for name in names:
        with suppress(FileNotFoundError):
            if (folder / name).stat().st_nlink > 1:  # never the only copy of the rows
                (folder / name).unlink()
