"""Models rendered once: what a rendering has given is used again for as long as all that it asked for is the same.

A template says while it runs which names, variables and environment variables it asks for, in the macros that it calls
too. Each of them is kept with a digest of what it was then. Values themselves are not kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from sqlstream.compiler.cache.digest import digest
from sqlstream.compiler.cache.memory import Memory
from sqlstream.compiler.graph import closure_of
from sqlstream.compiler.python_models import read_python_model
from sqlstream.compiler.render.values import MacroIndex, Reads, RenderedModel, RenderOptions, merge_reads
from sqlstream.errors import Finding
from sqlstream.location import Place
from sqlstream.project.values import MacroFile, ModelFile, Project

if TYPE_CHECKING:
    from sqlstream.compiler.render.model import ModelRenderer

OF_THE_MOMENT = frozenset({"run_started_at", "invocation_id"})
"""Names that mean something else each time."""

Meanings = tuple[tuple[str, str, str], ...]
"""What a rendering asked for: kind, name, and the digest of what it meant."""


@dataclass(frozen=True)
class KeyedModel:
    """A rendered model, and a digest that is another one wherever its text, or the way back to its lines, may be."""

    model: RenderedModel
    digest: str


class CachedRenderer:
    """Renders the models of one project, or remembers them. What a template has logged is logged again."""

    def __init__(self, project: Project, options: RenderOptions, memory: Memory) -> None:
        self._project = project
        self._options = options
        self._memory = memory
        self._files = {file.path: file for file in project.macros}
        self._ready: dict[str, KeyedModel] = {}
        self._places: dict[str, dict[int, Place]] = {}
        self._unsaved: dict[str, str] = {}

    @cached_property
    def _renderer(self) -> ModelRenderer:
        """Made only when something must be rendered: it loads Jinja and reads all macros."""
        from sqlstream.compiler.render.model import ModelRenderer

        return ModelRenderer(self._project.macros, self._options)

    @cached_property
    def macro_findings(self) -> tuple[Finding, ...]:
        """What is wrong with the macro files."""
        return () if self._remembered_index is not None else self._renderer.macro_findings

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

    def _index_meanings(self, index: MacroIndex) -> Meanings | None:
        """What the files asked for while they were read, macros aside; None where that changes each time."""
        return self._meanings(merge_reads(index.reads.values()), None, _Macros(index, {}))

    def missing(self, files: Sequence[ModelFile]) -> list[ModelFile]:
        """Returns those of `files` that are not remembered; the others are then ready to be rendered."""
        for file in (file for file in files if not file.is_python):
            found = self._recalled(file, self._key(file))
            if found is not None:
                self._ready[file.path] = found
        return [file for file in files if file.path not in self._ready and not file.is_python]

    def render(self, file: ModelFile) -> KeyedModel:
        """Returns a model's SQL and what its template said. Raises: FindingsError with the first failure."""
        key = self._key(file)
        if file.is_python:  # reading its syntax tree costs less than recalling it
            return KeyedModel(read_python_model(file, self._options.variables), digest(key))
        found = self._ready.pop(file.path, None) or self._recalled(file, key)
        if found is not None:
            self._log(found.model.logged)
            return found
        model = self._renderer.render(file)
        meanings = self._meanings_of(model)
        if meanings is not None:
            said = (model.sql, model.references, dict(model.config), model.findings, model.macros_used)
            self._memory.note("render", file.path, key, (*said, model.reads, model.logged, meanings))
        # what is not remembered may come from any macro, whose places may have moved
        return KeyedModel(model, digest(key, self._macros_key if meanings is None else meanings, model.sql))

    def _key(self, file: ModelFile) -> str:
        return digest(self._project.name, file.name, file.path, file.text)

    def _recalled(self, file: ModelFile, key: str) -> KeyedModel | None:
        kept = self._memory.recall("render", file.path, key)
        if kept is None:
            return None
        *said, meanings = kept
        model = RenderedModel(file, *said)
        if self._meanings_of(model) != meanings:
            return None
        return KeyedModel(model, digest(key, meanings, model.sql))

    def _log(self, messages: tuple[tuple[str, bool], ...]) -> None:
        for message, info in messages:
            self._options.log(message, info)

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
        """Notes the places that were looked for."""
        for path, key in self._unsaved.items():
            self._memory.note("places", path, key, dict(self._places[path]))
        self._unsaved.clear()

    # what a template asked for

    @cached_property
    def _macros(self) -> _Macros:
        return _Macros(self._index, self._files)

    def _meanings_of(self, model: RenderedModel) -> Meanings | None:
        """What all that a model asked for means now, None where it may mean something else each time."""
        files = self._macros.files_of(model.reads)
        if not self._index.stateful.isdisjoint(files):
            return None
        read = merge_reads([model.reads, *(self._index.reads[path] for path in files)])
        return self._meanings(read, model.file, self._macros)

    def _meanings(self, reads: Reads, file: ModelFile | None, macros: _Macros) -> Meanings | None:
        if not OF_THE_MOMENT.isdisjoint(reads.names):
            return None
        names = tuple(("name", name, self._meaning(name, file, macros)) for name in reads.names)
        return (*names, *values_of(reads, self._options))

    def _meaning(self, name: str, file: ModelFile | None, macros: _Macros) -> str:
        if name == "target":
            return digest(self._options.target.name)
        if name == "model" and file is not None:
            return digest(file.folders, file.description)
        if name == "config" and file is not None:
            return digest([[(key, item.value) for key, item in patch.items()] for patch in file.configs])
        return macros.text(name)


@dataclass(frozen=True)
class _Macros:
    """The macro files of a project, and what is known of them."""

    index: MacroIndex
    files: Mapping[str, MacroFile]

    def files_of(self, reads: Reads) -> tuple[str, ...]:
        """Returns the paths of the macros in `reads`, and of those that their files ask for when they are read."""
        return tuple(closure_of(self._edges, self._paths(reads)))

    @cached_property
    def _edges(self) -> Mapping[str, Sequence[str]]:
        return {path: self._paths(reads) for path, reads in self.index.reads.items()}

    def _paths(self, reads: Reads) -> list[str]:
        return [self.index.files[name] for name in reads.names if name in self.index.files]

    def text(self, name: str) -> str:
        """Returns the digest of the file of a macro, and an empty text for a name that is no macro's."""
        file = self.files.get(self.index.files.get(name, ""))
        return "" if file is None else digest(file.path, file.text)


def values_of(reads: Reads, options: RenderOptions) -> Meanings:
    """Returns what the variables in `reads` are now, as digests; of a secret only whether it is set."""
    return (
        *(("var", name, _value(options.variables, name)) for name in reads.variables),
        *(("env", name, _value(options.env, name)) for name in reads.environment),
        *(("secret", name, "set" if name in options.env else "") for name in reads.secrets),
    )


def _value(values: Mapping[str, object], name: str) -> str:
    """The digest of a value; of one that is not set, the digest of nothing."""
    return digest(values[name]) if name in values else digest()
