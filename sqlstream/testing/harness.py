"""Runs cases on Spark, and judges what came out."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Place
from sqlstream.project.unit_tests.values import BetweenBatches
from sqlstream.project.values import Located
from sqlstream.project.wording import quoted
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.jvm.session import ROCKSDB, SparkRuntime, child_session
from sqlstream.spark.reading.inputs import NodeReader
from sqlstream.spark.reading.python_code import register_functions
from sqlstream.spark.reading.sources import Readers
from sqlstream.spark.running.plans import processors
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.spark_errors import error_finding
from sqlstream.state.results.unit_tests import NOTHING, CaseResult, Observed, Outcome
from sqlstream.testing.cases import Case
from sqlstream.testing.equivalence import Equivalence
from sqlstream.testing.expected import Expectation, moment
from sqlstream.testing.frames import CaseFrames
from sqlstream.testing.judge import ExpectedResult, judge, judge_refusal, result_of
from sqlstream.testing.pinned import pinned
from sqlstream.testing.prepared import PreparedCase, conditions_of
from sqlstream.testing.settings import IN_MEMORY, state_settings
from sqlstream.testing.silence import why_nothing


@dataclass(frozen=True)
class Harness:
    """Runs cases in one Spark; several threads may run cases at once.

    `settings` are those of every case's session, `provider` is what keeps state in the target that is tested for.
    With `equivalence` a case that passes is also run in other ways, which have to give the same. With `explains` a case
    that passes also says why nothing came out, as every case does that fails.
    """

    runtime: SparkRuntime
    secrets: Secrets
    settings: Mapping[str, str]
    provider: str
    equivalence: bool = False
    explains: bool = False

    def run(self, case: Case) -> CaseResult:
        """Returns how the case ended."""
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
        return replace(result, seconds=time.monotonic() - began)

    def _run(self, case: Case) -> CaseResult:
        prepared = self.prepare(case)
        observed = prepared.observe()
        told = (
            ExpectedResult(None, None, None) if observed.error else Expectation(case, prepared.frame).notify(observed)
        )
        result = judge(case, observed, told)
        if self.explains or result.outcome is Outcome.FAILED:
            result = _explained(case, observed, result)
        if not self.equivalence or result.outcome is not Outcome.PASSED or not _is_compared(case, observed):
            return result
        return Equivalence(prepared).check() or result

    def _fault(self, case: Case, error: Exception) -> Finding:
        """What Spark said where neither the model nor a value of the case is known to be the cause."""
        place = Place(case.test.location)
        what = f"{quoted(case.test.name)} cannot run"
        return error_finding(error, code="query-failed", what=what, place=place, secrets=self.secrets)

    def prepare(self, case: Case) -> PreparedCase:
        """Returns the case analysed by Spark, in a session of its own.

        Raises: FindingsError where its model is refused, or the case itself is broken.
        """
        session = child_session(self.runtime, self.settings)
        at = case.test.document.at
        if at is not None and not case.model.streaming:
            case = pinned(case, moment(session, Located(at, case.test.places["at"])))
        provider = self.provider if any(isinstance(step, BetweenBatches) for step in case.steps) else IN_MEMORY
        register_functions(session, case.compiled.project.functions)
        frames = CaseFrames(case, self._inputs(case, session))
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

    def _inputs(self, case: Case, session: SparkSession) -> NodeReader:
        return NodeReader(case.compiled, Readers(session, self.secrets, case.compiled.project.root))


def _explained(case: Case, observed: Observed, result: CaseResult) -> CaseResult:
    """The result with the reason for which nothing came out."""
    why = why_nothing(case, observed)
    return result if why is None else replace(result, notes={**result.notes, NOTHING: why})


def _never_rests(case: Case) -> Finding:
    what = f"`{case.model.name}` has a stateful processor with processing-time timers"
    why = "Spark runs batches for these timers forever, so no input batch is ever fully processed"
    return Finding("unit-test-expect", what, why, "use event-time timers, which a test can advance", case.test.location)


def _is_compared(case: Case, observed: Observed) -> bool:
    """Whether the stream is to be equal to its batch: a case may say that it is not, and why."""
    return case.model.streaming and observed.error is None and case.older is None and case.test.document.equivalence
