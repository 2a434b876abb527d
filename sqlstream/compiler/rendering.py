"""Rendered models that the next compilation reuses if everything that their templates read is the same.

A template's reads are the names, variables and environment variables that it and its macros use while it is rendered.
The cache stores a digest of each, never the value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from sqlstream.compiler.cache import CachedModel, Memory, ModelResults
from sqlstream.compiler.digest import digest
from sqlstream.compiler.graph import closure_of
from sqlstream.compiler.python_models import read_python_model
from sqlstream.compiler.render.rendered import MacroIndex, RenderedModel, RenderOptions, TemplateReads, merge_reads
from sqlstream.errors import Finding
from sqlstream.location import Place
from sqlstream.project.values import ModelFile, Project

if TYPE_CHECKING:
    from sqlstream.compiler.render.model import ModelRenderer

OF_THE_MOMENT = frozenset({"run_started_at", "invocation_id"})
"""Names whose value differs in each compilation."""

MACROS = ""
"""The name of the entry about all macro files."""


class CachedRenderer:
    """Renders the models of a project, or takes them from the cache and repeats the messages that they logged."""

    def __init__(self, project: Project, options: RenderOptions, memory: Memory) -> None:
        self._project = project
        self._options = options
        self._memory = memory
        self._files = {file.path: file for file in project.macros}
        self._rendered: list[CachedModel] = []

    @cached_property
    def _renderer(self) -> ModelRenderer:
        """Created only if a model must be rendered, because it loads Jinja and reads all macros."""
        from sqlstream.compiler.render.model import ModelRenderer

        return ModelRenderer(self._project.macros, self._options)

    @cached_property
    def macro_findings(self) -> tuple[Finding, ...]:
        """The errors in the macro files."""
        return () if self._remembered_index is not None else self._renderer.macro_findings

    def render(self, file: ModelFile) -> CachedModel:
        """Returns the rendered model. Raises: FindingsError with the first failure."""
        found = self._python_model(file) if file.is_python else self._known(file) or self._new(file)
        self._rendered.append(found)
        return found

    def _python_model(self, file: ModelFile) -> CachedModel:
        model, known = read_python_model(file, self._options), self._recall(file)
        key = self._file_key(file)  # reading it costs less than the cache
        return CachedModel(model, known if known.template == key else ModelResults(key))

    def _known(self, file: ModelFile) -> CachedModel | None:
        """Returns the model from the cache if everything that its template reads is the same."""
        known = self._recall(file)
        if known.rendering is None:
            return None
        model = RenderedModel(file, *known.rendering)
        if self._template_key(model) != known.template:
            return None
        self._log(model.logged)
        return CachedModel(model, known)

    def _new(self, file: ModelFile) -> CachedModel:
        model, known = self._renderer.render(file), self._recall(file)
        key = self._template_key(model)
        parts = (model.sql, model.references, dict(model.config), model.findings, model.macros_used)
        rendering = None if key is None else (*parts, model.reads, model.logged)
        # text that is rendered each time can come from any macro, whose lines may have moved
        template = key or digest(self._file_key(file), self._macros_key, model.sql)
        if known.template == template:  # rendered each time, with the same result as the last time
            return CachedModel(model, known)
        answered = ModelResults(template, rendering, question=known.question, refusals=known.refusals)
        return CachedModel(model, answered, is_changed=True)

    def _recall(self, file: ModelFile) -> ModelResults:
        return self._memory.recall(file.path) or ModelResults()

    def save(self) -> None:
        """Stores what is new about the models since they were rendered."""
        for each in self._rendered:
            if each.is_changed:
                self._memory.note(each.model.file.path, each.results)

    def locate(self, rendered: CachedModel, offset: int) -> Place:
        """Returns where the character at `offset` of a model's rendered SQL was written."""
        places = rendered.results.places
        if offset in places:
            return places[offset]
        place = self._renderer.source_map(rendered.model).locate(offset)
        rendered.note(places={**places, offset: place})
        return place

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
        key = None if self._renderer.macro_findings else self._index_key(index)
        if key is not None:
            self._memory.note(MACROS, (key, index))
        return index

    @cached_property
    def _remembered_index(self) -> MacroIndex | None:
        key, index = self._memory.recall(MACROS) or (None, MacroIndex({}, {}))
        if key is None or key != self._index_key(index):
            return None
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

    def _index_key(self, index: MacroIndex) -> str | None:
        """Returns a digest of the macro files and all that they read while they are loaded; None if that can differ in
        each compilation.
        """
        meanings = self._meanings(merge_reads(index.reads.values()), None)
        return None if meanings is None else digest(self._macros_key, meanings)

    def _template_key(self, model: RenderedModel) -> str | None:
        """Returns a digest of a model's template and all that it and its macros read, as it is now; None if that can
        differ in each compilation.
        """
        files = closure_of(self._macro_reads, self._macro_files(model.reads))
        if not self._index.stateful.isdisjoint(files):
            return None
        reads = merge_reads([model.reads, *(self._index.reads[path] for path in files)])
        meanings = self._meanings(reads, model.file)
        return None if meanings is None else digest(self._file_key(model.file), meanings)

    def _file_key(self, file: ModelFile) -> str:
        return digest(self._project.name, file.name, file.path, file.text)

    def _meanings(self, reads: TemplateReads, file: ModelFile | None) -> tuple[object, ...] | None:
        """Returns the kind and name of everything in `reads`, with a digest of its present value."""
        if not OF_THE_MOMENT.isdisjoint(reads.names):
            return None
        return (*(("name", name, self._meaning(name, file)) for name in reads.names), values_of(reads, self._options))

    @cached_property
    def _versions_key(self) -> str:
        return digest([(name, each.latest, *each.files.items()) for name, each in self._options.versions.items()])

    def _meaning(self, name: str, file: ModelFile | None) -> str:
        """Returns a digest of the value of `name` in the model `file`, or in a macro file while it is loaded."""
        if name == "target":
            return digest(self._options.target.name)
        if name == "ref":
            return self._versions_key
        if file is None:
            return ""
        if name == "model":
            return digest(file.folders, file.description)
        if name == "config":
            return digest([[(key, item.value) for key, item in patch.items()] for patch in file.configs])
        macro = self._files.get(self._index.files.get(name, ""))
        return "" if macro is None else digest(macro.path, macro.text)


def values_of(reads: TemplateReads, options: RenderOptions) -> tuple[object, ...]:
    """Returns digests of the present values of the variables in `reads`; for a secret only whether it is set."""
    return (
        *(("var", name, _value(options.variables, name)) for name in reads.variables),
        *(("env", name, _value(options.env, name)) for name in reads.environment),
        *(("secret", name, "set" if name in options.env else "") for name in reads.secrets),
    )


def _value(values: Mapping[str, object], name: str) -> str:
    return digest(values[name]) if name in values else digest()
