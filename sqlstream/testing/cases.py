"""Builds the case of a unit test from a compiled project: resolves its inputs, orders its batches, finds its errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlstream.compiler.compiled import CompiledModel, CompiledProject, Output
from sqlstream.compiler.graph import SEED, kind_of, model_id, seed_id, view_of
from sqlstream.compiler.spark_findings import is_about
from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.formats.formats import format_of
from sqlstream.project.types.data_types import Field, Struct, Unknown
from sqlstream.project.unit_tests.fixtures import FIELDS, Rows, message_rows
from sqlstream.project.unit_tests.unit_test import Batch, BetweenBatches, Given, UnitTest
from sqlstream.project.wording import did_you_mean, quoted, quoted_list
from sqlstream.project.yaml import Located
from sqlstream.testing.fixture_values import ValueReader

METADATA = Field("_metadata", Struct((Field("file_path", Unknown("string")),)))


@dataclass(frozen=True)
class CaseInput:
    """The rows that replace one node. `rows` are those of a static node; a stream has its rows in the steps."""

    node_id: str
    text: str
    location: Location
    streaming: bool
    rows: Rows | None


@dataclass(frozen=True)
class GivenBatch:
    """One given micro-batch: rows by node. `at` is the time of the clock from this batch on."""

    rows: tuple[tuple[str, Rows], ...]
    at: Located | None
    location: Location


Step = GivenBatch | BetweenBatches


@dataclass(frozen=True)
class Case:
    """A unit test that can run, or whose model is refused with the findings `refusals`. `older` is the same test of the
    model before an upgrade.
    """

    test: UnitTest
    compiled: CompiledProject
    model: CompiledModel
    inputs: Mapping[str, CaseInput]
    steps: tuple[Step, ...]
    refusals: tuple[Finding, ...]
    older: Case | None = None

    @property
    def feeds(self) -> tuple[GivenBatch, ...]:
        """The given batches."""
        return tuple(step for step in self.steps if isinstance(step, GivenBatch))


def build_case(
    test: UnitTest, compiled: CompiledProject, errors: Sequence[Finding], *, is_older: bool = False
) -> Case | tuple[Finding, ...]:
    """Returns the case of `test` over `compiled`, or the findings that prevent it. `errors` are those of the compiler.
    Does not check expectations if the model `is_older`, before an upgrade.
    """
    unique_id = model_id(compiled.project.name, test.model)
    model = compiled.models.get(unique_id)
    if model is None:
        return (_unknown_model(test, compiled),)
    builder = _Builder(test, compiled, model)
    inputs = builder.inputs()
    steps = builder.steps(inputs)
    if not is_older:
        count = sum(isinstance(step, GivenBatch) for step in steps)
        builder.findings += expectation_problems(test, compiled, model, None if builder.findings else count)
    if builder.findings:
        return tuple(builder.findings)
    replaced = _replaced_files(compiled, unique_id, inputs)
    about = (error for error in errors if is_about(compiled, error, model))
    refusals = tuple(error for error in about if error.location is None or error.location.path not in replaced)
    return Case(test, compiled, model, inputs, steps, refusals)


def _unknown_model(test: UnitTest, compiled: CompiledProject) -> Finding:
    names = [model.name for model in compiled.models.values()]
    is_there = any(model.name == test.model for model in compiled.project.models)
    what = f"{quoted(test.model)} is disabled" if is_there else f"there is no model {quoted(test.model)}"
    why = "a unit test needs a model of the project"
    fix = f"enable {quoted(test.model)}" if is_there else did_you_mean(test.model, names)
    return Finding("unit-test-model", what, why, fix, test.locations.get("model", test.location))


def _replaced_files(compiled: CompiledProject, node_id: str, inputs: Mapping[str, CaseInput]) -> frozenset[str]:
    """Returns the files of models that do not run, because given rows replace them or the models that read them."""
    run = {node_id, *_between(compiled, node_id, inputs)}
    others = compiled.graph.ancestors(node_id) - run
    return frozenset(compiled.models[node].file.path for node in others if node in compiled.models)


def _between(compiled: CompiledProject, node_id: str, inputs: Mapping[str, CaseInput]) -> Iterator[str]:
    """Yields the models between the given inputs and the model `node_id`."""
    for read in compiled.models[node_id].reads:
        if read.node_id in compiled.models and read.node_id not in inputs:
            yield read.node_id
            yield from _between(compiled, read.node_id, inputs)


def text_of(node_id: str) -> str:
    """Returns the node as an input names it: source('source', 'table') or ref('name')."""
    parts = node_id.split(".")[2:]
    if kind_of(node_id) == "source":
        return f"source('{parts[0]}', '{'.'.join(parts[1:])}')"
    return f"ref('{parts[0]}')"


class _Builder:
    def __init__(self, test: UnitTest, compiled: CompiledProject, model: CompiledModel) -> None:
        self.findings: list[Finding] = []
        self._test, self._compiled, self._model = test, compiled, model

    def inputs(self) -> dict[str, CaseInput]:
        """Returns the given inputs by node. An input with several entries has the location of the first one."""
        found: dict[str, CaseInput] = {}
        for item in self._test.given:
            node_id = self._resolve(item)
            if node_id is None:
                continue
            streaming = self._streams(node_id)
            if streaming:
                found.setdefault(node_id, CaseInput(node_id, item.text, item.location, streaming, None))
            elif self._is_static(item, found.get(node_id)):
                rows = item.batches[0].rows if item.batches else None
                found[node_id] = CaseInput(node_id, item.text, item.location, streaming, rows)
            self._check_rows(item, node_id)
        # a wrong name would be reported as a missing input, too
        if not self.findings:
            self._check_complete(found)
        return found

    def _resolve(self, item: Given) -> str | None:
        project = self._compiled.project
        if item.kind == "source":
            tables = {(table.source, table.name): node for node, table in self._compiled.sources.items()}
            node_id = tables.get((item.parts[0], item.parts[1]))
            names = [f"source('{source}', '{table}')" for source, table in tables]
        else:
            nodes = {view_of(node): node for node in (*self._compiled.models, *self._compiled.stored)}
            nodes |= {seed.name: seed_id(project.name, seed.name) for seed in project.seeds}
            node_id = nodes.get(item.parts[0])
            names = [f"ref('{name}')" for name in nodes]
        read = self._compiled.upstream(self._model.unique_id)
        if node_id in read:
            return node_id
        model = quoted(self._model.name)
        if node_id is None:
            read_names = [text_of(each) for each in read if each.rpartition(".")[2] == item.parts[-1]]
            what, fix = f"{quoted(item.text)} does not exist", did_you_mean(item.text, read_names or names)
        else:
            what, fix = f"{model} does not read {quoted(item.text)}", "remove this input, or fix its name"
        direct = [read.node_id for read in self._compiled.models[self._model.unique_id].reads]
        texts = quoted_list([text_of(node) for node in dict.fromkeys([*direct, *self._leaves({})])])
        self._add("unit-test-input", what, f"{model} reads {texts}", fix, item.location)
        return None

    def _streams(self, node_id: str) -> bool:
        if node_id in self._compiled.models:
            return self._compiled.models[node_id].streaming
        table = self._compiled.tables.get(node_id)
        return table is not None and table.mode == "stream"

    def _is_static(self, item: Given, before: CaseInput | None) -> bool:
        """Whether the rows are valid for a static table: given once, and not in batches."""
        if item.in_batches or before is not None:
            how = "in batches" if item.in_batches else "twice"
            what = f"{quoted(item.text)} is not a stream, but its rows are given {how}"
            why = "a static table has all of its rows from the start"
            self._add("unit-test-batches", what, why, "give all of them once, with `rows:`", item.location)
            return False
        return True

    def _leaves(self, inputs: Mapping[str, object]) -> tuple[str, ...]:
        """Returns the sources, the seeds and the given models that the model reads, in the order of the SQL."""
        found: dict[str, None] = {}
        waiting = [self._model.unique_id]
        while waiting:
            reads = [read.node_id for read in self._compiled.models[waiting.pop(0)].reads]
            between = [node for node in reads if node in self._compiled.models and node not in inputs]
            waiting += between
            found |= dict.fromkeys(node for node in reads if node not in between)
        return tuple(found)

    def _check_complete(self, inputs: Mapping[str, CaseInput]) -> None:
        leaves = self._leaves(inputs)
        for node_id in leaves:
            if node_id not in inputs and kind_of(node_id) != SEED:
                text = text_of(node_id)
                what = f"the test has no rows for {quoted(text)}"
                why = f"{quoted(self._model.name)} reads it, and a unit test reads only its own rows"
                self._add(
                    "unit-test-input", what, why, f"add `- input: {text}` with its rows", self._location_of("given")
                )
        for node_id, item in inputs.items():
            if node_id not in leaves:
                what = f"the rows of {quoted(item.text)} would not be read"
                why = f"{quoted(self._model.name)} reads it through a model that also has rows in the test"
                self._add("unit-test-input", what, why, "remove the rows of one of them", item.location)
            elif item.rows is None and not item.streaming and kind_of(node_id) != SEED:
                what = f"the test has no rows for {quoted(item.text)}"
                why = "only a seed has rows in the project"
                self._add("unit-test-input", what, why, "add `rows:`, or `rows: []` for none", item.location)

    def steps(self, inputs: Mapping[str, CaseInput]) -> tuple[Step, ...]:
        """Returns all batches of streams in the order of the test."""
        steps: list[Step] = []
        for item in self._test.given:
            # `inputs` has reported the names that do not exist
            node_id = self._resolve(item) if not self.findings else None
            if node_id is None or not inputs[node_id].streaming:
                continue
            if item.steps is None:
                what, why = f"the test has no rows for {quoted(item.text)}", "only a seed has rows in the project"
                self._add("unit-test-input", what, why, "add `rows:` or `batches:`", item.location)
                continue
            for step in item.steps:
                self._append(steps, step, node_id)
        marks = [step for step in steps if isinstance(step, BetweenBatches)]
        if (self._test.document.upgrade_from is None) != (BetweenBatches.UPGRADE not in marks) and not self.findings:
            self._upgrade_problem(in_batches=BetweenBatches.UPGRADE in marks)
        return tuple(steps)

    def _append(self, steps: list[Step], step: Batch | BetweenBatches, node_id: str) -> None:
        if isinstance(step, BetweenBatches):
            steps.append(step)
            return
        last = steps[-1] if steps else None
        if step.with_previous and isinstance(last, GivenBatch):
            at = step.at or last.at
            steps[-1] = GivenBatch((*last.rows, (node_id, step.rows)), at, last.location)
            return
        if step.with_previous:
            what, why = "there is no batch before this one", "`with_previous` combines two batches into one micro-batch"
            self._add("unit-test-batches", what, why, "remove `with_previous`", step.location)
        steps.append(GivenBatch(((node_id, step.rows),), step.at, step.location))

    def _upgrade_problem(self, *, in_batches: bool) -> None:
        if in_batches:
            what, why = "the test does not define the older model", "`upgrade` marks the end of the older model"
            fix = "set the older model in `upgrade_from:`"
        else:
            what = "the test does not define when the upgrade happens"
            why = "the older model runs the batches before `upgrade`, the current one those after it"
            fix = "add `- upgrade` between two batches"
        self._add("unit-test-batches", what, why, fix, self._location_of("upgrade_from"))

    def _check_rows(self, item: Given, node_id: str) -> None:
        fields = self._compiled.known_columns(node_id)
        if fields is None:
            return
        reader = ValueReader(f"the input {item.text}", self.findings)
        for batch in item.batches:
            if batch.rows.are_messages:
                self._check_messages(item, node_id, batch.rows)
                continue
            for row in batch.rows.rows:
                has_metadata = row.entry(METADATA.name) is not None and kind_of(node_id) == "source"
                reader.row(row, (*fields, Field(METADATA.name, Unknown("struct"))) if has_metadata else fields)

    def _check_messages(self, item: Given, node_id: str, messages: Rows) -> None:
        table = self._compiled.sources.get(node_id)
        mixed = any(batch.rows.rows and not batch.rows.are_messages for batch in item.batches)
        if table is None or table.format != "kafka":
            what, why = f"{quoted(item.text)} has no messages", "only a source of format kafka reads messages"
            self._add("unit-test-input", what, why, "give it rows: `rows:`", messages.location)
        elif mixed:
            what, why = f"{quoted(item.text)} has both rows and messages", "a source parses all of its messages"
            self._add("unit-test-batches", what, why, "use `messages:` in all batches, or in none", messages.location)
        else:
            reader = ValueReader(f"a message of {item.text}", self.findings)
            for row in message_rows([messages], table)[0].rows:
                reader.row(row, FIELDS)

    def _location_of(self, key: str) -> Location:
        return self._test.locations.get(key, self._test.location)

    def _add(self, code: str, what: str, why: str, fix: str, location: Location) -> None:
        self.findings.append(Finding(code, what, why, fix, location))


_OF_STREAMS = ("batches", "late_rows_dropped", "watermark", "state_rows", "violations")
"""Expectations that apply only to streams."""


def expectation_problems(
    test: UnitTest, compiled: CompiledProject, model: CompiledModel, given: int | None
) -> list[Finding]:
    """Returns findings for expectations of `test` that do not apply to `model`. `given` is the number of its batches,
    None if they have errors.
    """
    return [
        *_of_batches(test, given),
        *_of_sink(test, model),
        *([] if model.streaming else _of_static_model(test, model)),
        *_of_columns(test, compiled, model),
        *_of_data_tests(test, compiled, model),
    ]


def _of_data_tests(test: UnitTest, compiled: CompiledProject, model: CompiledModel) -> Iterator[Finding]:
    nodes = [*sorted(compiled.upstream(model.unique_id) & compiled.models.keys()), model.unique_id]
    tested = [compiled.models[node] for node in nodes]
    known = [f"{each.name}.{found.name}" for each in tested for found in each.file.row_tests]
    for name in test.expect.document.violations or ():
        if data_test_name(name, model.name) not in known:
            what = f"{quoted(name)} is not a data test of {quoted(model.name)} or upstream of it"
            why = f"the data tests are {quoted_list(known, most=20)}" if known else "none of these models has any"
            place = test.expect.locations["violations"]
            yield Finding("unit-test-expect", what, why, did_you_mean(name, known), place)


def data_test_name(name: str, model: str) -> str:
    """Returns the full name of a data test, with its model."""
    return name if "." in name else f"{model}.{name}"


def _of_batches(test: UnitTest, given: int | None) -> Iterator[Finding]:
    batches = test.expect.batches
    if batches is not None and given is not None and len(batches) != given:
        what = f"{len(batches)} expected batches, but {given} given"
        why = "each entry is the output of the input batch with its number"
        fix = "use `- rows: []` for no output"
        yield Finding("unit-test-expect", what, why, fix, test.expect.locations["batches"])


def _of_sink(test: UnitTest, model: CompiledModel) -> Iterator[Finding]:
    writes = model.output is not None and model.output.python is not None
    if "table" in test.expect.document.model_fields_set and table_output(model) is None:
        what = f"{quoted(model.name)} does not write to a table"
        why = "`table` is what a table or files have after all batches, and its sinks keep no rows, or are topics"
        fix = "remove `table`, and expect `rows` or `batches`"
        yield Finding("unit-test-expect", what, why, fix, test.expect.locations["table"])
    elif "table" in test.expect.document.model_fields_set and model.config.history:
        what = f"{quoted(model.name)} keeps the versions of each row (history), which `table` does not state"
        why = "`table` has the columns of the model, and one row for each key"
        fix = "remove `table`, and expect `rows` or `batches`, which are the changes"
        yield Finding("unit-test-expect", what, why, fix, test.expect.locations["table"])
    if test.document.call_sink and not writes:
        what = f"{quoted(model.name)} does not write to a function"
        why = "`call_sink` calls the function of a sink with `format: python` for each batch"
        yield Finding(
            "unit-test-expect", what, why, "remove `call_sink`", test.locations.get("call_sink", test.location)
        )


def table_output(model: CompiledModel) -> Output | None:
    """Returns the first output of a model that is files or a table, None without one."""
    found = (each for each in model.outputs if format_of(each.format).keeps_output or each.format == "table")
    return next(found, None)


def _of_static_model(test: UnitTest, model: CompiledModel) -> Iterator[Finding]:
    for key in _OF_STREAMS:
        if key in test.expect.document.model_fields_set:
            what = f"{quoted(model.name)} is not a stream, so it has no {key.replace('_', ' ')}"
            why, fix = "all of its inputs are static", f"remove `{key}`, and expect `rows`"
            yield Finding("unit-test-expect", what, why, fix, test.expect.locations[key])
    if test.document.at is not None and model.file.is_python:
        what = f"{quoted(model.name)} is not a stream, so its clock cannot be set"
        why = "Spark uses the system time for a query on static tables"
        yield Finding("unit-test-expect", what, why, "remove `at`", test.locations.get("at", test.location))


def _of_columns(test: UnitTest, compiled: CompiledProject, model: CompiledModel) -> list[Finding]:
    fields = compiled.known_columns(model.unique_id)
    if fields is None:
        return []
    found: list[Finding] = []
    reader = ValueReader(f"the model {quoted(model.name)}", found)
    for rows in (test.expect.rows, test.expect.table, *(test.expect.batches or ())):
        for row in rows.rows if rows else ():
            reader.row(row, fields)
    return found
