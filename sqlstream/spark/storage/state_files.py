"""Why Spark cannot load the state of a query: torn or missing files, or a schema of other columns."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import Finding, Severity
from sqlstream.location import Location
from sqlstream.spark.jvm.gateway import Cause, causes_of
from sqlstream.spark.secrets import Secrets
from sqlstream.state.refusals import refresh_text

NOT_LOADED = "CANNOT_LOAD_STATE_STORE"
"""The start of Spark's error condition if it cannot load state; the error does not name a torn file."""

_MISSING = re.compile(r"(?:file:)?(\S+/state/\d+/\S+?) does not exist")
_SHORT = re.compile(r"Copied (?:file:)?(\S+/state/\d+/\S+) to \S+, expected \d+ bytes")
_SCHEMA_READER = "org.apache.spark.sql.execution.streaming.state.SchemaHelper"
# `12.delta` and `12.snapshot` of the provider in memory, `12_<id>.changelog` and `12_<id>.zip` of RocksDB
_VERSIONED = re.compile(r"(\d+)(?:_\S+?)?\.(delta|snapshot|changelog|zip)\Z")

LZ4_MAGIC = b"LZ4Block"
LZ4_HEADER = 21
"""Length in bytes of a block's header in lz4-java's LZ4BlockOutputStream: the magic, the method (1 byte), the lengths
of the compressed and of the plain data, and a checksum (4 bytes each). A block without data ends the file.
"""

PARTS = {
    "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE": ("key", "storedKeySchema", "newKeySchema"),
    "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE": ("value", "storedValueSchema", "newValueSchema"),
    "STATE_STORE_INVALID_VALUE_SCHEMA_EVOLUTION": ("value", "oldValueSchema", "newValueSchema"),
}
"""Error conditions of Spark 4.3 for state with other columns than the query: key or value, and the message parameters
with the old and the new schema.
"""


RETAINED, SPARK_RETAINS = "spark.sql.streaming.minBatchesToRetain", 100
"""The setting of how many batches a checkpoint keeps, and Spark's default."""
FIRST_PARTITION = "state/0/0"
"""The folder of the first partition of the first operator in a checkpoint, which each query with state has."""
MANY_TIMES = 10
"""A checkpoint has too many batches if they are so many times what Spark needs. Between two clean-ups, a minute apart,
a query with batches of 100 ms writes six times as many as Spark's default.
"""


def many_files(model: CompiledModel, names: Iterable[str], retained: object) -> Finding | None:
    """Returns a warning if the state of `model` has files of too many batches. `names` are the files of one partition,
    `retained` is what the target sets for `RETAINED`, None without a setting.
    """
    batches = {int(match[1]) for match in map(_VERSIONED.match, names) if match}
    least = int(str(retained)) if str(retained).isdigit() else SPARK_RETAINS
    if len(batches) < MANY_TIMES * least:
        return None
    return Finding(
        "state-files",
        f"the checkpoint of `{model.name}` keeps the state of {len(batches):,} batches",
        f"Spark needs the last {least:,}, and removes older ones only while the query runs: its runs may be too short",
        f"let the query run for a few minutes; if the number stays, begin a new checkpoint with `sqlstream run "
        f"--full-refresh --select {model.name}`",
        model.file.location,
        Severity.WARNING,
    )


def state_finding(
    model: str, what: str, error: BaseException, checkpoint: str | None, location: Location, secrets: Secrets
) -> Finding | None:
    """Returns the finding if `error`, which ended the query of `model`, is about a file of the state in `checkpoint`, a
    local folder or URI. None if it is about something else, or the file is unknown.
    """
    why = _why(causes_of(error), checkpoint or "")
    if why is None:
        return None
    return Finding(
        "torn-checkpoint",
        f"{what}: part of its state is lost",
        secrets.redact(why),
        f"restore the file from a backup made at the same time; or {refresh_text(model)}",
        location,
    )


def _why(causes: Sequence[Cause], checkpoint: str) -> str | None:
    state = Path(checkpoint.removeprefix("file://").removeprefix("file:")) / "state"
    loading = [(cause.condition or "").startswith(NOT_LOADED) for cause in causes]
    if any(loading):
        text = "\n".join(cause.message for cause in causes[loading.index(True) :])
        missing, short = _MISSING.search(text), _SHORT.search(text)
        if missing is not None:
            return f"{_or_snapshot(missing.group(1))} is missing, and Spark needs it to continue"
        torn = short.group(1) if short else next(torn_files(state), None)
        return None if torn is None else _torn(torn)
    # the error does not name the file, so it is certain only if there is one
    if any(cause.kind == "java.io.EOFException" and cause.passed(_SCHEMA_READER) for cause in causes):
        schemas = sorted(path for path in state.glob("*/*/_metadata/**/*") if path.is_file() and path.name[0] != ".")
        return _torn(schemas[0]) if len(schemas) == 1 else f"one of the files {state}/*/*/_metadata is cut off"
    return None


def _torn(path: Path | str) -> str:
    return f"{path} is cut off, as after a power failure or on a full disk, and Spark needs it to continue"


def _or_snapshot(path: str) -> str:
    """Adds the snapshot to the path of a changelog: RocksDB can load either, but Spark names only the changelog."""
    log = path.removesuffix(".changelog")
    return path if log == path else f"{path}, or {log.rpartition('/')[2]}.zip in its place,"


def torn_files(state: Path) -> Iterator[Path]:
    """Yields the incomplete files below the folder `state`, the newest version first."""
    files = [(match, path) for path in state.rglob("*.*") if (match := _VERSIONED.match(path.name))]
    for match, path in sorted(files, key=lambda each: -int(each[0].group(1))):
        if not (zipfile.is_zipfile(path) if match.group(2) == "zip" else _is_complete(path)):
            yield path


def _is_complete(path: Path) -> bool:
    with path.open("rb") as file:
        return _has_end_block(file, path.stat().st_size)


def _has_end_block(file: IO[bytes], size: int) -> bool:
    """Returns whether the file ends with an empty block; True for files of other codecs."""
    at = 0
    while at < size:
        file.seek(at)
        header = file.read(LZ4_HEADER)
        # without a block at the start, the file has another codec; later, a block was cut off
        if not header.startswith(LZ4_MAGIC[: len(header)]):
            return at == 0
        length = int.from_bytes(header[9:13], "little")
        at += LZ4_HEADER + length
        if length == 0 and len(header) == LZ4_HEADER and at == size:
            return True
    return False


def schema_finding(model: str, what: str, error: BaseException, location: Location) -> Finding | None:
    """Returns the finding if `error`, which ended the query of `model`, means that the columns of its state do not
    match the query; None for other errors.
    """
    for cause in causes_of(error):
        if cause.condition in PARTS:
            part, before, after = PARTS[cause.condition]
            schemas = cause.parameters
            return Finding(
                "state-change",
                f"{what}: Spark cannot use the existing state for the changed query",
                f"the {part} columns of the state are {_columns(schemas.get(before, ''))}, but those of the "
                f"query are now {_columns(schemas.get(after, ''))}",
                f"undo the change: the checkpoint and its ledger are unchanged; or {refresh_text(model)}",
                location,
            )
    return None


def _columns(schema: str) -> str:
    """Returns the names and types of the columns in the text of a Scala StructType."""
    return ", ".join(_outer_fields(schema)) or "others"


def _outer_fields(schema: str) -> Iterator[str]:
    """Yields `name type` for each top-level field of `StructType(StructField(name,type,nullable),...)`."""
    depth, start = 0, 0
    for index, letter in enumerate(schema):
        depth += (letter == "(") - (letter == ")")
        if letter == "(" and depth == 2:
            start = index + 1
        elif letter == ")" and depth == 1:
            name, _, rest = schema[start:index].partition(",")
            yield f"{name} {rest.rpartition(',')[0].partition('(')[0].removesuffix('Type').lower()}"
