"""Spark's error about a record that it cannot read, as a finding that names the file and the ways out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from sqlstream.errors import Finding
from sqlstream.location import Place
from sqlstream.project.wording import quoted
from sqlstream.spark.jvm import causes_of
from sqlstream.spark.secrets import Secrets

_FILE = re.compile(r"\[FAILED_READ_FILE[.\w]*\] Encountered error while reading file (.+?)\.\s")
_RECORD = re.compile(r"(?s)\[MALFORMED_RECORD_IN_PARSING[.\w]*\] Malformed records [^:]*: (.*?)\.\s+Parse Mode:")
_CAUSE = re.compile(r"(?m)^Caused by: (.+)$")
_CLASSES = re.compile(r"^(?:[\w.$]+(?:Exception|Error)(?:: |$))+")
_DECORATION = re.compile(r"\s*SQLSTATE: \w{5}|^\[[A-Z0-9_.]+\]\s*|\s*\(start marker at .*$|;? ?at \[Source: .*$")


@dataclass(frozen=True)
class CorruptRecord:
    """What Spark says of a record that it cannot read: the path or URI of its file, the values that it has read of it,
    where it says so, and the reason. Spark gives neither a line nor the text.
    """

    file: str
    values: str
    reason: str


def read_corrupt_record(error: BaseException) -> CorruptRecord | None:
    """Returns what `error` says of a record in a file that cannot be read, None where it is about something else."""
    texts = [line for cause in causes_of(error) for line in _parts(cause)]
    whole = "\n".join(texts)
    file, record = _FILE.search(whole), _RECORD.search(whole)
    if file is None or record is None:
        return None
    values = " ".join(record.group(1).split())
    reason = _reason(texts[-1]) if "MALFORMED_RECORD_IN_PARSING" not in texts[-1] else ""
    return CorruptRecord(_plain(file.group(1)), values, reason)


def corrupt_record_finding(record: CorruptRecord, what: str, place: Place, secrets: Secrets) -> Finding:
    """Returns the finding; `what` fails for the record."""
    because = f" ({record.reason})" if record.reason else ""
    return Finding(
        "corrupt-record",
        f"{what}: a record of {record.file} cannot be read",
        secrets.redact(f"Spark says: the record that reads as {quoted(record.values)} is malformed{because}"),
        "mend the file, or say on_corrupt: drop or quarantine in the source's declaration; then run again",
        place.location,
        calls=place.calls,
    )


def _parts(error: BaseException) -> list[str]:
    """The text of an error, and those of the causes that it quotes."""
    text = str(error)
    return [text, *_CAUSE.findall(text)]


def _reason(text: str) -> str:
    first = _CLASSES.sub("", text.splitlines()[0] if text else "")
    while (shorter := _DECORATION.sub("", first)) != first:
        first = shorter
    return first.strip().rstrip(".;")


def _plain(file: str) -> str:
    """The path of a file on this machine, the URI of any other."""
    parts = urlsplit(file)
    return unquote(parts.path) if parts.scheme == "file" else file
