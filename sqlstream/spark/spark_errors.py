"""Converts Spark's errors to findings at the user's lines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath

from pyspark.errors import AnalysisException, PySparkException, QueryContext, QueryContextType
from pyspark.errors.exceptions.captured import StreamingQueryException

from sqlstream.errors import Finding
from sqlstream.location import Place
from sqlstream.project.nearest import did_you_mean
from sqlstream.spark.jvm.gateway import causes_of, is_jvm_gone, java_message
from sqlstream.spark.jvm.packages import package_fix
from sqlstream.spark.reading.corrupt_errors import read_corrupt_record
from sqlstream.spark.secrets import Secrets

_SQLSTATE = re.compile(r"\s*SQLSTATE: (\w{5})")
_CONDITION = re.compile(r"^\[([A-Z0-9_.]+)\]\s*")
_PARSE_POSITION = re.compile(r"\(line (\d+), pos (\d+)\)")
_CONTEXT_POSITION = re.compile(r"== SQL \(line (\d+), position (\d+)\) ==")
_ANALYSIS_POSITION = re.compile(r";? ?line \d+ pos \d+;?$")
_SUGGESTION = re.compile(r"\s*Did you mean one of the following\?.*$")
_ADVICE = re.compile(r" Verify the spelling and correctness of .*$")
_QUOTED_NAME = re.compile(r"`([^`]+)`")
_JAVA_CLASSES = re.compile(r"^:?\s*(?:[\w.$]+(?:Exception|Error): )+")
_TASK = re.compile(r"^Job aborted due to stage failure: .*?\(TID \d+\) \([^)]*\): ")
_CAUSE = re.compile(r"(?m)^Caused by: (.+)$")
_TRACEBACK = re.compile(r"(?m)^.*Traceback \(most recent call last\):\n((?:[ \t].*\n|\n)*)(\S.*)")
_OWN_ERROR = re.compile(r"(?m)^sqlstream\.[\w.]+\.(?P<name>DatabaseError|RefusedRowsError): (?P<message>.+)$")
"""An error of sqlstream's own writers in a Python traceback."""
_FRAME = re.compile(r'(?m)^\s*File "(.+)", line (\d+), in (\S+)$')
_JAVA_NOISE = re.compile(r"^\s*(at |\.\.\. \d+ more|Caused by: |JVM stacktrace:|Driver stacktrace:|==)")

OTHER_RUN_FIX = "another run has the same query: stop one of them, and run again"

FIXES = {
    "CONCURRENT_STREAM_LOG_UPDATE": OTHER_RUN_FIX,
    "EVENT_TIME_IS_NOT_ON_TIMESTAMP_TYPE": "convert it in an upstream model, for example "
    "to_timestamp({eventName}) as {eventName}, and set the watermark on that column",
    "FIELD_NOT_FOUND": "the fields are {fields}",
    "NON_TIME_WINDOW_NOT_SUPPORTED_IN_STREAMING": "remove the OVER clause: a stream never has all "
    "of its rows; aggregate with GROUP BY window(event_time, '10 minutes') instead",
    "TABLE_OR_VIEW_NOT_FOUND": "read models with {{{{ ref('...') }}}} and sources with {{{{ source('...', '...') }}}}",
    "PATH_NOT_FOUND": "create the folder, or fix `path`",
    "UNRESOLVED_ROUTINE": "fix the name of the function; Spark's SQL reference lists all functions",
}
"""Fixes by Spark's error condition, with Spark's message parameters in braces."""

OTHER_RUN_MESSAGES = (
    "Multiple streaming queries are concurrently using",
    "another writer already committed this batch",
)
"""Parts of Spark's messages without a condition that mean that another run has the same query."""

LOST_IN_KAFKA = "not available in Kafka any more"
"""A part of the message of Spark's Kafka source about records that the topic no longer has (`KafkaExceptions`)."""

FIXES_BY_MESSAGE = {
    **dict.fromkeys(OTHER_RUN_MESSAGES, OTHER_RUN_FIX),
    LOST_IN_KAFKA: "to continue without the lost records, set the source's option failOnDataLoss: false and run again",
    "Sorting is not supported": "remove ORDER BY: the rows of a stream have no order, and only an aggregation with "
    "output_mode='complete' is written whole and can be sorted",
    "Limits are not supported": "remove LIMIT, or use output_mode='append' or 'complete'",
}
"""Fixes for errors without a condition, by a part of the message."""

PERMANENT_SQLSTATES = ("0A", "21", "22", "42", "P0")
"""Classes of SQLSTATEs that recur for the same SQL and rows: unsupported features, invalid SQL or data, and errors that
the SQL raises itself (https://spark.apache.org/docs/latest/sql-error-conditions-sqlstates.html).
"""

PERMANENT_CONDITIONS = (
    *("CONCURRENT_STREAM_LOG_UPDATE", "FAILED_READ_FILE.FILE_NOT_EXIST", "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE"),
    *("STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE", "STATE_STORE_INVALID_VALUE_SCHEMA_EVOLUTION"),
    *("STATE_STORE_KEY_ROW_FORMAT_VALIDATION_FAILURE", "STATE_STORE_VALUE_ROW_FORMAT_VALIDATION_FAILURE"),
)
"""Other conditions that a restart cannot fix: the checkpoint belongs to another query, or input files are missing."""

CONDITIONS_WITHOUT_REASON = (
    "TASK_WRITE_FAILED",
    "CANNOT_WRITE_STATE_STORE.CANNOT_COMMIT",
    "CANNOT_LOAD_STATE_STORE.UNCATEGORIZED",
)
"""Conditions of errors whose reason is only in their causes."""

DEFAULT_FIX = "change the SQL so that Spark accepts it"


@dataclass(frozen=True)
class SparkError:
    """The content of an error of Spark: its error condition, message and fix, and the offset in the SQL and the SQL
    fragment to which it refers. All but the message are None or empty if the error does not have them.
    """

    condition: str | None
    message: str
    fix: str | None
    offset: int | None
    fragment: str = ""


def read_error(error: BaseException, sql: str | None = None) -> SparkError:
    """Returns the content of `error`. `sql` is the text that Spark parsed, for the offset of a parse error."""
    cause = _root_cause(error)
    text = _text_of(cause)
    condition = _condition(cause, text)
    message = _one_line(text) or text.strip().split("\n", 1)[0]
    if condition in CONDITIONS_WITHOUT_REASON:
        message += _deepest_cause(cause)
    return SparkError(condition, message, _fix(cause, condition), _offset(cause, text, sql), _fragment(cause))


def error_finding(
    error: BaseException,
    *,
    code: str,
    what: str,
    place: Place,
    secrets: Secrets,
    fix: str = DEFAULT_FIX,
    sql: str | None = None,
) -> Finding:
    """Returns the finding for `error`, with the message `what` and Spark's message as the reason."""
    read = read_error(error, sql)
    why = f"Spark reports: {read.message}" + (f" [{read.condition}]" if read.condition else "")
    own = _own_error(error)
    if own is not None:
        why = own["message"]
    if is_jvm_gone(error):
        why = "the Java process of Spark ended: it was killed, perhaps because memory ran out, or it crashed"
    return Finding(code, what, secrets.redact(why), secrets.redact(read.fix or fix), place.location, calls=place.calls)


def fails_again(error: BaseException) -> bool:
    """Returns whether a restart after `error` would certainly fail with the same error."""
    own = _own_error(error)
    if read_corrupt_record(error) is not None or (own is not None and own["name"] == "RefusedRowsError"):
        return True
    causes = list(causes_of(error))
    conditions = {read_error(cause).condition or "" for cause in causes}
    return (
        any(isinstance(cause, AnalysisException) for cause in causes)
        or any(condition.startswith(PERMANENT_CONDITIONS) for condition in conditions)
        or any((_sqlstate(cause) or "").startswith(PERMANENT_SQLSTATES) for cause in causes)
        or any(words in str(cause) for words in (*OTHER_RUN_MESSAGES, LOST_IN_KAFKA) for cause in causes)
    )


def _own_error(error: BaseException) -> re.Match[str] | None:
    """Returns the last error of a writer of sqlstream that ended a batch, None if there is none."""
    found = [match for cause in causes_of(error) for match in _OWN_ERROR.finditer(_qualified(cause))]
    return found[-1] if found else None


def _qualified(error: BaseException) -> str:
    """Returns the text of an error, with the class in front if it is one of sqlstream."""
    kind = type(error)
    return f"{kind.__module__}.{kind.__name__}: {error}" if kind.__module__.startswith("sqlstream.") else str(error)


def _sqlstate(error: BaseException) -> str | None:
    state = error.getSqlState() if isinstance(error, PySparkException) else None
    match = _SQLSTATE.search(str(error))
    return state or (match.group(1) if match else None)


def _root_cause(error: BaseException) -> BaseException:
    """Returns the error, or for a failed query, the deepest of its causes that PySpark has translated."""
    cause = error
    while isinstance(cause, StreamingQueryException) and isinstance(cause.__cause__, PySparkException):
        cause = cause.__cause__
    return cause


def _text_of(error: BaseException) -> str:
    message = java_message(error)
    text = str(error) if message is None else _JAVA_CLASSES.sub("", message).strip()
    return text or type(error).__name__


def _condition(error: BaseException, text: str) -> str | None:
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    if condition is not None and not condition.startswith("_LEGACY"):
        return str(condition)
    match = _CONDITION.match(text)
    return match.group(1) if match else None


def _one_line(text: str) -> str:
    """Returns the first sentences of `text` without task, condition, SQLSTATE, plan, SQL and stack trace, but with the
    deepest cause. For a Python traceback, returns the exception and its location.
    """
    exception = python_exception(text)
    if exception is not None:
        return exception
    causes = _CAUSE.findall(text)
    message = _first_sentences(_TASK.sub("", text))
    return message if not causes or causes[-1] in message else f"{message}, caused by {_first_sentences(causes[-1])}"


def python_exception(text: str) -> str | None:
    """Returns the last exception in the Python tracebacks of `text` and its location on one line, None without one."""
    traces = _TRACEBACK.findall(text)
    if not traces:
        return None
    frames, raised = traces[-1]
    places = _FRAME.findall(frames)
    if not places:
        return str(raised)
    path, line, function = places[-1]
    return f"{raised} ({PurePath(path).name} line {line}, in {function})"


def _deepest_cause(error: BaseException) -> str:
    """Returns the last cause in the Java traces of `error` and its causes, as the end of a sentence."""
    traces = (str(getattr(cause, "_stackTrace", "")) for cause in causes_of(error))
    causes = [found for trace in traces for found in _CAUSE.findall(trace)]
    return f", caused by {_first_sentences(_JAVA_CLASSES.sub('', causes[-1]))}" if causes else ""


def _first_sentences(text: str) -> str:
    kept: list[str] = []
    for line in text.splitlines():
        if (kept and not line.strip()) or _JAVA_NOISE.match(line) or line.startswith(("+-", "'", "~", "   +-")):
            break
        kept.append(line.strip())
    text = " ".join(kept)
    for pattern in (_SQLSTATE, _CONDITION, _PARSE_POSITION, _ANALYSIS_POSITION, _SUGGESTION, _ADVICE):
        text = pattern.sub("", text).strip()
    return text.rstrip(";.")


def _fix(error: BaseException, condition: str | None) -> str | None:
    package = package_fix(str(error), condition)
    if package is not None:
        return package
    if not isinstance(error, PySparkException) or condition is None:
        return next((fix for words, fix in FIXES_BY_MESSAGE.items() if words in str(error)), None)
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


def _context(error: BaseException) -> QueryContext | None:
    """Returns the part of the SQL to which an error refers, None if it does not have one."""
    contexts = (error.getQueryContext() or []) if isinstance(error, PySparkException) else []
    return next((it for it in contexts if it.contextType() == QueryContextType.SQL and it.startIndex() >= 0), None)


def _fragment(error: BaseException) -> str:
    context = _context(error)
    return "" if context is None else str(context.fragment())


def fragment_of(error: BaseException) -> tuple[int | None, str]:
    """Returns the offset and text of the SQL expression that failed at run time, according to `error` and its causes;
    None and an empty text if unknown.
    """
    contexts = [context for cause in causes_of(error) if (context := _context(cause)) is not None]
    return (int(contexts[-1].startIndex()), str(contexts[-1].fragment())) if contexts else (None, "")


def _offset(error: BaseException, text: str, sql: str | None) -> int | None:
    context = _context(error)
    if context is not None:
        return int(context.startIndex())
    stopped, quoted = _PARSE_POSITION.search(text), _CONTEXT_POSITION.search(text)
    match = stopped or quoted
    if match is None or sql is None:
        return None
    lines = sql.split("\n")
    line = min(int(match.group(1)), len(lines))
    first = 0 if stopped else 1  # the parser counts from 0, the heading above quoted SQL from 1
    return sum(len(above) + 1 for above in lines[: line - 1]) + int(match.group(2)) - first
