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
    "file-outside-project": "A project file lies outside the project, perhaps behind a symbolic link.",
    "file-not-utf8": "A project file is not UTF-8 text.",
    "file-unreadable": "A project file is no ordinary file, or may not be read.",
    "file-too-large": "A project file is larger than a project file can sensibly be.",
    # YAML
    "yaml-syntax": "A YAML file cannot be read.",
    "yaml-duplicate-key": "A YAML mapping has the same key twice.",
    "yaml-too-large": "A YAML file's aliases or nesting expand beyond all measure.",
    "unknown-key": "A key is not one that sqlstream knows at this place.",
    "missing-key": "A required key is missing.",
    "invalid-value": "A value is not of the form its key takes.",
    "duplicate-name": "Two things of one kind have the same name.",
    "unknown-target": "The target is not one of project.yml's targets.",
    "unsupported-file": "A file is not read: its ending is in capitals, or it holds unit tests outside their folders.",
    "dbt-file": "A file or folder of dbt that sqlstream does not read.",
    "unsupported-version": "The project asks for another version of sqlstream.",
    "seed-header": "A seed's first line does not name its columns as Spark needs them.",
    "seed-syntax": "A seed's quotes or line ends cannot be read as CSV.",
    "seed-row": "A row of a seed has more or fewer values than the header has columns.",
    "seed-column": "A declared column is not in the seed's header, or Spark does not know its type.",
    "seed-value": "A value of a seed is not of the type that is declared for its column.",
    "declared-column": "A properties file declares a column that its model does not have, or another type.",
    "unused-config": "A folder configuration or model properties apply to nothing.",
    # rendering
    "jinja-syntax": "A template cannot be read.",
    "jinja-undefined": "A template uses a name that is not defined.",
    "jinja-failed": "A template's expression failed.",
    "jinja-limit": "A template does more work, or makes more text, than a template may.",
    "jinja-unsafe": "A template reaches for something that templates may not use.",
    "missing-var": "var() names a variable that is not set and has no default.",
    "missing-env-var": "env_var() names an environment variable that is not set and has no default.",
    "secret-not-allowed": "A secret is read outside the option values of sources, sinks and targets.",
    "compiler-error": "The project itself raised an error.",
    "compiler-warning": "The project itself gave a warning.",
    "python-model": "A Python model has no function model(), or does what cannot be known without running it.",
    "python-failed": "A Python model fails, or gives no DataFrame.",
    # graph
    "unknown-ref": "ref() names no model or seed.",
    "unknown-source": "source(), or a target's override, names no declared source table.",
    "unknown-sink": "A model, or a target's override, names a sink that is not declared.",
    "disabled-ref": "ref() names a model that is disabled.",
    "missing-ref": "A query reads an input by its bare name, or a table that does not exist.",
    "cycle": "Models depend on each other in a circle.",
    "no-models": "A project has no enabled model.",
    "unwritten-model": "No model reads a model, and it names no sink.",
    "unused-source": "No model reads some sources.",
    "unused-sink": "No model writes to some sinks.",
    "unused-macro": "Nothing calls some macros.",
    "unused-allow": "A comment allows what is not found there.",
    "invalid-allow": "A comment that allows a finding is not of its form.",
    # selection
    "empty-selection": "A selector matches nothing.",
    "unknown-selector": "A selector uses a method or a value that does not exist, or names a selector that does not.",
    "no-terminal-model": "The selection holds views only, so there is no query to start.",
    # watermarks
    "misplaced-watermark": "A watermark that cannot be placed on a relation, or whose delay is negative.",
    "unknown-hint": "A hint that Spark would ignore in silence.",
    # rules
    "missing-schema": "A stream of files has no declared schema.",
    "python-name": "A source, a sink or a function names nothing fitting in the project's python/ folder.",
    "python-import": "A module of the project's python/ folder cannot be read or imported.",
    "fixed-schema": "A source whose format has columns of its own declares others.",
    "temporary-catalog": "A table of a catalog that forgets it when the process ends.",
    "option-value": "Spark does not take the value of an option, or two options together.",
    "unknown-option": "An option that Spark ignores in silence: it does not know it, or it has no effect there.",
    "missing-path": "A file source or sink has no path.",
    "output-mode": "A query cannot stream in its output mode, or into its sink.",
    "batch-model": "A model whose inputs are all static asks for what only streams have.",
    "shared-output": "Two queries share a checkpoint or an output path.",
    "relative-storage": "A target on other machines stores into a relative folder.",
    "socket-available-now": "A socket source cannot be read under available_now.",
    # streaming queries
    "unknown-column": "A name is neither a column nor a relation here.",
    "ambiguous-column": "A name is a column of more than one relation.",
    "unknown-field": "A struct has no field of that name.",
    "unknown-function": "Spark has no function of that name.",
    "not-grouped": "A column of an aggregation is neither grouped by nor in an aggregate function.",
    "bad-position": "A number in GROUP BY or ORDER BY is no position in the select list.",
    "bad-limit": "The number of a LIMIT or OFFSET is no constant INT, or is negative.",
    "misplaced-function": "An aggregate function, a generator or a function with OVER stands where Spark takes none.",
    "time-window": "A time window has arguments that Spark does not take, or is one of two.",
    "argument-count": "A function gets another number of arguments than it takes.",
    "type-mismatch": "An expression is of a type that Spark does not take at its place.",
    "column-count": "The queries of a UNION, EXCEPT or INTERSECT have different numbers of columns.",
    "time-travel": "A source, seed or model is read as of a version or a time.",
    "not-constant": "VALUES or range() reads a column.",
    "column-type": "Columns that a UNION, EXCEPT or INTERSECT puts together have types without a common one.",
    "second-watermark": "A watermark over rows that already have one.",
    "latest-first": "A query with a watermark reads a backlog newest first.",
    "watermark-type": "A watermark on a column that is no timestamp.",
    "append-without-watermark": "An aggregation in append mode has no watermark on its grouping columns.",
    "complete-without-aggregation": "A query in complete mode aggregates no stream.",
    "distinct-aggregate": "DISTINCT in an aggregate function over a stream.",
    "several-aggregations": "Outside append mode, an aggregation or join follows an aggregation.",
    "rows-beside-aggregation": "In complete mode, a UNION of an aggregation and of rows as they come.",
    "set-without-time": "In append mode, a grouping set without the event time, whose rows never come out.",
    "session-window": "A session window in update mode, or as the only key.",
    "window-function": "A function with OVER on a stream.",
    "stream-sort": "ORDER BY or SORT BY on a stream.",
    "stream-limit": "OFFSET in a streaming query, LIMIT in update mode, or a LIMIT that ends the output for ever.",
    "stream-sample": "TABLESAMPLE on a stream.",
    "stream-set-operation": "UNION of a stream and a static table, EXCEPT or INTERSECT of streams.",
    "stream-subquery": "A subquery within an expression reads a stream.",
    "stream-recursion": "A recursive CTE reads a stream.",
    "row-id": "monotonically_increasing_id() in a streaming query.",
    "join-condition": "The condition of a join has a function whose value changes, or compares maps.",
    "join-type": "A join compares text with a number, a date, a timestamp or a boolean.",
    "lateral-join": "A LATERAL subquery that Spark joins by aggregating the stream.",
    "static-outer-join": "An outer join keeps the rows of a static table, and its other side is a stream.",
    "stream-anti-join": "A left anti join of two streams.",
    "stream-join-mode": "A join of two streams in an output mode that it cannot have.",
    "join-without-key": "A join of two streams without an equality.",
    "outer-join-without-bound": "An outer join of two streams has no watermark and bound in time.",
    "unbounded-state": "The state of an aggregation or a join of streams grows for ever.",
    "not-followed": "A model's SQL cannot be read, and no rule is applied to it.",
    "continuous-trigger": "A query under a continuous trigger has what Spark takes in batches only.",
    "real-time-trigger": "A query under a real-time trigger has what Spark does not allow there.",
    # unit tests
    "unit-test-model": "A unit test is of a model that there is not, or that is disabled.",
    "unit-test-input": "The inputs of a unit test are not those that its model reads.",
    "unit-test-column": "The rows of a unit test have a column that does not exist, or lack one that the model reads.",
    "unit-test-value": "A value in the rows of a unit test does not fit the type of its column.",
    "unit-test-fixture": "The rows of a unit test cannot be read, or its fixture is not there.",
    "unit-test-batches": "The batches of a unit test contradict each other or its model.",
    "unit-test-empty": "A unit test was recorded of rows that nothing comes out of.",
    "unit-test-expect": "What a unit test expects cannot be told of its model.",
    "unit-test-upgrade": "The older project that a unit test upgrades from cannot be had.",
    "unit-test-failed": "A model does not give what its unit test expects.",
    # Spark
    "untested-spark": "Spark is later than the versions that sqlstream was checked against.",
    "java-missing": "No working Java was found.",
    "java-too-old": "The Java found is older than Spark needs.",
    "spark-start": "Spark does not start.",
    "unsupported-target": "A target that this version compiles for but does not run on.",
    "unknown-format": "Spark has no data source of that name, or cannot write into it.",
    "source-unreadable": "Spark cannot open a source or seed.",
    "too-many-streams": "More queries without an end are selected than the target starts together.",
    "no-query": "A model holds nothing, or a command such as an INSERT or a CREATE, and not a query.",
    "sql-syntax": "Spark cannot read a model's SQL.",
    "sql-analysis": "Spark refuses a model's SQL.",
    "sink-schema": "A sink cannot take a model's columns.",
    "undeclared-stream": "A model reads a stream that no source declares.",
    "partition-column": "A sink partitions by a column that the model does not have.",
    "query-failed": "A query failed while it ran.",
    "corrupt-record": "A record of a source cannot be read.",
    # checkpoints
    "state-change": "A stateful query has changed since its checkpoint was written.",
    "output-columns": "A query's output cannot hold its new columns beside the rows that are there.",
    "output-not-empty": "A query's output holds batches of another checkpoint.",
    "sink-change": "A query would write files to another place than its checkpoint has written to so far.",
    "source-change": "A query would read a source from another place than its checkpoint has read so far.",
    "torn-checkpoint": "A file of a checkpoint or output was not written whole, or is gone.",
    "source-file-gone": "A query was stopped in a batch, and files of the batch are gone.",
    "query-in-use": "Another process runs the query.",
    "storage-unusable": "A target's storage cannot be read or written.",
    "ledger-unreadable": "A checkpoint's ledger is missing or cannot be read.",
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
