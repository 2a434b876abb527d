"""Converts Spark's errors to findings at the user's lines, and names the package of a missing class."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

import pyspark

from sqlstream.compiler.spark_versions import minor_version_text
from sqlstream.errors import Finding
from sqlstream.location import Location, Place
from sqlstream.project.connectors.connectors import CONNECTORS
from sqlstream.project.wording import did_you_mean
from sqlstream.spark.jvm.connect import is_server_gone
from sqlstream.spark.jvm.gateway import Cause, causes_of, is_jvm_gone
from sqlstream.spark.secrets import Secrets

logger = logging.getLogger("sqlstream.errors")

_SQLSTATE = re.compile(r"\s*SQLSTATE: \w{5}")
_CONDITION = re.compile(r"^\[[A-Z0-9_.]+\]\s*")
_PARSE_POSITION = re.compile(r"\(line (\d+), pos (\d+)\)")
_CONTEXT_POSITION = re.compile(r"== SQL \(line (\d+), position (\d+)\) ==")
_ANALYSIS_POSITION = re.compile(r";? ?line \d+ pos \d+;?$")
_SUGGESTION = re.compile(r"\s*Did you mean one of the following\?.*$")
_ADVICE = re.compile(r" Verify the spelling and correctness of .*$")
_WATERMARK = re.compile(r"#\d+L?-T\d+ms")
"""Spark's number and delay of a column with a watermark."""
_QUOTED_NAME = re.compile(r"`([^`]+)`")
_JAVA_CLASSES = re.compile(r"^:?\s*(?:[\w.$]+(?:Exception|Error): )+")
_TASK = re.compile(r"^Job aborted due to stage failure: .*?\(TID \d+\) \([^)]*\): ")
_CAUSE = re.compile(r"(?m)^Caused by: (.+)$")
_TRACEBACK = re.compile(r"(?m)^.*Traceback \(most recent call last\):\n((?:[ \t].*\n|\n)*)(\S.*)")
_OWN_ERROR = re.compile(r"sqlstream\.[\w.]+\.(?P<name>DatabaseError|RefusedRowsError)")
"""The class of an error of sqlstream's own writers."""
_RAISED = re.compile(r"(?m)^(?P<kind>sqlstream\.[\w.]+): (?P<message>.+)$")
"""The line of a Python traceback with an exception of sqlstream."""
_PROXY = "py4j.Py4JException"
"""The class of Java's exception about an exception in Python code that Java called; its message is the traceback."""
_FRAME = re.compile(r'(?m)^\s*File "(.+)", line (\d+), in (\S+)$')
_JAVA_NOISE = re.compile(r"^\s*(at |\.\.\. \d+ more|Caused by: |JVM stacktrace:|Driver stacktrace:|==)")

OTHER_RUN_FIX = "another run has the same query: stop one of them, and run again"

SEVERAL_EVENT_TIMES = ("MULTIPLE_EVENT_TIME_COLUMNS", "More than one event time columns are available")
"""The condition of Spark 4.3, and the message of Spark 4.1, which has none."""

ONE_EVENT_TIME_FIX = (
    "leave out all but one of these columns, or make the others plain times in a subquery, for "
    "example ts + interval 0 seconds as ts"
)

LOST_IN_KAFKA = "KAFKA_DATA_LOSS"
"""The start of the conditions about records that a topic no longer has (`KafkaExceptions` of Spark's Kafka source)."""

FIXES = {
    "CONCURRENT_STREAM_LOG_UPDATE": OTHER_RUN_FIX,
    "BATCH_METADATA_NOT_FOUND": "restore the missing files from a backup; or start the query over with --full-refresh",
    **dict.fromkeys(
        ("DELTA_SOURCE_TABLE_IGNORE_CHANGES", "DELTA_SOURCE_IGNORE_DELETE"),
        "to read changed and deleted rows, set `changes: true` on the source, and start over with --full-refresh; "
        "to leave them out, set the source's option skipChangeCommits to true, and run again",
    ),
    "DELTA_MISSING_CHANGE_DATA": "set startingVersion to a version from which the table records its changes; or remove "
    "startingVersion, and start over with --full-refresh: the stream then begins with the rows of the table",
    "EVENT_TIME_IS_NOT_ON_TIMESTAMP_TYPE": "convert it in an upstream model, for example "
    "to_timestamp({eventName}) as {eventName}, and set the watermark on that column",
    **dict.fromkeys(
        ("FAILED_READ_FILE.NO_HINT", "FAILED_READ_FILE.CANNOT_READ_FILE_FOOTER"),
        "replace {path} by a complete file of the same name, or set the option ignoreCorruptFiles: true of the source, "
        "which skips what cannot be read of such files; then run again",
    ),
    "FIELD_NOT_FOUND": "the fields are {fields}",
    SEVERAL_EVENT_TIMES[0]: ONE_EVENT_TIME_FIX,
    "NON_TIME_WINDOW_NOT_SUPPORTED_IN_STREAMING": "remove the OVER clause: a stream never has all "
    "of its rows; aggregate with GROUP BY window(event_time, '10 minutes') instead",
    "STATE_STORE_UNSUPPORTED_OPERATION_BINARY_INEQUALITY": "compare the bytes of the text: group, join or deduplicate "
    "by the column with `collate UTF8_BINARY` after it",
    "TABLE_OR_VIEW_NOT_FOUND": "read models with {{{{ ref('...') }}}} and sources with {{{{ source('...', '...') }}}}",
    LOST_IN_KAFKA: "to continue without the lost records, set the source's option failOnDataLoss: false and run again",
    "PATH_NOT_FOUND": "create the folder, or fix `path`",
    "UNRESOLVED_ROUTINE": "fix the name of the function; Spark's SQL reference lists all functions",
}
"""Fixes by Spark's error condition or the one above it, with Spark's message parameters in braces."""

OTHER_RUN_MESSAGES = (
    "Multiple streaming queries are concurrently using",
    "another writer already committed this batch",
)
"""Parts of Spark's messages without a condition that mean that another run has the same query."""

FIXES_BY_MESSAGE = {
    **dict.fromkeys(OTHER_RUN_MESSAGES, OTHER_RUN_FIX),
    **{
        f"Cannot process {kind} snapshot": "to leave changed rows out, set the source's option "
        f"streaming-skip-{kind}-snapshots to true, and run again; Iceberg cannot stream changes"
        for kind in ("overwrite", "delete")
    },
    "Stream-stream join without equality predicate": "add a condition such as a.id = b.id to each join of two streams",
    "should not take Cross as the JoinType": "use JOIN with a condition such as on a.id = b.id instead of CROSS JOIN",
    SEVERAL_EVENT_TIMES[1]: ONE_EVENT_TIME_FIX,
    "Sorting is not supported": "remove ORDER BY: the rows of a stream have no order, and only an aggregation with "
    "output_mode='complete' is written whole and can be sorted",
    "Limits are not supported": "remove LIMIT, or use output_mode='append' or 'complete'",
}
"""Fixes for errors without a condition, by a part of the message."""

SYSTEM_SQLSTATES = ("58", "KD", "HY", "XX", "F0")
"""Classes of SQLSTATEs of errors of files, stores, data sources and Spark itself. Their messages often leave out the
reason, which is in the innermost cause: "Encountered error while reading file" (FAILED_READ_FILE.NO_HINT).
"""

DEFAULT_FIX = "change the SQL so that Spark accepts it"

CLASSES = {
    "fs.s3a.S3AFileSystem": "hadoop-aws",
    "fs.azurebfs.": "hadoop-azure",
    "fs.azure.": "hadoop-azure",
    "fs.gs.GoogleHadoopFileSystem": "hadoop-gcp",
}
"""Hadoop's packages, by the start of the name of a class that they contain."""

OTHER_SCHEMES = {
    "s3": "use a path with s3a://..., which needs {aws}",
    "s3n": "use a path with s3a://..., which needs {aws}",
    "gs": "add com.google.cloud.bigdataoss:gcs-connector:hadoop3-2.2.26 to the target's packages:",
}
"""The fix for schemes without a file system in Hadoop; before Hadoop 3.5, that includes gs."""


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
    causes = causes_of(error)
    cause = causes[0]
    message = _one_line(_text_of(cause)) or _text_of(cause).strip().split("\n", 1)[0]
    reason = _one_line(_text_of(causes[-1]))
    leaves_out = cause.condition is None or (cause.sqlstate or "").startswith(SYSTEM_SQLSTATES)
    if leaves_out and reason not in message:
        message += f", caused by {reason}"
    return SparkError(cause.condition, message, _fix(causes), _offset(cause, sql), cause.fragment)


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
    own = own_error(error)
    if own is not None:
        why = own.message
    if is_server_gone(error):
        why = "the Spark Connect server has ended the session, or cannot be reached: it was stopped or restarted"
    elif is_jvm_gone(error):
        why = "the Java process of Spark ended: it was killed, perhaps because memory ran out, or it crashed"
    return Finding(code, what, secrets.redact(why), secrets.redact(read.fix or fix), place.location, calls=place.calls)


def bug_finding(
    bug: Exception, failure: BaseException | None, what: str, location: Location, secrets: Secrets
) -> Finding:
    """Returns the finding that an unexpected `bug` of sqlstream ended `what`: a query, or one unit test.

    `failure` is the error that sqlstream handled when the bug occurred, None without one.
    """
    logger.error("%s ended because of a bug", what, exc_info=bug)
    why = f"{type(bug).__name__}: {bug}"
    if failure is not None:
        text = next(iter(str(failure).strip().splitlines()), type(failure).__name__)  # `read_error` may have the bug
        why = f"Spark reports: {text}; sqlstream could not handle this error: {why}"
    return Finding(
        "internal-error",
        f"{what} ended because of a bug in sqlstream",
        secrets.redact(why),
        "report the bug with its traceback, which is in logs/sqlstream.log; everything else continues",
        location,
    )


def own_error(error: BaseException) -> Cause | None:
    """Returns the last error of a writer of sqlstream that ended a batch, None if there is none."""
    raised: list[Cause] = []
    for cause in causes_of(error):
        traced = _RAISED.finditer(cause.message) if cause.kind == _PROXY else ()
        raised += [cause, *(Cause(match["kind"], match["message"]) for match in traced)]
    found = [cause for cause in raised if _OWN_ERROR.fullmatch(cause.kind)]
    return found[-1] if found else None


def _text_of(cause: Cause) -> str:
    return _JAVA_CLASSES.sub("", cause.message).strip() or cause.kind.rpartition(".")[2]


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


def _first_sentences(text: str) -> str:
    kept: list[str] = []
    for line in text.splitlines():
        # `+-`, `'` and `~` begin the lines of a plan
        if (kept and not line.strip()) or _JAVA_NOISE.match(line) or line.startswith(("+-", "'", "~", "   +-")):
            break
        kept.append(line.strip())
    text = " ".join(kept)
    for pattern in (_SQLSTATE, _CONDITION, _PARSE_POSITION, _ANALYSIS_POSITION, _SUGGESTION, _ADVICE, _WATERMARK):
        text = pattern.sub("", text).strip()
    return text.rstrip(";.")


def _fix(causes: Sequence[Cause]) -> str | None:
    package = package_fix(causes)
    if package is not None:
        return package
    condition, parameters = causes[0].condition, causes[0].parameters
    if condition is None:
        fixes = (fix for words, fix in FIXES_BY_MESSAGE.items() if any(words in cause.words for cause in causes))
        return next(fixes, None)
    if parameters.get("proposal"):
        return did_you_mean(
            _last_name(parameters.get("objectName", "")), list(map(_last_name, parameters["proposal"].split(", ")))
        )
    fix = FIXES.get(condition) or FIXES.get(condition.partition(".")[0])
    try:
        return None if fix is None else fix.format(**parameters)
    except KeyError:  # this Spark does not report the parameter
        return None


def _last_name(qualified: str) -> str:
    names = _QUOTED_NAME.findall(qualified)
    return str(names[-1]) if names else qualified


def fragment_of(error: BaseException) -> tuple[int | None, str]:
    """Returns the offset and text of the SQL expression that failed at run time, according to `error` and its causes;
    None and an empty text if unknown. Over Connect the offset is always unknown.
    """
    located = [cause for cause in causes_of(error) if cause.fragment]
    return (located[-1].offset, located[-1].fragment) if located else (None, "")


def _offset(cause: Cause, sql: str | None) -> int | None:
    if cause.offset is not None or sql is None:
        return cause.offset
    stopped, quoted = _PARSE_POSITION.search(cause.message), _CONTEXT_POSITION.search(cause.message)
    match = stopped or quoted
    if match is None:
        return None
    lines = sql.split("\n")
    line = min(int(match.group(1)), len(lines))
    first = 0 if stopped else 1  # the parser counts from 0, the heading above quoted SQL from 1
    return sum(len(above) + 1 for above in lines[: line - 1]) + int(match.group(2)) - first


_UNKNOWN_HOST = (
    re.compile(r'Invalid host name: .*?destination host is: "?(?P<host>[\w.-]+)', re.DOTALL),
    re.compile(r"UnknownHostException: (?P<host>[\w.-]+)"),
)
_NO_ANSWER = re.compile(r"Call From \S+ to (?P<address>\S+) failed on (?:connection|socket timeout) exception")
"""Messages of Java and Hadoop about a server that cannot be reached (org.apache.hadoop.net.NetUtils)."""


def host_fix(error: BaseException) -> str | None:
    """Returns the fix, with the name of the host, if a Java error says that a host does not exist or respond."""
    message = "\n".join(f"{cause.kind}: {cause.words}" for cause in causes_of(error))
    unknown = next(filter(None, (pattern.search(message) for pattern in _UNKNOWN_HOST)), None)
    if unknown is not None:
        return f"fix the host name: `{unknown['host']}` cannot be resolved"
    silent = _NO_ANSWER.search(message)
    return None if silent is None else f"fix the address, or start the server: `{silent['address']}` does not respond"


_NOT_ENABLED = "_DATA_SOURCE_NOT_ENABLED"
"""The end of the error condition for a format without its jars, after the format's name in capitals."""

_UNDEFINED = re.compile(r"NoClassDefFoundError: (?:Could not initialize class )?(?P<name>[\w.$/]+)")
_NO_SCHEME = re.compile(r"No FileSystem for scheme:? \"?(?P<scheme>\w+)")
_NOT_FOUND = re.compile(r"(?:ClassNotFoundException: |Class )(?:Class )?org\.apache\.hadoop\.(?P<name>[\w.$]+)")


def package_fix(causes: Sequence[Cause]) -> str | None:
    """Returns a fix that names the missing package, None if `causes` are not about a package."""
    name = (causes[0].condition or "").removesuffix(_NOT_ENABLED).lower()
    release = CONNECTORS[name].release_for(minor_version_text(pyspark.__version__)) if name in CONNECTORS else None
    if release is not None:  # sqlstream adds connectors for declared formats, but not for those that only Python names
        return f"declare a source or sink with format: {name}, or add {release.jars[0]} to the target's packages:"
    words = "\n".join(f"{cause.kind}: {cause.words}" for cause in causes)
    scheme = _NO_SCHEME.search(words)
    if scheme is not None and scheme["scheme"] in OTHER_SCHEMES:
        return OTHER_SCHEMES[scheme["scheme"]].format(aws=_hadoop_package("hadoop-aws"))
    if scheme is not None:
        name = scheme["scheme"]
        return f"fix the scheme {name}:// of the path, or add the package of its file system to the target's packages:"
    missing = [match["name"] for match in _NOT_FOUND.finditer(words)]
    packages = (package for name in missing for part, package in CLASSES.items() if name.startswith(part))
    found = next(packages, None)
    if found is not None:
        return f"add {_hadoop_package(found)} to the target's packages:"
    undefined = _UNDEFINED.search(words)
    if undefined is None:
        return None
    return f"add the package with the Java class {undefined['name'].replace('/', '.')} to the target's packages:"


def _hadoop_package(package: str) -> str:
    return f"org.apache.hadoop:{package}:{hadoop_version()}"


def hadoop_version() -> str:
    """Returns the version of Hadoop in the installed pyspark; Hadoop's packages must have the same version."""
    jars = Path(pyspark.__file__).parent / "jars"
    found = (re.fullmatch(r"hadoop-client-api-(.+)\.jar", path.name) for path in jars.glob("hadoop-client-api-*.jar"))
    return next((match[1] for match in found if match), "VERSION")
