"""Gets Spark's verdict on a case: analyzes its compiled SQL, starts it, and runs it over the batches of its streams."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.functions import count, lit
from pyspark.sql.streaming.query import StreamingQuery

from sqlstream.compiler.compiled import CompiledModel, CompiledProject, Output
from sqlstream.errors import FindingsError
from sqlstream.spark.jvm.errors import read_error
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.jvm.session import SparkRuntime, child_session
from sqlstream.spark.queries.start import with_trigger
from sqlstream.spark.reading.inputs import NodeReader, ViewBuilder
from sqlstream.spark.reading.sources import Readers
from sqlstream.spark.secrets import Secrets
from sqlstream.state.readers import source_uses
from sqlstream.state.runs.progress import ROWS_OUT
from sqlstream.state.spark_settings import SOURCE_EVOLUTION
from tests.corpus.corpus_cases import Case
from tests.corpus.corpus_verdicts import Verdict

LONGEST_SECONDS = 90
"""The time after which a query over ten rows counts as stuck."""

ENDLESS_SECONDS = 4
"""How long to watch a query without micro-batches. It never ends by itself, and if it fails, it fails at once."""

MESSAGE_LENGTH = 200
_CONDITION = re.compile(r"\[([A-Z0-9_.]+)\] ")
_UNSTABLE = (
    (re.compile(r"^Query \[id = \S+, runId = \S+\] terminated with exception: "), ""),
    (re.compile(r"^Job aborted due to stage failure: .* executor driver\): "), ""),
    (re.compile(r"#\d+L?"), "#"),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "ID"),
    (re.compile(r"file:/\S+|/tmp/\S+"), "PATH"),
    (re.compile(r"@[0-9a-f]{6,8}\b"), "@"),
)


@dataclass(frozen=True)
class Judge:
    """Judges cases with one Spark session. Several threads may call it. Queries write into `storage`.

    With `is_other`, this is not the Spark of the recorded verdicts. Then a Python error, such as a missing parameter, is
    a verdict, too.
    """

    runtime: SparkRuntime
    storage: Path
    counts_rows: bool = True
    is_other: bool = False

    def judge(self, case: Case, compiled: CompiledProject, model: CompiledModel) -> Verdict:
        """Returns Spark's verdict on the SQL of `model`, regardless of the compiler's findings."""
        stage = "analysis"
        try:
            frame = self._analyze(compiled, model)
            stage = "start"
            query = self._start(case, model, frame)
            stage = "batch"
            return self._watch(case, model, query)
        except SPARK_ERRORS as error:
            return self._refusal(stage, error)
        except FindingsError as error:
            if not isinstance(error.__cause__, SPARK_ERRORS):
                raise
            return self._refusal(stage, error.__cause__)
        except Exception as error:
            if not self.is_other:
                raise
            return Verdict(False, stage, type(error).__name__, str(error)[:MESSAGE_LENGTH])

    def _analyze(self, compiled: CompiledProject, model: CompiledModel) -> DataFrame:
        session = child_session(self.runtime, {SOURCE_EVOLUTION: str(self.runtime.names_sources).lower()})
        readers = Readers(session, Secrets({}), compiled.project.root)
        uses = source_uses(compiled, model, None)
        return ViewBuilder(NodeReader(compiled, readers), uses, self.runtime.names_sources).build(model)

    def _start(self, case: Case, model: CompiledModel, frame: DataFrame) -> StreamingQuery:
        output = model.output
        if output is None:
            raise ValueError(f"{case.name} names no sink")
        # runs count rows in the same way, so this also tests that counting does not change Spark's verdict
        counts_rows = self.counts_rows and model.config.trigger.facts.has_micro_batches
        rows = frame.observe(ROWS_OUT, count(lit(1)).alias("rows")) if counts_rows else frame
        writer = rows.writeStream.format(output.format).outputMode(model.config.output_mode).queryName(case.name)
        writer = writer.option("checkpointLocation", str(self.storage / "checkpoints" / case.name))
        if output.partition_by:
            writer = writer.partitionBy(*output.partition_by)
        return with_trigger(writer, model.config.trigger).start(**self._path(case, output))

    def _path(self, case: Case, output: Output) -> dict[str, str]:
        return {"path": str(self.storage / "output" / case.name)} if output.path else {}

    def _watch(self, case: Case, model: CompiledModel, query: StreamingQuery) -> Verdict:
        ends = model.config.trigger.facts.ends
        try:
            ended = query.awaitTermination(LONGEST_SECONDS if ends else ENDLESS_SECONDS)
        finally:
            query.stop()
        if ends and not ended:
            raise RuntimeError(f"{case.name} did not end within {LONGEST_SECONDS} s")
        return Verdict(True, rows=_rows_out(query))

    def _refusal(self, stage: str, error: Exception) -> Verdict:
        found = read_error(error)
        message = found.message.replace(str(self.storage), "PATH")
        for pattern, stable in _UNSTABLE:
            message = pattern.sub(stable, message)
        inner = _CONDITION.match(message)  # the outer condition says only that the query failed
        condition = inner.group(1) if inner else found.condition
        return Verdict(False, stage, condition, message.removeprefix(inner.group() if inner else "")[:MESSAGE_LENGTH])


def _rows_out(query: StreamingQuery) -> int:
    """Returns the number of rows in the batches that Spark still remembers, 0 if they were not counted."""
    observed = [progress.observedMetrics.get(ROWS_OUT) for progress in query.recentProgress]
    return sum(int(row["rows"]) for row in observed if row is not None)
