"""Links and exchanges of folders on a local disk."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from sqlstream.state.batch_logs import SINK_LOG

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
            copy = shutil.copy2 if _REWRITTEN in name else os.link
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
            if (folder / name).stat().st_nlink > 1:
                (folder / name).unlink()
