"""Spark's errors as findings on the user's own line."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyspark.errors import AnalysisException, PySparkException, QueryContext, QueryContextType
from pyspark.errors.exceptions.captured import StreamingQueryException

from sqlstream.errors import Finding
from sqlstream.location import Location, Place
from sqlstream.project.nearest import did_you_mean
from sqlstream.spark.jvm.gateway import causes_of, is_jvm_gone, java_message
from sqlstream.spark.jvm.packages import package_fix
from sqlstream.spark.reading.corrupt_errors import read_corrupt_record
from sqlstream.spark.reading.python_traces import python_exception
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
_JAVA_NOISE = re.compile(r"^\s*(at |\.\.\. \d+ more|Caused by: |JVM stacktrace:|Driver stacktrace:|==)")

OTHER_RUN = "another run has the same query: stop one of them, and run again"

FIXES = {
    "CONCURRENT_STREAM_LOG_UPDATE": OTHER_RUN,
    "EVENT_TIME_IS_NOT_ON_TIMESTAMP_TYPE": "convert it in an upstream model, for example "
    "to_timestamp({eventName}) as {eventName}, and set the watermark on that column",
    "FIELD_NOT_FOUND": "the fields are {fields}",
    "NON_TIME_WINDOW_NOT_SUPPORTED_IN_STREAMING": "remove the OVER clause: a stream never has all "
    "of its rows; aggregate with GROUP BY window(event_time, '10 minutes') instead",
    "TABLE_OR_VIEW_NOT_FOUND": "read models with {{{{ ref('...') }}}} and sources with {{{{ source('...', '...') }}}}",
    "PATH_NOT_FOUND": "create the folder, or fix `path`",
    "UNRESOLVED_ROUTINE": "fix the name of the function; Spark's SQL reference lists all functions",
}
"""What to do, by Spark's error condition; the braces take Spark's own message parameters."""

OTHER_RUNS = ("Multiple streaming queries are concurrently using", "another writer already committed this batch")
"""How Spark says without a condition that another run has the same query."""

FIXES_BY_WORDS = {
    **dict.fromkeys(OTHER_RUNS, OTHER_RUN),
    "Sorting is not supported": "remove ORDER BY: the rows of a stream have no order, and only an aggregation with "
    "output_mode='complete' is written whole and can be sorted",
    "Limits are not supported": "remove LIMIT, or use output_mode='append' or 'complete'",
}
"""What to do where Spark gives its error no condition, by the first words of the message."""

LASTING_STATES = ("0A", "21", "22", "42", "P0")
"""Classes of SQL states of what the same SQL over the same rows always gives: it is not supported, it or the data are
wrong, or it raises an error itself (https://spark.apache.org/docs/latest/sql-error-conditions-sqlstates.html).
"""

LASTING_CONDITIONS = (
    *("CONCURRENT_STREAM_LOG_UPDATE", "FAILED_READ_FILE.FILE_NOT_EXIST", "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE"),
    *("STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE", "STATE_STORE_INVALID_VALUE_SCHEMA_EVOLUTION"),
    *("STATE_STORE_KEY_ROW_FORMAT_VALIDATION_FAILURE", "STATE_STORE_VALUE_ROW_FORMAT_VALIDATION_FAILURE"),
)
"""Others that no new start fixes: the checkpoint is another query's, or what a batch was to read is gone."""

SAY_NOTHING = (
    "TASK_WRITE_FAILED",
    "CANNOT_WRITE_STATE_STORE.CANNOT_COMMIT",
    "CANNOT_LOAD_STATE_STORE.UNCATEGORIZED",
)
"""Conditions of errors that say that something failed and leave it to their causes to say why."""

PLAIN_FIX = "change the SQL so that Spark accepts it"


@dataclass(frozen=True)
class SparkError:
    """What Spark said, without its decoration: `condition` is its error class (None where it has none), `offset` the
    place in the SQL text that it names (None where it names none) and `fragment` the words there, where it quotes them.
    """

    condition: str | None
    message: str
    fix: str | None
    offset: int | None
    fragment: str = ""


def read_error(error: BaseException, sql: str | None = None) -> SparkError:
    """Returns what `error` says. `sql` is the text Spark was given, from which a parse error's offset is counted."""
    cause = _root_cause(error)
    text = _describe(cause)
    condition = _condition(cause) or _condition_in(text)
    said = _one_line(text)
    if condition in SAY_NOTHING:
        said += _deepest(cause)
    return SparkError(condition, said, _fix(cause, condition), _offset(cause, text, sql), _fragment(cause))


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
    why = f"Spark reports: {said.message}" + (f" [{said.condition}]" if said.condition else "")
    if is_jvm_gone(error):
        why = "the Java process of Spark ended: it was killed, perhaps because memory ran out, or it crashed"
    return Finding(code, what, secrets.redact(why), secrets.redact(said.fix or fix), place.location, calls=place.calls)


def fails_again(error: BaseException) -> bool:
    """Returns whether a query that failed with `error` would surely fail with it again when it is started again."""
    if read_corrupt_record(error) is not None:
        return True
    causes = list(causes_of(error))
    conditions = {read_error(cause).condition or "" for cause in causes}
    return (
        any(isinstance(cause, AnalysisException) for cause in causes)
        or any(condition.startswith(LASTING_CONDITIONS) for condition in conditions)
        or any((_state_of(cause) or "").startswith(LASTING_STATES) for cause in causes)
        or any(words in str(cause) for words in OTHER_RUNS for cause in causes)
    )


def _state_of(error: BaseException) -> str | None:
    state = error.getSqlState() if isinstance(error, PySparkException) else None
    match = _SQLSTATE.search(str(error))
    return state or (match.group(1) if match else None)


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
    words = java_message(error)
    if words is not None:
        return _JAVA_CLASSES.sub("", words).strip() or type(error).__name__
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
    """The first sentences of `text`: without the task, the condition, the SQL state, the plan, the SQL and the stack
    trace, of which only the deepest cause counts. Of a traceback of Python only the exception and its place.
    """
    raised = python_exception(text)
    if raised is not None:
        return raised
    causes = _CAUSE.findall(text)
    said = _first_sentences(_TASK.sub("", text))
    return said if not causes or causes[-1] in said else f"{said}, caused by {_first_sentences(causes[-1])}"


def _deepest(error: BaseException) -> str:
    """What stands last in the Java traces of `error` and of what caused it, to be put behind its own words."""
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
        return next((fix for words, fix in FIXES_BY_WORDS.items() if words in str(error)), None)
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
    """The piece of SQL that an error is about, None where it names none."""
    contexts = (error.getQueryContext() or []) if isinstance(error, PySparkException) else []
    return next((it for it in contexts if it.contextType() == QueryContextType.SQL and it.startIndex() >= 0), None)


def _fragment(error: BaseException) -> str:
    context = _context(error)
    return "" if context is None else str(context.fragment())


def fragment_of(error: BaseException) -> tuple[int | None, str]:
    """Returns where in a text of SQL an expression stands that has failed over some row, and its words; None and
    nothing where neither `error` nor its causes tell.
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
    first = 0 if stopped else 1  # the parser counts from 0, and the heading of a quotation from 1
    return sum(len(above) + 1 for above in lines[: line - 1]) + int(match.group(2)) - first
