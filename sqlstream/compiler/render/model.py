"""Renders the templates of models to SQL."""

from __future__ import annotations

from collections.abc import Sequence

from sqlstream.compiler.render.model_functions import model_names, names_of_model
from sqlstream.compiler.render.places.source import TemplateSource
from sqlstream.compiler.render.places.source_mapper import SourceMapper
from sqlstream.compiler.render.plain_templates import read_plain, run_plain
from sqlstream.compiler.render.sandbox.environment import RenderState, TemplateEnvironment
from sqlstream.compiler.render.sandbox.running import load_macros, override_macros, render_file
from sqlstream.compiler.render.values import MacroIndex, RenderedModel, RenderOptions
from sqlstream.errors import Finding
from sqlstream.location import SourceMap
from sqlstream.project.values import MacroFile, ModelFile


class ModelRenderer:
    """Renders the models of one project, one at a time. It compiles the macros once, when it is created.

    `macro_findings` are the findings in the macro files. Not thread-safe.
    """

    def __init__(self, macros: Sequence[MacroFile], options: RenderOptions) -> None:
        self._environment = TemplateEnvironment()
        self._environment.names.update(model_names(self._environment, options))
        self.macro_findings: tuple[Finding, ...] = load_macros(self._environment, macros)
        override_macros(self._environment, options.macros)
        self._mapper = SourceMapper(macros, options)

    @property
    def macro_index(self) -> MacroIndex:
        """The facts about the macro files."""
        return self._environment.macro_index

    def render(self, file: ModelFile) -> RenderedModel:
        """Returns the model's SQL and the effects of its template. Raises: FindingsError with the first failure."""
        sql, state = self._render_plain(file) or self._render_by_jinja(file)
        return RenderedModel(
            file,
            sql,
            tuple(state.references),
            state.config,
            tuple(state.findings),
            tuple(state.macros_used),
            state.reads,
            tuple(state.logged),
        )

    def _render_by_jinja(self, file: ModelFile, logged: Sequence[tuple[str, bool]] = ()) -> tuple[str, RenderState]:
        """The output and the effects of a template. Messages that a first attempt has `logged` are not logged again."""
        state = RenderState(self._environment.limits, file, quiet=bool(logged))
        sql = render_file(self._environment, file, state)
        state.logged = state.logged or list(logged)
        return sql, state

    def _render_plain(self, file: ModelFile) -> tuple[str, RenderState] | None:
        """The output and the effects of a plain template; None for other templates."""
        template = read_plain(TemplateSource(file.path, file.text))
        if template is None:
            return None
        self._environment.names.update(names_of_model(file))
        state = self._environment.state = RenderState(self._environment.limits, file)
        try:
            return run_plain(self._environment, template), state
        except Exception:  # Jinja fails too, and knows the location
            return self._render_by_jinja(file, state.logged)

    def source_map(self, rendered: RenderedModel) -> SourceMap:
        """Returns the map from `rendered.sql` back to the lines of the template. The first call for a model renders it
        again with marks, so call it only for findings.
        """
        return self._mapper.source_map(rendered)
