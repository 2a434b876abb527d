"""Writes files atomically, so that readers never see a partial file. A file with the same content stays untouched.

Paths are text, and calls go to `os` directly, because compiling writes thousands of files at a time.
"""
# ruff: noqa: PTH103, PTH105, PTH108, PTH116, PTH118, PTH120, PTH123

from __future__ import annotations

import os
import stat
import threading
from contextlib import suppress

from sqlstream.errors import UsageError

_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)  # which only Windows has


def write_file(path: str, content: bytes) -> None:
    """Writes a file, and creates missing folders above it. Raises: UsageError if it cannot be written."""
    if _holds(path, content):
        return
    try:
        _write_aside(path, content)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"cannot write {path}: {reason}") from error


def _holds(path: str, content: bytes) -> bool:
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size != len(content):
            return False
        with open(path, "rb", buffering=0) as file:
            return file.read() == content
    except OSError:
        return False


def _write_aside(path: str, content: bytes) -> None:
    folder, name = os.path.split(path)
    aside = os.path.join(folder, f".{name}.{os.getpid()}-{threading.get_ident()}")
    try:
        _write(aside, content)
        os.replace(aside, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(aside)
        raise


def _write(path: str, content: bytes) -> None:
    try:
        file = os.open(path, _NEW, 0o666)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        file = os.open(path, _NEW, 0o666)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(file, rest) :]
    finally:
        os.close(file)
