"""`sqlstream test --record`: writes a case from real rows of a model's inputs and the rows that it emits for them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import count
from pathlib import Path

from sqlstream.app.request import Selection, UnitTestRequest
from sqlstream.app.running.show import Previews
from sqlstream.app.running.signals import interruptible
from sqlstream.app.test import TestedProject, UnitTestOutcome, open_tests, run_tests
from sqlstream.app.unit_tests.update import plain_number, update_expectations, updated_line
from sqlstream.compiler.allowances import lowered_by_rules
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.node_ids import model_id
from sqlstream.errors import Finding, FindingsError, Severity
from sqlstream.project.nearest import did_you_mean
from sqlstream.project.unit_tests.declared import TESTS_FOLDER
from sqlstream.project.unit_tests.values import BrokenTest, UnitTest
from sqlstream.project.yaml import YamlScalar, YamlSequence, follow, parse_yaml
from sqlstream.project.yaml.spans import flow_text
from sqlstream.spark.secrets import Secrets
from sqlstream.state.results.rows import ShownRows
from sqlstream.state.results.unit_tests import NOTHING, CaseResult, Outcome
from sqlstream.testing.cases import text_of

RECORDED = "recorded"
"""The name of the first recorded case. The next ones are recorded_2 and so on."""


@dataclass
class RowMasker:
    """Replaces values that a test must not show. Equal values stay equal."""

    secrets: Secrets
    _given: dict[object, int] = field(default_factory=dict)

    def row(self, row: Mapping[str, object], masked: Sequence[str]) -> dict[str, object]:
        """Returns `row` with the values of the columns `masked` replaced, and secrets redacted in all columns."""
        hidden = {name.casefold() for name in masked}
        return {
            name: self._mask(value) if name.casefold() in hidden else self._shown(value) for name, value in row.items()
        }

    def _mask(self, value: object) -> object:
        if value is None:
            return None
        number = self._given.setdefault(repr(value), len(self._given) + 1)
        if isinstance(value, str):
            return _masked_time(number) if _is_time(value) else f"masked-{number}"
        return number if isinstance(value, int | Decimal) and not isinstance(value, bool) else None

    def _shown(self, value: object) -> object:
        if isinstance(value, str):
            return self.secrets.redact(value)
        if isinstance(value, dict):
            return {key: self._shown(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._shown(item) for item in value]
        return plain_number(value) if isinstance(value, Decimal) else value


def _is_time(text: str) -> bool:
    """Whether a text looks like a timestamp or a date, and must be replaced by a valid one."""
    return re.fullmatch(r"[+-]?\d{4,}-\d\d-\d\d([ T].*)?", text) is not None


def _masked_time(number: int) -> str:
    return (datetime(2000, 1, 1) + timedelta(days=number)).strftime("%Y-%m-%d")


def record_case(request: UnitTestRequest, name: str, limit: int, notify: Callable[[str], None]) -> UnitTestOutcome:
    """Writes a case of the model `name` into tests/models/, with at most `limit` rows of each input, and runs it.

    Returns the result, with a warning if the case expects no rows. Raises: FindingsError, UsageError.
    """
    project = open_tests(request.project)
    compiled = project.loaded.compiled
    model = _model_named(compiled, name)
    shown = _input_rows(project, model, limit, notify)
    every: tuple[UnitTest | BrokenTest, ...] = (*project.tests.cases, *project.tests.broken)
    case = _free_name([test.name for test in every if test.model == name])
    path = _write(compiled, model, case, shown, RowMasker(Secrets(request.project.env)))
    notify(f"Wrote {path}: {name}.{case}")
    only = replace(request, selection=Selection((f"unit_test:{name}.{case}",)), explains=True)
    outcome = _run(only, path)
    (result,) = outcome.results
    if result.outcome is Outcome.PASSED:  # the model emits no rows, and so far the case expects none
        warnings = lowered_by_rules(compiled.project, [_expects_nothing(result, shown, limit)])
        return replace(outcome, findings=(*outcome.findings, *warnings))
    for line in update_expectations(request.project.folder, outcome.results):
        if line != updated_line(path):  # the user has read "Wrote"
            notify(line)
    return _run(only, path)


def _model_named(compiled: CompiledProject, name: str) -> CompiledModel:
    model = compiled.models.get(model_id(compiled.project.name, name))
    if model is not None:
        return model
    names = [each.name for each in compiled.models.values()]
    what, why = f"there is no model `{name}`", "--record needs the name of a model"
    raise FindingsError([Finding("unit-test-model", what, why, did_you_mean(name, names))])


def _input_rows(
    project: TestedProject, model: CompiledModel, limit: int, notify: Callable[[str], None]
) -> tuple[ShownRows, ...]:
    """Returns the first rows of each input of `model`."""
    nodes = tuple(dict.fromkeys(read.node_id for read in model.reads))
    with interruptible() as signals, closing(Previews(project.request.env, notify, signals)) as previews:
        return previews.show(project.loaded, nodes, limit)


def _run(only: UnitTestRequest, path: str) -> UnitTestOutcome:
    """Returns the result of the recorded case, without the results of unreadable files."""
    outcome = run_tests(only, lambda _result, _total: None)
    results = tuple(result for result in outcome.results if result.location.path == path and result.model is not None)
    return replace(outcome, results=results)


def _expects_nothing(result: CaseResult, shown: Sequence[ShownRows], limit: int) -> Finding:
    is_cut = any(rows.is_cut for rows in shown)
    more = f"delete it and record more rows with --limit {10 * limit}, or " if is_cut else ""
    return Finding(
        "unit-test-empty",
        f"`{result.full_name}` expects no rows, so the test can hardly fail",
        f"the model emitted no rows: {result.notes.get(NOTHING, 'the reason is unknown')}",
        f"{more}add rows to `given` and run `sqlstream test --update --select {result.selector}`",
        result.location,
        severity=Severity.WARNING,
    )


def _free_name(taken: Sequence[str]) -> str:
    names = (RECORDED, *(f"{RECORDED}_{number}" for number in range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)


def _write(
    compiled: CompiledProject, model: CompiledModel, case: str, shown: Sequence[ShownRows], masker: RowMasker
) -> str:
    """Adds the case to the model's file of recorded tests and returns its path."""
    lines = [f"  - name: {case}", f"    model: {model.name}", "    given:"]
    for rows in shown:
        lines += [f"      - input: {text_of(rows.unique_id)}", "        rows:" + ("" if rows.rows else " []")]
        masked = _masked(compiled, rows.unique_id)
        names = [column.name for column in rows.columns]
        written = (masker.row(dict(zip(names, row, strict=True)), masked) for row in rows.rows)
        lines += [f"          - {flow_text(row)}" for row in written]
    lines += ["    expect:", "      rows: []"]
    relative, text = next(
        (path, text)
        for path, text in _candidates(compiled.project.root, model.name, "\n".join(lines))
        if _ends_with(text, path, case)
    )
    path = Path(compiled.project.root, relative)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return relative


def _candidates(root: Path, model: str, lines: str) -> Iterator[tuple[str, str]]:
    """Yields the possible files, `<model>_recorded.yml`, `_2` and so on, each with its text after adding `lines`."""
    for number in count(1):
        relative = f"{TESTS_FOLDER}/{model}_recorded{'' if number == 1 else f'_{number}'}.yml"
        path = root / relative
        before = path.read_text(encoding="utf-8") if path.exists() else "version: 2\n\nunit_tests:\n"
        yield relative, before.rstrip("\n") + "\n" + lines + "\n"


def _ends_with(text: str, path: str, case: str) -> bool:
    """Whether the last test in a file is the case. It is not if the file has another layout or is invalid."""
    try:
        tests = follow(parse_yaml(text, path), ("unit_tests",))
    except FindingsError:
        return False
    name = follow(tests, (len(tests.items) - 1, "name")) if isinstance(tests, YamlSequence) and tests.items else None
    return isinstance(name, YamlScalar) and name.value == case


def _masked(compiled: CompiledProject, node_id: str) -> tuple[str, ...]:
    """Returns the columns to mask of a source or stored output, and of all sources upstream."""
    if node_id in compiled.stored:
        node_id = model_id(compiled.project.name, compiled.stored[node_id].name)
    read = {node_id, *compiled.graph.ancestors(node_id)}
    return tuple(name for node, table in compiled.sources.items() if node in read for name in table.mask)
