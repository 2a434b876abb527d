"""Paths of data as text. All of them can be URIs."""

from __future__ import annotations

import posixpath
import re

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


def is_absolute(path: str) -> bool:
    """Returns whether `path` is a URI or an absolute path, so not relative to the project or the storage."""
    return path.startswith("/") or _SCHEME.match(path) is not None


def join(base: str, path: str) -> str:
    """Returns `path` under `base` (both can be URIs). An absolute `path` or URI stays unchanged."""
    return path if is_absolute(path) else f"{base.rstrip('/')}/{path.removeprefix('./')}"


def plain_path(base: str, path: str) -> str:
    """Returns `path` under `base` in a normal form for comparisons: no `.`, no `//`, no `file:`."""
    joined = join(base, path)
    scheme = _SCHEME.match(joined)
    prefix = scheme.group() if scheme and scheme.group() != "file:" else ""
    rest = joined[scheme.end() :] if scheme else joined
    return prefix + posixpath.normpath("/" + rest.lstrip("/"))
