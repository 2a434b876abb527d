"""Writes a case with rows into tests/models/, and runs it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import count
from pathlib import Path

from sqlstream.app.request import UnitTestRequest
from sqlstream.app.test.unit_tests import UnitTestOutcome, run_tests
from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.graph import model_id
from sqlstream.errors import Finding, FindingsError
from sqlstream.project.types.ddl import parse_type
from sqlstream.project.unit_tests.declared import TESTS_FOLDER
from sqlstream.project.yaml import YamlSequence, follow, parse_yaml, plain
from sqlstream.project.yaml.writing import YamlFile, flow_text, read_yaml_file
from sqlstream.spark.secrets import Secrets
from sqlstream.state.shown_rows import ShownColumn, ShownRows
from sqlstream.testing.cases import text_of
from sqlstream.testing.fixture_values import UnwritableError, written_value


@dataclass
class RowMasker:
    """Replaces values that a test must not show. Equal values stay equal."""

    secrets: Secrets
    _given: dict[object, int] = field(default_factory=dict)

    def row(self, values: Sequence[object], columns: Sequence[ShownColumn], masked: Sequence[str]) -> dict[str, object]:
        """Returns a row as a fixture has it, with the values of the columns `masked` replaced, and secrets redacted in
        all columns. Raises: UnwritableError.
        """
        hidden = {name.casefold() for name in masked}
        return {
            column.name: self._mask(value)
            if column.name.casefold() in hidden
            else self.secrets.redact_value(written_value(value, parse_type(column.data_type)))
            for column, value in zip(columns, values, strict=True)
        }

    def _mask(self, value: object) -> object:
        if value is None:
            return None
        number = self._given.setdefault(repr(value), len(self._given) + 1)
        if isinstance(value, str):
            return _masked_time(number) if _is_time(value) else f"masked-{number}"
        return number if isinstance(value, int | Decimal) and not isinstance(value, bool) else None


def _is_time(text: str) -> bool:
    """Whether a text looks like a timestamp or a date, and must be replaced by a valid one."""
    return re.fullmatch(r"[+-]?\d{4,}-\d\d-\d\d([ T].*)?", text) is not None


def _masked_time(number: int) -> str:
    return (datetime(2000, 1, 1) + timedelta(days=number)).strftime("%Y-%m-%d")


@dataclass(frozen=True)
class GivenRows:
    """The rows of an input, in one batch or in several. `masked` are the columns whose values must not be shown."""

    unique_id: str
    batches: tuple[ShownRows, ...]
    masked: tuple[str, ...] = ()
    is_batched: bool = False


@dataclass(frozen=True)
class NewCase:
    """A case to write for a model, which expects `expected` rows. `at` sets its clock. `reason` is why it is not
    compared with the batch query.
    """

    model: str
    name: str
    given: Sequence[GivenRows]
    expected: ShownRows | None = None
    at: str | None = None
    reason: str | None = None

    def lines(self, masker: RowMasker) -> Iterator[str]:
        """Yields the lines of the case in a file of unit tests."""
        yield from (f"  - name: {flow_text(self.name)}", f"    model: {flow_text(self.model)}")
        if self.at is not None:
            yield f"    at: {flow_text(self.at)}"
        if self.reason is not None:
            yield from ("    equivalence: false", f"    reason: {self.reason}")
        yield "    given:"
        for given in self.given:
            yield f"      - input: {text_of(given.unique_id)}"
            if not given.is_batched:
                yield from _row_lines(given.batches[0], masker, given.masked, "        ")
                continue
            yield "        batches:"
            for batch in given.batches:
                yield from _row_lines(batch, masker, given.masked, "          - ")
        yield "    expect:"
        if self.expected is None:
            yield "      rows: []"
        else:
            yield from _row_lines(self.expected, masker, (), "      ")


def _row_lines(rows: ShownRows, masker: RowMasker, masked: Sequence[str], start: str) -> Iterator[str]:
    yield f"{start}rows:" + ("" if rows.rows else " []")
    for row in rows.rows:
        yield f"{' ' * (len(start) + 2)}- {flow_text(masker.row(row, rows.columns, masked))}"


def run_case(only: UnitTestRequest, path: str, *, is_recorded: bool = True) -> UnitTestOutcome:
    """Returns the result of the recorded case, without the results of unreadable files. `is_recorded`: `retry` can
    repeat it.
    """
    outcome = run_tests(only, lambda _result, _total: None, is_recorded=is_recorded)
    results = tuple(result for result in outcome.results if result.location.path == path and result.model is not None)
    return replace(outcome, results=results)


def free_name(first: str, taken: Sequence[str]) -> str:
    """Returns `first`, or `first` with a number, as a name that is not taken."""
    names = (first, *(f"{first}_{number}" for number in range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)


def write_case(compiled: CompiledProject, case: NewCase, masker: RowMasker, kind: str) -> str:
    """Adds the case to the file `<model>_<kind>.yml` of the model and returns its path. Raises: FindingsError."""
    try:
        lines = tuple(case.lines(masker))
    except UnwritableError as error:
        model = compiled.models[model_id(compiled.project.name, case.model)]
        fix = f"write the test by hand, or cast the column to text in a view above `{case.model}`"
        what = f"the rows of `{case.model}` cannot be written as a unit test"
        raise FindingsError([Finding("unit-test-value", what, str(error), fix, model.file.location)]) from error
    root = compiled.project.root
    path, file = next(
        (path, file)
        for path, file in _candidates(root, f"{case.model}_{kind}", lines)
        if _ends_with(file.text, path, case.name)
    )
    file.write(root / path)
    return path


def _candidates(root: Path, stem: str, lines: Sequence[str]) -> Iterator[tuple[str, YamlFile]]:
    """Yields the possible files, `<stem>.yml`, `<stem>_2.yml` and so on, each after adding `lines`."""
    for number in count(1):
        relative = f"{TESTS_FOLDER}/{stem}{'' if number == 1 else f'_{number}'}.yml"
        path = root / relative
        before = read_yaml_file(path) if path.exists() else YamlFile("version: 2\n\nunit_tests:\n")
        yield relative, before.with_lines(lines)


def _ends_with(text: str, path: str, case: str) -> bool:
    """Whether the last test in a file is the case. It is not if the file has another layout or is invalid."""
    try:
        tests = follow(parse_yaml(text, path), ("unit_tests",))
    except FindingsError:
        return False
    name = follow(tests, (len(tests.items) - 1, "name")) if isinstance(tests, YamlSequence) and tests.items else None
    written = parse_yaml(f"name: {flow_text(case)}", path).get("name")
    return name is not None and written is not None and plain(name) == plain(written)


def masked_columns(compiled: CompiledProject, node_id: str) -> tuple[str, ...]:
    """Returns the columns to mask of a source or stored output, and of all sources upstream."""
    if node_id in compiled.stored:
        node_id = model_id(compiled.project.name, compiled.stored[node_id].name)
    read = {node_id, *compiled.graph.ancestors(node_id)}
    return tuple(name for node, table in compiled.sources.items() if node in read for name in table.mask)
