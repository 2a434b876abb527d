"""Rewrites entries of a file sink's log for readers of the same files under another folder.

Spark reads only the files in the log that are below the folder that it was asked to read.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from urllib.parse import unquote

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
