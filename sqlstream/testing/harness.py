"""Runs cases on Spark at their own present time, and judges their results."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from sqlstream.compiler.sql.tokens import TokenKind, Tokens, tokenize
from sqlstream.compiler.trees import emission_of_query
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Place
from sqlstream.project.unit_tests.unit_test import BetweenBatches
from sqlstream.project.wording import quoted
from sqlstream.project.yaml import Located
from sqlstream.spark.jvm.errors import bug_finding, error_finding
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.jvm.plans import processors
from sqlstream.spark.jvm.session import SparkRuntime, child_session
from sqlstream.spark.jvm.state_store import ROCKSDB
from sqlstream.spark.reading.inputs import NodeReader
from sqlstream.spark.reading.python_code import register_functions
from sqlstream.spark.reading.sources import Readers
from sqlstream.spark.secrets import Secrets
from sqlstream.state.runs.case_outcomes import NOTHING, CaseResult, Observed, Outcome
from sqlstream.state.runs.silence import why_ended_silent
from sqlstream.testing.cases import Case
from sqlstream.testing.equivalence import Equivalence
from sqlstream.testing.expected import ExpectedRowsReader, moment
from sqlstream.testing.frames import CaseFrames
from sqlstream.testing.judge import ExpectedResult, judge, judge_refusal, result_of
from sqlstream.testing.prepared import PreparedCase, conditions_of
from sqlstream.testing.session_settings import IN_MEMORY, state_settings


@dataclass(frozen=True)
class Harness:
    """Runs cases in one Spark application. Several threads may run cases in parallel.

    `settings` are those of every case's session. `provider` is the state store provider of the project's target.
    With `equivalence`, a passing case also runs with its rows split differently, and as a batch query. With `explains`,
    a passing case also explains why there are no rows, as every failing case does.
    """

    runtime: SparkRuntime
    secrets: Secrets
    settings: Mapping[str, str]
    provider: str
    equivalence: bool = False
    explains: bool = False

    def run(self, case: Case) -> CaseResult:
        """Returns the result of the case."""
        if case.refusals:
            return judge_refusal(case, case.refusals)
        began = time.monotonic()
        try:
            result = self._run(case)
        except FindingsError as error:
            is_broken = any(finding.code.startswith("unit-test-") for finding in error.findings)
            broken = result_of(case, Outcome.BROKEN, error.findings)
            result = broken if is_broken else judge_refusal(case, error.findings, conditions_of(error))
        except SPARK_ERRORS as error:
            result = result_of(case, Outcome.BROKEN, [self._fault(case, error)])
        except Exception as bug:  # a bug in one case must not end the others
            failure = bug.__context__ if isinstance(bug.__context__, SPARK_ERRORS) else None
            what = f"the unit test {quoted(case.test.name)}"
            finding = bug_finding(bug, failure, what, case.test.location, self.secrets)
            result = result_of(case, Outcome.BROKEN, [finding])
        return replace(result, seconds=time.monotonic() - began)

    def _run(self, case: Case) -> CaseResult:
        prepared = self.prepare(case)
        observed = prepared.observe()
        expectation = ExpectedRowsReader(case, prepared.frame)
        expected = ExpectedResult(None, None, None) if observed.error else expectation.result(observed)
        result = judge(case, observed, expected)
        if self.explains or result.outcome is Outcome.FAILED:
            result = _explained(case, observed, result)
        if not self.equivalence or result.outcome is not Outcome.PASSED or not _is_compared(case, observed):
            return result
        return Equivalence(prepared).check() or result

    def _fault(self, case: Case, error: Exception) -> Finding:
        """Returns the finding for an error of Spark that neither the model nor a value of the case causes."""
        place = Place(case.test.location)
        what = f"{quoted(case.test.name)} cannot run"
        return error_finding(error, code="query-failed", what=what, place=place, secrets=self.secrets)

    def prepare(self, case: Case) -> PreparedCase:
        """Returns the case, analyzed by Spark in a new session.

        Raises: FindingsError if its model is refused, or the case is broken.
        """
        session = child_session(self.runtime, self.settings)
        at = case.test.document.at
        if at is not None and not case.model.streaming:
            case = pin_time(case, moment(session, Located(at, case.test.locations["at"])))
        # what a restart needs depends on the provider; a case without one takes the fastest
        provider = self.provider if any(isinstance(step, BetweenBatches) for step in case.steps) else IN_MEMORY
        register_functions(session, case.compiled.project.functions)
        frames = CaseFrames(case, NodeReader(case.compiled, Readers(session, self.secrets, case.compiled.project.root)))
        frame = frames.build()
        frames.check_left_out(frame)
        found = processors(frame) if case.model.streaming else ()
        if any(processor.runs_without_data for processor in found):
            raise FindingsError([_never_rests(case)])
        if any(processor.in_rocksdb for processor in found):
            provider = ROCKSDB
        for name, value in state_settings(provider).items():
            session.conf.set(name, value)
        return PreparedCase(case, frames, frame, self.secrets)


def _explained(case: Case, observed: Observed, result: CaseResult) -> CaseResult:
    """Returns the result with the reason if there are no rows."""
    why = _why_no_rows(case, observed)
    return result if why is None else replace(result, notes={**result.notes, NOTHING: why})


def _why_no_rows(case: Case, observed: Observed) -> str | None:
    """Returns why there are no rows, as a sentence without a period. None if there are rows, or a batch failed."""
    if observed.final or observed.error is not None:
        return None
    if case.model.file.has_corrupt_records:
        return "none of the given records is corrupt"
    if observed.figures is None:
        return "conditions or joins in the query removed all of the given rows"
    silence = why_ended_silent(observed.figures, emission_of_query(case.compiled, case.model))
    return "it has no input rows" if silence is None else silence.text


def _never_rests(case: Case) -> Finding:
    what = f"`{case.model.name}` has a stateful processor with processing-time timers"
    why = "Spark runs batches for these timers forever, so no input batch is ever fully processed"
    return Finding("unit-test-expect", what, why, "use event-time timers, which a test can advance", case.test.location)


def _is_compared(case: Case, observed: Observed) -> bool:
    """Whether the stream must equal the batch query. A test can set `equivalence: false`."""
    return case.model.streaming and observed.error is None and case.older is None and case.test.document.equivalence


# Replaces the present time in SQL by the time of a case, because the clock of a batch query cannot be set.
#
# Replaces calls of functions for the present time by a literal time (Spark's SQL reference, "Date and Timestamp
# Functions").

_NOW = "timestamp_millis({at})"

_TIMES = {
    "CURRENT_TIMESTAMP": _NOW,
    "NOW": _NOW,
    "CURRENT_DATE": f"date({_NOW})",
    "CURDATE": f"date({_NOW})",
    "LOCALTIMESTAMP": f"cast({_NOW} as timestamp_ntz)",
    "UNIX_TIMESTAMP": f"unix_seconds({_NOW})",
}
"""The functions for the present time, and their replacements. `at` is in ms since 1970."""

_BARE = ("CURRENT_TIMESTAMP", "CURRENT_DATE", "LOCALTIMESTAMP")
"""The functions that can be called without parentheses."""


def pin_time(case: Case, milliseconds: int) -> Case:
    """Returns the case with SQL in which the present time is `milliseconds` since 1970."""
    models = {
        node: model if model.file.is_python else replace(model, sql=pin_time_in_sql(model.sql, milliseconds))
        for node, model in case.compiled.models.items()
    }
    return replace(case, compiled=replace(case.compiled, models=models), model=models[case.model.unique_id])


def pin_time_in_sql(sql: str, milliseconds: int) -> str:
    """Returns `sql` in which the present time is `milliseconds` since 1970."""
    parts, at = [], 0
    for start, end, form in _time_calls(tokenize(sql)):
        parts += [sql[at:start], form.format(at=milliseconds)]
        at = end
    return "".join([*parts, sql[at:]])


def _time_calls(tokens: Tokens) -> Iterator[tuple[int, int, str]]:
    """Yields the start and the end of each call for the present time, and its replacement."""
    for number, token in enumerate(tokens):
        before = tokens[number - 1].key if number else ""
        behind = tuple(each.key for each in tokens[number + 1 : number + 3])
        if token.kind is not TokenKind.WORD or token.key not in _TIMES or before in (".", "AS"):
            continue
        if behind == ("(", ")"):
            yield token.start, tokens[number + 2].end, _TIMES[token.key]
        elif token.key in _BARE and behind[:1] != ("(",):
            yield token.start, token.end, _TIMES[token.key]
