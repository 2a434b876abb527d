"""A compiled project as frozen values: what every later stage holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.graph import Graph
from sqlstream.compiler.node_ids import model_id, source_id
from sqlstream.compiler.render.values import RenderedModel, RenderOptions, TemplateInputs
from sqlstream.compiler.rewrite.deduplicate import note_offset
from sqlstream.compiler.sql.edits import EditedText
from sqlstream.errors import Finding
from sqlstream.location import Location, Place, location_at
from sqlstream.project.configuration.config import ModelConfig
from sqlstream.project.secrets import OptionValue
from sqlstream.project.values import ModelFile, Project, SourceTable

if TYPE_CHECKING:
    from sqlstream.compiler.render.places.source_mapper import SourceMapper


@dataclass(frozen=True)
class Read:
    """One relation of a model's SQL: the temp view it reads (`view`, unquoted) and the node behind it."""

    view: str
    node_id: str


@dataclass(frozen=True)
class Output:
    """What one terminal model writes: its sink with the model's own name and options filled in.

    `path` is as written (relative to the target's storage, absolute, or a URI), None for sinks without one; `table` is
    the name in Spark's catalog of what the format `table` writes into; `python` is the `module:name` of python/ that
    the format `python` gives the rows to.
    """

    sink: str
    format: str
    path: str | None
    partition_by: tuple[str, ...]
    options: Mapping[str, OptionValue]
    location: Location
    table: str | None = None
    python: str | None = None

    @property
    def place(self) -> str | None:
        """Where it goes, as written: the path, the table or the function, None for sinks without any of them."""
        return self.path or self.table or self.python


@dataclass(frozen=True)
class CompiledModel:
    """One model: the SQL that Spark runs, and all that is known of it without Spark.

    `reads` are in the order of first appearance in `sql`; `config_places` is the location of each configured key;
    `streaming` says whether any source upstream is a stream; `output` is None for a view. `inputs` is what
    its template was rendered with, `rendered` what that gave, and `rewritten` the same text after sqlstream's edits.
    """

    unique_id: str
    rendered: RenderedModel
    rewritten: EditedText
    config: ModelConfig
    config_places: Mapping[str, Location]
    sql: str
    reads: tuple[Read, ...]
    streaming: bool
    output: Output | None
    compiled_path: str
    inputs: TemplateInputs = field(default_factory=TemplateInputs)

    @property
    def file(self) -> ModelFile:
        """The file that holds the model."""
        return self.rendered.file

    @property
    def name(self) -> str:
        """The model's name."""
        return self.file.name

    @property
    def query_id(self) -> str:
        """The name under which the query's checkpoint is kept: the model's, or the one it had before."""
        return self.config.previous_name or self.file.name

    @property
    def kind(self) -> str:
        """`stream`, or `batch` where all inputs are static: what is then written is written once per run."""
        return "stream" if self.streaming else "batch"

    @property
    def ends(self) -> bool:
        """Whether its query ends by itself: a batch, or a stream whose trigger takes what there is."""
        return not self.streaming or self.config.trigger.ends

    def place_of(self, key: str) -> Location:
        """Returns where configuration `key` was said, or the model's first line where it was not."""
        return self.config_places.get(key, self.file.location)

    def place_at(self, offset: int, locate: Callable[[int], Place]) -> Place:
        """Returns the place of a character (0-based) of `sql`; `locate` gives that of one of the rendered SQL."""
        if self.config.deduplicate and offset >= note_offset(self.sql):
            return Place(self.place_of("deduplicate"))
        if self.file.is_python:
            return Place(location_at(self.file.path, self.file.text, offset))
        return locate(self.rewritten.original_offset(offset))


@dataclass(frozen=True)
class CompiledProject:
    """All models of a project by unique id, in the order of their graph.

    `options` are what the templates were rendered with. `columns` are those that each model gives, None where they are
    not known. `unused_outputs` are those of the sinks that no model writes to, filled in for some model.
    """

    project: Project
    graph: Graph
    models: Mapping[str, CompiledModel]
    options: RenderOptions = field(repr=False, compare=False)
    columns: Mapping[str, tuple[Column, ...] | None] = field(default_factory=dict, repr=False)
    unused_outputs: tuple[Output, ...] = ()

    @cached_property
    def sources(self) -> Mapping[str, SourceTable]:
        """The source tables by unique id."""
        return {source_id(self.project.name, table): table for table in self.project.sources}

    def sources_of(self, unique_id: str) -> tuple[SourceTable, ...]:
        """Returns the source tables that a node reads, directly or through others."""
        upstream = self.graph.ancestors(unique_id)
        return tuple(table for node, table in self.sources.items() if node in upstream)

    def locate(self, unique_id: str, offset: int) -> Place:
        """Returns the place of the character at `offset` (0-based) of a model's compiled SQL.

        The first call for a model renders its template again: it is meant for findings.
        """
        model = self.models[unique_id]
        return model.place_at(offset, lambda at: self._mapper.source_map(model.rendered).locate(at))

    @cached_property
    def _mapper(self) -> SourceMapper:
        """What finds the places of rendered SQL. It loads Jinja."""
        from sqlstream.compiler.render.places.source_mapper import SourceMapper

        return SourceMapper(self.project.macros, self.options)

    def locate_in(self, name: str, offset: int | None) -> Place:
        """Returns the place of a character (0-based) of the compiled SQL of the model `name`; without an offset, or
        where there is no such model, the first line of its file or of the project's.
        """
        node = model_id(self.project.name, name)
        if node not in self.models:
            return Place(self.project.target.location)
        return Place(self.models[node].file.location) if offset is None else self.locate(node, offset)

    def place_of_words(self, model: CompiledModel, offset: int | None, words: str) -> Place:
        """Returns the place of `words` in the one text, of `model` and of those upstream of it, that has them at
        `offset`, else the file of `model`.
        """
        upstream = [*self.graph.ancestors(model.unique_id), model.unique_id]
        texts = {node: self.models[node].sql for node in upstream if node in self.models}
        found = [node for node, sql in texts.items() if offset is not None and sql.startswith(words, offset)]
        if offset is None or not words or len(found) != 1:
            return Place(model.file.location)
        return self.locate(found[0], offset)


@dataclass(frozen=True)
class CompileResult:
    """What compiling gave: `compiled` is None when any finding is an error.

    `attempted` is what would run if the errors of the rules were wrong; None where there is no SQL to run. `complete`
    says that no rule was left out: `findings` are all that there are.
    """

    compiled: CompiledProject | None
    findings: tuple[Finding, ...]
    attempted: CompiledProject | None = None
    complete: bool = False
