"""What `make corpus` prints: the misjudgements in both directions, what Spark changed its mind about, the totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from corpus_cases import Case
from corpus_compile import Attempt
from corpus_verdicts import Verdict


@dataclass(frozen=True)
class JudgedCase:
    """A case with both verdicts, Spark's recorded one (None for a new case), and whether `compile --check` agrees with
    Spark's as far as it can be told before a batch.
    """

    case: Case
    attempt: Attempt
    spark: Verdict
    recorded: Verdict | None
    is_check_correct: bool = True

    @property
    def is_wrongly_refused(self) -> bool:
        """Whether sqlstream refuses what Spark runs, and runs rightly."""
        errors = judging_errors(self.case, self.attempt)
        return self.spark.accepted and self.case.wrong is None and bool(errors)

    @property
    def is_wrongly_accepted(self) -> bool:
        """Whether sqlstream says nothing of what Spark refuses, or runs wrongly, in which case a warning would do."""
        if self.spark.accepted:
            return self.case.wrong is not None and not self.attempt.findings
        return not judging_errors(self.case, self.attempt)

    @property
    def is_missed(self) -> bool:
        """Whether sqlstream says nothing of what Spark refuses, and could know it without Spark."""
        return self.is_wrongly_accepted and self.case.unknown_because is None

    @property
    def has_changed(self) -> bool:
        """Whether the record held another verdict."""
        return self.recorded is not None and self.recorded.as_json() != self.spark.as_json()


def judging_errors(case: Case, attempt: Attempt) -> tuple[str, ...]:
    """Returns the errors with which sqlstream says that Spark would refuse the case."""
    return tuple(finding.head for finding in attempt.errors if finding.code != case.own)


def describe(judged: Sequence[JudgedCase], seconds: float, *, verbose: bool) -> tuple[str, bool]:
    """Returns the report, and whether nothing in it has to be fixed."""
    passed = [item for item in judged if item.is_missed]
    unknown = [item for item in judged if item.is_wrongly_accepted and item.case.unknown_because is not None]
    refused = [item for item in judged if item.is_wrongly_refused]
    changed = [item for item in judged if item.has_changed]
    misjudged = [item for item in judged if not item.is_check_correct]
    misfiled = [item for item in judged if item.spark.accepted == item.case.refused]
    sections = [
        _section("sqlstream refuses what Spark runs", refused, lambda item: _errors(item)),
        _section("sqlstream is silent on what Spark refuses, or runs wrongly", passed, _trouble),
        _section("cannot be told without Spark", unknown, lambda item: str(item.case.unknown_because)),
        _section("`compile --check` says otherwise than Spark at start", misjudged, lambda item: item.spark.words),
        _section("Spark's verdict is not the recorded one", changed, _change),
        _section("`spark:` beside the case is not Spark's verdict", misfiled, lambda item: item.spark.words),
    ]
    if verbose:
        sections.insert(0, _section("verdicts", judged, _verbose))
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


def _trouble(item: JudgedCase) -> str:
    return f"runs, but {item.case.wrong}" if item.spark.accepted else item.spark.words


def _change(item: JudgedCase) -> str:
    return f"{item.spark.words} (recorded: {item.recorded.words if item.recorded else 'nothing'})"


def _verbose(item: JudgedCase) -> str:
    said = f"{item.spark.words}, {item.spark.rows} rows" if item.spark.accepted else item.spark.words
    codes = ", ".join(finding.code for finding in item.attempt.findings)
    return f"{said}{f' | sqlstream: {codes}' if codes else ''}"


def _totals(judged: Sequence[JudgedCase], seconds: float, refused: int, passed: int, unknown: int) -> str:
    stages = Counter(item.spark.stage for item in judged if not item.spark.accepted)
    accepted = sum(item.spark.accepted for item in judged)
    sourced = sum(item.case.source is not None for item in judged)
    at_stages = ", ".join(f"{stages[stage]} at {stage}" for stage in ("analysis", "start", "batch"))
    return (
        f"{len(judged)} cases in {seconds:.0f} s, {sourced} of them with a source\n"
        f"Spark accepts {accepted} and refuses {len(judged) - accepted} ({at_stages})\n"
        f"misjudged: {refused} refused wrongly, {passed} passed in silence; {unknown} cannot be told without Spark"
    )
