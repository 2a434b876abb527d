"""Files of a query's state that were torn or are gone: why Spark cannot load the state, in the user's words."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.spark.jvm.gateway import causes_of
from sqlstream.spark.secrets import Secrets
from sqlstream.state.refusals import refresh_text

NOT_LOADED = "CANNOT_LOAD_STATE_STORE"
"""What the conditions of Spark's errors begin with when it cannot load state; for a torn file that is all they say."""

_GONE = re.compile(r"(?:file:)?(\S+/state/\d+/\S+?) does not exist")
_SHORT = re.compile(r"Copied (?:file:)?(\S+/state/\d+/\S+) to \S+, expected \d+ bytes")
_TORN_SCHEMA = re.compile(r"(?s)EOFException.*\.state\.SchemaHelper")
_VERSIONED = re.compile(r"(\d+)(?:_\S+?)?\.(delta|snapshot|changelog|zip)\Z")

LZ4_MAGIC = b"LZ4Block"
LZ4_HEADER = 21
"""Bytes of a block's header in lz4-java's LZ4BlockOutputStream: the magic, a byte of the method, the lengths of the
compressed and of the plain data, and a checksum, 4 bytes each. A block without data ends the file.
"""


def state_finding(
    model: str, what: str, error: BaseException, checkpoint: str | None, location: Location, secrets: Secrets
) -> Finding | None:
    """Returns the finding for `error`, with which the query of `model` has failed, where it is about a file of the
    state in the local folder or URI `checkpoint`; None where it is about something else, or the file is not found.
    """
    said = "\n".join(f"{cause}\n{getattr(cause, '_stackTrace', '')}" for cause in causes_of(error))
    why = _why(said, checkpoint or "")
    if why is None:
        return None
    return Finding(
        "torn-checkpoint",
        f"{what}: part of its state is lost",
        secrets.redact(why),
        f"restore the file from a backup made at the same time; or {refresh_text(model)}",
        location,
    )


def _why(said: str, checkpoint: str) -> str | None:
    state = Path(checkpoint.removeprefix("file://").removeprefix("file:")) / "state"
    if NOT_LOADED in said:
        gone, short = _GONE.search(said), _SHORT.search(said)
        if gone is not None:
            return f"{_or_snapshot(gone.group(1))} is missing, and Spark needs it to continue"
        torn = short.group(1) if short else next(torn_files(state), None)
        return None if torn is None else _torn(torn)
    if _TORN_SCHEMA.search(said):
        schemas = sorted(path for path in state.glob("*/*/_metadata/**/*") if path.is_file() and path.name[0] != ".")
        return _torn(schemas[0]) if len(schemas) == 1 else f"one of the files {state}/*/*/_metadata is cut off"
    return None


def _torn(path: Path | str) -> str:
    return f"{path} is cut off, as after a power failure or on a full disk, and Spark needs it to continue"


def _or_snapshot(path: str) -> str:
    """RocksDB takes the snapshot of a version where it has no log of the changes; Spark only names the latter."""
    log = path.removesuffix(".changelog")
    return path if log == path else f"{path}, or {log.rpartition('/')[2]}.zip in its place,"


def torn_files(state: Path) -> Iterator[Path]:
    """Gives the files below the folder `state` that were not written to their end, the newest version first."""
    files = [(match, path) for path in state.rglob("*.*") if (match := _VERSIONED.match(path.name))]
    for match, path in sorted(files, key=lambda each: -int(each[0].group(1))):
        if not (zipfile.is_zipfile(path) if match.group(2) == "zip" else _ends(path)):
            yield path


def _ends(path: Path) -> bool:
    """Whether the last block of a file ends it; True for what another codec has compressed."""
    size, at = path.stat().st_size, 0
    with path.open("rb") as file:
        while at < size:
            file.seek(at)
            header = file.read(LZ4_HEADER)
            if not header.startswith(LZ4_MAGIC[: len(header)]):
                return at == 0
            length = int.from_bytes(header[9:13], "little")
            at += LZ4_HEADER + length
            if length == 0 and len(header) == LZ4_HEADER and at == size:
                return True
    return False
