"""Reads the expected rows of a case with the types of the actual rows. Spark casts them, like the given rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from sqlstream.errors import Finding, FindingsError
from sqlstream.project.unit_tests.fixtures import Rows
from sqlstream.project.wording import quoted, quoted_list
from sqlstream.project.yaml import Located
from sqlstream.spark.jvm.errors import read_error
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.reading.memory_streams import RowMaker, strict_casts
from sqlstream.state.runs.case_outcomes import ANY, Observed, Row
from sqlstream.testing.cases import Case
from sqlstream.testing.judge import ExpectedResult
from sqlstream.testing.typed_rows import TypedRows, columns_of


@dataclass(frozen=True)
class ExpectedRowsReader:
    """Reads the expectations of `case` for `frame`, the rows of its model."""

    case: Case
    frame: DataFrame

    def result(self, observed: Observed) -> ExpectedResult:
        """Returns the expected result. Raises: FindingsError for columns and values that do not fit, with locations."""
        expected = self.case.test.expect
        watermark, shown = self._watermark(observed)
        table = None if expected.table is None else self._read([expected.table])[0]
        if expected.batches is not None:
            return ExpectedResult(None, self._read(expected.batches), watermark, shown, table)
        final = None if expected.rows is None else self._read([expected.rows])[0]
        return ExpectedResult(final, None, watermark, shown, table)

    def _read(self, batches: Sequence[Rows]) -> tuple[tuple[Row, ...], ...]:
        self._check_complete(batches)
        reader = TypedRows(self.frame.sparkSession, f"the model {quoted(self.case.model.name)}")
        if not any(batch.rows or batch.sql for batch in batches):
            return tuple(() for _ in batches)
        values, counts = reader.values(batches, self.frame.schema)
        rows = iter(values)
        return tuple(
            tuple(self._compared(next(rows), given) for given in self._given(reader, batch, count))
            for batch, count in zip(batches, counts, strict=True)
        )

    @staticmethod
    def _given(reader: TypedRows, batch: Rows, count: int) -> list[frozenset[str]]:
        """Returns the columns that each row of a batch has."""
        return [reader.given(batch)] * count if batch.sql is not None else [columns_of(row) for row in batch.rows]

    def _compared(self, row: Row, given: frozenset[str]) -> Row:
        """Returns the row with `ANY` for columns that are not compared."""
        if not self.case.test.expect.document.partial:
            return row
        names = self.frame.columns
        return tuple(value if name.casefold() in given else ANY for name, value in zip(names, row, strict=True))

    def _check_complete(self, batches: Sequence[Rows]) -> None:
        if self.case.test.expect.document.partial:
            return
        findings = []
        for row in (row for rows in batches for row in rows.rows):
            given = {entry.key.casefold() for entry in row.entries}
            left_out = [name for name in self.frame.columns if name.casefold() not in given]
            if left_out:
                what = f"the expected row lacks {quoted_list(left_out)}"
                why = f"the test compares all columns of {quoted(self.case.model.name)}"
                fix = "add the missing columns, with null for no value; or set `partial: true` to compare fewer"
                findings.append(Finding("unit-test-column", what, why, fix, row.location))
        if findings:
            raise FindingsError(findings)

    def _watermark(self, observed: Observed) -> tuple[int | None, str]:
        expected = self.case.test.expect
        text = expected.document.watermark
        if text is None:
            return None, ""
        maker = RowMaker(self.frame.sparkSession)
        wanted = moment(self.frame.sparkSession, Located(text, expected.locations["watermark"]))
        seen = maker.strings([str(observed.watermark or 0)])
        (shown,) = maker.texts(seen.selectExpr("cast(timestamp_millis(cast(value as bigint)) as string)"))
        return wanted, shown if observed.watermark else "none"


def moment(session: SparkSession, at: Located) -> int:
    """Returns a time in the session's time zone as ms since 1970. Raises: FindingsError if the text is not a time."""
    maker = RowMaker(session)
    try:
        with strict_casts(session):
            read = maker.strings([str(at.value)]).selectExpr("cast(unix_millis(cast(value as timestamp)) as string)")
            (found,) = maker.texts(read)
    except SPARK_ERRORS as error:
        what, why = f"{quoted(at.value)} is not a timestamp", f"Spark reports: {read_error(error).message}"
        finding = Finding("unit-test-value", what, why, "use for example 2024-01-31 12:00", at.location)
        raise FindingsError([finding]) from error
    return int(found)
