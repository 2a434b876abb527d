"""A compiled project as frozen values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from sqlstream.compiler.digest import digest
from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.flow.declared import seed_columns, source_columns
from sqlstream.compiler.graph import Graph, closure_of, exposure_id, model_id, seed_id, source_id
from sqlstream.compiler.render.rendered import RenderedModel, RenderOptions, TemplateInputs
from sqlstream.compiler.rewrite import data_tests
from sqlstream.compiler.rewrite.deduplicate import note_offset
from sqlstream.compiler.sql.edits import EditedText, ViewReference, Where
from sqlstream.errors import Finding
from sqlstream.location import Location, Place, location_at
from sqlstream.project.configuration.config import ModelConfig
from sqlstream.project.configuration.properties import Constraint
from sqlstream.project.formats.formats import format_of
from sqlstream.project.secret_text import OptionValue
from sqlstream.project.types.data_types import Field, Unknown
from sqlstream.project.values import NO_RECORD, Exposure, ModelFile, Project, RecordFormat, SourceTable

if TYPE_CHECKING:
    from sqlstream.compiler.render.source_map import SourceMapper
    from sqlstream.project.configuration.data_tests import DataTest


_DATABASE = re.compile(r"jdbc:\w+://[^/?;]*/(?P<name>[\w.-]+)(?:[?;]|\Z)")
"""The address of a database on a server. The server can have several names, and move."""


@dataclass(frozen=True)
class Output:
    """The output of a terminal model: its sink with the model's name and options filled in.

    `path` is unresolved: relative to the target's storage, absolute, or a URI. `table` is the name in Spark's catalog
    for the format `table`, `python` the `module:name` in python/ for the format `python`. Each is None if not used.
    `record` is for the format `kafka`. `files_per_batch` is the most files of a batch, None for no limit.
    """

    sink: str
    format: str
    path: str | None
    partition_by: tuple[str, ...]
    options: Mapping[str, OptionValue]
    location: Location
    table: str | None = None
    python: str | None = None
    record: RecordFormat = NO_RECORD
    files_per_batch: int | None = None

    @property
    def database_table(self) -> str | None:
        """The table of a database server, with its schema if it has one; None for other sinks."""
        options = self.options.items() if self.format == "jdbc" else ()
        return next((str(value) for name, value in options if name.lower() == "dbtable"), None)

    @property
    def address(self) -> str | None:
        """The topic of a Kafka sink, empty if a column names it; the name of the database of a JDBC sink; of a function
        the name of the sink and its options, because they can decide where it writes. None for other sinks, and for a
        name that is secret.
        """
        options = {name.lower(): str(value) for name, value in self.options.items()}
        if self.python is not None:
            return f"{self.sink} {digest(tuple(sorted(options.items())))}"
        if self.format == "kafka":
            return options.get("topic", "")
        found = _DATABASE.match(options.get("url", "")) if self.format == "jdbc" else None
        return None if found is None else found["name"]

    @property
    def sink_path(self) -> str | None:
        """The path, table or function, None for sinks without any of them."""
        return self.path or self.table or self.python


@dataclass(frozen=True)
class CompiledModel:
    """One model: the SQL that Spark runs, and everything known about it without Spark.

    `rendered` is the result of the template, `inputs` the variables that it read, `rewritten` the text after
    sqlstream's edits. `reads` are in the order of their first use in `sql`. `config_locations` has the location of each
    configured key. `streaming` says whether an upstream source is a stream. `output` is None for a view. `also` are the
    further outputs of a query with `fan_out: shared`. `compiled_path` is the path of the compiled SQL under target/.
    """

    unique_id: str
    rendered: RenderedModel
    rewritten: EditedText
    config: ModelConfig
    config_locations: Mapping[str, Location]
    sql: str
    reads: tuple[ViewReference, ...]
    streaming: bool
    output: Output | None
    compiled_path: str
    inputs: TemplateInputs = field(default_factory=TemplateInputs)
    also: tuple[Output, ...] = ()

    @property
    def outputs(self) -> tuple[Output, ...]:
        """All outputs of the query: none for a view."""
        return () if self.output is None else (self.output, *self.also)

    @property
    def file(self) -> ModelFile:
        """The file of the model."""
        return self.rendered.file

    @property
    def name(self) -> str:
        """The model's name."""
        return self.file.name

    @property
    def has_contract(self) -> bool:
        """Whether the model must have the columns that its properties declare. Queries of further sinks have them."""
        return self.config.contract.enforced and self.file.rows_of is None

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """The constraints on the rows of the model, which need a contract."""
        return self.file.constraints if self.config.contract.enforced else ()

    @property
    def checks(self) -> tuple[tuple[int, Constraint], ...]:
        """The `check` constraints with an expression, each with the offset of its expression. They are no part of the
        SQL, so their offsets begin after its end.
        """
        found, offset = [], len(self.sql) + 1
        for constraint in self.constraints if self.file.rows_of is None else ():
            if constraint.type == "check" and constraint.expression:
                found.append((offset, constraint))
                offset += len(constraint.expression) + 1
        return tuple(found)

    @property
    def quarantine_tests(self) -> tuple[DataTest, ...]:
        """The data tests whose violations go to `quarantine_sink`: only the query of the model itself writes them."""
        tests = self.file.data_tests if self.file.rows_of is None else ()
        return tuple(test for test in tests if test.action == "quarantine")

    @property
    def keeps_late_rows(self) -> bool:
        """Whether rows behind the watermark go to `quarantine_sink`: only the query of the model itself writes them."""
        return self.config.late_rows == "quarantine" and self.file.rows_of is None

    @property
    def query_id(self) -> str:
        """The name of the query's checkpoint: the name of the model, or its previous name."""
        return self.config.previous_name or self.file.name

    @property
    def kind(self) -> str:
        """`stream`, or `batch` if all inputs are static. A batch writes once per run."""
        return "stream" if self.streaming else "batch"

    @property
    def streams_when_stored(self) -> bool:
        """Whether the stored output of the model can be read as a stream: it is one, and its rows never change."""
        config = self.config
        if self.output is None or not self.streaming:
            return False
        return format_of(self.output.format).keeps_rows(config.output_mode, config.unique_key)

    def writes_snapshots_to(self, output: Output) -> bool:
        """Returns whether each batch of the model, a stream in complete mode, replaces all files of `output`."""
        return self.streaming and format_of(output.format).writes_snapshots(self.config.output_mode)

    @property
    def mode(self) -> str:
        """The output mode of a stream, or `batch`."""
        return self.config.output_mode if self.streaming else "batch"

    @property
    def ends(self) -> bool:
        """Whether the query ends by itself: a batch, or a stream whose trigger processes only available data."""
        return not self.streaming or self.config.trigger.facts.ends

    def location_of(self, key: str) -> Location:
        """Returns the location of the configuration `key`, or the first line of the model if it is not set."""
        return self.config_locations.get(key, self.file.location)

    def place_at(self, offset: int, locate: Callable[[int], Place]) -> Place:
        """Returns the place of a character (0-based) of `sql`, or of an expression of `checks`. `locate` finds one in
        the rendered SQL.
        """
        for start, constraint in reversed(self.checks if offset > len(self.sql) else ()):
            if offset >= start:
                return Place(constraint.location)
        for test in reversed(self.file.data_tests):
            if offset >= data_tests.offset_of_test(self.sql, test):
                return Place(test.location)
        if self.config.deduplicate and offset >= note_offset(self.sql):
            return Place(self.location_of("deduplicate"))
        if self.file.is_python:
            return Place(location_at(self.file.path, self.file.text, offset))
        return locate(self.rewritten.original_offset(offset))


class Places(Protocol):
    """Finds places in the user's files, as a `CompiledProject` does."""

    def locate(self, unique_id: str, offset: int) -> Place:
        """Returns the place of the character at `offset` (0-based) of a model's compiled SQL."""


@dataclass(frozen=True)
class CompiledProject:
    """All models of a project by unique id, in the order of their graph.

    `options` are the options of the rendering. `columns` are the output columns of each model, None if unknown.
    `unused_outputs` are the outputs of sinks without a model, filled in for a placeholder model. `stored` are the
    stored outputs by unique id, as tables that queries read. `metrics` and `alerts` are the rows that runs write about
    themselves, `quarantines` those that violate data tests, by the unique id of their model, and `late_rows` those that
    come behind the watermark.
    """

    project: Project
    graph: Graph
    models: Mapping[str, CompiledModel]
    options: RenderOptions = field(repr=False, compare=False)
    columns: Mapping[str, tuple[Column, ...] | None] = field(default_factory=dict, repr=False)
    unused_outputs: tuple[Output, ...] = ()
    stored: Mapping[str, SourceTable] = field(default_factory=dict, repr=False)
    metrics: CompiledModel | None = None
    alerts: CompiledModel | None = None
    quarantines: Mapping[str, CompiledModel] = field(default_factory=dict)
    late_rows: Mapping[str, CompiledModel] = field(default_factory=dict)

    @property
    def own_rows(self) -> tuple[CompiledModel, ...]:
        """The rows that runs write about themselves, as models."""
        return tuple(model for model in (self.metrics, self.alerts) if model is not None)

    @cached_property
    def tables(self) -> Mapping[str, SourceTable]:
        """The tables that queries read, by unique id: the source tables and the stored outputs."""
        return {**self.sources, **self.stored}

    @cached_property
    def sources(self) -> Mapping[str, SourceTable]:
        """The source tables by unique id."""
        return {source_id(self.project.name, table): table for table in self.project.sources}

    @cached_property
    def exposures(self) -> Mapping[str, Exposure]:
        """The exposures by unique id."""
        return {exposure_id(self.project.name, exposure.name): exposure for exposure in self.project.exposures}

    def model_named(self, name: str) -> CompiledModel | None:
        """Returns the model with this name, None without one. A version of a model has the name of its file, and also
        `orders.v2` as in dbt, or `orders_v2`.
        """
        models = {model.name: model for model in self.models.values()}
        versions = [(model.file.version, model) for model in models.values() if model.file.version is not None]
        spelt = {f"{version.name}{sign}v{version.v}": model for version, model in versions for sign in "._"}
        return {**spelt, **models}.get(name)

    def outputs_of(self, model: CompiledModel) -> tuple[Output, ...]:
        """Returns all outputs that the query of a model writes, including those of its quarantine."""
        return (*model.outputs, *self.quarantine_outputs(model))

    def quarantine_outputs(self, model: CompiledModel) -> tuple[Output, ...]:
        """Returns the outputs for the rows that the query of a model leaves out: its quarantine, and its late rows."""
        beside = (rows.get(model.unique_id) for rows in (self.quarantines, self.late_rows))
        return tuple(output for each in beside if each is not None for output in each.outputs)

    def tables_of(self, unique_id: str) -> tuple[SourceTable, ...]:
        """Returns the source tables and stored outputs that the query of a node reads."""
        upstream = self.upstream(unique_id)
        return tuple(table for node, table in self.tables.items() if node in upstream)

    def writer_of(self, table: SourceTable) -> CompiledModel:
        """Returns the model whose stored output is `table`."""
        return self.models[model_id(self.project.name, table.name)]

    def models_read(self, model: CompiledModel) -> dict[str, bool]:
        """Returns the names of the models that the SQL of `model` reads, and whether each is a stored output."""
        nodes = [read.node_id for read in model.reads]
        read = [(node, self.stored.get(node) or self.models.get(node)) for node in nodes]
        return {found.name: node in self.stored for node, found in read if found is not None}

    def upstream(self, unique_id: str) -> frozenset[str]:
        """Returns all nodes of which the query of `unique_id` computes or reads the rows. What is upstream of a stored
        output belongs to another query.
        """
        return frozenset(closure_of(self._inputs, self._inputs[unique_id]))

    @cached_property
    def _inputs(self) -> Mapping[str, tuple[str, ...]]:
        """What each node reads in a query."""
        leaves: dict[str, tuple[str, ...]] = dict.fromkeys([*self.graph.order, *self.stored], ())
        return leaves | {node: tuple(read.node_id for read in model.reads) for node, model in self.models.items()}

    def locate(self, unique_id: str, offset: int) -> Place:
        """Returns the place of the character at `offset` (0-based) of a model's compiled SQL.

        The first call for a model renders its template again, so use it only for findings.
        """
        model = self.models[unique_id]
        return model.place_at(offset, lambda at: self._mapper.source_map(model.rendered).locate(at))

    @cached_property
    def _mapper(self) -> SourceMapper:
        from sqlstream.compiler.render.source_map import SourceMapper

        return SourceMapper(self.project.macros, self.options)

    def locate_in(self, name: str, offset: int | None) -> Place:
        """Returns the place of a character (0-based) of the compiled SQL of the model `name`. Without an offset it is
        the first line of the model's file, and for an unknown model the target.
        """
        node = model_id(self.project.name, name)
        if node not in self.models:
            return Place(self.project.target.location)
        return Place(self.models[node].file.location) if offset is None else self.locate(node, offset)

    def place_of_words(self, model: CompiledModel, offset: int | None, words: str) -> Place:
        """Returns the place of `words` in the only SQL, of `model` or an upstream model, with these words at `offset`
        (None: anywhere); the file of `model` if there is not exactly one such place.
        """
        if words:
            upstream = self.models.keys() & {*self.upstream(model.unique_id), model.unique_id}
            texts = {node: self.models[node].sql for node in upstream}
            if offset is not None:
                places = [(node, offset) for node, sql in texts.items() if sql.startswith(words, offset)]
            else:
                found = ((node, re.finditer(re.escape(words), sql)) for node, sql in texts.items())
                places = [(node, match.start()) for node, matches in found for match in matches]
            if len(places) == 1:
                return self.locate(*places[0])
        return Place(model.file.location)

    def known_columns(self, node_id: str) -> tuple[Field, ...] | None:
        """Returns the columns of a node with their types if known, None if even the names are unknown."""
        if node_id in self.models:
            columns = self.columns.get(node_id)
        elif node_id in self.stored:
            columns = self.columns.get(model_id(self.project.name, self.stored[node_id].name))
        elif node_id in self.sources:
            columns = source_columns(node_id, self.sources[node_id])
        else:
            seed = next(seed for seed in self.project.seeds if seed_id(self.project.name, seed.name) == node_id)
            columns = seed_columns(node_id, seed)
        if columns is None:
            return None
        return tuple(Field(column.name, column.type or Unknown("unknown")) for column in columns)


def place_in(compiled: CompiledProject, places: Places, where: Where, key: str) -> Place:
    """Returns the place of an operator: in a model, or at the `key` of its source."""
    if where.model in compiled.models:
        return places.locate(where.model, where.offset)
    table = compiled.tables[where.model]
    return Place(table.locations.get(key, table.location))


@dataclass(frozen=True)
class CompileResult:
    """The result of a compilation: `compiled` is None if any finding is an error.

    `attempted` is the project despite errors of the rules, None if there is no SQL to run. `complete` says that all
    rules have run, so that `findings` has all findings.
    """

    compiled: CompiledProject | None
    findings: tuple[Finding, ...]
    attempted: CompiledProject | None = None
    complete: bool = False
