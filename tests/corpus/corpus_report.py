"""The output of `make corpus`: wrong verdicts of sqlstream, changed verdicts of Spark, and totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.corpus.corpus_cases import Case
from tests.corpus.corpus_compile import Attempt
from tests.corpus.corpus_verdicts import Verdict


@dataclass(frozen=True)
class JudgedCase:
    """A case with the verdicts of sqlstream and Spark, Spark's recorded verdict (None for a new case), and whether
    `compile --check` agrees with Spark.
    """

    case: Case
    attempt: Attempt
    spark: Verdict
    recorded: Verdict | None
    is_check_correct: bool = True

    @property
    def is_wrongly_refused(self) -> bool:
        """Whether sqlstream refuses a query that Spark runs correctly."""
        errors = judging_errors(self.case, self.attempt)
        return self.spark.accepted and self.case.wrong is None and bool(errors)

    @property
    def is_wrongly_accepted(self) -> bool:
        """Whether sqlstream reports no error for a query that Spark refuses, or no finding for one with wrong rows."""
        if self.spark.accepted:
            return self.case.wrong is not None and not self.attempt.findings
        return not judging_errors(self.case, self.attempt)

    @property
    def is_missed(self) -> bool:
        """Whether sqlstream wrongly accepts a query, although it could know the problem without Spark."""
        return self.is_wrongly_accepted and self.case.unknown_because is None

    @property
    def has_changed(self) -> bool:
        """Whether Spark's verdict differs from the recorded one."""
        return self.recorded is not None and self.recorded.as_json() != self.spark.as_json()


def judging_errors(case: Case, attempt: Attempt) -> tuple[str, ...]:
    """Returns the errors that claim that Spark refuses the case."""
    return tuple(finding.head for finding in attempt.errors if finding.code != case.own)


def describe(judged: Sequence[JudgedCase], seconds: float, *, verbose: bool) -> tuple[str, bool]:
    """Returns the report, and whether it has no problems."""
    passed = [item for item in judged if item.is_missed]
    unknown = [item for item in judged if item.is_wrongly_accepted and item.case.unknown_because is not None]
    refused = [item for item in judged if item.is_wrongly_refused]
    changed = [item for item in judged if item.has_changed]
    misjudged = [item for item in judged if not item.is_check_correct]
    misfiled = [item for item in judged if item.spark.accepted == item.case.refused]
    sections = [
        _section("sqlstream refuses what Spark runs", refused, lambda item: _errors(item)),
        _section("sqlstream accepts what Spark refuses or runs with wrong rows", passed, _problem),
        _section("only Spark can know", unknown, lambda item: str(item.case.unknown_because)),
        _section("`compile --check` disagrees with Spark at start", misjudged, lambda item: item.spark.words),
        _section("Spark's verdict differs from the recorded one", changed, _change),
        _section("`spark:` of the case differs from Spark's verdict", misfiled, lambda item: item.spark.words),
    ]
    if verbose:
        sections.insert(0, _section("verdicts", judged, _verdicts))
    sections.append(_totals(judged, seconds, len(refused), len(passed), len(unknown)))
    return "\n".join(section for section in sections if section), not (
        refused or passed or changed or misjudged or misfiled
    )


def _section(title: str, items: Sequence[JudgedCase], words: Callable[[JudgedCase], str]) -> str:
    if not items:
        return ""
    width = max(len(f"{item.case.theme}/{item.case.name}") for item in items)
    lines = [f"  {item.case.theme + '/' + item.case.name:{width}}  {words(item)}" for item in items]
    return "\n".join([f"{title}: {len(items)}", *lines, ""])


def _errors(item: JudgedCase) -> str:
    return "; ".join(judging_errors(item.case, item.attempt))


def _problem(item: JudgedCase) -> str:
    return f"runs, but {item.case.wrong}" if item.spark.accepted else item.spark.words


def _change(item: JudgedCase) -> str:
    return f"{item.spark.words} (recorded: {item.recorded.words if item.recorded else 'nothing'})"


def _verdicts(item: JudgedCase) -> str:
    verdict = f"{item.spark.words}, {item.spark.rows} rows" if item.spark.accepted else item.spark.words
    codes = ", ".join(finding.code for finding in item.attempt.findings)
    return f"{verdict}{f' | sqlstream: {codes}' if codes else ''}"


def _totals(judged: Sequence[JudgedCase], seconds: float, refused: int, passed: int, unknown: int) -> str:
    stages = Counter(item.spark.stage for item in judged if not item.spark.accepted)
    accepted = sum(item.spark.accepted for item in judged)
    sourced = sum(item.case.source is not None for item in judged)
    at_stages = ", ".join(f"{stages[stage]} at {stage}" for stage in ("analysis", "start", "batch"))
    return (
        f"{len(judged)} cases in {seconds:.0f} s, {sourced} of them with a source\n"
        f"Spark accepts {accepted} and refuses {len(judged) - accepted} ({at_stages})\n"
        f"wrong verdicts: {refused} wrongly refused, {passed} wrongly accepted; {unknown} that only Spark can know"
    )
