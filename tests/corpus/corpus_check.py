"""Runs the check of `compile --check` on a case, without starting the query."""

from __future__ import annotations

from sqlstream.errors import Finding
from sqlstream.spark.jvm.session import SparkRuntime
from sqlstream.spark.queries.model_check import check_with_spark
from sqlstream.spark.secrets import Secrets
from tests.corpus.corpus_cases import Case
from tests.corpus.corpus_compile import Attempt
from tests.corpus.corpus_verdicts import Verdict

REPORTED_BY_RULES = frozenset({"batch-model", "output-mode", "continuous-trigger", "real-time-trigger"})
"""Codes of errors that the check leaves to the compiler, because Spark reports them only when the query starts: queries
without a stream, modes of file sinks, and triggers."""

CHECKED_STAGES = ("analysis", "start")
"""The stages whose refusals the check must find. Failures in a batch may depend on the data."""


def check_case(attempt: Attempt, case: Case, runtime: SparkRuntime) -> tuple[Finding, ...]:
    """Returns what Spark refuses in `case` before it starts."""
    if attempt.compiled is None:
        raise RuntimeError(f"{case.name} has nothing to run")
    checked = check_with_spark(attempt.compiled, (attempt.terminal(case),), runtime, Secrets({}))
    refusals = [refusal for found in checked for refusal in found]
    return tuple(refusal.finding for refusal in refusals)


def is_check_correct(case: Case, attempt: Attempt, verdict: Verdict, checked: tuple[Finding, ...]) -> bool:
    """Returns whether the check of `case` agrees with Spark's verdict, except for failures in a batch."""
    if verdict.accepted:
        known = {case.own} | ({error.code for error in attempt.errors} if case.wrong else set())
        return all(finding.code in known for finding in checked)
    is_reported = bool(checked) or any(error.code in REPORTED_BY_RULES for error in attempt.errors)
    return is_reported or verdict.stage not in CHECKED_STAGES
