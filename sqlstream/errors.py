"""Everything sqlstream can say is wrong.

SqlstreamError
├── FindingsError      the user's project or queries are wrong: located findings, exit code 1
└── UsageError         the command cannot be carried out as it was given, exit code 2

A `Finding` is a value, not an exception: a stage collects all of its findings and reports them together. Its `code` is
one of `CODES`, which is also the table of contents of the documentation of errors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum

from sqlstream.location import Location, printable

LONGEST_LINE = 1_000
"""Characters of a line of a finding: what a person still reads."""


class Severity(StrEnum):
    """How bad a finding is. Only an `ERROR` stops a stage; `INFO` is worth knowing and no cause for worry."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True)
class Finding:
    """One located problem, printed as three lines: where and what, why, and how to fix it; if it is `BRIEF`, as the
    first of them. Each is one printable line of at most `LONGEST_LINE` characters, whatever names it quotes.

    `calls` are the model's lines that led to `location` where that lies in a macro, outermost first.
    """

    code: str
    message: str
    why: str
    fix: str
    location: Location | None = None
    severity: Severity = Severity.ERROR
    calls: tuple[Location, ...] = ()

    def __post_init__(self) -> None:
        for name in ("message", "why", "fix"):
            text = printable(getattr(self, name))
            shown = text if len(text) <= LONGEST_LINE else text[:LONGEST_LINE] + "…"
            object.__setattr__(self, name, shown)

    @property
    def head(self) -> str:
        """Its first line: where it is, that it is only a warning where it is one, its code and its message."""
        where = f"{self.location}: " if self.location else ""
        kind = "" if self.is_error else f"{self.severity}: "
        return f"{where}{kind}[{self.code}] {self.message}"

    @property
    def is_error(self) -> bool:
        """Whether this finding stops the stage that found it."""
        return self.severity is Severity.ERROR

    def as_json(self) -> dict[str, object]:
        """Returns the finding as plain data, in the one form that all JSON of sqlstream has; places are numbers."""
        return {
            "code": self.code,
            "severity": str(self.severity),
            "message": self.message,
            "why": self.why,
            "fix": self.fix,
            "location": None if self.location is None else asdict(self.location),
            "calls": [asdict(call) for call in self.calls],
        }


class SqlstreamError(Exception):
    """The root of the tree."""


class FindingsError(SqlstreamError):
    """The user's project is wrong; `findings` has at least one entry."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__("; ".join(finding.head for finding in self.findings))


class UsageError(SqlstreamError):
    """The command line asks for something that cannot be done; the message says what to do instead."""


CODES: dict[str, str] = {
    # project files
    "project-not-found": "There is no project.yml in the folder or above it.",
    "file-not-found": "A file that the project names does not exist.",
    "file-outside-project": "A project file is outside the project, perhaps through a symbolic link.",
    "file-not-utf8": "A project file is not UTF-8 text.",
    "file-unreadable": "A project file is not a regular file, or cannot be read.",
    "file-too-large": "A project file is too large.",
    # YAML
    "yaml-syntax": "A YAML file cannot be parsed.",
    "yaml-duplicate-key": "A YAML mapping has the same key twice.",
    "yaml-too-large": "The aliases or the nesting of a YAML file expand too far.",
    "unknown-key": "A key is not allowed here.",
    "missing-key": "A required key is missing.",
    "invalid-value": "A value is not valid for its key.",
    "duplicate-name": "Two resources of the same kind have the same name.",
    "unknown-target": "project.yml does not define the target.",
    "unsupported-file": "A file is not read: its extension is in capitals, or its unit tests are in the wrong folder.",
    "dbt-file": "sqlstream does not read this dbt file or folder.",
    "unsupported-version": "The project requires another version of sqlstream.",
    "seed-header": "The header of a seed does not define its columns as Spark needs them.",
    "seed-syntax": "The quotes or line ends of a seed are not valid CSV.",
    "seed-row": "A row of a seed has more or fewer values than the header.",
    "seed-column": "A declared column is not in the header of the seed, or its type is not a Spark type.",
    "seed-value": "A value of a seed does not fit the type of its column.",
    "declared-column": "A properties file declares a column that the model does not have, or with another type.",
    "unused-config": "A folder configuration or model properties apply to no model.",
    # rendering
    "jinja-syntax": "A template cannot be parsed.",
    "jinja-undefined": "A template uses a name that is not defined.",
    "jinja-failed": "An expression in a template failed.",
    "jinja-limit": "A template exceeds a limit on work or size.",
    "jinja-unsafe": "A template uses something that is not available in templates.",
    "missing-var": "var() names a variable that is not set and has no default.",
    "missing-env-var": "env_var() names an environment variable that is not set and has no default.",
    "secret-not-allowed": "A secret is used outside the options of sources, sinks and targets.",
    "compiler-error": "The project raised an error.",
    "compiler-warning": "The project raised a warning.",
    "python-model": "A Python model has no function model(), or cannot be analyzed without running it.",
    "python-failed": "A Python model fails, or returns no DataFrame.",
    # graph
    "unknown-ref": "ref() names a model or seed that does not exist.",
    "unknown-source": "source() or a target override names a source table that is not declared.",
    "unknown-sink": "A model or a target override names a sink that is not declared.",
    "disabled-ref": "ref() names a disabled model.",
    "missing-ref": "A query reads an input without ref() or source(), or a table that does not exist.",
    "cycle": "Models depend on each other in a cycle.",
    "no-models": "The project has no enabled models.",
    "unwritten-model": "No model reads a model, and it has no sink.",
    "unused-source": "No model reads some sources.",
    "unused-sink": "No model writes to some sinks.",
    "unused-macro": "Nothing calls some macros.",
    "unused-allow": "A comment allows a finding that does not occur.",
    "invalid-allow": "A comment that allows a finding is not valid.",
    # selection
    "empty-selection": "A selector matches nothing.",
    "unknown-selector": "A selector uses a method, a value or a named selector that does not exist.",
    "no-terminal-model": "The selection contains only views, so there is no query to start.",
    # watermarks
    "misplaced-watermark": "A watermark does not belong to a relation, or its delay is negative.",
    "unknown-hint": "Spark would silently ignore a hint.",
    # rules
    "missing-schema": "A file stream has no declared schema.",
    "python-name": "A source, sink or function names something that python/ does not define, or of the wrong kind.",
    "python-import": "A module in python/ cannot be parsed or imported.",
    "fixed-schema": "A source with a fixed-schema format declares other columns.",
    "temporary-catalog": "A table is in a catalog that is lost when the process ends.",
    "option-value": "Spark does not accept the value of an option, or two options together.",
    "unknown-option": "Spark silently ignores an option: the option is unknown, or has no effect here.",
    "missing-path": "A file source or sink has no path.",
    "output-mode": "A query or its sink does not support the output mode.",
    "batch-model": "A model with only static inputs uses a streaming feature.",
    "shared-output": "Two queries share a checkpoint or an output path.",
    "relative-storage": "A target on other machines stores its data in a relative folder.",
    "socket-available-now": "A socket source does not work with available_now.",
    # streaming queries
    "unknown-column": "A name is not a column or relation of the query.",
    "ambiguous-column": "A column exists in more than one relation.",
    "unknown-field": "A struct has no field with that name.",
    "unknown-function": "Spark has no function with that name.",
    "not-grouped": "A column must be in GROUP BY or in an aggregate function.",
    "bad-position": "A number in GROUP BY or ORDER BY is not a position in the select list.",
    "bad-limit": "A LIMIT or OFFSET is not a constant INT, or is negative.",
    "misplaced-function": "An aggregate function, a generator or a window function is not allowed here.",
    "time-window": "A time window has invalid arguments, or a query uses two of them.",
    "argument-count": "A function has too many or too few arguments.",
    "type-mismatch": "Spark does not accept the type of an expression here.",
    "column-count": "The queries of a UNION, EXCEPT or INTERSECT have different numbers of columns.",
    "time-travel": "A source, seed or model is read at a version or a timestamp.",
    "not-constant": "VALUES or range() reads a column.",
    "column-type": "Columns of a UNION, EXCEPT or INTERSECT have no common type.",
    "second-watermark": "A watermark is set on rows that already have one.",
    "latest-first": "A query with a watermark reads the newest files first.",
    "watermark-type": "A watermark is on a column that is not a timestamp.",
    "append-without-watermark": "An aggregation in append mode has no watermark on its grouping columns.",
    "complete-without-aggregation": "A query in complete mode has no streaming aggregation.",
    "distinct-aggregate": "An aggregate function on a stream uses DISTINCT.",
    "several-aggregations": "An aggregation or join follows an aggregation outside append mode.",
    "rows-beside-aggregation": "In complete mode, a UNION combines an aggregation with stream rows.",
    "set-without-time": "In append mode, a grouping set without the event time never emits rows.",
    "session-window": "A session window is used in update mode, or as the only grouping key.",
    "window-function": "A window function (OVER) is used on a stream.",
    "stream-sort": "ORDER BY or SORT BY is used on a stream.",
    "stream-limit": "A streaming query uses OFFSET, LIMIT in update mode, or a LIMIT that ends its output.",
    "stream-sample": "TABLESAMPLE is used on a stream.",
    "stream-set-operation": "A UNION of a stream and a static table, or EXCEPT or INTERSECT of streams.",
    "stream-subquery": "A subquery in an expression reads a stream.",
    "stream-recursion": "A recursive CTE reads a stream.",
    "row-id": "A streaming query uses monotonically_increasing_id().",
    "join-condition": "A join condition has a nondeterministic function, or compares maps.",
    "join-type": "A join compares text with a number, a date, a timestamp or a boolean.",
    "lateral-join": "Spark runs a LATERAL subquery as an aggregation of the stream.",
    "static-outer-join": "An outer join keeps the rows of a static table, but its other side is a stream.",
    "stream-anti-join": "A left anti join of two streams.",
    "stream-join-mode": "A join of two streams does not support the output mode.",
    "join-without-key": "A join of two streams has no equality.",
    "outer-join-without-bound": "An outer join of two streams has no watermark and time bound.",
    "unbounded-state": "The state of an aggregation or a stream-stream join grows forever.",
    "not-followed": "The SQL of a model cannot be analyzed, so no rules check it.",
    "continuous-trigger": "A query with a continuous trigger uses something that needs micro-batches.",
    "real-time-trigger": "A query with a real-time trigger uses something that Spark does not support there.",
    # unit tests
    "unit-test-model": "A unit test names a model that does not exist or is disabled.",
    "unit-test-input": "The inputs of a unit test are not the inputs of its model.",
    "unit-test-column": "The rows of a unit test have an unknown column, or lack one that the model reads.",
    "unit-test-value": "A value in a unit test does not fit the type of its column.",
    "unit-test-fixture": "The rows of a unit test cannot be read, or its fixture does not exist.",
    "unit-test-batches": "The batches of a unit test contradict each other or the model.",
    "unit-test-empty": "The model emitted no rows for the input of a recorded unit test.",
    "unit-test-expect": "An expectation of a unit test does not apply to this kind of model.",
    "unit-test-upgrade": "The project version in `upgrade_from` could not be read.",
    "unit-test-failed": "A model does not return what its unit test expects.",
    # Spark
    "untested-spark": "Spark is later than the versions that sqlstream was checked against.",
    "java-missing": "No working Java was found.",
    "java-too-old": "The Java version is older than Spark needs.",
    "spark-start": "Spark failed to start.",
    "unsupported-target": "sqlstream can compile for this target, but not run on it.",
    "unknown-format": "Spark has no data source with that name, or cannot write to it.",
    "source-unreadable": "Spark cannot open a source or seed.",
    "too-many-streams": "The selection has more endless queries than the target starts together.",
    "no-query": "A model is empty, or contains a command such as INSERT or CREATE instead of a query.",
    "sql-syntax": "Spark cannot parse the SQL of a model.",
    "sql-analysis": "Spark rejects the SQL of a model.",
    "sink-schema": "A sink cannot write the columns of a model.",
    "undeclared-stream": "A model reads a stream that no source declares.",
    "partition-column": "A sink partitions by a column that the model does not have.",
    "query-failed": "A query failed while it was running.",
    "corrupt-record": "A record of a source cannot be read.",
    # checkpoints
    "state-change": "A stateful query has changed since its checkpoint was written.",
    "output-columns": "The output of a query cannot hold its new columns together with the existing rows.",
    "output-not-empty": "The output of a query contains batches of another checkpoint.",
    "sink-change": "A query would write files to another place than its checkpoint did so far.",
    "source-change": "A query would read a source from another place than its checkpoint did so far.",
    "torn-checkpoint": "A file of a checkpoint or output is incomplete or missing.",
    "source-file-gone": "A query stopped in a batch, and files of that batch are gone.",
    "query-in-use": "Another process is running the query.",
    "storage-unusable": "The storage of a target cannot be read or written.",
    "ledger-unreadable": "The ledger of a checkpoint is missing or cannot be read.",
}

BRIEF = frozenset({"untested-spark", "unused-macro", "unused-sink", "unused-source"})
"""The codes of findings that are printed as one line, which says it all; JSON has their reason and fix as well."""

ADVICE = frozenset(
    {
        "compiler-warning",
        "dbt-file",
        "declared-column",
        "empty-selection",
        "join-type",
        "lateral-join",
        "missing-ref",
        "no-models",
        "not-followed",
        "rows-beside-aggregation",
        "set-without-time",
        "several-aggregations",
        "stream-limit",
        "time-window",
        "unbounded-state",
        "unit-test-empty",
        "unknown-hint",
        "unknown-option",
        "untested-spark",
        "unused-allow",
        "unused-config",
        "unused-macro",
        "unused-sink",
        "unused-source",
        "unwritten-model",
    }
)
"""The codes of findings that need not stop a stage: a project may lower them where they are no errors."""

SPARK_DECIDES = frozenset(
    {
        "ambiguous-column",
        "append-without-watermark",
        "argument-count",
        "bad-limit",
        "bad-position",
        "column-count",
        "column-type",
        "complete-without-aggregation",
        "continuous-trigger",
        "distinct-aggregate",
        "join-condition",
        "join-type",
        "join-without-key",
        "lateral-join",
        "misplaced-function",
        "not-constant",
        "not-grouped",
        "option-value",
        "outer-join-without-bound",
        "output-mode",
        "partition-column",
        "real-time-trigger",
        "row-id",
        "rows-beside-aggregation",
        "session-window",
        "several-aggregations",
        "sink-schema",
        "static-outer-join",
        "stream-anti-join",
        "stream-join-mode",
        "stream-limit",
        "stream-recursion",
        "stream-sample",
        "stream-set-operation",
        "stream-sort",
        "stream-subquery",
        "time-travel",
        "time-window",
        "type-mismatch",
        "unknown-column",
        "unknown-field",
        "unknown-format",
        "unknown-function",
        "watermark-type",
        "window-function",
    }
)
"""The codes of errors that predict what Spark refuses. A project may lower them: Spark then decides at the start."""

LOWERABLE = ADVICE | SPARK_DECIDES
"""The codes that `rules:` and comments may name."""


def can_be_lowered(finding: Finding) -> bool:
    """Returns whether a project may lower `finding`: what is no error, or an error that Spark decides on."""
    return finding.code in SPARK_DECIDES or not finding.is_error
