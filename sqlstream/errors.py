"""The errors of sqlstream: exceptions and findings.

SqlstreamError
├── FindingsError      the user's project or queries are wrong: located findings, exit code 1
└── UsageError         the command line is not valid, exit code 2

A `Finding` is a value, not an exception: a stage collects all of its findings and reports them together. Its `code` is
one of `sqlstream.codes.CODES`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum

from sqlstream.codes import PROTECTS_ROWS, SPARK_DECIDES
from sqlstream.location import Location, printable

LONGEST_LINE = 1_000
"""Maximum number of characters in a line of a finding, so that people can read it."""


class Severity(StrEnum):
    """How bad a finding is. Only an `ERROR` stops a stage; an `INFO` needs no action."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True)
class Failure:
    """Where a query failed: its `batch`; the `file`, or the `position` in a topic, of the row; the `row` and the
    `value` as Spark prints them; and the `sql` of the expression. None if the error does not have it.
    """

    batch: int | None = None
    file: str | None = None
    position: str | None = None
    row: str | None = None
    value: str | None = None
    sql: str | None = None

    def __post_init__(self) -> None:
        for name in ("file", "position", "row", "value", "sql"):
            text = getattr(self, name)
            object.__setattr__(self, name, _one_line(text) if text else None)


@dataclass(frozen=True)
class Finding:
    """One located problem. It is printed as three lines: where and what, why, and how to fix it. A `BRIEF` finding is
    printed as the first line only. Each text is cut to one printable line of `LONGEST_LINE` characters.

    If `location` is in a macro, `calls` are the lines of the model that led there, outermost first. `failure` is set
    if a query has failed.
    """

    code: str
    message: str
    why: str
    fix: str
    location: Location | None = None
    severity: Severity = Severity.ERROR
    calls: tuple[Location, ...] = ()
    failure: Failure | None = None

    def __post_init__(self) -> None:
        for name in ("message", "why", "fix"):
            object.__setattr__(self, name, _one_line(getattr(self, name)))

    @property
    def head(self) -> str:
        """The first line: the location, the severity if it is not an error, the code and the message."""
        where = f"{self.location}: " if self.location else ""
        kind = "" if self.is_error else f"{self.severity}: "
        return f"{where}{kind}[{self.code}] {self.message}"

    @property
    def is_error(self) -> bool:
        """Whether the finding stops the stage that found it."""
        return self.severity is Severity.ERROR

    def as_json(self) -> dict[str, object]:
        """Returns the finding as plain data, in the same form in all JSON output; lines and columns are numbers."""
        return {
            "code": self.code,
            "severity": str(self.severity),
            "message": self.message,
            "why": self.why,
            "fix": self.fix,
            "location": None if self.location is None else asdict(self.location),
            "calls": [asdict(call) for call in self.calls],
            **({} if self.failure is None else {"failure": asdict(self.failure)}),
        }


def _one_line(text: str) -> str:
    line = printable(text)
    return line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + "…"


class SqlstreamError(Exception):
    """The base class of all errors."""


class FindingsError(SqlstreamError):
    """The user's project or queries are wrong; `findings` has at least one entry."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__("; ".join(finding.head for finding in self.findings))


class UsageError(SqlstreamError):
    """The command line is not valid; the message says what to use instead."""


def can_be_lowered(finding: Finding) -> bool:
    """Returns whether a project may lower `finding`: a warning, or an error that Spark decides on."""
    return finding.code in SPARK_DECIDES | PROTECTS_ROWS or not finding.is_error
