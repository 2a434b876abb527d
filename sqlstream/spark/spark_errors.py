"""Spark's errors as findings on the user's own line."""

from __future__ import annotations

import re
from dataclasses import dataclass

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import StreamingQueryException

from sqlstream.errors import Finding
from sqlstream.location import Location, Place
from sqlstream.project.nearest import did_you_mean
from sqlstream.spark.jvm import is_jvm_gone
from sqlstream.spark.secrets import Secrets

_SQLSTATE = re.compile(r"\s*SQLSTATE: \w{5}")
_CONDITION = re.compile(r"^\[([A-Z0-9_.]+)\]\s*")
_PARSE_POSITION = re.compile(r"\(line (\d+), pos (\d+)\)")
_ANALYSIS_POSITION = re.compile(r";? ?line \d+ pos \d+$")
_SUGGESTION = re.compile(r"\s*Did you mean one of the following\?.*$")
_QUOTED_NAME = re.compile(r"`([^`]+)`")
_JAVA_CLASSES = re.compile(r"^:?\s*(?:[\w.$]+(?:Exception|Error): )+")
_JAVA_NOISE = re.compile(r"^\s*(at |\.\.\. \d+ more|Caused by: |JVM stacktrace:|Driver stacktrace:|==)")

FIXES = {
    "FIELD_NOT_FOUND": "the fields are {fields}",
    "TABLE_OR_VIEW_NOT_FOUND": "read models with {{{{ ref('...') }}}} and sources with {{{{ source('...', '...') }}}}",
    "PATH_NOT_FOUND": "create the folder, or correct `path`",
    "UNRESOLVED_ROUTINE": "correct the function's name; Spark's functions are listed in its SQL reference",
}
"""What to do, by Spark's error condition; the braces take Spark's own message parameters."""

PLAIN_FIX = "change the SQL so that Spark accepts it"


@dataclass(frozen=True)
class SparkError:
    """What Spark said, without its decoration: `condition` is its error class (None where it has none), `offset` the
    place in the SQL text that it names (None where it names none).
    """

    condition: str | None
    message: str
    fix: str | None
    offset: int | None


def read_error(error: BaseException, sql: str | None = None) -> SparkError:
    """Returns what `error` says. `sql` is the text Spark was given, from which a parse error's offset is counted."""
    cause = _root_cause(error)
    text = _describe(cause)
    condition = _condition(cause) or _condition_in(text)
    return SparkError(condition, _one_line(text), _fix(cause, condition), _offset(cause, text, sql))


def error_finding(
    error: BaseException,
    *,
    code: str,
    what: str,
    place: Place,
    secrets: Secrets,
    fix: str = PLAIN_FIX,
    sql: str | None = None,
) -> Finding:
    """Returns the finding for `error`: `what` is the message, Spark's words are the why."""
    said = read_error(error, sql)
    why = f"Spark says: {said.message}" + (f" [{said.condition}]" if said.condition else "")
    if is_jvm_gone(error):
        why = "the Java process that Spark ran in is gone: it was killed, perhaps because memory ran out, or it crashed"
    return Finding(code, what, secrets.redact(why), secrets.redact(said.fix or fix), place.location, calls=place.calls)


def at(location: Location) -> Place:
    """Returns `location` as a place with no calls."""
    return Place(location)


def _root_cause(error: BaseException) -> BaseException:
    """The error itself, or the deepest cause of a failed query that has words of its own."""
    seen = error
    while isinstance(seen, StreamingQueryException) and isinstance(seen.__cause__, PySparkException):
        seen = seen.__cause__
    return seen


def _describe(error: BaseException) -> str:
    if isinstance(error, Py4JJavaError):
        # the first line is py4j's own; the second is the Java exception, with the names of its classes
        return _JAVA_CLASSES.sub("", str(error).split("\n", 1)[-1]) or type(error).__name__
    if isinstance(error, Py4JError):
        return str(error).splitlines()[0]
    return str(error) or type(error).__name__


def _condition(error: BaseException) -> str | None:
    if not isinstance(error, PySparkException):
        return None
    condition = error.getCondition()
    return None if condition is None or condition.startswith("_LEGACY") else str(condition)


def _condition_in(text: str) -> str | None:
    match = _CONDITION.match(text)
    return match.group(1) if match else None


def _one_line(text: str) -> str:
    """The first sentences of `text`: without the condition, the SQL state, the plan, the SQL and the stack trace."""
    kept: list[str] = []
    for line in text.splitlines():
        if (kept and not line.strip()) or _JAVA_NOISE.match(line) or line.startswith(("+-", "'", "~", "   +-")):
            break
        kept.append(line.strip())
    text = " ".join(kept)
    for pattern in (_SQLSTATE, _CONDITION, _PARSE_POSITION, _ANALYSIS_POSITION, _SUGGESTION):
        text = pattern.sub("", text).strip()
    return text.rstrip(";.")


def _fix(error: BaseException, condition: str | None) -> str | None:
    if not isinstance(error, PySparkException) or condition is None:
        return None
    parameters = error.getMessageParameters() or {}
    if parameters.get("proposal"):
        return did_you_mean(_last_name(parameters.get("objectName", "")), _last_names(parameters["proposal"]))
    if condition not in FIXES:
        return None
    try:
        return FIXES[condition].format(**parameters)
    except KeyError:
        return None


def _last_names(listed: str) -> list[str]:
    return [_last_name(qualified) for qualified in listed.split(", ")]


def _last_name(qualified: str) -> str:
    names = _QUOTED_NAME.findall(qualified)
    return str(names[-1]) if names else qualified


def _offset(error: BaseException, text: str, sql: str | None) -> int | None:
    if not isinstance(error, PySparkException):
        return None
    contexts = error.getQueryContext() or []
    for context in contexts:
        if hasattr(context, "startIndex") and context.startIndex() >= 0:
            return int(context.startIndex())
    match = _PARSE_POSITION.search(text)
    if match is None or sql is None:
        return None
    lines = sql.split("\n")
    line = min(int(match.group(1)), len(lines))
    return sum(len(above) + 1 for above in lines[: line - 1]) + int(match.group(2))
