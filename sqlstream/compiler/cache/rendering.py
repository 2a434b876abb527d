"""Rendered models that the next compilation reuses if everything that their templates read is the same.

A template's reads are the names, variables and environment variables that it and its macros use while it is rendered.
The cache stores a digest of each, never the value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from sqlstream.compiler.cache.memory import Memory
from sqlstream.compiler.digest import digest
from sqlstream.compiler.graph import closure_of
from sqlstream.compiler.python_models import read_python_model
from sqlstream.compiler.render.values import MacroIndex, RenderedModel, RenderOptions, TemplateReads, merge_reads
from sqlstream.errors import Finding
from sqlstream.location import Place
from sqlstream.project.values import ModelFile, Project

if TYPE_CHECKING:
    from sqlstream.compiler.render.model import ModelRenderer

OF_THE_MOMENT = frozenset({"run_started_at", "invocation_id"})
"""Names whose value differs in each compilation."""

Meanings = tuple[tuple[str, str, str], ...]
"""The kind and name of everything that a template read, and a digest of its value."""


@dataclass(frozen=True)
class KeyedModel:
    """A rendered model, and a digest that changes if its text or the locations of its text can have changed."""

    model: RenderedModel
    digest: str


class CachedRenderer:
    """Renders the models of a project, or takes them from the cache and repeats the messages that they logged."""

    def __init__(self, project: Project, options: RenderOptions, memory: Memory) -> None:
        self._project = project
        self._options = options
        self._memory = memory
        self._files = {file.path: file for file in project.macros}
        self._places: dict[str, dict[int, Place]] = {}
        self._unsaved: dict[str, str] = {}

    @cached_property
    def _renderer(self) -> ModelRenderer:
        """Created only if a model must be rendered, because it loads Jinja and reads all macros."""
        from sqlstream.compiler.render.model import ModelRenderer

        return ModelRenderer(self._project.macros, self._options)

    @cached_property
    def macro_findings(self) -> tuple[Finding, ...]:
        """The errors in the macro files."""
        return () if self._remembered_index is not None else self._renderer.macro_findings

    def render(self, file: ModelFile) -> KeyedModel:
        """Returns the rendered model. Raises: FindingsError with the first failure."""
        key = digest(self._project.name, file.name, file.path, file.text)
        if file.is_python:  # parsing it costs less than the cache
            return KeyedModel(read_python_model(file, self._options.variables), digest(key))
        found = self._recall(file, key)
        if found is not None:
            self._log(found.model.logged)
            return found
        model = self._renderer.render(file)
        meanings = self._model_meanings(model)
        if meanings is not None:
            parts = (model.sql, model.references, dict(model.config), model.findings, model.macros_used)
            self._memory.note("render", file.path, key, (*parts, model.reads, model.logged, meanings))
        # text that is not in the cache can come from any macro, whose lines may have moved
        return KeyedModel(model, digest(key, self._macros_key if meanings is None else meanings, model.sql))

    def locate(self, rendered: KeyedModel, offset: int) -> Place:
        """Returns where the character at `offset` of a model's rendered SQL was written."""
        path = rendered.model.file.path
        if path not in self._places:
            self._places[path] = dict(self._memory.recall("places", path, rendered.digest) or {})
        places = self._places[path]
        if offset not in places:
            places[offset] = self._renderer.source_map(rendered.model).locate(offset)
            self._unsaved[path] = rendered.digest
        return places[offset]

    def remember_places(self) -> None:
        """Notes the places that `locate` has found since the last call."""
        for path, key in self._unsaved.items():
            self._memory.note("places", path, key, dict(self._places[path]))
        self._unsaved.clear()

    def _recall(self, file: ModelFile, key: str) -> KeyedModel | None:
        kept = self._memory.recall("render", file.path, key)
        if kept is None:
            return None
        *parts, meanings = kept
        model = RenderedModel(file, *parts)
        if self._model_meanings(model) != meanings:
            return None
        return KeyedModel(model, digest(key, meanings, model.sql))

    def _log(self, messages: tuple[tuple[str, bool], ...]) -> None:
        for message, info in messages:
            self._options.log(message, info)

    @property
    def macro_texts(self) -> tuple[str, ...]:
        """The templates of all macros."""
        return tuple(file.text for file in self._project.macros)

    @cached_property
    def _index(self) -> MacroIndex:
        if self._remembered_index is not None:
            return self._remembered_index
        index = self._renderer.macro_index
        meanings = None if self._renderer.macro_findings else self._index_meanings(index)
        if meanings is not None:
            self._memory.note("macros", "", self._macros_key, (index, meanings))
        return index

    @cached_property
    def _remembered_index(self) -> MacroIndex | None:
        found = self._memory.recall("macros", "", self._macros_key)
        if found is None or found[1] != self._index_meanings(found[0]):
            return None
        index: MacroIndex = found[0]
        self._log(index.logged)
        return index

    @cached_property
    def _macros_key(self) -> str:
        return digest(self._project.name, [(file.path, file.text) for file in self._project.macros])

    @cached_property
    def _macro_reads(self) -> Mapping[str, Sequence[str]]:
        """The macro files that each macro file used while it was loaded."""
        return {path: self._macro_files(reads) for path, reads in self._index.reads.items()}

    def _macro_files(self, reads: TemplateReads) -> list[str]:
        files = self._index.files
        return [files[name] for name in reads.names if name in files]

    def _index_meanings(self, index: MacroIndex) -> Meanings | None:
        """Returns the meanings of the reads of all macro files while they were loaded."""
        return self._meanings(merge_reads(index.reads.values()), None)

    def _model_meanings(self, model: RenderedModel) -> Meanings | None:
        """Returns the present meanings of a model's reads; None if they can differ in each compilation."""
        files = closure_of(self._macro_reads, self._macro_files(model.reads))
        if not self._index.stateful.isdisjoint(files):
            return None
        return self._meanings(merge_reads([model.reads, *(self._index.reads[path] for path in files)]), model.file)

    def _meanings(self, reads: TemplateReads, file: ModelFile | None) -> Meanings | None:
        if not OF_THE_MOMENT.isdisjoint(reads.names):
            return None
        names = tuple(("name", name, self._meaning(name, file)) for name in reads.names)
        return (*names, *values_of(reads, self._options))

    def _meaning(self, name: str, file: ModelFile | None) -> str:
        """Returns a digest of the value of `name` in the model `file`, or in a macro file while it is loaded."""
        if name == "target":
            return digest(self._options.target.name)
        if file is None:
            return ""
        if name == "model":
            return digest(file.folders, file.description)
        if name == "config":
            return digest([[(key, item.value) for key, item in patch.items()] for patch in file.configs])
        macro = self._files.get(self._index.files.get(name, ""))
        return "" if macro is None else digest(macro.path, macro.text)


def values_of(reads: TemplateReads, options: RenderOptions) -> Meanings:
    """Returns digests of the present values of the variables in `reads`; for a secret only whether it is set."""
    return (
        *(("var", name, _value(options.variables, name)) for name in reads.variables),
        *(("env", name, _value(options.env, name)) for name in reads.environment),
        *(("secret", name, "set" if name in options.env else "") for name in reads.secrets),
    )


def _value(values: Mapping[str, object], name: str) -> str:
    return digest(values[name]) if name in values else digest()
