"""Paths of data as text. All of them can be URIs."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")

DEFAULT_FILE_SYSTEMS = ("spark.hadoop.fs.defaultFS", "spark.hadoop.fs.default.name")
"""The settings of a target with the file system of paths without a scheme; the second is an old name."""


def scheme_of(path: str) -> str:
    """Returns the scheme of a URI, such as `s3a`, empty for a path without one."""
    found = _SCHEME.match(path)
    return found.group().removesuffix(":") if found else ""


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


_SPECIAL = re.compile(r"[][{}*?\\]")
_NO_WILDCARD = re.compile(r"[][{}\\]")


def has_special_characters(path: str) -> bool:
    """Returns whether Hadoop reads `path` as a pattern, unless its special characters are escaped."""
    return _SPECIAL.search(path) is not None


def is_pattern(path: str, root: str, exists: Callable[[str], bool]) -> bool:
    """Returns whether the `path` of a source is a pattern, apart from `root`, the project's folder. A path such as
    `in [v2]` is none if a file or folder `exists` under this very name. `*` and `?` also match themselves.
    """
    inside = path.removeprefix(f"{root.rstrip('/')}/")
    if not has_special_characters(inside):
        return False
    return _NO_WILDCARD.search(inside) is None or not exists(join(root, path))


def folder_of_pattern(path: str, root: str, exists: Callable[[str], bool]) -> str:
    """Returns the folder below which an absolute `path` finds everything, in its normal form: the path itself if it is
    no pattern; see `is_pattern`.
    """
    if not is_pattern(path, root, exists):
        return plain_path(root, path)
    start = f"{root.rstrip('/')}/"
    found = _SPECIAL.search(path, len(start) if path.startswith(start) else 0)
    return plain_path(root, path[: found.start() if found else None].rpartition("/")[0] or "/")


_BRACES = re.compile(r"\{([^{}]*)\}")
"""Alternatives in a pattern of Hadoop."""


def alternatives_of(path: str, folder: str) -> Iterator[str]:
    """Yields the patterns without braces that find the same as `path`, which is a pattern below `folder`."""
    braces = _BRACES.search(path, len(folder))
    if braces is None:
        yield path
        return
    for part in braces.group(1).split(","):
        yield from alternatives_of(path[: braces.start()] + part + path[braces.end() :], folder)


def escaped(path: str) -> str:
    """Returns `path` with the characters escaped that Hadoop would read as a pattern."""
    return _SPECIAL.sub(r"\\\g<0>", path)
