"""The part of `test --data` that needs Spark: one session, which reads what each sink holds."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

from pyspark.sql import DataFrame

from sqlstream.app.data_tests.results import (
    DataTestRequest,
    DataTestResult,
    DataTestStatus,
    TestedModel,
    not_checked,
)
from sqlstream.app.loading.load import Loaded
from sqlstream.app.session.session import spark_session
from sqlstream.app.session.signals import StopSignals
from sqlstream.app.session.target_storage import storage_base
from sqlstream.app.stored.stored_outputs import StoredOutputs
from sqlstream.compiler.compiled import CompiledModel, Output
from sqlstream.compiler.graph import NodeNames, parents_of, project_names, view_of
from sqlstream.compiler.rewrite.data_tests import demanded
from sqlstream.errors import Finding, FindingsError, Severity
from sqlstream.location import Place
from sqlstream.numbers import plural
from sqlstream.project.configuration.data_tests import DataTest, Relationships
from sqlstream.project.databases.row_history import IS_CURRENT
from sqlstream.project.files.files import ARTIFACTS_FOLDER
from sqlstream.project.formats.formats import format_of
from sqlstream.spark.jvm.errors import error_finding
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.jvm.session import FINITE_RUN_JVM
from sqlstream.spark.reading.inputs import TEST_FIX, NodeReader
from sqlstream.spark.reading.plain_rows import columns_of, first_rows
from sqlstream.spark.reading.preview import open_batch
from sqlstream.spark.reading.python_code import register_functions
from sqlstream.spark.reading.sources import Readers
from sqlstream.spark.reading.stored_tests import Tables, TestedRows, count_failures, failures_of
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.hadoop import HadoopStorage, hadoop_copy
from sqlstream.spark.writing.databases.database import DatabaseError
from sqlstream.spark.writing.micro_batches import SinkTarget
from sqlstream.spark.writing.stored_rows import stored_rows
from sqlstream.state.shown_rows import ShownRows

SHOWN_FAILURES = 3
"""How many failures of a test to show."""

FOLDER = "data_tests"
"""The folder below target/ with stored failures. Executors write them to a folder of the storage, with `_` before this
name, where readers ignore it.
"""

_PARENT_FIX = "name a table that can be read, or write it first"

NOTHING_YET = "its query has written nothing yet"


def check_models(
    loaded: Loaded,
    request: DataTestRequest,
    tested: Sequence[TestedModel],
    signals: StopSignals,
    note: Callable[[DataTestResult], bool],
) -> None:
    """Checks the data tests of models whose sinks can be read, and calls `note` with each result, until it returns
    False. Raises: FindingsError if Spark cannot start; StopRequestedError.
    """
    compiled = loaded.compiled
    secrets = Secrets(request.project.env)
    names = project_names(compiled.project, (model.name for model in compiled.models.values()))
    parents = [node for item in tested for test in item.tests for node in parents_of(test, compiled.project, names)]
    nodes = {*(item.model.unique_id for item in tested), *(node for node in parents if isinstance(node, str))}
    notice = f"Starting Spark to test the stored rows of {plural(len(tested), 'model')}"
    starting = spark_session(
        loaded,
        secrets,
        signals,
        sorted(nodes),
        notify=request.project.notify,
        notice=notice,
        purpose=FINITE_RUN_JVM,
    )
    with starting as runtime:
        register_functions(runtime.session, compiled.project.functions)
        readers = Readers(runtime.session, secrets, compiled.project.root)
        checker = _Checker(
            loaded,
            request,
            names,
            NodeReader(compiled, readers),
            StoredOutputs(loaded, runtime.session, secrets, {}),
            secrets,
        )
        for item in tested:
            for result in checker.check(item):
                signals.check()
                if not note(result):
                    return


@dataclass(frozen=True)
class _Checker:
    loaded: Loaded
    request: DataTestRequest
    names: NodeNames
    inputs: NodeReader
    outputs: StoredOutputs
    secrets: Secrets

    def check(self, item: TestedModel) -> Iterator[DataTestResult]:
        """Yields the results of the tests of a model."""
        model = item.model
        waiting = list(not_checked(self.loaded.compiled.project.name, item))
        began = time.monotonic()
        try:
            rows = self._rows(item)
        except FindingsError as error:
            yield from (replace(each, status=DataTestStatus.ERROR, finding=error.findings[0]) for each in waiting)
            return
        if rows is None:
            reason = f"{NOTHING_YET}; run it first: sqlstream run --select {model.name}"
            yield from (replace(each, reason=reason) for each in waiting)
            return
        stored = _StoredRows(model, rows, self._tables(item.tests))
        counted = self._count(stored, item.tests)
        seconds = time.monotonic() - began
        for each, test in zip(waiting, item.tests, strict=True):
            yield self._result(stored, test, replace(each, seconds=seconds), counted[test.name])

    def _rows(self, item: TestedModel) -> DataFrame | None:
        """Returns the rows to test, None if there are none yet. Raises: FindingsError."""
        if item.source is not None:
            return open_batch(self.inputs, item.source)
        return None if item.output is None else self._stored(item.model, item.output)

    def _stored(self, model: CompiledModel, output: Output) -> DataFrame | None:
        """Returns the rows that a sink holds now, None before the first. Raises: FindingsError."""
        what = f"the rows of `{model.name}` in sink `{output.sink}` cannot be read"
        try:
            written = self.outputs.written(model, output)
            if written.columns is None:
                return None
            columns = [column.ddl for column in written.columns]
            columns += [f"{IS_CURRENT} boolean"] if model.config.history else []
            frame = self.outputs.session.createDataFrame([], ", ".join(columns))
            return stored_rows(SinkTarget(model, output, written.path or None, frame, self.secrets))
        except DatabaseError as error:
            why, fix = self.secrets.redact(str(error)), "check the server, and its log"
            raise FindingsError([Finding("storage-unusable", what, why, fix, output.location)]) from error
        except SPARK_ERRORS as error:
            place, fix = Place(output.location), "repair the sink, or restore it from a backup"
            raise FindingsError(
                [error_finding(error, code="storage-unusable", what=what, place=place, secrets=self.secrets, fix=fix)]
            ) from error

    def _tables_of(self, test: DataTest) -> Tables:
        """Returns the other tables that a test reads, by the names of their views. Raises: FindingsError."""
        nodes = parents_of(test, self.loaded.compiled.project, self.names)
        return {view_of(node): self._table(test, node) for node in nodes if isinstance(node, str)}

    def _table(self, test: DataTest, node: str) -> DataFrame:
        """Returns the rows of another table that a test reads. Raises: FindingsError."""
        model = self.loaded.compiled.models.get(node)
        if model is None:
            table = self.inputs.table(node)
            rows = self.inputs.open_seed(node) if table is None else open_batch(self.inputs, table)
            why = "its source can only be read as a stream"
        else:
            output = next((each for each in model.outputs if format_of(each.format).keeps_output), None)
            rows = None if output is None else self._stored(model, output)
            why = "its sink cannot be read" if output is None else NOTHING_YET
        if rows is None:
            what = f"`{test.name}` has no rows with which to compare"
            named = test.document.to if isinstance(test.document, Relationships) else f"`{view_of(node)}`"
            raise FindingsError([Finding("data-test", what, f"{named}: {why}", _PARENT_FIX, test.location)])
        return rows

    def _tables(self, tests: Sequence[DataTest]) -> dict[str, Tables | Finding]:
        """Returns the other tables of tests by the names of the tests, or why one cannot be read."""
        found: dict[str, Tables | Finding] = {}
        for test in tests:
            try:
                found[test.name] = self._tables_of(test)
            except FindingsError as error:
                found[test.name] = error.findings[0]
        return found

    def _count(self, stored: _StoredRows, tests: Sequence[DataTest]) -> dict[str, int | Finding]:
        """Returns the failures of each test, or why it cannot be checked: together, or one by one after an error."""
        counted: dict[str, int | Finding] = {}
        counted.update((name, found) for name, found in stored.tables.items() if isinstance(found, Finding))
        left = [test for test in tests if test.name not in counted]
        try:
            counted.update(stored.count(left))
        except SPARK_ERRORS:
            for test in left:
                try:
                    counted.update(stored.count([test]))
                except SPARK_ERRORS as error:
                    counted[test.name] = self._finding(stored.model, test, error)
        return counted

    def _finding(self, model: CompiledModel, test: DataTest, error: Exception) -> Finding:
        what = f"Spark cannot evaluate the data test `{test.name}` on the stored rows of `{model.name}`"
        place = Place(test.location)
        return error_finding(error, code="data-test", what=what, place=place, secrets=self.secrets, fix=TEST_FIX)

    def _result(
        self, stored: _StoredRows, test: DataTest, result: DataTestResult, counted: int | Finding
    ) -> DataTestResult:
        """Returns the result of a test, and shows and stores its failures."""
        root, model = self.loaded.target_folder, stored.model
        folder = root / FOLDER / model.name / _file_name(test.name)
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(counted, Finding):
            return replace(result, status=DataTestStatus.ERROR, finding=counted)
        status = DataTestStatus(test.judge(counted))
        result = replace(result, status=status, failures=counted)
        if status is not DataTestStatus.PASS:
            severity = Severity.ERROR if status is DataTestStatus.FAIL else Severity.WARNING
            result = replace(result, finding=replace(self._failed(model, test, counted), severity=severity))
        if not counted:
            return result
        stores = self.request.store_failures if test.store_failures is None else test.store_failures
        try:
            failures = stored.failures(test)
            if stores:
                self._store(failures if test.limit is None else failures.limit(test.limit), folder)
                result = replace(result, stored_in=f"{ARTIFACTS_FOLDER}/{folder.relative_to(root)}")
            if status is DataTestStatus.PASS:
                return result
            shown = first_rows(failures, SHOWN_FAILURES)
        except SPARK_ERRORS as error:
            return replace(result, status=DataTestStatus.ERROR, finding=self._finding(model, test, error))
        masked = tuple(tuple(map(self.secrets.redact_value, row)) for row in shown)
        table = ShownRows(result.full_name, result.unique_id, columns_of(failures), masked, SHOWN_FAILURES)
        return replace(result, shown=table)

    def _store(self, rows: DataFrame, folder: Path) -> None:
        """Writes rows as Parquet files into a folder of this machine, which does not exist yet. The executors of a
        cluster write them to the storage first, because they have other disks. Raises: Spark's errors.
        """
        local = f"file://{folder.resolve()}"  # not as_uri: Hadoop does not decode it
        if self.loaded.compiled.project.target.is_local:
            rows.write.parquet(local)
            return
        session = self.outputs.session
        aside = f"{storage_base(self.loaded).rstrip('/')}/_{FOLDER}/{uuid4().hex}"
        try:
            rows.write.parquet(aside)
            hadoop_copy(session, aside, local)
        finally:
            with suppress(*SPARK_ERRORS):  # an error of the rows matters more
                HadoopStorage(session).remove(aside)

    def _failed(self, model: CompiledModel, test: DataTest, failures: int) -> Finding:
        word = "value" if test.keys else "row"
        verb = "violates" if failures == 1 else "violate"
        return Finding(
            "data-test-failed",
            f"{plural(failures, word)} of `{model.name}` {verb} `{test.name}`",
            f"the test demands {demanded(test)}",
            "correct the rows where they come from, or the test",
            test.location,
        )


@dataclass(frozen=True)
class _StoredRows:
    """The rows that a sink of `model` holds. `tables` are the other tables that its tests read, by the names of the
    tests, or why one cannot be read.
    """

    model: CompiledModel
    rows: DataFrame
    tables: Mapping[str, Tables | Finding]

    def count(self, tests: Sequence[DataTest]) -> dict[str, int]:
        """Returns the failures of each test by its name. Raises: Spark's errors."""
        return count_failures(self._tested, tests)

    def failures(self, test: DataTest) -> DataFrame:
        """Returns the failures of a test. Raises: Spark's errors."""
        failures = failures_of(self._tested, test)
        return failures.drop(IS_CURRENT) if self._has_history and not test.keys else failures

    @property
    def _tested(self) -> TestedRows:
        tables = {name: found for name, found in self.tables.items() if not isinstance(found, Finding)}
        return TestedRows(self.rows, self.model.name, tables, has_history=self._has_history)

    @property
    def _has_history(self) -> bool:
        return bool(self.model.config.history)


def _file_name(name: str) -> str:
    """Returns the name of a test as that of a folder; different names stay different."""
    return re.sub(r"[^\w-]", lambda found: f"~{ord(found[0]):x}", name)
